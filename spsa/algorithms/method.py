"""What the registry knows of a method: its name, its settings, and how to make its rule."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from spsa.algorithms.rule import Problem, Rule
from spsa.algorithms.settings import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """`build` gets a value for every setting, None where it has to be derived."""

    name: str
    summary: str
    settings: tuple[Setting, ...]
    build: Callable[[Problem, Mapping[str, float | None]], Rule]
