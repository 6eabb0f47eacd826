"""`init` proposes what loads, overwrites nothing, and refuses what would not load."""

import pytest
from console import write_project
from transcripts import headings

OPTIONS = """\
option name Hash type spin default 16 min 1 max 1024
option name Ponder type check default false
option name LMR Base type spin default 75 min 30 max 150
option name razor-margin type spin default 300 min -2147483648 max 2147483647
option name RAZOR_margin type spin default 40 min 10 max 80
option name contempt type spin default 0 min -50 max 50
option name Level type spin default 0 min 0 max 12
option name odd type spin default 9 min 10 max 80
option name Move Overhead type spin default 10 min 0 max 5000
option name LMRDivisor type string default 2.25
option name NMPDepth type string default 3
option name SyzygyPath type string default <empty>
option name Style type string default 0
"""


REPLIES = """\
while read -r line; do
  case "$line" in
    quit) exit ;;
    isready) echo readyok ;;
    tune) cat listed 2>/dev/null ;;
  esac
done
"""


@pytest.mark.parametrize("situation", headings(__file__))
def test_init(situation, folder, transcript):
    """Beside the folder of an engine's source, and an engine with options."""
    write_project(folder)
    for name in ("config.toml", "params.toml"):
        (folder / name).unlink()
    many = folder / "many"
    many.write_text(f"#!/bin/sh\ncat <<E\n{OPTIONS}uciok\nE\n{REPLIES}")
    many.chmod(0o755)
    transcript(situation)
