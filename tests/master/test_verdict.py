"""The verdict: what it knows of a run, what more games bring, what its matches have measured."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders import new_validation, space_from, stage
from golden import compare_cases

from benches.papers.suite import SIZES, Suite
from benches.verdict import judged, near
from spsa.algorithms import create
from spsa.algorithms.filter_bank import Bank
from spsa.algorithms.mixture import MAX_MISFIT, Mixture
from spsa.algorithms.rule import Outcome, Problem
from spsa.db.tables import Compared
from spsa.lifecycle import RunStatus
from spsa.master.verdict import Advice, Filters, MoreGames, measured_gain, opponent_of, verdict

BOTH = "plus", "minus"
TABLE = "[{}]\nvalue = {}\nmin = 40\nmax = 400\nstep = 20\n"
SPACE = space_from(TABLE.format("margin", 200) + TABLE.format("depth", 100))


@pytest.mark.slow
def test_the_number_is_the_gain_in_the_mean_and_missing_at_bounds():
    suite = Suite(seed=5, half="judge", size=SIZES["short"], families=("iso", "cornered"))
    found = list(judged(suite, most_results=100))
    told = [one for one in found if one.estimated is not None]
    assert {one.family for one in found if one.estimated is None} == {"cornered"}
    ratio = np.mean([one.gain for one in told]) / np.mean([one.estimated for one in told])
    assert 0.5 < ratio < 2.0
    assert 0.3 < near(found) < 1.0


def filters(n=4, pairs=75):
    """The filters of n parameters before any result."""
    start = np.zeros(n)
    problem = Problem(
        start=start, lower=start - 8, upper=start + 8, unit=start, iterations=100, pairs=pairs
    )
    rule = create("mixture", {}, problem)
    assert isinstance(rule, Mixture)
    return Filters(rule, rule.start())


def after(one, results):
    """The filters after so many results in which both sides are equal."""
    state, rng, pairs = one.bank, np.random.default_rng(1), one.mixture.problem.pairs
    even = np.array([0.05, 0.2, 0.5, 0.2, 0.05]) * pairs
    for _ in range(results):
        k = round(float(state.pairs[0]) / pairs) + 1
        asked = one.mixture.ask(state, k, rng)
        outcome = Outcome(
            k=k,
            centre=asked.centre,
            difference=2 * asked.offset,
            pentanomial=even,
            a_k=asked.a_k,
            c_k=asked.c_k,
        )
        state = one.mixture.tell(state, outcome)
    return replace(one, bank=state)


def test_what_more_games_bring_is_what_the_filters_learn_from_them():
    now = after(filters(), 40)
    later: Bank = after(now, 40).bank
    lost = (now.bank.variance - later.variance).sum(axis=-1, keepdims=True)
    expected = float(np.sum(now.bank.weight() * now.elo_per_step * lost))
    assert now.elo_of(40 * 75) == pytest.approx(expected, rel=0.05)
    assert now.elo_of(10 * 75) < now.elo_of(40 * 75) < now.elo_of(400 * 75)
    assert now.misfit(40) < 1.0, "even results surprise nobody"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"applied": 0}, "there is no result yet"),
        ({"algorithm": "spsa"}, "cannot read"),
        ({"theta": {"margin": 200.0, "depth": 400.0}}, "theta is at a bound of 1 parameter"),
        ({"theta": {"margin": 40.1, "depth": 100.0}}, "theta is at a bound of 1 parameter"),
        ({"state": {"mean": 1}}, "cannot read"),
        ({"settings": {}}, "cannot read"),
    ],
)
def test_where_nothing_is_known_it_says_why(store, change, why):
    run = replace(stage(store, SPACE, 3, planned=9).now(), **change)
    found = verdict(run)
    assert found.gained is None and found.more is None
    assert why in found.unknown
    assert found.advice is Advice.GO_ON
    over = replace(run, finished_at=run.created_at)
    assert verdict(over).reason == "the run is over" or run.applied == 0
    assert verdict(replace(run, applied=9)).advice is Advice.STOP or run.applied == 0


def test_of_few_games_nothing_is_claimed(store):
    found = verdict(stage(store, SPACE, 6).now())
    assert (found.gained, found.unknown) == (None, "it rests on 48 games, too few")
    assert (found.more, found.reason) == (None, "all planned games are played")
    assert verdict(stage(store, SPACE, 7, name="more").now()).more is not None


def told(monkeypatch, run, more, misfit=1.0, **past):
    monkeypatch.setattr(Filters, "elo_of", lambda *_: more)
    monkeypatch.setattr(Filters, "misfit", lambda *_: misfit)
    return verdict(run, **past)


def test_what_to_do(store, monkeypatch):
    run = stage(store, SPACE, 10, planned=20).now()
    nearly_over, over = replace(run, max_iterations=11), replace(run, max_iterations=10)
    stopped = replace(run, status=RunStatus.STOPPED, finished_at=run.created_at)
    for one, more, misfit, advice in (
        (run, 0.9, 1.0, Advice.STOP),
        (run, 1.1, 1.0, Advice.GO_ON),
        (run, 0.1, 2.1, Advice.GO_ON),
        (nearly_over, 1.1, 1.0, Advice.EXTEND),
        (nearly_over, 0.9, 1.0, Advice.STOP),
        (nearly_over, 1.1, 2.1, Advice.GO_ON),  # extended on no ground
        (over, 1.1, 2.1, Advice.STOP),
        (stopped, 1.1, 1.0, Advice.STOP),  # it cannot be extended
    ):
        assert told(monkeypatch, one, more, misfit).advice is advice, (one, more, misfit)
    nearly = told(monkeypatch, run, 0.999)
    assert nearly.more == MoreGames(games=80, elo=0.999)
    assert nearly.reason.endswith("to bring +0.99 Elo, less than 1 Elo"), "not rounded up"


def test_near_a_limit_it_does_not_change_with_every_result(store, monkeypatch):
    run = stage(store, SPACE, 10, planned=20).now()
    said, stops = "", False
    for more in (1.6, 1.1, 0.98, 1.03, 0.97, 1.4, 1.02, 1.49, 1.51, 1.2, 1.0, 0.99):
        found = told(monkeypatch, run, more, said_stop=stops)
        stops = found.advice is Advice.STOP
        said += "s" if stops else "g"
        assert stops == ("less than" in found.reason)
    assert said == "ggssssssgggs"
    for said_stop, advice in ((True, Advice.STOP), (False, Advice.GO_ON)):
        found = told(monkeypatch, run, 0.99, 1.2 * MAX_MISFIT, said_stop=said_stop)
        assert found.advice is advice


def match(k, games=8, sides="plus", **compared):
    """A validation whose games are all drawn."""
    values = {f"{side}_parameters": {"margin": 1.0} if side in sides else {} for side in BOTH}
    counts = {"games_played": games, "draws": games, "ptnml_2": games // 2}
    row = new_validation(opened_on=k, compared=Compared(**compared), **values).row
    return replace(row, **counts)


def test_what_is_measured_is_against_one_opponent_under_one_time_control():
    def shown(files):
        matches = [match(**json.loads(line)) for line in files["match"].splitlines()]
        curve = measured_gain(matches)
        yield f"{opponent_of(matches)}: {'no curve' if curve is None else list(curve.ks)}"

    compare_cases(Path(__file__).with_name("measured.txt"), shown)
