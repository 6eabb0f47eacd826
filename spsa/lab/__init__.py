"""What is computed and never played: simulation, theory and the planning of a run."""
