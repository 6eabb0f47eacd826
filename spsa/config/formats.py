"""The formats of other tuners, read into spaces and written from them.

    fishtest    name,start,min,max,c_end,r_end         also what TUNE() of Stockfish prints among
                other lines, and what /api/get_run/ID answers: {"args": {"spsa": {...}}}
    openbench   name, int|float, start, min, max, c_end, r_end          also the digest of a tune:
                Name,Curr,Start,Min,Max,C,C_end,R,R_end
    weather-factory     {"NAME": {"value", "min_value", "max_value", "step"}, ...}, its config.json,
                        or its state.json, {"t", "spsa_params", "uci_params"}
    chess-tuning-tools  {"parameter_ranges": {"NAME": "Integer(0, 100)", "OTHER": "Real(0.0, 1.0)"}}
    json        params.toml: the same tables and keys

Sources: spsa_workflow.py of Fishtest; main.py and spsa.py of github.com/jnlt3/weather-factory; the
tuning configuration in the documentation of chess-tuning-tools.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from spsa.config.document import Document, file_text, shown
from spsa.config.peer import File, PeerParameter, PeerTune, Plan, Schedule
from spsa.config.peer_lines import (
    DIGEST,
    FISHTEST,
    OPENBENCH,
    number,
    read_lines,
    rows,
    whole,
    write_lines,
)
from spsa.config.space import space_of
from spsa.core.params import Space

_RUN = {"value": "theta", "min": "min", "max": "max", "step": "c_end"}
_WEATHER_FACTORY = {"value": "value", "min": "min_value", "max": "max_value", "step": "step"}
"""The keys of an object by those of params.toml."""

_GAINS = ("a", "c", "A", "alpha", "gamma")
_RANGE = re.compile(r"\s*(Integer|Real)\(\s*([^,()]+?)\s*,\s*([^,()]+?)\s*(?:,[^()]*)?\)\s*")
_RANGE_STEPS = 20
"""Steps in a range that comes without one, as in the lines that TUNE() prints."""


def _table(one: Mapping[str, Any], keys: Mapping[str, str]) -> dict[str, object]:
    return {own: one[key] for own, key in keys.items() if key in one} | {"type": "int"}


def _of_run(file: File) -> PeerTune:
    """A tune of Fishtest as it stands; an iteration is a pair of games there."""
    spsa = file.table(file.table(file.json().get("args"), "args").get("spsa"), "args.spsa")
    each = file.tables(spsa.get("params"))
    bounds = {n: {k: whole(file.number(p, k, n)) for k in ("min", "max")} for n, p in each.items()}
    iterations, done, delay, alpha, gamma = (
        file.number(spsa, key, "args.spsa") for key in ("num_iter", "iter", "A", "alpha", "gamma")
    )
    return PeerTune(
        tables={name: _table(one, _RUN) | bounds[name] for name, one in each.items()},
        r_ends={name: file.number(one, "r_end", name) for name, one in each.items()},
        schedule=Schedule(
            games=2 * iterations, played=2 * done, delay=2 * delay, alpha=alpha, gamma=gamma
        ),
    )


def _of_weather_factory(file: File) -> PeerTune:
    """config.json with the gains of spsa.json, or state.json, which has its own."""
    data, plan = file.json(), file.plan
    if "uci_params" in data:
        each = file.tables(data["uci_params"])
        gains, played = (
            file.table(data.get("spsa_params"), "spsa_params"),
            file.number(data, "t", "t"),
        )
    else:
        each = {name: file.table(one, name) for name, one in data.items()}
        gains, played = plan.gains, 0.0
    tables = {name: _table(one, _WEATHER_FACTORY) for name, one in each.items()}
    if plan.games is None or not gains:
        return PeerTune(tables=tables)
    return _scheduled(file, tables, gains, played if plan.played is None else plan.played)


def _scheduled(
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
    a, c, delay, alpha, gamma = (file.number(gains, key, "gains") for key in _GAINS)
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


def _to_weather_factory(parameters: Iterable[PeerParameter]) -> str:
    tables = {
        p.name: {"value": p.value, "min_value": p.minimum, "max_value": p.maximum, "step": p.c_end}
        for p in parameters
    }
    return json.dumps(tables, indent=2) + "\n"


def _of_ranges(file: File) -> PeerTune:
    """A tuning configuration of chess-tuning-tools, which has ranges alone.

    A value is the middle of its range, a step a twentieth of it.
    """
    ranges = file.table(file.json().get("parameter_ranges"), "parameter_ranges")
    note = "the file has ranges alone: write the engine's own values where the middle is not right"
    tables = {name: _range(file, name, text) for name, text in ranges.items()}
    return PeerTune(tables=tables, notes=(note,))


def _range(file: File, name: str, text: object) -> dict[str, object]:
    found = _RANGE.fullmatch(text) if isinstance(text, str) else None
    low, high = (number(found[2]), number(found[3])) if found else (None, None)
    if found is None or low is None or high is None:
        remedy = "write Integer(low, high) or Real(low, high)"
        raise file.refused(name, f"{shown(text)} is no range of two numbers", remedy)
    middle, step = (low + high) / 2, (high - low) / _RANGE_STEPS
    if found[1] == "Integer":
        whole = {"value": int(middle), "step": max(1, round(step)), "type": "int"}
        return {"min": low, "max": high, **whole}
    return {"min": low, "max": high, "value": middle, "step": step, "type": "float"}


def _to_ranges(parameters: Iterable[PeerParameter]) -> str:
    ranges = {
        p.name: f"{'Integer' if p.integral else 'Real'}({p.minimum}, {p.maximum})"
        for p in parameters
    }
    return json.dumps({"parameter_ranges": ranges}, indent=2) + "\n"


@dataclass(frozen=True, slots=True)
class Format:
    """A format of a peer: how each of its variants is read, the usual one first, and written."""

    read: Mapping[str, Callable[[File], PeerTune]]
    write: Callable[[Iterable[PeerParameter]], str]
    has_fractions: bool = False


PEERS: Mapping[str, Format] = {
    "fishtest": Format(
        {
            "list": partial(read_lines, FISHTEST),
            "tune": partial(read_lines, FISHTEST, among_others=True),
            "run": _of_run,
        },
        partial(write_lines, FISHTEST),
    ),
    "openbench": Format(
        {"typed list": partial(read_lines, OPENBENCH), "digest": partial(read_lines, DIGEST)},
        partial(write_lines, OPENBENCH),
        has_fractions=True,
    ),
    "weather-factory": Format({"tables": _of_weather_factory}, _to_weather_factory),
    "chess-tuning-tools": Format({"ranges": _of_ranges}, _to_ranges, has_fractions=True),
}
FORMATS = (*PEERS, "json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A space, and the tune of a peer that it was read from; None for our own format."""

    format: str
    space: Space
    tune: PeerTune | None


