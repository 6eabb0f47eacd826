import pytest
from outcomes import START, problem

from spsa.algorithms import algorithms, create, rule_entry, settings_faults


def test_the_rules_are_listed_in_the_order_they_are_recommended_in():
    assert algorithms() == (
        "mixture", "spsa", "fishtest", "kiiski", "constant", "bspsa", "bspsas"
    )  # fmt: skip


@pytest.mark.parametrize("name", algorithms())
def test_every_method_works_with_its_defaults_which_may_be_given(name):
    rule = create(name, {}, problem())
    assert rule.name == name
    assert rule.theta(rule.start()).tolist() == START.tolist()
    usual = {s.name: s.default for s in rule_entry(name).settings if s.default is not None}
    usual.pop("noise_walk" if "a" in usual else "sigma", None)
    assert settings_faults(name, usual) == []


def test_an_unknown_algorithm_is_a_fault_with_a_suggestion():
    assert settings_faults("spas", {"a": -1}) == [
        ("algorithm", "found 'spas'", 'did you mean "spsa"?')
    ]
    (key, _, remedy) = settings_faults("gradient descent", {})[0]
    assert (key, remedy) == ("algorithm", f"use one of {', '.join(sorted(algorithms()))}")
    assert settings_faults("mixture", {"c_end": 3}) == [
        ("c_end", "unknown setting", "remove it: the rule has none")
    ]


@pytest.mark.parametrize(
    ("setting", "meant"), [("alhpa", "alpha"), ("Gamma", "gamma"), ("noise-walk", "noise_walk")]
)
def test_a_misspelt_setting_is_a_fault_with_a_suggestion(setting, meant):
    assert settings_faults("spsa", {setting: 0.5}) == [
        (setting, "unknown setting", f'did you mean "{meant}"?')
    ]


@pytest.mark.parametrize(
    "value", [0, -1, True, "1", None, float("nan"), float("inf"), [1.0], 10**400]
)
def test_a_setting_that_is_no_number_in_its_range_is_a_fault(value):
    assert settings_faults("spsa", {"c": value}) == [
        (
            "c",
            f"found {value!r}",
            "perturbation of the first iteration, in steps: "
            "a number at least 1e-06 and at most 1e+06",
        )
    ]


def test_the_ends_of_a_range():
    found = [settings_faults("spsa", {"gamma": value}) == [] for value in (0, 0.5, 0.51, -0.1)]
    assert found == [True, True, False, False]


@pytest.mark.parametrize(
    ("found", "hint"),
    [("fsda", '; did you mean "fdsa"?'), ("SPSA", '; did you mean "spsa"?'), ("x", ""), (1, "")],
)
def test_a_word_that_is_none_of_the_choices_is_a_fault(found, hint):
    assert settings_faults("constant", {"perturbation": found}) == [
        (
            "perturbation",
            f"found {found!r}",
            f'which parameters are perturbed in an iteration, all or one: "spsa" or "fdsa"{hint}',
        )
    ]


def test_all_faults_come_in_one_go():
    given = {"alhpa": 1, "c": 0, "gamma": 0.1, "a": "much", "noise_walk": 2}
    faults = settings_faults("spsa", given)
    assert [key for key, _, _ in faults] == ["alhpa", "c", "a", "noise_walk"]
    assert faults[-1][1:] == ("given together with a", "give noise_walk or a, not both")
    with pytest.raises(ValueError, match=r"alhpa: .*\n?.*c: .*a: "):
        create("spsa", given, problem())
