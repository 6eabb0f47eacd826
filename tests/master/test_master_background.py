"""Validations beside the tuning: small rounds, one match for each theta, theta untouched."""

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from builders import TERMS, new_engine, new_worker, play
from masters import GAMES, FakeSleep, FixedDelivery, RunUnderTest, settings

from spsa.builds.artifacts import BuiltEngine
from spsa.core.game_settings import MinusSettings
from spsa.core.params import PlayedValues
from spsa.db.master_queries import Sides
from spsa.db.tables import Compared, Iteration
from spsa.errors import BuildFailed
from spsa.history.doctor import check_run
from spsa.lifecycle import IterationStatus, Purpose, RunStatus
from spsa.master.delivery import GivenDelivery
from spsa.master.match_engines import MatchDelivery, NamedEngine
from spsa.master.session import tuning_of
from spsa.master.validation import BackgroundPlan, ValidationMatch
from spsa.master.verdict import opponent_of

pytestmark = pytest.mark.slow_on("postgresql")

SIDES = PlayedValues({}, {"margin": 50, "ratio": 0.3, "still": 50})
MATCH = ValidationMatch(sides=SIDES, settings=settings(1, 7), game_settings=TERMS)
PLAN = BackgroundPlan(every=2, share=0.5, match=MATCH)


def finished(store, **over):
    tested = RunUnderTest(store, iterations=7, **over)
    tested.master(FakeSleep(lambda: play(store)), background=PLAN).run()
    assert tested.now().status is RunStatus.FINISHED
    return tested


@contextmanager
def listening(*event):
    sa.event.listen(*event)
    yield
    sa.event.remove(*event)


def rounds(tested):
    return tested.store.iterations(tested.run.id, purpose=Purpose.VALIDATE)


@pytest.mark.parametrize("in_flight", [1, "auto"])
def test_every_second_theta_is_measured_against_the_start(store, in_flight):
    tested = finished(store, in_flight=in_flight)
    played = rounds(tested)
    assert {it.status for it in played} == {IterationStatus.COMPLETE}
    assert store.open_iterations(tested.run.id) == []
    assert {it.target_games for it in played} == {4}
    theta = {step.k: step.theta_after for step in store.steps(tested.run.id)}
    space = tuning_of(tested.run).space
    for it in played:
        assert (it.compared.theta, it.compared.background) == (str(it.opened_on), True)
        assert it.plus_parameters == space.playable(theta[it.opened_on])
        assert it.minus_parameters == space.playable(tested.run.start_theta)
    matches = store.matches(tested.run.id)
    assert [one.opened_on for one in matches] == sorted({it.opened_on for it in played})
    assert sum(one.tally.games for one in matches) == 4 * len(played)
    assert check_run(store, tested.now(), tuning_of(tested.now())) == []


def test_one_in_flight_plays_a_round_beside_each_iteration_from_the_first_theta_on(store):
    tested = finished(store, in_flight=1)
    matches, read = [], []
    with listening(Iteration, "load", lambda row, _: read.append(row)):
        matches += store.matches(tested.run.id)
    assert [(one.opened_on, one.target_games) for one in matches] == [(2, 8), (4, 8), (6, 4)]
    assert len(read) == len(matches), "a round is read with all parameters"
    numbers = [it.iteration_number for it in rounds(tested)]
    tuned = [it.iteration_number for it in store.iterations(tested.run.id, purpose=Purpose.TUNE)]
    assert [number + 1 for number in numbers] == tuned[2:]


@pytest.mark.parametrize(("share", "games"), [(0.05, 8), (0.25, 40), (1.0, 160)])
def test_rounds_add_up_to_the_share(share, games):
    plan = replace(PLAN, every=1, share=share)
    beside = [plan.games(k, GAMES) for k in range(1, 21)]
    assert all(one % 2 == 0 for one in beside)
    assert sum(beside) == games


def test_a_restarted_master_goes_on_with_the_match(store):
    tested = RunUnderTest(store, in_flight=1, iterations=7)
    fake_sleep = FakeSleep(lambda: fake_sleep.set() if tested.now().applied == 3 else play(store))
    tested.master(fake_sleep, background=PLAN).run()
    (before,) = store.matches(tested.run.id)
    tested.master(FakeSleep(lambda: play(store)), background=PLAN).run()
    after = store.matches(tested.run.id)[0]
    assert (after.match_number, after.target_games) == (before.match_number, 8)


def test_engines_that_cannot_be_built_cost_only_the_measurement(store):
    class Picky(FixedDelivery):
        def prepare(self, plus, minus):
            if minus["margin"] == 50 and minus["ratio"] == 0.3:
                raise BuildFailed("the start does not build")
            return super().prepare(plus, minus)

    tested = finished(store, in_flight=1, delivery=Picky())
    assert rounds(tested) == []


class WithFiles(FixedDelivery):
    require = ()

    def by_kind(self, plus, minus):
        return {(): self.prepare(plus, minus)}

    def prepare(self, plus, minus):
        sides, file = super().prepare(plus, minus), {"EvalFile": new_engine("net")}
        both = (replace(side, files=file) for side in (sides.plus, sides.minus))
        return Sides(*both)


def test_another_engine_takes_the_place_of_the_start_and_the_start_is_measured_too(store):
    terms = replace(TERMS, minus=MinusSettings(handicap=4, foreign=True))
    asked, sides = Compared(against="stockfish (1a2b)"), PlayedValues({}, {})
    match = replace(MATCH, sides=sides, game_settings=terms, asked=asked)
    made = BuiltEngine("key", "0" * 64, 9, Path("/bin/true"), "x", None)
    other = NamedEngine(
        name="stockfish (1a2b)",
        sha256=made.sha256,
        delivery=GivenDelivery(
            make=lambda: replace(made, requires=("linux",)),
            require=("fast",),
            options={"Threads": "1"},
        ),
    )
    tested = RunUnderTest(store, iterations=7, in_flight=1)
    tested.delivery = MatchDelivery(plus=WithFiles(), minus=other)
    able = store.register_worker(new_worker(provides=("fast", "linux")))
    tested.master(FakeSleep(lambda: play(store, able)), background=replace(PLAN, match=match)).run()
    played = rounds(tested)
    assert sorted({it.opened_on for it in played}) == [0, 2, 4, 6]
    for it in played:
        assert (it.minus_sha256, it.minus_options, it.minus_parameters) == (
            "0" * 64,
            {"Threads": "1"},
            {},
        )
        assert it.plus_sha256 == new_engine(f"{dict(it.plus_parameters)}").sha256
        assert it.plus_files and it.minus_files is None
        assert it.opponent == "stockfish (1a2b), handicap 4"
        assert it.requires == "% fast % linux %"
    tuned = store.iterations(tested.run.id, purpose=Purpose.TUNE)
    assert {(it.requires, it.game_settings.minus) for it in tuned} == {(None, None)}
    assert opponent_of(store.matches(tested.run.id)) == "stockfish (1a2b), handicap 4"
    tested.delivery.discard({other.sha256, "1" * 64})
    assert tested.delivery.plus.discarded == ["1" * 64], "the next round needs the other engine"
    assert check_run(store, tested.now(), tuning_of(tested.now())) == []
