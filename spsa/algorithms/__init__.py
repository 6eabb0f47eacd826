"""The rules that move theta, by name: one module for each, with one interface, ask and tell."""

from collections.abc import Mapping

from spsa.algorithms import bspsa, bspsas, constant, fishtest, kiiski, mixture, spsa
from spsa.algorithms.rule import (
    Belief,
    Outcome,
    Perturbation,
    Problem,
    Rule,
    RuleEntry,
    RuleUpdate,
    State,
    Vector,
)
from spsa.algorithms.settings import Found, faults, values
from spsa.text import suggestion

__all__ = [
    "Belief",
    "Outcome",
    "Perturbation",
    "Problem",
    "Rule",
    "RuleEntry",
    "RuleUpdate",
    "State",
    "Vector",
    "algorithms",
    "create",
    "rule_entry",
    "settings_faults",
]

_ENTRIES: Mapping[str, RuleEntry] = {
    rule.ENTRY.name: rule.ENTRY
    for rule in (mixture, spsa, fishtest, kiiski, constant, bspsa, bspsas)
}


def algorithms() -> tuple[str, ...]:
    """The names that `create` knows."""
    return tuple(_ENTRIES)


def rule_entry(algorithm: str) -> RuleEntry:
    """The entry of this name. Raises KeyError for an unknown name."""
    return _ENTRIES[algorithm]


def settings_faults(algorithm: str, settings: Mapping[str, object]) -> list[Found]:
    """All faults as (key, found, remedy); the key of an unknown algorithm is "algorithm"."""
    if algorithm not in _ENTRIES:
        return [("algorithm", f"found {algorithm!r}", suggestion(algorithm, _ENTRIES))]
    return list(faults(_ENTRIES[algorithm].settings, settings))


def create(algorithm: str, settings: Mapping[str, object], problem: Problem) -> Rule:
    """The named rule for one problem. Raises ValueError with all `settings_faults`."""
    if wrong := settings_faults(algorithm, settings):
        raise ValueError("; ".join(f"{key}: {found}; {remedy}" for key, found, remedy in wrong))
    chosen = _ENTRIES[algorithm]
    rule: Rule = chosen.build(problem=problem, **values(chosen.settings, settings))
    return rule
