"""The whole path, for real: parameters, builds, rows, games, counts, theta, params.toml.

The undisturbed run on SQLite is the reference. At fixed nodes every other way to the end has to
come to the same theta, bit for bit: on PostgreSQL, with several workers, and through kills.
"""

import random
import shutil
import signal
import time
import tomllib

import pytest
from engines.faulty import wait_until
from tuner import ENGINE, bundled, texts

pytestmark = pytest.mark.timeout(1200)

KILLS = 5


@pytest.fixture(scope="module")
def engines(tmp_path_factory):
    """Where all runs of this module publish: what one has built the others need not."""
    return tmp_path_factory.mktemp("engines")


@pytest.fixture
def tuner(tmp_path, engines):
    return bundled(tmp_path, f"sqlite:///{tmp_path / 'spsa.db'}", engines)


@pytest.fixture(scope="module")
def reference(tmp_path_factory, engines):
    """One master, one worker, nobody disturbs them."""
    folder = tmp_path_factory.mktemp("reference")
    made = bundled(folder, f"sqlite:///{folder / 'spsa.db'}", engines)
    made.tune()
    return made, *made.outcome()


def assert_same_as(reference, tuner):
    _, expected, rows = reference
    run, played = tuner.outcome()
    assert (run.status, played) == ("finished", rows)
    assert dict(run.theta) == dict(expected.theta)
    assert tuner.ask("doctor").stderr == ""


def test_a_run_goes_from_params_toml_to_params_toml(reference):
    tuner, run, iterations = reference
    assert_same_as(reference, tuner)
    assert [tally.games for _, _, tally, *_ in iterations] == [8] * 4
    assert [opened_on for _, opened_on, *_ in iterations] == [0, 0, 1, 2]
    text = (tuner.folder / "params.toml").read_text()
    written = tomllib.loads(text)
    for name, value in run.theta.items():
        assert written[name]["value"] == pytest.approx(value, abs=1e-2)
    assert "# an opinion" in text and text != texts("bundled")[1]
    assert moved(run), "theta did not move: the games had no effect"


def moved(run):
    return dict(run.theta) != dict(run.start_theta)


@pytest.mark.slow
def test_ctrl_c_leaves_a_run_that_goes_on_and_can_be_validated(tuner, reference):
    master = tuner.master()
    tuner.wait_for_run()
    worker = tuner.worker("--max-batches", 12)  # of 16: the run does not end before the signals
    tuner.wait_for_games(2)
    for process in (master, worker):
        process.send_signal(signal.SIGINT)
    tuner.ends(master, codes=(130,))
    # where the signals come late, the worker has played its 12 batches and left
    assert worker.ended() == 130 or tuner.words().count(": claimed, ") == 12, tuner.account()
    tuner.tune(workers=2)
    assert_same_as(reference, tuner)
    tuner.validate("--games", 6)
    row = tuner.ask_json("status")["validations"][-1]
    assert (row["games_played"], row["status"]) == (6, "complete")
    tuner.ask("doctor")


@pytest.mark.long
@pytest.mark.slow
def test_a_source_that_does_not_compile_shows_the_compilers_words_and_the_values(tuner, tmp_path):
    broken = shutil.copytree(ENGINE, tmp_path / "broken", ignore=shutil.ignore_patterns("target"))
    main = broken / "src" / "main.rs"
    main.write_text(main.read_text() + "\nfn broken() -> u8 { KNIGHT }\n")
    tuner.configure(str(ENGINE), str(broken))
    failed = tuner.ask("run", code=4)
    assert "cannot find value `KNIGHT`" in failed.stderr and "see_prune_margin = " in failed.stderr
    run, iterations = tuner.outcome()
    assert (run.status, iterations) == ("paused", [])
    assert "cannot be built: " in run.reason
    main.write_text(main.read_text().replace("fn broken() -> u8 { KNIGHT }", ""))
    tuner.tune()  # mended, the same command starts the run as the files are now
    assert tuner.outcome()[0].status == "finished"


@pytest.mark.long_on("sqlite")
@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_kill_9_of_anybody_at_any_moment_loses_and_doubles_nothing(
    tuner, database, request, reference
):
    """At last params.toml is as if the master had died before it could write its theta."""
    if database == "postgresql":
        tuner.url = request.getfixturevalue("postgresql_url")
    chance = random.Random(11)
    before = None
    for _ in range(KILLS):
        master = tuner.master()
        tuner.wait_for_run()
        workers = [tuner.worker("--max-batches", 1) for _ in range(2)]  # of 16
        wait_until(lambda before=before: tuner.outcome()[0].master_id not in (None, before))
        time.sleep(chance.uniform(0.0, 2.0))
        for victim in chance.sample([master, *workers], 3):
            victim.kill()
            time.sleep(chance.uniform(0.0, 0.3))
        tuner.kill_all()
        before = tuner.outcome()[0].master_id
    assert tuner.outcome()[0].status == "running"
    tuner.write_files()
    tuner.tune(workers=2)
    assert_same_as(reference, tuner)
    assert params_of(tuner) == params_of(reference[0])


def params_of(tuner):
    return tomllib.loads((tuner.folder / "params.toml").read_text())
