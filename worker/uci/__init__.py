"""One engine process: the UCI protocol, and the sandbox of the engine."""
