"""A tune of another program: its parameters, its gains, and what both become here.

Peers count in perturbations. `c_end` is the perturbation of the last planned iteration, which is
one step here, so that a peer's parameter keeps its size and its learning rate:

    step = c_end,   c_end here = 1,   r_end here = r_end

A peer's plan is counted in games, because an iteration of Fishtest is one pair, one of OpenBench
several, and one here any number of them. c_k and R_k depend on k / N and A / N alone, so they are
the same after the same games. `docs/formats.md` derives it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from spsa.core.params import Number

MIN_C_END = 0.5
"""Of a whole number: below, plus and minus are often the same number."""

USUAL_R_END = 0.002
_SMALLEST = 0.000001


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerParameter:
    """One UCI option as a peer tunes it, in the units of the engine.

    `r_end` is None where the format has none. `line` counts from 1; 0 if it was not read.
    """

    name: str
    value: Number
    minimum: Number
    maximum: Number
    c_end: Number
    r_end: float | None = None
    integral: bool = True
    line: int = 0


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

    `r_end` is that of the whole tune, None if each parameter has its own.
    """

    parameters: Sequence[PeerParameter]
    schedule: Schedule | None = None
    r_end: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def common_r_end(self) -> float:
        """The r_end of the tune, the median where its parameters differ."""
        own = [p.r_end for p in self.parameters if p.r_end is not None]
        return self.r_end or (median(own) if own else USUAL_R_END)


def tables_of(tune: PeerTune) -> dict[str, dict[str, object]]:
    """The tables of params.toml, by name: a step for every c_end."""
    taken: set[str] = set()
    return {_free_name(p.name, taken): _table(p) for p in tune.parameters}


def _table(p: PeerParameter) -> dict[str, object]:
    step = max(p.c_end, MIN_C_END) if p.integral and p.c_end > 0 else p.c_end
    numbers: dict[str, object] = {
        "value": p.value,
        "min": p.minimum,
        "max": p.maximum,
        "step": step,
    }
    return numbers | {"type": "int" if p.integral else "float", "option": p.name}


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
    raised = [p.name for p in tune.parameters if p.integral and 0 < p.c_end < MIN_C_END]
    if raised:
        notes.append(f"c_end is below {MIN_C_END}, so the step is {MIN_C_END}: {_listed(raised)}")
    common = tune.common_r_end
    others = [p.name for p in tune.parameters if p.r_end not in (None, common)]
    if others:
        notes.append(
            f"r_end differs: a run has one, and {common:g} is the median; "
            f"another r_end had {_listed(others)}"
        )
    return tuple(notes)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 6:,} more" if len(names) > 6 else ""
    return ", ".join(names[:6]) + more
