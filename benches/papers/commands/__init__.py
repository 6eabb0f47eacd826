"""The commands of `python -m benches.papers`."""
