"""A run that its owner steers, with real processes: extended, compared and forked."""

import pytest
from asking import Store
from tuner import uci_tuner

from spsa.lifecycle import Purpose

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.long_on("postgresql")]


def test_a_run_is_steered_from_its_start_to_a_fork(tmp_path, empty_database_url):
    tuner = uci_tuner(tmp_path / "run", empty_database_url, iterations=5)
    both = tuner.params
    tuner.params, _, calm = both.partition("[calm]")
    tuner.configure("[adjudication]", "[validation]\nevery = 2\nshare = 0.5\n[adjudication]")
    tuner.tune()
    tuner.ask("doctor")
    with Store(tuner.url) as store:
        run = store.run()
        assert run.applied == 5 and run.source_sha256 is None
        rows = store.iterations(run.id)
        assert len({sha for it in rows for sha in (it.plus_sha256, it.minus_sha256)}) == 1
        assert store.file(rows[-1].plus_sha256), "the binary travels through the database"
        measured = store.iterations(run.id, purpose=Purpose.VALIDATE)
        assert measured and all(it.is_background and it.is_played for it in measured)

    tuner.ask("set", "--iterations", 7)
    tuner.tune()
    tuner.ask("doctor")
    tuner.ask("report", "--html", "report.html", "--csv", "tables")
    assert tuner.ask_json("status")["iterations_applied"] == 7
    assert "all matches to result" in tuner.ask("status").stdout

    options = ("--theta", 4, "--against", 2, "--sprt", -50, 50, "--games", 8, "--json")
    tuner.validate(*options, "--also", "depth=2")
    with Store(tuner.url) as store:
        first, second = store.matches(store.run().id)[-2:]
    assert (first.compared.theta, first.compared.against) == ("4", "2")
    assert (first.compared.time_control, second.compared.time_control) == (None, "depth=2")
    assert 0 < first.tally.games <= 8

    params = tuner.folder / "params.toml"
    params.write_text(params.read_text().replace("max = 50", "max = 40") + f"[calm]{calm}")
    tuner.tune("--from", "small@4", "--run", "second", "--doubt", 2)
    (there,) = tuner.ask_json("replay", "--run", "small", "--to", 4)["parameters"]
    bold, calm = tuner.ask_json("status", "--run", "second")["parameters"]
    assert bold["start"] == pytest.approx(min(there["value"], 40))
    assert (calm["name"], calm["start"]) == ("calm", 10) and calm["value"] != 10
    tuner.ask("doctor")
    told = tuner.ask_json("status", "--events", "--run", "second")
    kinds = [row["kind"] for row in told["events"]]
    assert kinds[0] == "start" and kinds[kinds.index("finished") + 1 :] == 2 * ["news"]
