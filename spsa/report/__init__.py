"""What people look at: the status of a run as values, as text, and live on a terminal."""
