"""One engine process: the protocol, the sandbox, what is special to an operating system."""
