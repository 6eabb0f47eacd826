"""Keys, signatures, private folders, and bounded reading of files."""
