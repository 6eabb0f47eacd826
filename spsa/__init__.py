"""The shared core of the tuner and its master; the box that plays is the package `worker`."""

__version__ = "0.1.0"
