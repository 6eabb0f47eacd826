"""The verdict: what it knows of a run, what more games bring, what its matches have measured."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from builders import new_validation, space_from, stage
from golden import compare_cases

from benches.papers.suite import SIZES, Suite
from benches.verdict import judged, near
from spsa.algorithms import create
from spsa.algorithms.filter_bank import Bank
from spsa.algorithms.mixture import Mixture
from spsa.algorithms.rule import Outcome, Problem
from spsa.db.tables import Compared
from spsa.lifecycle import RunStatus
from spsa.master.verdict import Advice, misfit, verdict
from spsa.report.matches import measured_gain, opponent_of

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
    return rule, rule.start()


def after(rule, state, results):
    """The filters after so many results in which both sides are equal."""
    rng, pairs = np.random.default_rng(1), rule.problem.pairs
    even = np.array([0.05, 0.2, 0.5, 0.2, 0.05]) * pairs
    for _ in range(results):
        k = round(float(state.pairs[0]) / pairs) + 1
        asked = rule.ask(state, k, rng)
        outcome = Outcome(
            k=k,
            centre=asked.centre,
            difference=2 * asked.offset,
            pentanomial=even,
            a_k=asked.a_k,
            c_k=asked.c_k,
        )
        state = rule.tell(state, outcome)
    return state


def test_what_more_games_bring_is_what_the_filters_learn_from_them():
    rule, before = filters()
    now: Bank = after(rule, before, 40)
    later: Bank = after(rule, now, 40)
    lost = (now.variance - later.variance).sum(axis=-1, keepdims=True)
    expected = float(np.sum(now.weight() * rule.per_step * (200 / np.log(10)) * lost))
    ten, forty, many = (rule.elo_of(now, results * 75) for results in (10, 40, 400))
    assert ten < forty < many and forty == pytest.approx(expected, rel=0.05)
    assert misfit(now, 40) < 1.0, "even results are as predicted"


def test_what_is_known_and_what_to_do(store, monkeypatch):
    """Of a run with this `change`; more games bring as much as is `told`, result after result."""

    @cache
    def after_results(applied, planned):
        return stage(store, SPACE, applied, planned=planned, name=f"{applied} of {planned}").now()

    def shown(files):
        facts = {name: json.loads(text) for name, text in files.items()}
        run = replace(after_results(*facts["applied"]), **facts.get("change", {}))
        ended = {"finished_at": run.created_at} if "status" in facts else {}
        run = replace(run, **ended, status=RunStatus(facts.get("status", "running")))
        stops = facts.get("said_stop", False)
        for more in facts.get("told", [None]):
            with monkeypatch.context() as patch:
                if more is not None:
                    patch.setattr(Mixture, "elo_of", lambda *_, more=more: more)
                    patch.setattr("spsa.master.verdict.misfit", lambda *_: facts.get("misfit", 1.0))
                found = verdict(run, said_stop=stops)
            stops = found.advice is Advice.STOP
            yield f"{found.advice}: {found.reason}"
        assert (found.gained is None) == bool(found.unknown)
        yield from filter(None, [found.unknown])

    compare_cases(Path(__file__).with_name("verdicts.txt"), shown)


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
