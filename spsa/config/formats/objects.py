"""Formats that are JSON.

    weather-factory  {"NAME": {"value", "min_value", "max_value", "step"}, ...}, its config.json,
                     or its state.json, {"t", "spsa_params", "uci_params"}
    fishtest-run     what /api/get_run/ID of Fishtest answers: {"args": {"spsa": {...}}}
    chess-tuning-tools  {"parameter_ranges": {"NAME": "Integer(0, 100)", "OTHER": "Real(0.0, 1.0)"}}
    json             params.toml: the same tables and keys

Sources: main.py and spsa.py of github.com/jnlt3/weather-factory, spsa_workflow.py of Fishtest, the
tuning configuration in the documentation of chess-tuning-tools.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import tomli_w

from spsa.config.formats.lines import number
from spsa.config.formats.peer import PeerParameter, PeerTune, Plan, Schedule
from spsa.config.section import as_number, shown
from spsa.core.params import Constant, Number, Parameter, Space
from spsa.core.params.placement import to_json

_GAINS = ("a", "c", "A", "alpha", "gamma")
_RANGE = re.compile(r"\s*(Integer|Real)\(\s*([^,()]+?)\s*,\s*([^,()]+?)\s*(?:,[^()]*)?\)\s*")
_RANGE_STEPS = 20
"""Steps in a range that comes without one, as in the lines that TUNE() prints."""


class NotRead(ValueError):
    """What is wrong with `name` in a file, and what would be right."""

    def __init__(self, name: str, found: str, remedy: str, line: int | None = None) -> None:
        super().__init__(found)
        self.name, self.found, self.remedy, self.line = name, found, remedy, line


def _number(table: Mapping[str, Any], key: str, name: str) -> Number:
    if key not in table:
        raise NotRead(name, f"{key} is missing", f"write a number: {key}")
    value = table[key]
    if (finite := as_number(value)) is None:
        raise NotRead(name, f"{key} {shown(value)} is not a finite number", "write a number")
    return value if isinstance(value, int) else finite


def _table(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise NotRead(name, f"{shown(value)} is no object", "write {...}")
    return value


def weather_factory(data: Mapping[str, Any], plan: Plan) -> PeerTune:
    """config.json with the gains of spsa.json, or state.json, which has its own."""
    if "uci_params" in data:
        each = {str(p.get("name")): p for p in _objects(data["uci_params"])}
        gains, played = _table(data.get("spsa_params"), "spsa_params"), _number(data, "t", "t")
    else:
        each, gains, played = {n: _table(p, n) for n, p in data.items()}, plan.gains, 0
    parameters = tuple(_of_weather_factory(name, table) for name, table in each.items())
    if plan.games is None or not gains:
        return PeerTune(parameters=parameters)
    return _scheduled(parameters, gains, plan, played if plan.played is None else plan.played)


def _of_weather_factory(name: str, table: Mapping[str, Any]) -> PeerParameter:
    return PeerParameter(
        name=name,
        value=_number(table, "value", name),
        minimum=_number(table, "min_value", name),
        maximum=_number(table, "max_value", name),
        c_end=_number(table, "step", name),
    )


def _scheduled(
    parameters: tuple[PeerParameter, ...], gains: Mapping[str, Any], plan: Plan, played: Number
) -> PeerTune:
    """The gains in Fishtest's terms.

    There, t counts games, E is the mean result of a game, and a result moves a parameter by
    a_t E / c_t steps, with a_t = a / (t + A)^alpha and c_t = c / t^gamma. With W = G E for the G
    games of an iteration, R = a_t / (G c_t^2).
    """
    a, c, delay, alpha, gamma = (float(_number(gains, key, "gains")) for key in _GAINS)
    games = float(plan.games or 0)
    if min(a, c, delay + 1) <= 0:
        raise NotRead("gains", "a or c is not above 0", "copy weather-factory's spsa.json")
    c_end = c / games**gamma
    r_end = a / (games + delay) ** alpha / (plan.games_per_iteration * c_end**2)
    schedule = Schedule(
        games=games, played=played, delay=delay, alpha=alpha, gamma=gamma, c_end=c_end
    )
    note = f"its step is kept, and c_end = {c_end:.4g} of it after {games:,.0f} games"
    return PeerTune(parameters=parameters, schedule=schedule, r_end=r_end, notes=(note,))


def write_weather_factory(parameters: Iterable[PeerParameter]) -> str:
    """Its config.json."""
    tables = {
        p.name: {"value": p.value, "min_value": p.minimum, "max_value": p.maximum, "step": p.c_end}
        for p in parameters
    }
    return json.dumps(tables, indent=2) + "\n"


def fishtest_run(data: Mapping[str, Any]) -> PeerTune:
    """A tune of Fishtest as it stands; an iteration is a pair of games there."""
    spsa = _table(_table(data.get("args"), "args").get("spsa"), "args.spsa")
    parameters = tuple(_of_fishtest(p) for p in _objects(spsa.get("params")))
    iterations, done, delay, alpha, gamma = (
        _number(spsa, key, "args.spsa") for key in ("num_iter", "iter", "A", "alpha", "gamma")
    )
    schedule = Schedule(
        games=2 * iterations, played=2 * done, delay=2 * delay, alpha=alpha, gamma=gamma
    )
    return PeerTune(parameters=parameters, schedule=schedule)


def _of_fishtest(table: Mapping[str, Any]) -> PeerParameter:
    name = str(table.get("name"))
    value, low, high, c_end, r_end = (
        _number(table, key, name) for key in ("theta", "min", "max", "c_end", "r_end")
    )
    low, high = (int(bound) if bound == int(bound) else bound for bound in (low, high))
    return PeerParameter(
        name=name, value=value, minimum=low, maximum=high, c_end=c_end, r_end=r_end
    )


def chess_tuning_tools(data: Mapping[str, Any]) -> PeerTune:
    """A tuning configuration of chess-tuning-tools, which has ranges alone.

    A value is the middle of its range, a step a twentieth of it.
    """
    ranges = _table(data.get("parameter_ranges"), "parameter_ranges")
    note = "the file has ranges alone: write the engine's own values where the middle is not right"
    parameters = tuple(_of_range(name, text) for name, text in ranges.items())
    return PeerTune(parameters=parameters, notes=(note,))


def _of_range(name: str, text: object) -> PeerParameter:
    found = _RANGE.fullmatch(text) if isinstance(text, str) else None
    low, high = (number(found[2]), number(found[3])) if found else (None, None)
    if found is None or low is None or high is None:
        remedy = "write Integer(low, high) or Real(low, high)"
        raise NotRead(name, f"{shown(text)} is no range of two numbers", remedy)
    integral, middle, step = found[1] == "Integer", (low + high) / 2, (high - low) / _RANGE_STEPS
    return PeerParameter(
        name=name,
        value=int(middle) if integral else middle,
        minimum=low,
        maximum=high,
        c_end=max(1, round(step)) if integral else step,
        integral=integral,
    )


def write_chess_tuning_tools(parameters: Iterable[PeerParameter]) -> str:
    """Its ranges."""
    ranges = {
        p.name: f"{'Integer' if p.integral else 'Real'}({p.minimum}, {p.maximum})"
        for p in parameters
    }
    return json.dumps({"parameter_ranges": ranges}, indent=2) + "\n"


def _objects(value: object) -> list[Mapping[str, Any]]:
    if not isinstance(value, list):
        raise NotRead("params", f"{shown(value)} is no list", "write [{...}, ...]")
    return [_table(item, "params") for item in value]


def params_file(space: Space) -> str:
    """TOML that `load_space` reads as the same space."""
    return tomli_w.dumps(_document(space))


def params_json(space: Space) -> str:
    """The same document as JSON."""
    return json.dumps(_document(space), indent=2) + "\n"


def _document(space: Space) -> dict[str, Any]:
    constraints = [str(constraint) for constraint in space.constraints]
    return ({"constraints": constraints} if constraints else {}) | _tables(space)


def _tables(space: Space) -> dict[str, dict[str, object]]:
    return {p.name: _own_table(p) for p in space.parameters}


def _own_table(p: Parameter) -> dict[str, object]:
    keys = {
        "value": p.value,
        "min": p.minimum,
        "max": p.maximum,
        "step": p.step,
        "type": "int" if p.integral else "float",
        "scale": p.scale,
        "option": p.option if p.option != p.name else None,
        "group": p.group or None,
        "note": p.note or None,
        "active": None if p.active else False,
        **_place(p),
    }
    return {key: value for key, value in keys.items() if value is not None}


def _place(p: Parameter) -> dict[str, object]:
    usual = isinstance(p.place, Constant) and str(p.place.location) == p.name.upper()
    return {} if usual else to_json(p.place)


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
            minimum=_bound(p, p.minimum, unit),
            maximum=_bound(p, p.maximum, unit),
            c_end=_times(p.step * c_end, unit),
            r_end=r_end,
            integral=p.integral or p.scale is not None,
            line=p.line or 0,
        )


def _bound(p: Parameter, bound: float, unit: int) -> Number:
    whole = p.integral or p.scale is not None
    return round(bound * unit) if whole else bound


def _times(value: float, scale: int) -> Number:
    """The product as a person would write it: 0.29 * 100 is 29."""
    product = value if scale == 1 else round(value * scale, 9)
    return int(product) if product == int(product) else product
