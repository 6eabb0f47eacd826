"""What a tuning is about, as pure values: parameters, results of games, game settings, seeds."""
