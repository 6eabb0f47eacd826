"""A rule that is watched moves as it does alone, and what is noted of it is true."""

import json
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from outcomes import START, generator, outcome, problem, tallies

from spsa.algorithms import Outcome, algorithms, create
from spsa.algorithms.observing import Observation, Observed, observed
from spsa.errors import UnusableState
from spsa.planning.simulated_run import Quadratic, SimulatedGames, SimulatedRun

PROBLEM = problem()
WITHOUT_BELIEF = [
    n for n in algorithms() if (r := create(n, {}, PROBLEM)).belief(r.start()) is None
]


def watched(name: str) -> Observed:
    return observed(create(name, {}, PROBLEM), PROBLEM)


def results(rule: Observed, count: int, seed: int = 1) -> list[Outcome]:
    """What a run of the rule plays, and random counts of it."""
    state, rng, found = rule.start(), generator(seed), []
    for k, tally in enumerate(tallies(seed, count), start=1):
        found.append(outcome(rule.ask(state, k, rng), tally, k=k))
        state, _ = rule.tell(state, found[-1])
    return found


def told(rule: Observed, state: Observation, seen: list[Outcome]) -> Observation:
    for one in seen:
        state, _ = rule.tell(state, one)
    return state


def stored(data: Mapping[str, Any]) -> dict[str, Any]:
    """As a database gives it back."""
    return dict(json.loads(json.dumps(data)))


@pytest.mark.parametrize("name", algorithms())
def test_a_rule_does_not_notice(name: str) -> None:
    rule = watched(name)
    alone, state = rule.rule.start(), rule.start()
    for one in results(rule, 12):
        alone, moved = rule.rule.tell(alone, one)
        state, move = rule.tell(state, one)
        assert move.gradient.tobytes() == moved.gradient.tobytes()
        assert rule.theta(state).tobytes() == rule.rule.theta(alone).tobytes()
        first, second = (
            r.ask(s, one.k, generator(7)) for r, s in ((rule, state), (rule.rule, alone))
        )
        assert first.offset.tobytes() == second.offset.tobytes()
        assert first.centre.tobytes() == second.centre.tobytes()
    assert stored(rule.dump(state))["rule"] == stored(rule.rule.dump(alone))


@pytest.mark.parametrize("name", algorithms())
def test_a_state_survives_a_database_to_the_bit(name: str) -> None:
    rule = watched(name)
    seen = results(rule, 10)
    half = rule.load(stored(rule.dump(told(rule, rule.start(), seen[:5]))))
    assert stored(rule.dump(told(rule, half, seen[5:]))) == stored(
        rule.dump(told(rule, rule.start(), seen))
    )


@pytest.mark.parametrize("name", algorithms())
def test_nothing_is_said_before_there_is_something_to_say(name: str) -> None:
    rule = watched(name)
    state = rule.start()
    assert rule.averaged(state) is None and rule.supported(state) is None
    first, second = results(rule, 2)
    state, _ = rule.tell(state, first)
    assert rule.averaged(state) is None and rule.supported(state) is not None
    state, _ = rule.tell(state, second)
    assert rule.averaged(state) is not None


def test_the_default_rule_is_its_own_witness() -> None:
    assert watched("mixture").witness is None
    assert "spsa" in WITHOUT_BELIEF and "mixture" not in WITHOUT_BELIEF


@pytest.mark.parametrize("name", WITHOUT_BELIEF)
def test_a_witness_learns_what_it_would_have_learnt_by_itself(name: str) -> None:
    rule, filters = watched(name), create("mixture", {}, PROBLEM)
    seen, state = results(rule, 15), filters.start()
    for one in seen:
        state, _ = filters.tell(state, one)
    supported, belief = rule.supported(told(rule, rule.start(), seen)), filters.belief(state)
    assert supported is not None and belief is not None
    assert supported.mean.tobytes() == belief.mean.tobytes()
    assert supported.deviation is None


def test_the_games_of_a_slow_rule_support_more_than_it_found() -> None:
    """200 runs at once of SPSA with far too small an `a`, each with an optimum of its own."""
    rng = np.random.default_rng(11)
    start = rng.uniform(0.5, 2.0, size=(200, 6)) * rng.choice([-1.0, 1.0], size=(200, 6))
    slow = problem(start, iterations=150)
    engine = Quadratic(optimum=np.zeros(6), curvature=np.full(6, 2.0))
    rule = observed(create("spsa", {"noise_walk": 0.2}, slow), slow)
    simulated_run = SimulatedRun(problem=slow, engine=engine, games=SimulatedGames(0.5))
    state = deque(simulated_run.run(rule, rng), maxlen=1).pop()
    supported = rule.supported(state)
    assert supported is not None
    lost = {
        "start": -engine.elo(start).mean(),
        "final": -engine.elo(rule.theta(state)).mean(),
        "supported": -engine.elo(supported.mean).mean(),
    }
    assert lost["supported"] < 0.5 * lost["final"] < 0.5 * lost["start"]


@pytest.mark.parametrize(
    "broken", [{"notes": 3}, {"notes": {}}, {"notes": {"average": {}}}, {"rule": None}]
)
def test_notes_that_are_none_are_refused_in_a_sentence(broken: dict[str, object]) -> None:
    rule = watched("spsa")
    data = {**rule.dump(told(rule, rule.start(), results(rule, 3))), **broken}
    with pytest.raises(UnusableState, match="saved state"):
        rule.load(stored(data))


def test_a_witness_of_other_parameters_is_refused() -> None:
    rule, fewer = watched("spsa"), problem(START[:2])
    other = observed(create("spsa", {}, fewer), fewer)
    data = {**rule.dump(rule.start())}
    data["notes"] = other.dump(other.start())["notes"]
    with pytest.raises(UnusableState):
        rule.load(stored(data))
