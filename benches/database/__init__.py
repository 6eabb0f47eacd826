"""What the database costs: claims and reports, a look at a run, and workers with nothing to do."""
