"""A purge: purged results count nowhere, and theta is the replay of the rest, to the bit.

Also of a run with several time controls, which is fixed by its seed.
"""

import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, nullcontext, suppress
from dataclasses import replace
from datetime import timedelta
from random import Random
from threading import Event

import pytest
from asking import Store
from builders import LEASE, TERMS, new_worker, of_nodes, play, result_of, several, stage, step_from
from cutting import CutStore
from fuzzing import LONG
from hypothesis import given, settings
from hypothesis import strategies as st
from masters import GAMES, FakeSleep, RunUnderTest
from purges import BAD, bits, gone_on, healthy, moved, pure, take_turns, violations
from shell import Shell, broken
from sqlalchemy import event
from stories import Story
from transcripts import headings

from spsa.algorithms import RULES
from spsa.db.purge_queries import Selection
from spsa.db.run_view import RunView
from spsa.errors import DatabaseUnreachable, NothingToDo
from spsa.history.replay import Results, carry_out, counted_after, plan, theta_at
from spsa.lifecycle import BatchStatus, IterationStatus, RunStatus

TWO = several(of_nodes(200, share=3), of_nodes(400))


def purge(tested, selection, reason="bad memory"):
    planned = plan(tested.store, tested.now(), tested.tuning, selection)
    done = carry_out(tested.store, tested.tuning, planned, "me@here", reason)
    assert bits(done.theta_after) == bits(planned.theta) == bits(tested.now().theta)
    return done


