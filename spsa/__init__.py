"""The shared core of the tuner, and its master; the package `worker` plays."""

__version__ = "0.1.0"
