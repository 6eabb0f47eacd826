"""A tune of another program: its parameters, its gains, and what both become here.

Peers count in perturbations. `c_end` is the perturbation of the last planned iteration, which is
one step here, so that a peer's parameter keeps its size and its learning rate:

    step = c_end,   c_end here = 1,   r_end here = r_end

A peer's plan is counted in games, because an iteration of Fishtest is one pair, one of OpenBench
several, and one here any number of them. c_k and R_k depend on k / N and A / N alone, so they are
the same after the same games. `docs/formats.md` derives it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from spsa.config.document import Key, as_number, shown
from spsa.core.params import Number, Parameter, Space
from spsa.errors import Fault, InvalidInput

MIN_C_END = 0.5
"""Of a whole number: below, plus and minus are often the same number."""

USUAL_R_END = 0.002
_SMALLEST = 0.000001


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the user says of a tune: its games, those played, and the gains beside its parameters.

    `games` is None if nothing is said. `gains` are those of weather-factory's spsa.json.
    """

    games: int | None = None
    played: int | None = None
    games_per_iteration: int = 32
    a_ratio: float = 0.1
    alpha: float = 0.602
    gamma: float = 0.101
    gains: Mapping[str, object] = field(default_factory=dict)

    @property
    def schedule(self) -> "Schedule | None":
        """The gains of Fishtest and OpenBench, whose A is a part of all games."""
        if self.games is None:
            return None
        return Schedule(
            games=self.games,
            played=self.played or 0,
            delay=self.a_ratio * self.games,
            alpha=self.alpha,
            gamma=self.gamma,
        )


@dataclass(frozen=True, slots=True)
class File:
    """A file of a format, with what the user says of its tune."""

    path: Path
    text: str
    plan: Plan

    def refused(self, name: str, found: str, remedy: str, line: int | None = None) -> InvalidInput:
        fault = Fault(file=str(self.path), line=line, name=name, found=found, remedy=remedy)
        return InvalidInput([fault])

    def json(self) -> Mapping[str, Any]:
        """The JSON object of the file."""
        try:
            data = json.loads(self.text)
            json.dumps(data, ensure_ascii=False).encode()  # half a surrogate pair is no text
        except (ValueError, RecursionError) as error:  # a JSONDecodeError has more
            found = f"is not JSON: {getattr(error, 'msg', 'it cannot be read')}"
            remedy = "correct it, or name the format that it has"
            line = getattr(error, "lineno", None)
            raise self.refused(self.path.name, found, remedy, line) from None
        return self.table(data, self.path.name)

    def table(self, value: object, name: str) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise self.refused(name, f"{shown(value)} is no object", "write {...}")
        return value

    def tables(self, value: object) -> dict[str, Mapping[str, Any]]:
        """The objects of a list by their `name`."""
        if not isinstance(value, list):
            raise self.refused("params", f"{shown(value)} is no list", "write [{...}, ...]")
        each = [self.table(item, "params") for item in value]
        return {str(one.get("name")): one for one in each}

    def number(self, table: Mapping[str, Any], key: str, name: str) -> float:
        if (finite := as_number(table.get(key))) is None:
            wrong = f"{shown(table[key])} is not a finite number" if key in table else "is missing"
            raise self.refused(name, f"{key} {wrong}", f"write a number: {key}")
        return finite


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """The gains of a tune that plans `games` and has `played` some of them; `delay` is A in games.

    `c_end` is in steps: 1 unless the step is something else than the peer's c_end.
    """

    games: float
    played: float = 0.0
    delay: float
    alpha: float = 0.602
    gamma: float = 0.101
    c_end: float = 1.0

    def rest(self, games_per_iteration: int) -> int:
        """The iterations that are left; 0 or less if the tune is over."""
        return round(self.games / games_per_iteration) - self._played(games_per_iteration)

    def settings(self, r_end: float, games_per_iteration: int) -> dict[str, object]:
        """[spsa] with the gains of the tune, from where it stands."""
        return {
            "algorithm": "fishtest",
            "max_iterations": self.rest(games_per_iteration),
            "played": self._played(games_per_iteration),
            "r_end": max(r_end, _SMALLEST),
            "c_end": self.c_end,
            "A": self.delay / games_per_iteration,
            "alpha": self.alpha,
            "gamma": self.gamma,
        }

    def _played(self, games_per_iteration: int) -> int:
        return round(self.played / games_per_iteration)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerTune:
    """What a file of a peer holds; `notes` are for the user. Without a `schedule` it has no gains.

    `tables` are by the name of a UCI option, with the keys of params.toml in the units of the
    engine, and c_end as the step; their values may be wrong. `lines` and `r_ends` are by the same
    names, where the format has them.
    """

    tables: Mapping[str, Mapping[str, object]]
    lines: Mapping[str, int] = field(default_factory=dict)
    r_ends: Mapping[str, float] = field(default_factory=dict)
    schedule: Schedule | None = None
    notes: tuple[str, ...] = ()

    @property
    def r_end(self) -> float:
        """The r_end of the tune, the median where its parameters differ."""
        return median(self.r_ends.values()) if self.r_ends else USUAL_R_END

    @property
    def raised(self) -> Sequence[str]:
        """The parameters whose c_end is too small for a step."""
        return [name for name, table in self.tables.items() if _is_small(table)]

    def params(self) -> tuple[dict[str, dict[str, object]], dict[Key, int]]:
        """The tables of params.toml by their names, and their lines."""
        taken: set[str] = set()
        tables: dict[str, dict[str, object]] = {}
        lines: dict[Key, int] = {}
        for option, table in self.tables.items():
            name = _free_name(option, taken)
            step = {"step": MIN_C_END} if _is_small(table) else {}
            tables[name] = {**table, **step, "option": option}
            if option in self.lines:
                lines[(name,)] = self.lines[option]
        return tables, lines


