"""A validation on real stores: opened once, gone on with however interrupted, never half told.

Beside the tuning it is small rounds, one match for each theta, and theta is untouched.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from builders import TERMS, new_engine, new_worker, play
from cutting import CutStore
from masters import FakeSleep, FixedDelivery, RunUnderTest, Watched, settings
from stories import Story
from transcripts import headings

from spsa.builds.artifacts import BuiltEngine
from spsa.core import Builds
from spsa.core.game_settings import MinusSettings
from spsa.core.params import PlayedValues
from spsa.core.scoring import Tally
from spsa.db.master_queries import Sides
from spsa.db.tables import Compared, Iteration
from spsa.errors import BuildFailed
from spsa.history.doctor import check_run
from spsa.lifecycle import IterationStatus, Purpose, RunStatus
from spsa.master.delivery import BinaryDelivery
from spsa.master.match import ValidationMatch, sprt_of
from spsa.master.match_engines import MatchDelivery, NamedEngine
from spsa.master.session import tuning_of
from spsa.master.validation import Background, Validation
from spsa.report.matches import opponent_of
from spsa.text import plural

MATCH = ValidationMatch(
    sides=PlayedValues({"margin": 60.0}, {"margin": 50.0}),
    settings=settings(2, 2),
    game_settings=TERMS,
    games=12,
)


@pytest.fixture
def tested(store):
    """A run that is finished."""
    tested = RunUnderTest(store, iterations=2)
    assert tested.master(FakeSleep(lambda: play(store))).run() is RunStatus.FINISHED
    return tested


def validated(tested, fake_sleep=None, store=None, match=MATCH, delivery=None):
    store = store or tested.store
    return Validation(
        store=store,
        master_lease=tested.store.acquire_master_lease(tested.run.id, "m", 1000),
        delivery=delivery or FixedDelivery(),
        watcher=Watched(),
        stopping=fake_sleep or FakeSleep(lambda: play(tested.store)),
        match=match,
    ).run()


class Validating(Story):
    """A run that real masters tune and validate, and what comes between."""

    def tuned(self, sleeps=None, in_flight=2) -> RunStatus | None:
        """To its end, or until its master has slept so often, while no game is played."""
        self.tested = RunUnderTest(self.store, in_flight=in_flight, iterations=2)
        return self.tested.master(self._sleep(sleeps)).run()

    def _sleep(self, most, meanwhile="plays"):
        def happens():
            if meanwhile == "fails" and self.claim("machine") != "nothing":
                self.fail(max(self._claims), "the engine crashed")
            elif meanwhile == "stops" and rounds(self.tested):
                self.store.stop("tested", "anna", "enough")
            elif meanwhile == "plays" and most is None:
                play(self.store)

        return FakeSleep(happens, most)

    def builds(self) -> None:
        """As a master says that was stopped since."""
        lease = self.store.acquire_master_lease(self.tested.run.id, "m", 1000)
        self.store.tick(lease, 1000, Builds(iterations=(3,), seconds=36.0))

    def match(
        self, margin=60.0, games=12, sprt=None, *, sleeps=None, meanwhile="plays", trouble=None
    ) -> str:
        delivery = self.delivery = FixedDelivery(trouble=trouble and BuildFailed(trouble))
        tuned = self.tested.now().theta
        asked = Compared(sprt=sprt and tuple(map(float, sprt)))
        sides = replace(MATCH.sides, plus={"margin": margin})
        match = replace(MATCH, sides=sides, games=games, asked=asked)
        row = validated(self.tested, self._sleep(sleeps, meanwhile), match=match, delivery=delivery)
        made = plural(len(delivery.prepared), "time")
        if row is None:
            return f"left, engines made {made}"
        test = f", accepted {sprt_of(asked, row.tally).accepted}" if sprt else ""
        told = f"match {row.match_number} is {row.status} after {row.games_played} games{test}"
        same = "the same" if self.tested.now().theta == tuned else "another"
        return f"{told}, Elo {row.elo_diff:+.1f}, engines made {made}, theta is {same}"

    def engines(self) -> str:
        return "cancelled" if self.delivery.cancelled else "still made"

    def building(self) -> Sequence[int]:
        return self.tested.now().builds.iterations


STORY = Validating


@pytest.mark.parametrize("heading", headings(__file__))
def test_matches(heading, story, caplog):
    story(heading)
    said = "bad is set aside for the binary abababababab: failed 3"
    assert (said in caplog.text) == ("set aside for its binary" in heading)


def rounds(tested):
    return tested.store.iterations(tested.run.id, purpose=Purpose.VALIDATE)


@pytest.mark.slow
@pytest.mark.parametrize("cut", ["before", "after"])
def test_cut_off_at_any_call_there_is_one_match_and_it_ends(database_url, store, tested, cut):
    with CutStore(database_url) as queries:
        queries.writes = 0
        validated(tested, store=queries)
        calls = queries.writes
        assert calls > 3
        for at in range(1, calls + 1):
            before = len(rounds(tested))
            queries.writes, queries.at, queries.cut = 0, at, cut
            assert validated(tested, store=queries).status is IterationStatus.COMPLETE
            assert len(rounds(tested)) == before + 1, at


TEST = replace(MATCH, games=4000, asked=Compared(sprt=(50.0, 150.0)))
"""Made-up results are those of equal players, so it accepts 50."""


def test_a_sequential_test_goes_on_when_it_was_interrupted_and_ends_when_it_is_decided(tested):
    assert validated(tested, FakeSleep(lambda: play(tested.store), most=2), match=TEST) is None
    (begun,) = tested.store.matches(tested.run.id)
    row = validated(tested, match=TEST)
    assert row.match_number == begun.match_number
    assert row.tally.games >= begun.tally.games > 0
    rounds = tested.store.iterations(tested.run.id, match=row.match_number)
    complete = [one for one in rounds if one.status is IterationStatus.COMPLETE]
    assert len(complete) > 1
    assert {one.status for one in rounds[len(complete) :]} <= {IterationStatus.ABANDONED}
    assert row.tally == sum((one.tally for one in complete), Tally())
    assert sprt_of(TEST.compared, row.tally).accepted == 0
    before = sum((one.tally for one in complete[:-1]), Tally())
    assert sprt_of(TEST.compared, before).accepted is None
    assert row.tally.games < 400
    again = validated(tested, match=TEST)
    assert again.match_number > row.match_number, "a decided test is not asked again"
    batch = TEST.settings.batch_size
    assert [TEST.next_games((), slots) for slots in (0, 3)] == [batch, 3 * batch]


SIDES = PlayedValues({}, {"margin": 50, "ratio": 0.3, "still": 50})
BESIDE = ValidationMatch(sides=SIDES, settings=settings(1, 7), game_settings=TERMS)
PLAN = Background(every=2, share=0.5, match=BESIDE)


def finished(store, before_games=lambda: None, **over):
    tested = RunUnderTest(store, iterations=7, **over)
    stopping = FakeSleep(lambda: (before_games(), play(store)))
    tested.master(stopping, background=replace(PLAN)).run()
    assert tested.now().status is RunStatus.FINISHED
    return tested


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
    read = []
    sa.event.listen(Iteration, "load", heard := lambda row, _: read.append(row))
    matches = store.matches(tested.run.id)
    sa.event.remove(Iteration, "load", heard)
    assert [(one.opened_on, one.target_games) for one in matches] == [(2, 8), (4, 8), (6, 4)]
    assert len(read) == len(matches), "a round is read with all parameters"
    numbers = [it.iteration_number for it in rounds(tested)]
    tuned = [it.iteration_number for it in store.iterations(tested.run.id, purpose=Purpose.TUNE)]
    assert [number + 1 for number in numbers] == tuned[2:]


@pytest.mark.parametrize(("share", "games"), [(0.05, 8), (0.25, 40), (1.0, 160)])
def test_rounds_add_up_to_the_share(share, games):
    plan = replace(PLAN, every=1, share=share)
    beside = [plan.games(k) for k in range(1, 21)]
    assert all(one % 2 == 0 for one in beside)
    assert sum(beside) == games


def test_a_restarted_master_goes_on_with_the_match(store):
    tested = RunUnderTest(store, in_flight=1, iterations=7)
    fake_sleep = FakeSleep(lambda: fake_sleep.set() if tested.now().applied == 3 else play(store))
    tested.master(fake_sleep, background=replace(PLAN)).run()
    (before,) = store.matches(tested.run.id)
    tested.master(FakeSleep(lambda: play(store)), background=replace(PLAN)).run()
    after = store.matches(tested.run.id)[0]
    assert (after.match_number, after.target_games) == (before.match_number, 8)


def test_engines_that_cannot_be_built_cost_only_the_measurement(store):
    class Picky(FixedDelivery):
        def prepare(self, plus, minus):
            if minus["margin"] == 50 and minus["ratio"] == 0.3:
                raise BuildFailed("the start does not build")
            return super().prepare(plus, minus)

    assert rounds(finished(store, in_flight=1, delivery=Picky())) == []


def test_rounds_that_cannot_be_played_cost_only_the_measurement(store, sql):
    fail = (
        "UPDATE spsa_batch SET status = 'failed' WHERE status = 'ready' AND iteration_id IN "
        "(SELECT id FROM spsa_iteration WHERE purpose = 'validate')"
    )
    tested = finished(store, lambda: sql(fail), in_flight=1)
    assert {it.status for it in rounds(tested)} == {IterationStatus.ABANDONED}


class WithFiles(FixedDelivery):
    def prepare(self, plus, minus):
        sides, file = super().prepare(plus, minus), {"EvalFile": new_engine("net")}
        both = (replace(side, files=file) for side in (sides.plus, sides.minus))
        return Sides(*both)


def test_another_engine_takes_the_place_of_the_start_and_the_start_is_measured_too(store):
    terms = replace(TERMS, minus=MinusSettings(handicap=4, foreign=True))
    asked, sides = Compared(against="stockfish (1a2b)"), PlayedValues({}, {})
    match = replace(BESIDE, sides=sides, game_settings=terms, asked=asked)
    made = BuiltEngine("key", "0" * 64, 9, Path("/bin/true"), "x", None)
    other = NamedEngine(
        name="stockfish (1a2b)",
        sha256=made.sha256,
        delivery=BinaryDelivery(
            engine=replace(made, requires=("linux",)), require=("fast",), options={"Threads": "1"}
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
        assert it.plus_files and not it.minus_files
        assert it.opponent == "stockfish (1a2b), handicap 4"
        assert it.requires == "% fast % linux %"
    tuned = store.iterations(tested.run.id, purpose=Purpose.TUNE)
    assert {(it.requires, it.game_settings.minus) for it in tuned} == {(None, None)}
    assert opponent_of(store.matches(tested.run.id)) == "stockfish (1a2b), handicap 4"
    tested.delivery.discard({other.sha256, "1" * 64})
    assert tested.delivery.plus.discarded == ["1" * 64], "the next round needs the other engine"
    assert check_run(store, tested.now(), tuning_of(tested.now())) == []
