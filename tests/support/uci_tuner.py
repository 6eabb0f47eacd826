"""A real tuner whose engine needs no build: started in a second, and all its processes findable."""

import sys
from pathlib import Path

from engines.faulty import running_with, wait_until
from tuner import PATIENCE, Tuner

ENGINE = Path(__file__).parent / "engines" / "optional.py"


CONFIG = """
[run]
name = "small"
seed = 3
[time_control]
kind = "depth"
low = 1
high = 1
[games]
games_per_iteration = 4
batch_size = 2
iterations_in_flight = 2
[spsa]
max_iterations = 3
[delivery]
kind = "uci"
engine = "optional"
[build]
distribute = "database"
[adjudication]
max_moves = 20
"""


PARAMS = """
[boldness]
value = 3
min = 0
max = 50
step = 2

[calm]
value = 10
min = 0
max = 50
step = 4
option = "patience"
"""


def uci_tuner(
    folder: Path, url: str, *, name: str = "small", iterations: int = 3, think: float = 0.0
) -> Tuner:
    """The files of a run in `folder`, with its engine, which thinks for so many seconds a move."""
    folder.mkdir(exist_ok=True)
    config = CONFIG.replace('name = "small"', f'name = "{name}"')
    config = config.replace("max_iterations = 3", f"max_iterations = {iterations}")
    (folder / "config.toml").write_text(config)
    (folder / "params.toml").write_text(PARAMS)
    script = folder / "optional.py"
    answer = 'case ["go", *_]:\n'
    thinking = f"{answer}{' ' * 16}__import__('time').sleep({think})\n"
    script.write_text(ENGINE.read_text().replace(answer, thinking))
    engine = folder / "optional"
    engine.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}"\n')
    engine.chmod(0o755)
    return Tuner(folder, url, folder / "engines")


def engines_of(folder: Path) -> list[int]:
    """The engines of a tuner that run."""
    return running_with(str(folder / "optional.py"))


def wait_for_engines(tuner: Tuner) -> None:
    """Wait until games are played."""
    wait_until(lambda: bool(engines_of(tuner.folder)), PATIENCE)
