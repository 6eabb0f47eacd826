"""Keys, signatures, private folders, and files that are read with care."""
