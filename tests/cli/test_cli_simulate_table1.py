"""`simulate table1` at a shell: text, JSON, refusals, processes, and leaving by Ctrl-C."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from console import call, environment, master

from spsa.cli import execute

Ask = Callable[..., dict[str, Any]]
SHORT = ("simulate", "table1", "--iterations", "40", "--runs", "210")


@pytest.fixture
def found(capsys: pytest.CaptureFixture[str]) -> Ask:
    def ask(*more: str) -> dict[str, Any]:
        assert execute([*SHORT, "--json", *more]) == 0
        answer = json.loads(capsys.readouterr().out)
        assert isinstance(answer, dict)
        return answer

    return ask


@pytest.mark.slow
def test_the_table_has_a_line_for_every_rule_and_size(tmp_path: Path) -> None:
    done = call(master(*SHORT), tmp_path)
    assert done.returncode == 0 and done.stderr == ""
    title, heading, *lines = done.stdout.splitlines()
    assert title.strip() == "40 iterations of one pair, 210 runs: Elo gained of 2"
    assert " ".join(heading.split()) == "rule n gained +- z lost +- exact z limit lost/limit"
    rules = ("spsa", "bspsas", "bspsa", "bspsa-told")
    assert [line.split()[:2] for line in lines] == [
        [rule, str(n)] for rule in rules for n in (1, 4, 16, 64)
    ]


@pytest.mark.slow
def test_json_has_the_figures_unrounded_and_none_that_nobody_published(found: Ask) -> None:
    answer = found("--rules", "bspsa,mixture")
    assert (answer["iterations"], answer["runs"], answer["seed"]) == (40, 210, 1)
    assert [(c["rule"], c["parameters"]) for c in answer["cells"]] == [
        (rule, n) for rule in ("bspsa", "mixture") for n in (1, 4, 16, 64)
    ]
    for cell in answer["cells"]:
        assert cell["gain"] == pytest.approx(2 - cell["loss"])
        assert cell["loss_of_limit"] == pytest.approx(cell["loss"] / cell["limit"])
        assert cell["published_gain"] is cell["z_published"] is None
        assert (cell["expected_loss"] is None) == (cell["rule"] == "mixture")


def test_figures_depend_on_the_seed_and_on_nothing_else(found: Ask) -> None:
    one = found("--rules", "spsa,bspsa")
    assert found("--rules", "spsa,bspsa", "-j", "2") == one
    assert found("--rules", "bspsa")["cells"] == one["cells"][4:]
    assert found("--rules", "bspsa", "-n", "4", "-n", "64")["cells"] == one["cells"][5::2]
    other = found("--rules", "spsa,bspsa", "--seed", "2")
    assert all(a["loss"] != b["loss"] for a, b in zip(one["cells"], other["cells"], strict=True))


def test_the_rules_themselves_play_the_same_table(found: Ask) -> None:
    answer = found("--rules", "bspsas", "--by-rule")
    assert all(abs(cell["z_expected"]) < 4 for cell in answer["cells"])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (("--rules", "bspas"), "did you mean 'bspsa'"),
        (("--rules", ","), "known: spsa, bspsas, bspsa, bspsa-told, mixture"),
        (("--runs", "1"), "1 is not in the range"),
        (("--iterations", "2000000"), "2000000 is not in the range"),
        (("--plot", "table.txt"), "has to end with .png or .svg"),
    ],
)
def test_wrong_options_are_refused(
    wrong: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute([*SHORT, *wrong]) == 2
    printed = capsys.readouterr()
    assert said in printed.err and printed.out == ""


@pytest.mark.slow
@pytest.mark.parametrize("processes", ["1", "2"])
def test_ctrl_c_ends_it_and_all_its_processes(processes: str, tmp_path: Path) -> None:
    command = master("simulate", "table1", "--rules", "mixture", "-j", processes)
    running = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_until_computing(running.pid, int(processes))
    os.killpg(running.pid, signal.SIGINT)
    said = running.communicate(timeout=120)
    assert running.returncode == 130 and "Traceback" not in "".join(said), said
    with pytest.raises(ProcessLookupError):
        os.killpg(running.pid, 0)


LOADED = 300
"""Hundredths of a second of processor time within which a program has loaded what it needs."""

AT_WORK = 20
"""The same, of a process that was forked and has nothing to load."""


def wait_until_computing(leader: int, processes: int) -> None:
    """Until so many have used some processor time: the leader itself, or others of its group."""
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        ticks = ticks_of_group(leader)
        own = ticks.pop(leader, 0)
        if processes == 1 and own > LOADED:
            return
        if processes > 1 and sum(used > AT_WORK for used in ticks.values()) >= processes:
            return
        time.sleep(0.1)
    pytest.fail(f"no {processes} processes at work: {ticks_of_group(leader)}")


def ticks_of_group(leader: int) -> dict[int, int]:
    ticks = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            fields = (process / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # the process has ended
            continue
        if int(fields[2]) == leader:
            ticks[int(process.name)] = int(fields[11]) + int(fields[12])
    return ticks
