"""`status` of runs, once and watched, in every state, for people, programs, pipes and terminals."""

import json
import os
import pty
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from builders import LEASE, Stage, new_validation, new_worker, stage
from console import PARAMS, call, environment, master, write_project
from shell import Shell

from spsa.cli import execute
from spsa.config import load_space
from spsa.core.scoring import Tally
from spsa.db import Store
from spsa.db.migrate import upgrade
from spsa.protocol import BatchResult
from spsa.report.trails import Trail, gauge


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.delenv("SPSA_CONFIG", raising=False)
    ratio = "[ratio]\nvalue = 0.3\nmin = 0\nmax = 1\nstep = 0.25\nscale = 100\n"
    write_project(tmp_path, params=PARAMS + ratio)
    upgrade(f"sqlite:///{tmp_path / 'spsa.db'}")
    return tmp_path


@pytest.fixture
def staged(project: Path) -> Iterator[Stage]:
    """A run "first" in the database of the project, with its master and a worker."""
    space = load_space(project / "params.toml").to_json()
    with Store(f"sqlite:///{project / 'spsa.db'}", durable=False) as store:
        yield stage(store, space=space)


def one_sided(stage: Stage) -> None:
    """A played iteration in which plus won everything: the estimate that could be infinite."""
    stage.open(target_games=2, batch_games=2)
    claim = stage.claim("c")
    assert claim is not None
    stage.store.report(claim, BatchResult(tally=Tally.of_pair(2, 2)))


def finish(stage: Stage) -> None:
    for _ in range(3):
        stage.whole_iteration()
    stage.store.finish(stage.master)


STATES: dict[str, Callable[[Stage], object]] = {
    "new": lambda stage: None,
    "open": lambda stage: stage.open(),
    "leased": lambda stage: (stage.open(), stage.claim("c")),
    "won by plus alone": one_sided,
    "moved": lambda stage: stage.whole_iteration(),
    "paused": lambda stage: stage.store.pause("first", "me", "for [/a] :reason:"),
    "stopped": lambda stage: (stage.open(), stage.store.stop("first", "me", "enough")),
    "finished": finish,
    "without a master": lambda stage: stage.store.release_master_lease(stage.master),
    "in validation": lambda stage: (
        finish(stage),
        stage.store.open_iteration(stage.master, new_validation(k=None, opened_on=3)),
    ),
}


def no_constant(word: str) -> NoReturn:
    raise AssertionError(f"{word} is no JSON")


