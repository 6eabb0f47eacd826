"""The rules that move theta, one module for each, with one interface: ask and tell."""

from spsa.algorithms.bayes import Prior, sigma_of
from spsa.algorithms.bspsa import Bspsa
from spsa.algorithms.bspsas import Bspsas
from spsa.algorithms.registry import algorithms, create, rule_entry, settings_faults
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
from spsa.algorithms.settings import Setting

__all__ = [
    "Belief",
    "Bspsa",
    "Bspsas",
    "Outcome",
    "Perturbation",
    "Prior",
    "Problem",
    "Rule",
    "RuleEntry",
    "RuleUpdate",
    "Setting",
    "State",
    "Vector",
    "algorithms",
    "create",
    "rule_entry",
    "settings_faults",
    "sigma_of",
]
