"""Pure values of a tuning: parameters, results of games, game settings, seeds."""
