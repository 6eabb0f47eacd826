"""The table of parameters, filtered and sorted as a page asks for it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from spsa.report.status import Status, Tuned


@dataclass(frozen=True, slots=True)
class ParameterRow:
    """A parameter as it stands; `signal_to_noise` is None before it has moved."""

    tuned: Tuned
    signal_to_noise: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A filter, and a key of `SORTS`; unknown keys leave the order of params.toml."""

    text: str = ""
    group: str = ""
    sort: str = ""
    descending: bool = False


SORTS: Mapping[str, Callable[[ParameterRow], float | str | None]] = {
    "name": lambda row: row.tuned.name,
    "group": lambda row: row.tuned.group,
    "start": lambda row: row.tuned.start,
    "value": lambda row: row.tuned.value,
    "averaged": lambda row: row.tuned.averaged,
    "supported": lambda row: row.tuned.supported,
    "moved": lambda row: abs(row.tuned.steps_moved),
    "signal": lambda row: row.signal_to_noise,
    "bound": lambda row: row.tuned.bound,
}


def parameter_rows(status: Status) -> list[ParameterRow]:
    """All parameters of a run, in the order of params.toml."""
    return [
        ParameterRow(p, status.trails[p.name].signal_to_noise if p.active else None)
        for p in status.parameters
    ]


def chosen_rows(rows: Sequence[ParameterRow], wanted: Wanted) -> list[ParameterRow]:
    """Those whose name holds the text in any case, and of the group; unknown values come last."""
    text = wanted.text.casefold()
    found = [
        row
        for row in rows
        if text in row.tuned.name.casefold() and wanted.group in ("", row.tuned.group)
    ]
    key = SORTS.get(wanted.sort)
    if key is None:
        return found
    known = [row for row in found if key(row) is not None]
    known.sort(key=key, reverse=wanted.descending)  # type: ignore[arg-type]
    return known + [row for row in found if key(row) is None]