@pytest.mark.slow
@pytest.mark.parametrize("state", STATES)
def test_a_run_in_any_state_is_shown(
    state: str, staged: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    STATES[state](staged)
    assert execute(["status"]) == 0
    assert capsys.readouterr().out.startswith("run first: ")
    assert execute(["status", "--json"]) == 0
    asked = capsys.readouterr()
    found = json.loads(asked.out, parse_constant=no_constant)
    assert asked.err == "" and found["run"] == "first" and len(found["parameters"]) == 3


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("open", "1 worker on 4 slots"),
        ("paused", "reason: for [/a] :reason:"),
        ("paused", "`spsa-master resume` continues it"),
        ("without a master", "`spsa-master run` continues it"),
        ("finished", "strength: not measured; `spsa-master validate`"),
        ("in validation", "validations"),
    ],
)
def test_the_status_says_what_to_do(
    state: str, said: str, staged: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    STATES[state](staged)
    assert execute(["status"]) == 0
    assert said in capsys.readouterr().out


def test_nobody_at_work_is_said(project: Path, staged: Stage) -> None:
    staged.open()
    staged.store.register_worker(new_worker("gone"))
    _forget_workers(staged.store)
    said = call(master("status"), project).stdout
    assert "no worker plays: start `compete --spsa" in said
    assert "2 workers left after 0 games" in said


def _forget_workers(store: Store) -> None:
    """Time passes for everybody who plays."""
    shell = Shell(store.where)
    shell("UPDATE spsa_worker SET last_seen_at = strftime('%Y-%m-%d %H:%M:%f', 'now', '-1 hour')")
    shell.close()


def test_names_are_shown_as_they_are(project: Path, staged: Stage) -> None:
    staged.store.register_worker(new_worker("[/bold] :smile: box"))
    assert "[/bold] :smile: box" in call(master("status"), project).stdout


@pytest.mark.slow
def test_a_watch_ends_with_its_run(project: Path, staged: Stage) -> None:
    finish(staged)
    watched = call(master("status", "--watch"), project)
    assert watched.returncode == 0 and "\x1b" not in watched.stdout
    assert watched.stdout.startswith("run first: finished") and watched.stdout.endswith("\n")
    lines = call(master("status", "--watch", "--json"), project).stdout.splitlines()
    assert [json.loads(line)["status"] for line in lines] == ["finished"]


@pytest.mark.slow
def test_a_watch_tells_every_change_and_ends_at_ctrl_c(project: Path, staged: Stage) -> None:
    watching = subprocess.Popen(
        master("status", "--watch", "--json", "--interval", "0.1"),
        cwd=project,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert watching.stdout is not None and watching.stderr is not None
    assert json.loads(watching.stdout.readline())["open"] == []
    staged.open()
    while not json.loads(watching.stdout.readline())["open"]:
        pass
    watching.send_signal(signal.SIGINT)
    assert watching.wait(120) == 130
    assert watching.stderr.read().strip() == ""


@pytest.mark.slow
def test_a_watch_outlives_the_master_that_it_looks_at(project: Path, staged: Stage) -> None:
    staged.store.tick(staged.master, LEASE)
    watching = subprocess.Popen(
        master("status", "--watch", "--interval", "0.1"),
        cwd=project,
        env=environment(),
        stdout=subprocess.PIPE,
    )
    assert watching.stdout is not None
    assert watching.stdout.readline().startswith(b"run first: running")
    staged.store.stop("first", "me", "enough")
    rest = watching.stdout.read().decode()
    assert watching.wait(120) == 0 and "reason: enough" in rest


@pytest.mark.slow
def test_on_a_terminal_colours_are_left_out_when_asked(project: Path, staged: Stage) -> None:
    staged.open()
    coloured = on_terminal(master("status"), project, 100)
    plain = on_terminal(master("status"), project, 100, NO_COLOR="1")
    assert "\x1b[" in coloured and "\x1b[3" not in plain.replace("\x1b[3m", "")


@pytest.mark.slow
@pytest.mark.parametrize("width", [60, 80, 120, 160])
def test_no_name_is_broken_at_any_usual_width(project: Path, staged: Stage, width: int) -> None:
    staged.store.register_worker(new_worker("a-host-with-quite-a-long-name-4711-abcdef"))
    shown = on_terminal(master("status"), project, width, NO_COLOR="1")
    assert "a-host-with-quite-a-long-name-4711-abcdef" in shown
    tables = shown.partition("parameters")[2].splitlines()
    assert all(len(_bare(line)) <= width for line in tables)
    assert ("seen" in shown) is (width > 60)


def _bare(line: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", line)


def on_terminal(command: list[str], folder: Path, width: int, **variables: str) -> str:
    """What a program writes to a terminal of so many columns."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment(TERM="xterm", COLUMNS=str(width), **variables),
        stdin=follower,
        stdout=follower,
        stderr=follower,
        start_new_session=True,
    )
    os.close(follower)
    written = b""
    while chunk := _read(leader):
        written += chunk
    os.close(leader)
    assert process.wait(120) == 0
    return written.decode()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # how a terminal says that nobody is left at its other side
        return b""


def test_each_parameter_has_its_path_and_its_place(
    staged: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(3):
        staged.whole_iteration()
    assert execute(["status", "--json"]) == 0
    margin = json.loads(capsys.readouterr().out)["parameters"][0]
    thetas = [step.theta_after["margin"] for step in staged.store.steps(staged.run.id)]
    assert margin["path"] == [200.0, *thetas] and margin["signal_to_noise"] > 0
    assert execute(["status"]) == 0
    (line,) = (row for row in capsys.readouterr().out.splitlines() if row.startswith("margin"))
    assert gauge(margin["value"], 50, 400) in line and Trail((200.0, *thetas)).sparkline in line
    assert f"  {margin['signal_to_noise']:.1f}  " in line
