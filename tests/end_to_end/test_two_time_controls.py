"""Two time controls in one run, with real processes that are killed in the midst of games."""

from collections import Counter

import pytest
from asking import Store
from tuner import Tuner, uci_tuner

from spsa.lifecycle import BatchStatus

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ONE = '[time_control]\nkind = "depth"\nlow = 1\n'
TWO = "".join(f'[[time_control]]\nkind = "nodes"\nlow = {low}\n' for low in (200, 400))


def begun(folder, url: str) -> Tuner:
    tuner = uci_tuner(folder, url, iterations=3, think=0.005)
    tuner.configure(ONE, TWO)
    tuner.configure("games_per_iteration = 4", "games_per_iteration = 8")
    return tuner


def test_a_kill_in_the_middle_loses_nothing(tmp_path, empty_database_url):
    calm = begun(tmp_path / "calm", f"sqlite:///{tmp_path}/calm.db")
    calm.tune()
    with Store(calm.url) as store:
        undisturbed = store.run()

    tuner = begun(tmp_path / "killed", empty_database_url)
    tuner.master()
    tuner.wait_for_run()
    tuner.worker("--drain", 0)
    tuner.wait_for_games(10)
    tuner.kill_all()
    tuner.expire()
    with Store(tuner.url) as store:
        assert 0 < store.totals(store.run().id).tally.games < 24
    tuner.tune()
    assert tuner.ask("doctor").stdout == "all is well: small\n"
    with Store(tuner.url) as store:
        run, games = store.run(), Counter[tuple[int, int]]()
        for batch in store.batches(run.id):
            assert batch.status is BatchStatus.DONE
            games[batch.iteration_id, batch.time_control] += batch.games
        assert set(games.values()) == {4} and len(games) == 6
        assert (run.theta, run.state) == (undisturbed.theta, undisturbed.state)
    shown = tuner.ask_json("status")["time_controls"]
    assert [(row["time_control"], row["tally"]["games"]) for row in shown] == [
        ("nodes=200", 12),
        ("nodes=400", 12),
    ]

    tuner.validate("--games", 8)
    shown = tuner.ask_json("status")["time_controls"]
    assert [(row["purpose"], row["tally"]["games"]) for row in shown[2:]] == [("validate", 4)] * 2
