"""A run with several time controls: fixed by its seed, and theta is the replay, to the bit."""

from collections import Counter

import pytest
from builders import new_worker, of_nodes, play, several
from masters import GAMES, FakeSleep, RunUnderTest
from purges import BAD, bits, gone_on, healthy, moved, violations

from spsa.db.purge_queries import Selection
from spsa.history.replay import carry_out, plan, theta_at
from spsa.lifecycle import RunStatus

TWO = several(of_nodes(200, share=3), of_nodes(400))


def finished(store, **over):
    tested = RunUnderTest(store, iterations=6, **over)
    tested.master(FakeSleep(lambda: play(store))).run()
    return tested


def batches(tested):
    rows = tested.store.batches(tested.run.id)
    return [(b.iteration_id, b.seq, b.games, b.time_control, b.seed) for b in rows]


def test_every_iteration_has_the_shares_and_every_claim_its_own_time_control(store, sql):
    tested, limits = RunUnderTest(store, iterations=6, game_settings=TWO), Counter()
    worker = store.register_worker(new_worker())

    def play_all():
        for claim in play(store, worker):
            assert claim.game_settings.time_controls == ()
            limits[claim.game_settings.limits] += 2 * claim.pairs

    tested.master(FakeSleep(play_all)).run()
    assert limits == {"nodes=200": 6 * GAMES * 3 // 4, "nodes=400": 6 * GAMES // 4}
    for it in store.iterations(tested.run.id):
        games = Counter()
        for batch in store.batches(tested.run.id):
            games[batch.time_control] += batch.games * (batch.iteration_id == it.id)
        assert games == {0: 6, 1: 2}
    healthy(tested, sql)


@pytest.mark.parametrize("algorithm", ["mixture", "spsa"])
def test_theta_is_the_replay_of_the_parts(store, sql, algorithm):
    one = finished(store, game_settings=TWO, algorithm=algorithm)
    healthy(one, sql)
    equal = finished(
        store, game_settings=several(of_nodes(200, 3, 1), of_nodes(400, 1, 20)), name="w"
    )
    assert bits(equal.now().theta) != bits(one.now().theta)
    again = RunUnderTest(store, iterations=6, game_settings=TWO, algorithm=algorithm, name="again")
    again.master(FakeSleep(lambda: play(store), most=2)).run()
    gone_on(again)  # another master
    assert [row[1:] for row in batches(again)] == [row[1:] for row in batches(one)]
    assert again.outcome() == one.outcome()


@pytest.mark.parametrize("of_all", [False, True])
def test_a_purge_takes_its_games_out_of_their_time_control(store, sql, of_all):
    tested = RunUnderTest(store, iterations=6, game_settings=TWO)
    before = moved(tested)
    selection = Selection() if of_all else Selection(worker=BAD)
    planned = plan(store, tested.now(), tested.tuning, selection)
    carry_out(store, tested.tuning, planned, "me@here", "bad memory")
    assert bits(tested.now().theta) != bits(before.theta)
    healthy(tested, sql)
    was = theta_at(store, tested.now(), tested.tuning, before.applied, as_applied=True)
    assert bits(was.theta) == bits(before.theta)
    assert gone_on(tested).status is RunStatus.FINISHED
    healthy(tested, sql)


def test_the_doctor_finds_a_batch_of_the_wrong_time_control(store, sql):
    tested = finished(store, game_settings=TWO)
    sql("UPDATE spsa_batch SET time_control = 1 - time_control WHERE id = 1")
    assert any("games by time control" in one for one in violations(store, tested.now()))


def test_one_time_control_is_as_it_was(store, sql):
    tested = finished(store)
    # what this run came to before there could be several
    theta = {"margin": "0x1.b76d8fdd699a7p+5", "ratio": "0x1.b501a12ad5885p-3"}
    found = tested.now().theta
    assert {n: found[n] for n in theta} == {
        n: pytest.approx(float.fromhex(x), rel=1e-12) for n, x in theta.items()
    }
    assert "time_controls" not in tested.now().state
    assert [row[1:3] for row in batches(tested)[:4]] == [(0, 4), (1, 4), (0, 4), (1, 4)]
    assert {row[3] for row in batches(tested)} == {0}
    assert store.games_by_time_control(tested.run) == {}
