"""The methods that move theta, one module for each, with one interface: ask and tell."""

from spsa.algorithms.bayes import Prior, sigma_of
from spsa.algorithms.bspsa import Bspsa
from spsa.algorithms.bspsas import Bspsas
from spsa.algorithms.registry import algorithms, create, method, settings_faults
from spsa.algorithms.rule import (
    Belief,
    Method,
    Outcome,
    Perturbation,
    Problem,
    Rule,
    RuleUpdate,
    State,
    Vector,
)
from spsa.algorithms.settings import Setting

__all__ = [
    "Belief",
    "Bspsa",
    "Bspsas",
    "Method",
    "Outcome",
    "Perturbation",
    "Prior",
    "Problem",
    "Rule",
    "RuleUpdate",
    "Setting",
    "State",
    "Vector",
    "algorithms",
    "create",
    "method",
    "settings_faults",
    "sigma_of",
]
