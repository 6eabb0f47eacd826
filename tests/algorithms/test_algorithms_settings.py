"""Which settings a rule has, and what is wrong with others."""

import json
from pathlib import Path

import pytest
from golden import compare_cases
from outcomes import START, problem

from spsa.algorithms import algorithms, create, rule_settings, settings_faults


def test_the_rules_are_listed_in_the_order_they_are_recommended_in():
    assert algorithms() == (
        "mixture", "spsa", "fishtest", "kiiski", "constant", "bspsa", "bspsas"
    )  # fmt: skip


@pytest.mark.parametrize("name", algorithms())
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
    ((_, found, remedy),) = settings_faults("gradient descent", {})
    assert (found, remedy) == (
        "found 'gradient descent'",
        f"use one of {', '.join(sorted(algorithms()))}",
    )
    with pytest.raises(ValueError, match=r"alhpa: .*\n?.*c: .*a: "):
        create("spsa", {"alhpa": 1, "c": 0, "gamma": 0.1, "a": "much"}, problem())
