"""The constant-gain process of seed 003 by formula: how a run ends, and how long it has to be."""
