"""A simulated fleet: real master, real database, real workers; their slots sleep, not play."""
