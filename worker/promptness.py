"""What a process does so that an answer is heard at once, whatever its other threads do."""

import gc
import sys

SWITCH = 0.0002
"""Seconds for which a thread that writes a game down may keep those waiting whose turn it is."""


def be_prompt() -> None:
    """To be called once, when all that stays has been loaded: it is never searched for garbage."""
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(SWITCH)
