"""Compares params.toml with the space of a run."""

from collections.abc import Iterator

from spsa.core.params.parameter import Parameter
from spsa.core.params.space import Space

_ATTRIBUTES = (
    "minimum", "maximum", "step", "integral", "scale", "active", "place", "option"
)  # fmt: skip


def differences(run: Space, file: Space) -> list[str]:
    """One sentence for every difference between the space of a run and that of a file.

    The value of an active parameter is not compared, because it moves; that of a frozen one is.
    Groups, notes, lines and the order in the file are not compared.
    """
    here = {parameter.name: parameter for parameter in run.parameters}
    there = {parameter.name: parameter for parameter in file.parameters}
    return [
        *(f"{name} is gone; the run tunes it" for name in here if name not in there),
        *(f"{name} is new; the run does not know it" for name in there if name not in here),
        *(text for n in here if n in there for text in _changes(here[n], there[n])),
        *(f"constraint {c} is gone" for c in run.constraints if c not in file.constraints),
        *(f"constraint {c} is new" for c in file.constraints if c not in run.constraints),
    ]


def _changes(run: Parameter, file: Parameter) -> Iterator[str]:
    attributes = _ATTRIBUTES if run.active or file.active else (*_ATTRIBUTES, "value")
    for attribute in attributes:
        was, now = getattr(run, attribute), getattr(file, attribute)
        if was != now:
            yield f"{run.name}: {attribute} is {now}; the run has {was}"
