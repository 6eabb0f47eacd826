"""What a run has been: its replay, its purges, and the checks of its rows."""