def read_file(path: Path, kind: str | None, plan: Plan) -> Imported:
    """Read a file of the format `kind`, or of the one that it looks like.

    Raises InvalidInput with all its faults, in the words of params.toml.
    """
    file = File(path, file_text(path), plan)
    variant = _guessed(file.text)
    if kind is None:
        known = (name for name, one in PEERS.items() if variant in one.read)
        kind = "json" if variant == "json" else next(known, None)
    if kind is None:
        remedy = f"name its format: {', '.join(FORMATS)}"
        raise file.refused(path.name, "is of no known format", remedy)
    if kind == "json":
        own = Document(path, file.text, file.json(), {})
        return Imported(format=kind, space=space_of(own), tune=None)
    variants = PEERS[kind].read
    tune = variants.get(variant, next(iter(variants.values())))(file)
    space = space_of(Document(path, file.text, *tune.params()))
    return Imported(format=kind, space=space, tune=tune)


def gains_file(path: Path) -> Mapping[str, Any]:
    """weather-factory's spsa.json."""
    return File(path, file_text(path), Plan()).json()


def _guessed(text: str) -> str:
    """The variant of a text: by any line of OpenBench, else by the first that is no greeting."""
    if text.lstrip().startswith("{"):
        return _guessed_object(text)
    table = [fields for _, fields in rows(text)]
    listed = [row for row in table if len(row) > 1]
    if not listed:
        return ""
    if any(row[1].lower() in ("int", "float") for row in listed):
        return "typed list"
    by_length = {len(OPENBENCH): "typed list", len(DIGEST): "digest"}
    return by_length.get(len(listed[0]), "list" if listed == table else "tune")


def _guessed_object(text: str) -> str:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return "json"  # reading it tells where it is wrong
    for key, variant in {
        "args": "run",
        "parameter_ranges": "ranges",
        "uci_params": "tables",
    }.items():
        if key in data:
            return variant
    tables = [table for table in data.values() if isinstance(table, dict)]
    return "tables" if any("min_value" in table for table in tables) else "json"
