import numpy as np
import pytest

from spsa.algorithms import Problem, RuleEntry, algorithms, create, rule_entry, settings_faults

PROBLEM = Problem(
    start=np.zeros(3),
    lower=np.full(3, -5.0),
    upper=np.full(3, 5.0),
    unit=np.zeros(3),
    iterations=100,
    pairs=20,
)


def usual(chosen: RuleEntry) -> dict[str, object]:
    """Every setting that has a default, at it."""
    return {s.name: s.default for s in chosen.settings if s.default is not None}


@pytest.mark.parametrize("name", algorithms())
def test_every_method_works_with_its_defaults(name: str) -> None:
    rule = create(name, {}, PROBLEM)
    assert rule.name == name
    assert rule.theta(rule.start()).tolist() == [0, 0, 0]
    assert settings_faults(name, {}) == []


@pytest.mark.parametrize("name", algorithms())
def test_every_default_is_a_value_that_may_be_given(name: str) -> None:
    assert settings_faults(name, usual(rule_entry(name))) == []
    assert all(setting.meaning for setting in rule_entry(name).settings)


def test_an_unknown_algorithm_is_a_fault_with_a_suggestion() -> None:
    assert settings_faults("spas", {"a": -1}) == [
        ("algorithm", "found 'spas'", "did you mean 'spsa'?")
    ]
    (key, _, remedy) = settings_faults("gradient descent", {})[0]
    assert (key, remedy) == ("algorithm", f"known: {', '.join(sorted(algorithms()))}")


@pytest.mark.parametrize(
    ("setting", "meant"), [("alhpa", "alpha"), ("Gamma", "gamma"), ("noise-walk", "noise_walk")]
)
def test_a_misspelt_setting_is_a_fault_with_a_suggestion(setting: str, meant: str) -> None:
    assert settings_faults("spsa", {setting: 0.5}) == [
        (setting, "unknown setting", f"did you mean {meant!r}?")
    ]


@pytest.mark.parametrize(
    "value", [0, -1, True, "1", None, float("nan"), float("inf"), [1.0], 10**400]
)
def test_a_setting_that_is_no_number_in_its_range_is_a_fault(value: object) -> None:
    assert settings_faults("spsa", {"c": value}) == [
        (
            "c",
            f"found {value!r}",
            "perturbation of the first iteration, in steps: "
            "a number at least 1e-06 and at most 1e+06",
        )
    ]


@pytest.mark.parametrize(("value", "right"), [(0, True), (0.5, True), (0.51, False), (-0.1, False)])
def test_the_ends_of_a_range(value: float, right: bool) -> None:
    assert (settings_faults("spsa", {"gamma": value}) == []) is right


def test_a_and_what_it_is_derived_from_cannot_both_be_given() -> None:
    assert settings_faults("spsa", {"a": 0.1, "noise_walk": 2}) == [
        ("noise_walk", "given together with a", "give noise_walk or a, not both")
    ]


def test_every_two_of_what_decides_the_same_are_a_fault() -> None:
    given = {"last_move": 0.1, "first_move": 0.2, "noise_walk": 2, "c": 1}
    assert settings_faults("spsa", given) == [
        ("last_move", "given together with noise_walk", "give last_move or noise_walk, not both"),
        ("last_move", "given together with first_move", "give last_move or first_move, not both"),
        ("first_move", "given together with noise_walk", "give first_move or noise_walk, not both"),
    ]


def test_the_rules_are_listed_in_the_order_they_are_recommended_in() -> None:
    assert algorithms() == (
        "mixture", "spsa", "fishtest", "kiiski", "constant", "bspsa", "bspsas"
    )  # fmt: skip


def test_all_faults_come_in_one_go() -> None:
    given = {"alhpa": 1, "c": 0, "gamma": 0.1, "a": "much"}
    assert [key for key, _, _ in settings_faults("spsa", given)] == ["alhpa", "c", "a"]
    with pytest.raises(ValueError, match=r"alhpa: .*\n?.*c: .*a: "):
        create("spsa", given, PROBLEM)
