"""Predicts what a run will cost and gain, before it is played."""
