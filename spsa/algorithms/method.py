"""What the registry knows of a method: its name, its settings, and how to make its rule."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from spsa.algorithms.rule import Problem, Rule
from spsa.algorithms.settings import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """`build` gets a value for every setting, as `spsa.algorithms.settings.values` has them."""

    name: str
    summary: str
    settings: tuple[Setting, ...]
    build: Callable[[Problem, Mapping[str, Any]], Rule]
