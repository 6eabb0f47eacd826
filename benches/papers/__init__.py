"""Reproduces the tables of the papers, and compares rules on synthetic engines: RESULTS.md."""