def scheduled(
    file: File,
    tables: Mapping[str, Mapping[str, object]],
    gains: Mapping[str, Any],
    played: float,
) -> PeerTune:
    """The gains of weather-factory in Fishtest's terms.

    There, t counts games, E is the mean result of a game, and a result moves a parameter by
    a_t E / c_t steps, with a_t = a / (t + A)^alpha and c_t = c / t^gamma. With W = G E for the G
    games of an iteration, R = a_t / (G c_t^2).
    """
    keys = ("a", "c", "A", "alpha", "gamma")
    a, c, delay, alpha, gamma = (file.number(gains, key, "gains") for key in keys)
    games = float(file.plan.games or 0)
    if min(a, c, delay + 1) <= 0:
        raise file.refused("gains", "a or c is not above 0", "copy weather-factory's spsa.json")
    c_end = c / games**gamma
    r_end = a / (games + delay) ** alpha / (file.plan.games_per_iteration * c_end**2)
    note = f"its step is kept, and c_end = {c_end:.4g} of it after {games:,.0f} games"
    return PeerTune(
        tables=tables,
        r_ends=dict.fromkeys(tables, r_end),
        schedule=Schedule(
            games=games, played=played, delay=delay, alpha=alpha, gamma=gamma, c_end=c_end
        ),
        notes=(note,),
    )


def _is_small(table: Mapping[str, object]) -> bool:
    c_end = as_number(table.get("step"))
    return table.get("type") == "int" and c_end is not None and 0 < c_end < MIN_C_END


def _free_name(name: str, taken: set[str]) -> str:
    """A name for the table: the option's own where it can be one; case does not tell two apart."""
    plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in name)[:90].strip("_")
    if name.isascii() and name.isidentifier() and name != "constraints":
        plain = name[:100]
    elif not plain.isidentifier() or plain == "constraints":
        plain = f"option_{plain}"
    numbered = (f"{plain}_{n}" for n in range(2, len(taken) + 3))
    free = next(each for each in (plain, *numbered) if each.upper() not in taken)
    taken.add(free.upper())
    return free


def mapping_notes(tune: PeerTune) -> tuple[str, ...]:
    """How step and c_end were mapped, and what is not the same here."""
    notes = [*tune.notes, "step = c_end: the last planned perturbation is one step"]
    if raised := tune.raised:
        notes.append(f"c_end is below {MIN_C_END}, so the step is {MIN_C_END}: {_listed(raised)}")
    if others := [name for name, r_end in tune.r_ends.items() if r_end != tune.r_end]:
        notes.append(
            f"r_end differs: a run has one, and {tune.r_end:g} is the median; "
            f"another r_end had {_listed(others)}"
        )
    return tuple(notes)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 6:,} more" if len(names) > 6 else ""
    return ", ".join(names[:6]) + more


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerParameter:
    """One UCI option as a peer tunes it, in the units of the engine; `line` is in params.toml."""

    name: str
    value: Number
    minimum: Number
    maximum: Number
    c_end: Number
    r_end: float
    integral: bool
    line: int | None


def peer_parameters(
    space: Space, values: Mapping[str, float], *, c_end: float, r_end: float
) -> Iterator[PeerParameter]:
    """The active parameters as UCI options, in the engine's units.

    `values` are theta, and `c_end` is the last perturbation in steps.
    """
    for p in space.active:
        unit = p.scale or 1
        yield PeerParameter(
            name=p.option,
            value=_times(values[p.name], unit),
            minimum=_bound(p, p.minimum),
            maximum=_bound(p, p.maximum),
            c_end=_times(p.step * c_end, unit),
            r_end=r_end,
            integral=p.integral or p.scale is not None,
            line=p.line,
        )


def _bound(p: Parameter, bound: float) -> Number:
    whole = p.integral or p.scale is not None
    return round(bound * (p.scale or 1)) if whole else bound


def _times(value: float, scale: int) -> Number:
    """The product as a person would write it: 0.29 * 100 is 29."""
    product = value if scale == 1 else round(value * scale, 9)
    return int(product) if product == int(product) else product
