"""A run that its owner steers, with real processes: extended, compared and forked."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from asking import Store
from engines.faulty import wait_until
from tuner import Tuner
from uci_tuner import CONFIG, PARAMS, uci_tuner

from spsa.lifecycle import Purpose, RunStatus

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.long_on("postgresql")]

BACKGROUND = """
[validation]
every = 2
share = 0.5
"""


@pytest.fixture
def tuner(tmp_path: Path, empty_database_url: str) -> Iterator[Tuner]:
    made = uci_tuner(tmp_path, empty_database_url)
    text = CONFIG.replace("max_iterations = 3", "max_iterations = 5") + BACKGROUND
    (tmp_path / "config.toml").write_text(f'{text}[database]\nurl = "{empty_database_url}"\n')
    (tmp_path / "params.toml").write_text(PARAMS.partition("[calm]")[0])
    yield made
    made.kill_all()


def said(tuner: Tuner, *arguments: str) -> str:
    """What a command writes to stdout; it succeeds."""
    done = tuner.ask(*arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def tuned(tuner: Tuner, *arguments: str, run: str = "small") -> None:
    """Tune with one worker until the run has ended."""
    master = tuner.master(*arguments)
    with Store(tuner.url) as store:
        wait_until(lambda: getattr(store.find_run(run), "status", None) is RunStatus.RUNNING)
    worker = tuner.worker("--once")
    assert (tuner.ended(master), tuner.ended(worker)) == (0, 0), tuner.account()
    said(tuner, "doctor")


def test_a_run_is_steered_from_its_start_to_a_fork(tuner: Tuner) -> None:
    master = tuner.master()
    tuner.wait_for_tables()
    tuner.wait_until("max_iterations", 5)
    worker = tuner.worker("--once")
    assert (tuner.ended(master), tuner.ended(worker)) == (0, 0), tuner.account()
    said(tuner, "doctor")
    with Store(tuner.url) as store:
        run = store.run()
        assert run.applied == 5 and run.source_sha256 is None
        rows = store.iterations(run.id)
        assert len({sha for it in rows for sha in (it.plus_sha256, it.minus_sha256)}) == 1
        assert store.file(rows[-1].plus_sha256), "the binary travels through the database"
        measured = store.iterations(run.id, purpose=Purpose.VALIDATE)
        assert measured and all(it.is_background and it.is_played for it in measured)

    said(tuner, "set", "--iterations", "7")
    tuned(tuner)
    said(tuner, "report", "--html", "report.html", "--csv", "tables")
    assert tuner.status()["iterations_applied"] == 7
    assert "all matches to result" in said(tuner, "status")

    options = ("--theta", "4", "--against", "2", "--sprt", "-50", "50", "--games", "8", "--json")
    validation = tuner.start("validate", *options, "--also", "depth=2")
    worker = tuner.worker("--drain", "0")
    assert tuner.ended(validation) == 0, tuner.account()
    worker.send_signal(signal.SIGTERM)
    assert tuner.ended(worker) == 0, tuner.account()
    with Store(tuner.url) as store:
        first, second = store.matches(store.run().id)[-2:]
    assert (first.compared.theta, first.compared.against) == ("4", "2")
    assert (first.compared.time_control, second.compared.time_control) == (None, "depth=2")
    assert 0 < first.tally.games <= 8

    params = tuner.folder / "params.toml"
    params.write_text(
        params.read_text().replace("max = 50", "max = 40") + "".join(PARAMS.partition("[calm]")[1:])
    )
    tuned(tuner, "--from", "small@4", "--run", "second", "--doubt", "2", run="second")
    (there,) = json.loads(said(tuner, "replay", "--run", "small", "--to", "4", "--json"))[
        "parameters"
    ]
    bold, calm = json.loads(said(tuner, "status", "--run", "second", "--json"))["parameters"]
    assert bold["start"] == pytest.approx(min(there["value"], 40))
    assert (calm["name"], calm["start"]) == ("calm", 10) and calm["value"] != 10
    said(tuner, "doctor")
    told = json.loads(said(tuner, "status", "--events", "--run", "second", "--json"))
    kinds = [row["kind"] for row in told["events"]]
    assert kinds[0] == "start" and kinds[-1] == "finished"
