"""Where this box keeps what it can get or make again."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """The tuner's folder in the user's cache (XDG base directories)."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "spsa-tuner"
