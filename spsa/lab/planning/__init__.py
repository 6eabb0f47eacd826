"""What a run will cost and what it will bring, before anything of it is played. Pure."""
