"""The rules that move theta, by name: one module for each, with one interface, ask and tell."""

from collections.abc import Mapping
from typing import Any

from spsa.algorithms.bspsa import Bspsa
from spsa.algorithms.bspsas import Bspsas
from spsa.algorithms.constant import ConstantGain
from spsa.algorithms.fishtest import Fishtest
from spsa.algorithms.kiiski import Kiiski
from spsa.algorithms.mixture import Mixture
from spsa.algorithms.rule import Problem, Rule
from spsa.algorithms.settings import Found, Setting, faults, settings_of
from spsa.algorithms.spsa import Spsa
from spsa.text import suggestion

RULES: Mapping[str, type[Any]] = {
    rule.name: rule for rule in (Mixture, Spsa, Fishtest, Kiiski, ConstantGain, Bspsa, Bspsas)
}


def rule_settings(algorithm: str) -> tuple[Setting, ...]:
    """The settings of the rule of this name. Raises KeyError for an unknown name."""
    return settings_of(RULES[algorithm])


def settings_faults(algorithm: str, settings: Mapping[str, object]) -> list[Found]:
    """All faults as (key, found, remedy); the key of an unknown algorithm is "algorithm"."""
    if algorithm not in RULES:
        return [("algorithm", f"found {algorithm!r}", suggestion(algorithm, RULES))]
    return list(faults(rule_settings(algorithm), settings))


def create(algorithm: str, settings: Mapping[str, object], problem: Problem) -> Rule:
    """The named rule for one problem. Raises ValueError with all `settings_faults`."""
    if wrong := settings_faults(algorithm, settings):
        raise ValueError("; ".join(f"{key}: {found}; {remedy}" for key, found, remedy in wrong))
    given = {
        name: value if isinstance(value, str) else float(str(value))
        for name, value in settings.items()
    }
    rule: Rule = RULES[algorithm](problem=problem, **given)
    return rule