@pytest.mark.slow
def test_a_bad_machine_is_purged_from_closed_and_open_iterations(store, sql):
    tested = RunUnderTest(store, iterations=6)
    before = moved(tested)
    take_turns(store, lie=True)
    newest = [it.status for it in store.iterations(before.id)[-2:]]
    assert newest == [IterationStatus.IN_PROGRESS] * 2
    steps = store.steps(before.id)
    done = purge(tested, Selection(worker=BAD))
    after = tested.now()
    assert after.theta != before.theta
    assert (done.number, done.applied, after.purges) == (1, before.applied, 1)
    for it in store.iterations(after.id):
        closed = it.status is IterationStatus.COMPLETE
        assert (it.purged_games, it.games_played) == (GAMES // 2 if closed else 0, GAMES // 2)
        rows = [b.status for b in store.batches(after.id) if b.iteration_id == it.id]
        lost = BatchStatus.PURGED if closed else BatchStatus.READY
        assert sorted(rows) == sorted([lost, BatchStatus.DONE])
    kept = store.batches(after.id, purged=True)
    assert {(one.worker.name, one.tally.wins - one.tally.games) for one in kept} == {(BAD, 0)}
    assert sum(one.tally.games for one in kept) == done.games
    assert sum(one.tally.games for one in kept if one.played_again) == GAMES
    then = counted_after(0, Results(store.iterations(after.id)), kept).iterations
    closed = [it.status is IterationStatus.COMPLETE for it in then]
    assert [it.games_played for it in then] == [GAMES if c else GAMES // 2 for c in closed]
    healthy(tested, sql)
    _the_log_keeps_what_was_applied(store, sql, before, steps, done)
    assert gone_on(tested).status is RunStatus.FINISHED
    healthy(tested, sql)


def _the_log_keeps_what_was_applied(store, sql, before, steps, done):
    """And the history says where it was corrected."""
    assert store.steps(before.id) == steps
    assert store.purges(before.id) == [done]
    assert done.theta_before == steps[-1].theta_after == before.theta
    rows = sql("SELECT k, name, value FROM spsa_param_history WHERE name = 'ratio' ORDER BY k")
    assert [row.k for row in rows] == list(range(before.applied + 1))
    wanted = [before.start_theta, *(s.theta_after for s in steps[:-1]), done.theta_after]
    # SQLite casts text to a float with a hair of its own
    assert [row.value for row in rows] == pytest.approx([t["ratio"] for t in wanted], rel=1e-12)
    (bad,) = sql("SELECT games, games_purged FROM spsa_worker_stats WHERE worker = :w", w=BAD)
    assert (bad.games, bad.games_purged) == (0, done.games)
    (event,) = (e for e in store.events(before.id) if e.kind == "purge")
    assert (event.actor, event.detail["reason"]) == ("me@here", "bad memory")
    assert event.detail["of"] == {"worker": BAD}


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", RULES)
def test_theta_is_that_of_a_run_which_never_counted_them(sqlite_url, algorithm):
    """Every rule: a run that never counted the bad machine's games ends at the same bits."""
    with Store(sqlite_url, durable=False) as store, closing(Shell(sqlite_url)) as sql:
        tested = RunUnderTest(store, algorithm=algorithm, iterations=5)
        moved(tested)
        purge(tested, Selection(host="bad"))
        gone_on(tested)
        healthy(tested, sql)


@pytest.mark.slow
def test_theta_of_any_moment_is_to_be_had_as_it_was_and_as_it_counts(store):
    tested = RunUnderTest(store, iterations=6)
    before = moved(tested, sleeps=4)
    thetas = [before.start_theta, *(s.theta_after for s in store.steps(before.id))]
    purge(tested, Selection(iterations=(2,), worker=BAD))
    run = gone_on(tested)
    for k in range(run.applied + 1):
        was = theta_at(store, run, tested.tuning, k, as_applied=True).theta
        found = theta_at(store, run, tested.tuning, k)
        now, known = found.theta, found.estimates
        assert bits(now) == bits(pure(tested, k).theta)
        if k <= before.applied:
            assert bits(was) == bits(thetas[k])
        assert (bits(was) == bits(now)) == (k < 2 or k > before.applied)
        assert (known.supported is None) == (k == 0)
    with pytest.raises(NothingToDo, match="has 6 results"):
        theta_at(store, run, tested.tuning, 7)


class Purging(Story):
    """Runs whose results no rule moves: nothing is applied that a purge would change."""

    seen: RunView

    def purge(self, iteration: int = 1, batch: int | None = None, **selected) -> str:
        chosen = {} if batch is None else {"batches": ((iteration, batch),)}
        planned = plan(self.store, self.store.run(), None, Selection(**chosen, **selected))
        carry_out(self.store, None, planned, "me", "why")
        assert bits(planned.theta) == bits(self.store.run().theta)
        left = violations(self.store, self.store.run())
        return f"theta after {planned.after}; the doctor finds: {left or 'nothing'}"

    def looks(self):
        self.seen = self.tick()

    def apply(self, name: str = "first", as_seen: bool = False) -> None:
        """On what its master sees now, or has seen."""
        view = self.seen if as_seen else self.tick(name)
        late = step_from(view.run, view.open[0].tally)
        self.store.apply(self._masters[name], view.open[0].id, *late)


STORY = Purging


@pytest.mark.parametrize("heading", headings(__file__))
def test_what_is_left_after_a_purge(heading, story, sql):
    story(heading)
    assert broken(sql) == []


def test_times_are_those_of_the_reports(store, sql):
    run = moved(RunUnderTest(store, iterations=6))
    times = sorted(m.reported_at for m in store.matching(run.id, Selection(host="bad")))
    middle = times[len(times) // 2]
    since = store.matching(run.id, Selection(host="bad", since=middle))
    until = store.matching(run.id, Selection(host="bad", until=middle))
    assert {m.reported_at for m in since} == {t for t in times if t >= middle}
    assert {m.reported_at for m in until} == {t for t in times if t < middle}
    assert len(since) + len(until) == len(times)
    assert store.matching(run.id, Selection(since=store.clock() + timedelta(hours=1))) == []


@pytest.mark.slow
def test_a_run_that_moved_on_is_looked_at_again(store, sql):
    tested = RunUnderTest(store, iterations=6, game_settings=TWO)
    run = moved(tested, sleeps=2)
    planned = plan(store, run, tested.tuning, Selection(worker=BAD))
    later = moved(tested, sleeps=2)
    assert later.applied > run.applied
    assert carry_out(store, tested.tuning, planned, "me", "why").applied == later.applied
    assert not store.matching(run.id, Selection(worker=BAD))
    healthy(tested, sql)


@pytest.mark.slow
@settings(max_examples=200 if LONG else 12, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_any_purges_at_any_moments_lead_to_the_pure_replay(sqlite_template, tmp_path_factory, seed):
    """Machines come and go, and purges of anything come between any two acts of a master."""
    dice = Random(seed)
    path = tmp_path_factory.mktemp("purges") / "spsa.db"
    path.write_bytes(sqlite_template.read_bytes())
    url = f"sqlite:///{path}"
    with Store(url, durable=False) as store, closing(Shell(url)) as sql:
        tested = RunUnderTest(
            store,
            algorithm=dice.choice([*RULES]),
            in_flight=dice.choice([1, 2, 4]),
            iterations=dice.randint(2, 8),
            game_settings=dice.choice([TERMS, TWO]),
        )

        def meanwhile():
            for _ in range(dice.randrange(6)):
                name = dice.choice("abc")
                worker = store.register_worker(new_worker(name, host=name))
                claim = store.claim(uuid.uuid4().hex, worker, LEASE)
                if claim is not None and dice.random() < 0.9:
                    store.report(claim, result_of(claim))
                elif claim is not None:
                    store.release(claim)
            if dice.random() < 0.3:
                purge_at_random(tested, dice)

        tested.master(FakeSleep(meanwhile)).run()
        for _ in range(dice.randrange(3)):
            purge_at_random(tested, dice)
        healthy(tested, sql)
        run = tested.now()
        assert run.status is RunStatus.FINISHED
        for step in store.steps(run.id):
            was = theta_at(store, run, tested.tuning, step.k, as_applied=True)
            assert bits(was.theta) == bits(step.theta_after)


def purge_at_random(tested, dice):
    number = dice.randint(1, 8)
    since = tested.store.clock() - timedelta(milliseconds=dice.randrange(300))
    machine = dice.choice("abc")
    chosen = dice.choice(
        [
            Selection(worker=machine),
            Selection(host=machine, iterations=(number,)),
            Selection(batches=((number, 0), (number, 1))),
            Selection(since=since),
            Selection(),
        ]
    )
    with suppress(NothingToDo):
        purge(tested, chosen)


@pytest.mark.slow
@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_purge_whose_response_is_lost_is_done_or_not(database_url, sql, cut):
    """It is one transaction: a process that is killed in it leaves nothing behind."""
    store = CutStore(database_url)
    tested = RunUnderTest(store, iterations=6)
    run = moved(tested)
    planned = plan(store, run, tested.tuning, Selection(worker=BAD))
    store.cut_next(cut)
    with pytest.raises(DatabaseUnreachable):
        carry_out(store, tested.tuning, planned, "me", "why")
    assert (store.writes, tested.now() == run) == (store.at, cut == "before")
    again = pytest.raises(NothingToDo) if cut == "after" else nullcontext()
    with again:
        carry_out(store, tested.tuning, planned, "me", "why")
    assert tested.now().purges == 1
    healthy(tested, sql)
    store.close()


@pytest.mark.parametrize("until", ["UPDATE spsa_iteration", "commit"])
def test_a_report_during_a_purge_of_the_same_iteration_counts(database_url, sql, until):
    """It has counted in its batch alone, or in the iteration too, and is not committed yet."""
    with (
        Store(database_url, durable=False) as store,
        Store(database_url, durable=False) as slow,
        ThreadPoolExecutor(2) as pool,
    ):
        run = stage(store)
        run.open()
        first, second = run.claim("first"), run.claim("second")
        store.report(first, result_of(first))
        planned = plan(store, run.now(), None, Selection(batches=((1, 0),)))
        reached, go_on = Event(), Event()

        def waits(*details):
            if until == "commit" or until in details[2]:
                reached.set()
                assert go_on.wait(60)

        name = "commit" if until == "commit" else "before_cursor_execute"
        event.listen(slow._engine, name, waits)
        report = pool.submit(slow.report, second, result_of(second))
        assert reached.wait(60)
        purge = pool.submit(carry_out, store, None, planned, "me", "why")
        wait([purge], 0.5)  # on PostgreSQL it may be done; it may have to wait for the report
        go_on.set()
        assert (report.result(60), purge.result(60).games) == ("accepted", 4)
        (iteration,) = store.iterations(run.run.id)
        assert iteration.tally == result_of(second).tally
        assert broken(sql) == []


@pytest.mark.slow
def test_a_run_of_another_version_of_the_rule_is_one_finding(store, monkeypatch):
    """It moved theta farther; what follows from that is not told parameter by parameter."""
    tested = RunUnderTest(store, iterations=6, algorithm="mixture")
    moved(tested)
    other = replace(tested.tuning, space=replace(tested.tuning.space))
    monkeypatch.setattr("spsa.algorithms.mixture.Bank.missed", property(lambda b: 6e3 * b.results))
    (violation,) = violations(store, tested.now(), tested.tuning)
    assert "iteration 1: delta of step k=1, margin: " in violation
    assert "more differ from there on: did another version of the rule" in violation
    monkeypatch.undo()
    assert violations(store, tested.now(), other) == []


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
    sql("UPDATE spsa_batch SET time_control = 1 - time_control WHERE id = 1")
    assert any("games by time control" in one for one in violations(store, tested.now()))


@pytest.mark.slow_on("spsa")
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
