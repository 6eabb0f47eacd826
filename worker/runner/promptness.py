"""What a process does so that an answer is heard at once, whatever its other threads do."""

import gc
import sys

SWITCH = 0.0002
"""Seconds for which a thread that writes a game down may keep those waiting whose turn it is."""

GENERATIONS = (20_000, 20, 50)
"""How many objects make a search for garbage due: games leave next to none behind."""


def be_prompt() -> None:
    """To be called once, when all that stays has been loaded: it is never searched for garbage."""
    gc.freeze()
    gc.set_threshold(*GENERATIONS)
    gc.enable()
    sys.setswitchinterval(SWITCH)
