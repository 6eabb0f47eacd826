"""One engine process: the UCI protocol, and what keeps the engine within bounds."""
