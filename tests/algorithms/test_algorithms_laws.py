"""What holds for every rule there is: its settings, its steps, what is noted of it."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from golden import compare_cases
from hypothesis import given, settings
from hypothesis import strategies as st
from outcomes import START, N, generator, outcome, problem, tallies, told, walked

from spsa.algorithms import RULES, create, rule_settings, settings_faults
from spsa.algorithms.rule import Belief, WalkState
from spsa.algorithms.state import Carry, alike, restored, saved
from spsa.algorithms.tuning import Observed
from spsa.errors import UnusableState

VARIANTS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    **{name: (name, {}) for name in RULES},
    "constant fdsa": ("constant", {"perturbation": "fdsa"}),
}
WALKS = ("spsa", "fishtest", "kiiski", "constant")

every_rule = pytest.mark.parametrize("variant", VARIANTS)
quickly = settings(deadline=None, max_examples=25)

BETTER = (2.0, 10.0, 20.0, 14.0, 4.0)


def rule(variant, chosen=None):
    name, given = VARIANTS[variant]
    return create(name, given, chosen or problem())


def after_one(of, pentanomial, difference=None, k=1):
    asked = of.ask(of.start(), k, generator())
    return told(of, outcome(asked, pentanomial, difference=difference, k=k))


def bits(state):
    return json.dumps(saved(state))


@every_rule
def test_a_start_outside_the_bounds_is_taken_inside(variant):
    one = rule(variant, problem(np.array([9.0, -9.0, 0.0, 0.0, 0.0])))
    assert one.theta(one.start()).tolist() == [6, -6, 0, 0, 0]


@every_rule
@quickly
@given(seed=st.integers(0, 2**31), k=st.integers(1, 400))
def test_equal_generators_give_equal_perturbations(variant, seed, k):
    one = rule(variant)
    state = one.start()
    asked = [one.ask(state, k, generator(seed)) for _ in range(2)]
    assert asked[0].offset.tobytes() == asked[1].offset.tobytes()
    assert asked[0].centre.tolist() == one.theta(state).tolist()
    assert np.isfinite(asked[0].offset).all()
    assert asked[0].offset.any()


@every_rule
def test_results_turned_round_take_theta_the_other_way(variant):
    """To the bit, for a whole run from the middle of the range."""
    one = rule(variant, problem(np.zeros(N)))
    results = tallies(seed=2, count=30)
    there, back = (one.theta(walked(one, r)) for r in (results, results[:, ::-1]))
    assert np.abs(there).min() > 0
    assert there.tolist() == (-back).tolist()


@every_rule
def test_more_wins_take_theta_further_to_the_winner_and_as_many_wins_as_losses_nowhere(variant):
    one = rule(variant, problem(np.zeros(N)))
    asked = one.ask(one.start(), 1, generator())
    results = (0, 5, 20, 15, 10), (0, 5, 25, 15, 5), (3, 10, 20, 10, 3)
    much, little, none = (one.theta(after_one(one, result)) for result in results)
    perturbed = asked.offset != 0
    assert (np.sign(much) == np.sign(asked.offset)).all()
    assert (np.abs(much) > np.abs(little))[perturbed].all()
    assert not none.any()


@every_rule
def test_no_pairs_change_nothing(variant):
    """Neither at the start nor later, and without a division by zero on the way."""
    one = rule(variant)
    with np.errstate(all="raise", under="ignore"):
        for before in (one.start(), walked(one, tallies(seed=3, count=10))):
            asked = one.ask(before, 11, generator())
            nothing = outcome(asked, np.zeros(5), k=11)
            after = one.tell(before, nothing)
            assert bits(after) == bits(before)
            assert one.theta(after).tolist() == one.theta(before).tolist()
            assert one.counted_elo(nothing).tolist() == [0]


@every_rule
def test_one_sided_results_move_theta_a_finite_way(variant):
    one = rule(variant, problem(reach=1e6))
    for pairs in (1, 10_000):
        with np.errstate(all="raise", under="ignore"):
            state = after_one(one, (0, 0, 0, 0, pairs))
        assert np.isfinite(one.theta(state)).all()
        assert one.theta(state).tolist() != START.tolist()


@every_rule
def test_the_difference_that_was_played_counts_and_not_the_one_asked_for(variant):
    """What is asked for depends on the generator; the step must not."""
    one, played = rule(variant), np.array([2.0, -2.0, 0.0, 1.0, 0.0])
    first, *others = (
        one.theta(told(one, outcome(asked, BETTER, difference=played))) - START
        for asked in (one.ask(one.start(), 1, generator(seed)) for seed in (1, 2, 3))
    )
    assert np.sign(first).tolist() == np.sign(played).tolist()
    assert all(other.tolist() == first.tolist() for other in others)


def extremes(name):
    """Every setting by itself at the ends of its range."""
    found: list[dict[str, object]] = []
    for setting in rule_settings(name):
        least = np.nextafter(setting.least, np.inf) if setting.open else setting.least
        ends = setting.choices or (float(least), min(setting.most, 1e300))
        found += [{setting.name: end} for end in ends]
    return found


@pytest.mark.parametrize("name", RULES)
def test_the_ends_of_every_range_leave_theta_finite_and_inside(name):
    results = np.array([[0, 0, 0, 0, 50], [0, 0, 50, 0, 0], [9, 9, 9, 9, 14], [50, 0, 0, 0, 0]])
    for end in extremes(name):
        one = create(name, end, problem())
        with np.errstate(invalid="raise", divide="raise"):
            state = walked(one, results)
        assert (np.abs(one.theta(state)) <= 6).all(), end
        assert "NaN" not in bits(state), end


LOST = (2, 0, 0, 0, 0)
RESULTS = ((1, 2, 3, 5, 4), (0, 0, 0, 0, 10), (0,) * 5, (40, 300, 900, 500, 160), LOST, LOST)


def shown(*found):
    return " ".join(f"{round(x, 7) + 0.0:.8g}" for one in found for x in np.ravel(one).tolist())


def known(of, state):
    """What a rule knows besides theta: c_k, and its belief if it has one."""
    belief = of.belief(state) if of.believes else Belief(None, None, None)
    found = of.ask(state, 7, generator()).c_k, belief.gained, belief.deviation, belief.too_large
    return [np.asarray(one) for one in found if one is not None]


def recorded(files):
    """A run near a bound, two in flight; then a fork of it in other steps."""
    ((name, given),) = files.items()
    here, rng = problem(reach=3.2, iterations=40), generator()
    one, fork = (create(name, json.loads(given), at) for at in (here, problem(START[:3])))
    state, opened = one.start(), [one.ask(one.start(), 1, rng)]
    yield "shapes " + " ".join(re.findall(r'"shape": (\[.*?\])', bits(state)))
    for k, result in enumerate(RESULTS, start=1):
        opened.append(one.ask(state, k + 1, rng))
        asked = opened.pop(0)
        plus, minus = (here.inside(asked.centre + side * asked.offset) for side in (1, -1))
        told = outcome(asked, result, k=k, centre=(plus + minus) / 2, difference=plus - minus)
        state = one.tell(state, told)
        gains = shown(asked.a_k, asked.c_k, one.counted_elo(told))
        yield f"k={k}: {gains}; {shown(asked.offset)} -> {shown(one.theta(state))}"
    carry = Carry(source=np.array([1, 0, -1]), scale=np.array([0.5, 2, 1]), value=START[:3])
    after = fork.carried(state, carry)
    asked = fork.ask(after, 10, rng)
    late = fork.theta(fork.tell(after, outcome(asked, BETTER, k=10)))
    yield f"knows {shown(*known(one, state))}, and as a fork {shown(*known(fork, after))}"
    yield f"fork: {shown(fork.theta(after))}; {shown(asked.offset)} -> {shown(late)}"


def test_rules_go_on_as_they_were_recorded():
    compare_cases(Path(__file__).with_name("walks.txt"), recorded)


def of_replica(whole, centre, r):
    return replace(
        whole,
        centre=centre,
        difference=whole.difference[r],
        pentanomial=whole.pentanomial[r],
        c_k=whole.c_k if isinstance(whole.c_k, float) else whole.c_k[r],
    )


@pytest.mark.parametrize("n", [1, 5, 33])
@every_rule
def test_replicas_at_once_are_the_runs_one_by_one_to_the_bit(variant, n):
    replicas, count = 4, 12
    starts = generator(7).uniform(-2, 2, (replicas, n))
    every = problem(starts)
    together, alone = rule(variant, every), [rule(variant, problem(s)) for s in starts]
    state, states, rng = together.start(), [one.start() for one in alone], generator()
    for k, results in enumerate(tallies(seed=8, count=count, shape=(replicas,)), start=1):
        asked = together.ask(state, k, rng)
        assert asked.offset.shape == (replicas, n)
        whole = outcome(asked, results, k=k)
        state, elo = together.tell(state, whole), together.counted_elo(whole)
        for r, one in enumerate(alone):
            own = of_replica(whole, one.theta(states[r]), r)
            states[r] = one.tell(states[r], own)
            assert one.theta(states[r]).tobytes() == together.theta(state)[r].tobytes()
            assert one.counted_elo(own).tolist() == elo[r].tolist()
    assert not np.array_equal(together.theta(state), starts)
    for r, one in enumerate(alone):
        for whole, own in zip(known(together, state), known(one, states[r]), strict=True):
            assert own.tolist() == (whole[r] if whole.ndim else whole).tolist()


@pytest.mark.parametrize("variant", [*WALKS, "constant fdsa"])
def test_a_late_result_moves_the_theta_of_now_by_its_own_step(variant):
    one = rule(variant)
    first, second = (one.ask(one.start(), k, generator(k)) for k in (1, 2))
    results = outcome(first, BETTER, k=1), outcome(second, (5, 9, 20, 8, 3), k=2)
    alone = [one.theta(told(one, result)) - START for result in results]
    assert one.theta(told(one, *results)) == pytest.approx(START + alone[0] + alone[1])


@every_rule
def test_a_state_that_does_not_fit_is_refused_with_what_is_there_and_what_is_needed(variant):
    small, one = rule(variant, problem(START[:3])), rule(variant)
    sound, others = saved(one.start()), [rule(name) for name in RULES]
    foreign = [found for other in others if set(found := saved(other.start())) != set(sound)]
    ill = [None, "x", {}, [], [10**400], {"shape": [1], "float64": "?"}, float("nan"), [np.nan] * N]
    broken = [{**sound, name: value} for name in sound for value in ill]
    part = [{k: v for k, v in sound.items() if k != name} for name in sound]
    for state in (saved(small.start()), {**sound, "more": [1.0]}, None, *foreign, *broken, *part):
        with pytest.raises(UnusableState, match=f"^{one.name} cannot use.*: found .*, needs "):
            restored(one.name, state, one.start())


def packed(*numbers):
    return saved(WalkState(np.array(numbers)))["theta"]


def test_states_are_alike_up_to_a_hair_and_not_beyond():
    one = {"k": 3, "bank": packed(1e6, 2.0, 1e-12), "theta": [0.5, -3.0], "who": None}
    for over in ({"theta": [0.5 + 1e-11, -3.0]}, {"bank": packed(1e6 + 1e-5, 2.0, 0.0)}):
        assert alike(one, one | over, 1e-9)
    for over in (
        {"theta": [0.5 + 1e-8, -3.0]},
        {"bank": packed(1e6, 2.0 + 1e-8, 0.0)},
        *({"theta": [0.5]}, {"who": {}}, {"k": 4}, {"more": 1}),
    ):
        assert not alike(one, one | over, 1e-9), over


PROBLEM = problem()


def watched(name):
    return Observed(create(name, {}, PROBLEM))


def results(rule, count, seed=1):
    """What a run of the rule plays, and random counts of it."""
    state, rng, found = rule.start(), generator(seed), []
    for k, tally in enumerate(tallies(seed, count), start=1):
        found.append(outcome(rule.ask(state, k, rng), tally, k=k))
        state = rule.tell(state, found[-1])
    return found


@pytest.mark.parametrize("name", RULES)
def test_a_rule_does_not_notice_and_a_state_survives_a_database_to_the_bit(name):
    rule = watched(name)
    alone, state = rule.rule.start(), rule.start()
    for one in results(rule, 12):
        alone = rule.rule.tell(alone, one)
        state = rule.tell(rule.load(json.loads(json.dumps(rule.dump(state)))), one)
        assert rule.theta(state).tobytes() == rule.rule.theta(alone).tobytes()
        pair = ((rule, state), (rule.rule, alone))
        first, second = (r.ask(s, one.k, generator(7)) for r, s in pair)
        assert first.offset.tobytes() == second.offset.tobytes()
        assert first.centre.tobytes() == second.centre.tobytes()
    assert rule.dump(state) == rule.dump(told(rule, *results(rule, 12)))


def test_only_rules_without_a_belief_have_a_witness():
    believe = [name for name in RULES if watched(name).rule.believes]
    assert believe == ["mixture", "bspsa", "bspsas"]
    assert believe == [name for name in RULES if watched(name).witness is None]


def test_a_witness_learns_what_it_would_have_learnt_by_itself():
    rule, filters = watched("spsa"), create("mixture", {}, PROBLEM)
    seen = results(rule, 15)
    supported, belief = rule.supported(told(rule, *seen)), filters.belief(told(filters, *seen))
    assert supported.mean.tobytes() == belief.mean.tobytes()


@pytest.mark.parametrize("part", ["rule", "witness"])
def test_notes_that_are_none_or_of_other_parameters_are_refused(part):
    rule, fewer = watched("spsa"), problem(START[:2])
    other = Observed(create("spsa", {}, fewer))
    for broken in (3, None, {}, other.dump(other.start())[part]):
        with pytest.raises(UnusableState, match="saved state"):
            rule.load({**rule.dump(rule.start()), part: broken})


@pytest.mark.parametrize("name", RULES)
def test_every_method_works_with_its_defaults_which_may_be_given(name):
    rule = create(name, {}, problem())
    assert rule.name == name
    assert rule.theta(rule.start()).tolist() == START.tolist()
    usual = {s.name: s.default for s in rule_settings(name) if s.default is not None}
    usual.pop("noise_walk" if "a" in usual else "sigma", None)
    assert settings_faults(name, usual) == []


def test_what_settings_are_refused_and_why():
    def shown(files):
        ((name, given),) = files.items()
        faults = settings_faults(name, json.loads(given))
        return [f"{key}: {found}; {remedy}" for key, found, remedy in faults]

    compare_cases(Path(__file__).with_name("settings.txt"), shown)
    assert [key for key, _, _ in settings_faults("spsa", {"c": 10**400})] == ["c"]
    with pytest.raises(ValueError, match=r"alhpa: .*\n?.*c: .*a: "):
        create("spsa", {"alhpa": 1, "c": 0, "gamma": 0.1, "a": "much"}, problem())
