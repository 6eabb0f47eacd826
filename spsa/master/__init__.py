"""The master: opens iterations, waits for their games, moves theta, and says how it goes."""
