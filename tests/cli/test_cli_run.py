"""`run`: wrong files are refused with all their faults, before anything is touched."""

import signal
import sys
from datetime import datetime
from math import inf
from pathlib import Path
from subprocess import PIPE, Popen, TimeoutExpired
from types import SimpleNamespace
from unittest.mock import MagicMock, call

import click
import pytest
from asking import Store
from builders import Stage, new_worker
from console import CONFIG, ROOT, write_project
from engines.faulty import running_with, wait_until
from masters import FakeSleep
from transcripts import headings

from spsa.cli.demo import fresh
from spsa.cli.held_run import held_run, interruptible
from spsa.config import load_config
from spsa.db.tables import Compared
from spsa.errors import DatabaseUnreachable, MasterLeaseLost, TuningError
from spsa.master.loop import sole_writer

*FAULTS, ENDED, DEMO, TAKEN = headings(__file__)


@pytest.mark.parametrize("situation", FAULTS)
def test_all_faults_are_told_and_nothing_is_done(situation, project, transcript):
    before = {*project.rglob("*"), project / "b.epd"}
    said = transcript(situation)
    assert before >= {*project.rglob("*")}
    for fault in said[-1].err.splitlines()[:-1]:
        assert fault[0] != "/" and "; " in fault, "the file from here, and what would be right"


@pytest.mark.usefixtures("project")
def test_the_command_ends_with_the_state_of_its_run(transcript, monkeypatch):
    is_over = [True, False, True]
    monkeypatch.setattr(
        "spsa.cli.run.tune_and_measure", lambda held, _: held.console.print() or is_over.pop()
    )
    transcript(ENDED)


def test_a_program_is_stopped_by_one_signal_and_at_once_by_two(capsys):
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(DatabaseUnreachable), interruptible():
        raise DatabaseUnreachable("no response")
    with pytest.raises(click.Abort), interruptible():
        signal.raise_signal(signal.SIGTERM)
        raise DatabaseUnreachable("no response")
    with pytest.raises(KeyboardInterrupt), interruptible():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
    asked, left = "stopping; once more to stop at once", "left while the database did not answer: "
    assert capsys.readouterr() == ("", f"{asked}\n{left}no response\n{asked}\n")
    assert signal.getsignal(signal.SIGTERM) == before


def test_who_stands_by_waits_for_a_database_that_is_away(monkeypatch, capsys):
    sleep, away = FakeSleep(int), DatabaseUnreachable("away")
    clock = SimpleNamespace(monotonic=lambda: 20.0 * sleep.count)
    monkeypatch.setattr("spsa.master.loop.time", clock)
    held = MasterLeaseLost("m holds it", datetime(2026, 1, 1))
    facts = (MagicMock(), MagicMock(), MagicMock(), sleep)

    def lease(longest, *answers):
        store = MagicMock(**{"acquire_master_lease.side_effect": answers})
        store.release_master_lease.side_effect = away
        with held_run(store, *facts, longest) as held:
            found = held.master_lease
        return found, [call.args[3] for call in store.acquire_master_lease.call_args_list]

    for answers in ([away], [held, away, away]):
        with pytest.raises(DatabaseUnreachable):
            lease(32.0, *answers)
    waited = [None, None, held.lease_end, held.lease_end]
    assert lease(inf, held, away, held, "lease") == ("lease", waited)
    said = capsys.readouterr()
    assert said.err.endswith("hand the run back, its lease will run out: away\n") and not said.out
    sleep.set()
    with pytest.raises(click.Abort):
        lease(32.0)


def test_a_demo_begins_anew_in_a_folder_of_its_own(folder, transcript, monkeypatch):
    def tuned(held, prepared):
        with Store(held.store.where) as store:
            worker = store.register_worker(new_worker())
            staged = Stage(store, prepared.run, held.master_lease, worker)
            for theta in ("1", "2") if prepared.run.seed == 7 else ():
                staged.validate(compared=Compared(theta=theta))
        return prepared.run.seed == 7

    beside = MagicMock(**{"return_value.wait.side_effect": [TimeoutExpired("", 1), 0, 0]})
    processes = SimpleNamespace(Popen=beside, TimeoutExpired=TimeoutExpired)
    monkeypatch.setattr("spsa.cli.demo.tune_and_measure", tuned)
    monkeypatch.setattr("spsa.cli.demo.subprocess", processes)
    monkeypatch.setattr("spsa.cli.demo.system.logical_cores", lambda: range(3))
    transcript(DEMO, root=ROOT)
    assert beside.return_value.mock_calls == [
        *(call.terminate(), call.wait(20.0), call.kill(), call.wait()),
        *(call.terminate(), call.wait(20.0)),
    ]
    (command,), options = beside.call_args
    assert command[3:] == ["--spsa", "-c", "3", "--force"] and options["cwd"] == Path("demo")
    assert options["env"]["DATABASE_URL"] == f"sqlite:///{folder}/demo/demo.db"
    monkeypatch.setattr("spsa.__file__", str(folder / "spsa" / "__init__.py"))
    with pytest.raises(TuningError, match="files are missing in this installation"):
        fresh(folder / "new", 7)


def test_a_params_toml_that_the_master_of_another_run_writes(project, transcript):
    with sole_writer(load_config(Path("config.toml"), {}), "other"):
        transcript.refused(TAKEN)
        own = CONFIG.replace("seed = 7", 'params = "own.toml"')
        write_project(project, own)
        config = load_config(Path("config.toml"), {})
        with sole_writer(config, "small"), sole_writer(config, "small"):
            pass  # another file, and a master that stands by
    write_project(project)
    with sole_writer(load_config(Path("config.toml"), {}), "small"):  # the other one has ended
        assert Path(".tuning/params.toml.lock").read_text().startswith("run small in sqlite:///")


BESIDE = """\
import sys
from pathlib import Path
from spsa.cli.demo import worker_beside
from spsa.config import load_config
with worker_beside(load_config(Path("config.toml"), {}), Path(), 1, "--name", sys.argv[1]):
    sys.stdin.read()
"""


@pytest.mark.slow
@pytest.mark.usefixtures("project")
def test_a_worker_beside_a_master_that_is_killed_dies_with_it(tmp_path):
    name = tmp_path.name
    with Popen([sys.executable, "-c", BESIDE, name], stdin=PIPE) as master:
        wait_until(lambda: len(running_with(name)) == 2)
        master.kill()
    wait_until(lambda: not running_with(name), 20)
