"""`init` proposes what loads, overwrites nothing, and refuses what would not load.

It builds an engine and searches with it, and mends what one plain value mends.
"""

import shlex
import shutil
import signal
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from console import ROOT, Running, master, write_project
from engines.faulty import running_with, wait_until
from transcripts import headings

ENGINES, *SITUATIONS = headings(__file__)
TRIED = [one for one in SITUATIONS if one.startswith("tried: ")]


@pytest.mark.parametrize("situation", [one for one in SITUATIONS if one not in TRIED])
def test_init(situation, folder, transcript):
    """Beside the folder of an engine's source, and an engine with options."""
    write_project(folder)
    transcript(ENGINES)
    transcript(situation, master=f"PYTHONPATH={ROOT} {shlex.join(master())}")


SMALL = Path(__file__).parents[1] / "fixtures" / "small" / "search.c"


def engine():
    """A folder with the source of an engine, and with a binary that was made before."""
    Path("small/out").mkdir(parents=True)
    Path("small/out/keep").touch()
    Path("small/out/old").write_bytes(b"\x7fELF" + bytes(12) + b"\x02")
    shutil.copy(SMALL, "small")


@pytest.mark.slow_on("beside its network")
@pytest.mark.parametrize("situation", TRIED)
def test_what_the_trial_teaches_is_written(situation, transcript, folder, monkeypatch):
    monkeypatch.setattr("spsa.master.trial.time", SimpleNamespace(monotonic=count(0, 5).__next__))
    engine()
    tried, *_ = transcript(situation)
    if "the engine plays" in tried.err:
        speed = float(Path(".tuning/nodes-per-second").read_text())
        assert f" {speed:,.0f} nodes a second; " in tried.err


def test_a_trial_that_is_terminated_ends_its_build(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    engine()
    Path("small/Makefile").write_text("all:\n\tsleep 234.5\n")
    trial = Running(master("init", "small"), tmp_path)
    trial.until(lambda: running_with("234.5"))
    trial.send_signal(signal.SIGTERM)
    assert trial.ended() == 130
    wait_until(lambda: not running_with("234.5"), 5)
