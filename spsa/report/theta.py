"""Which theta: where the rule ended, its average, what all games support, or any that is named."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from spsa.config import load_space
from spsa.core.params import Parameter, Space, Values
from spsa.db import Store
from spsa.db.tables import Run
from spsa.errors import Fault, InvalidInput, NothingToDo
from spsa.history.replay import theta_at
from spsa.master.session import tuning_of
from spsa.text import plural

START = "start"
_MAX_DIGITS = 9  # of a result


class ThetaChoice(StrEnum):
    """The thetas that can be asked for; all of a run that goes on are those so far."""

    FINAL = "final"
    AVERAGED = "averaged"
    SUPPORTED = "supported"


def chosen_theta(run: Run, which: ThetaChoice) -> Mapping[str, float]:
    """One of the thetas of a run, every parameter in its own unit.

    Raises:
        NothingToDo: the run has too few results for it yet.
    """
    known = {
        ThetaChoice.FINAL: run.theta,
        ThetaChoice.AVERAGED: run.estimates.averaged,
        ThetaChoice.SUPPORTED: run.estimates.supported,
    }
    values = known[which]
    if values is None:
        raise NothingToDo(
            f"run {run.name} has no {which} theta yet, after {plural(run.applied, 'result')}: "
            f"use --theta {ThetaChoice.FINAL}"
        )
    return values


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTheta:
    """A theta of a run: its name, its values, and the results that it holds.

    `k` is None for a file, which is no theta of the run.
    """

    name: str
    values: Values
    k: int | None


def named_theta(store: Store, run: Run, word: str) -> NamedTheta:
    """The theta "final", "averaged", "supported" or "start", that after a result, or a file's.

    Raises:
        NothingToDo: the run has too few results for it.
        InvalidInput: the file is missing or wrong, or does not have the run's parameters.
    """
    space = Space.from_json(run.space)
    if word == START:
        return NamedTheta(name=word, values=space.playable(run.start_theta), k=0)
    if word in list(ThetaChoice):
        theta = chosen_theta(run, ThetaChoice(word))
        return NamedTheta(name=word, values=space.playable(theta), k=run.applied)
    if word.isascii() and word.isdigit() and len(word) <= _MAX_DIGITS:
        k = int(word)
        theta = theta_at(store, run, tuning_of(run), k).theta
        return NamedTheta(name=str(k), values=space.playable(theta), k=k)
    return NamedTheta(name=Path(word).name, values=_of_file(run, space, Path(word)), k=None)


def _of_file(run: Run, space: Space, path: Path) -> Values:
    there = {parameter.name: parameter for parameter in load_space(path).parameters}
    if faults := [*_faults(run, space, path, there)]:
        raise InvalidInput(faults)
    return space.playable({name: parameter.value for name, parameter in there.items()})


def _faults(run: Run, space: Space, path: Path, there: Mapping[str, Parameter]) -> Iterator[Fault]:
    here = {parameter.name: parameter for parameter in space.parameters}
    for name in here.keys() | there.keys():
        wrong: tuple[str, str] | None = None
        if name not in there:
            wrong = "is missing", f"run {run.name} tunes it: add its table"
        elif name not in here:
            wrong = f"run {run.name} has no such parameter", "remove its table"
        elif not here[name].minimum <= there[name].value <= here[name].maximum:
            found = f"value {there[name].value:g} is outside the bounds of run {run.name}"
            wrong = found, f"use {here[name].minimum:g} to {here[name].maximum:g}"
        if wrong is not None:
            line = there[name].line if name in there else None
            yield Fault(file=str(path), line=line, name=name, found=wrong[0], remedy=wrong[1])
