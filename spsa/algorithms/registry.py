"""The rules by name."""

from collections.abc import Mapping
from types import MappingProxyType

import spsa.algorithms.bspsa as bspsa
import spsa.algorithms.bspsas as bspsas
import spsa.algorithms.constant as constant
import spsa.algorithms.fishtest as fishtest
import spsa.algorithms.kiiski as kiiski
import spsa.algorithms.mixture as mixture
import spsa.algorithms.spsa as spsa
from spsa.algorithms.rule import Problem, Rule, RuleEntry
from spsa.algorithms.settings import Found, faults, suggestion, values

_ENTRIES: Mapping[str, RuleEntry] = MappingProxyType(
    {
        rule.ENTRY.name: rule.ENTRY
        for rule in (mixture, spsa, fishtest, kiiski, constant, bspsa, bspsas)
    }
)


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
    """The named rule for one problem.

    Raises ValueError with all `settings_faults`. Settings of a user are checked before, so that the
    message has file and line.
    """
    if wrong := settings_faults(algorithm, settings):
        raise ValueError("; ".join(f"{key}: {found}; {remedy}" for key, found, remedy in wrong))
    chosen = _ENTRIES[algorithm]
    return chosen.build(problem, values(chosen.settings, settings))
