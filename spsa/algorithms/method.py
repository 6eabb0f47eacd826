"""A method in the registry: its name, its settings, and how to create its rule."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from spsa.algorithms.rule import Problem, Rule
from spsa.algorithms.settings import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A method. `build` gets a value for every setting, from `spsa.algorithms.settings.values`.

    `iterations_per_depth` is how many planned iterations a run needs for each one in flight: in
    shorter runs results come too late for the rule's steps, and part of the gain is lost.
    """

    name: str
    summary: str
    settings: tuple[Setting, ...]
    build: Callable[[Problem, Mapping[str, Any]], Rule]
    iterations_per_depth: int = 100  # `simulate compare --depth 1,8`: docs/methods.md
