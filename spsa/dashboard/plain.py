"""Values as JSON, without secrets."""

import re
from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from math import isfinite
from typing import Any

from spsa.dashboard.reading import IterationView, ParameterView, WorkerView
from spsa.db.history_rows import BatchLine, IterationLine, ResultGroup, WorkerShare
from spsa.report.history import RunHistory, ValidationPoint
from spsa.report.status import tally_json
from spsa.report.workers import to_json as fleet_json

# rather too much than too little: a password may hold a slash or an @
_PASSWORD = re.compile(r"(://[^\s/@:]*:)\S+(?=@)|(\bpassword=)[^\s&]+", re.IGNORECASE)


def without_passwords(text: str) -> str:
    """The text with `***` for the password of every URL in it."""
    return _PASSWORD.sub(r"\1\2***", text)


def plain(value: Any) -> Any:
    """The same of what JSON has: times in ISO 8601, null for infinite numbers, no passwords."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, str):
        return without_passwords(value)
    if isinstance(value, Mapping):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return value.isoformat() if isinstance(value, datetime) else value


def history_json(history: RunHistory) -> dict[str, Any]:
    return {
        "run": history.run,
        "k": history.ks,
        "games": history.games,
        "at": history.at,
        "parameters": [
            _fields(path) | {"steps_moved": path.steps_moved} for path in history.parameters
        ],
        "gain": None if history.gain is None else _fields(history.gain),
        "results": [_counted(group) for group in history.results],
        "validations": [_counted(match) for match in history.validations],
    }


def parameter_json(view: ParameterView) -> dict[str, Any]:
    return {
        **_fields(view.tuned),
        "steps_moved": view.tuned.steps_moved,
        "bound": view.tuned.bound,
        "path": None if view.path is None else _fields(view.path),
        "effect": None if view.effect is None else _fields(view.effect),
    }


def worker_json(view: WorkerView) -> dict[str, Any]:
    own: dict[str, Any] = fleet_json([view.member])["workers"][0]
    return own | {"of_run": None if view.share is None else _share(view.share)}


def iteration_json(line: IterationLine) -> dict[str, Any]:
    return _counted(line)


def iteration_view_json(view: IterationView) -> dict[str, Any]:
    one = view.iteration
    names = (
        *("iteration_number", "purpose", "k", "opened_on", "status", "a_k", "c_k"),
        *("target_games", "games_played", "void_games", "struck_games", "elo_diff"),
        *("plus_sha256", "minus_sha256", "created_at", "completed_at"),
        *("base_parameters", "plus_parameters", "minus_parameters", "gradient_estimate"),
    )
    return {
        **{name: getattr(one, name) for name in names},
        "tally": tally_json(one.tally),
        "batches": [_counted(batch) for batch in view.batches],
    }


def _share(share: WorkerShare) -> dict[str, Any]:
    speed = {"games_per_hour": share.games_per_hour, "nodes_per_second": share.nodes_per_second}
    return _counted(share) | speed


def _counted(
    value: ResultGroup | ValidationPoint | WorkerShare | IterationLine | BatchLine,
) -> dict[str, Any]:
    """Its fields, with Elo beside the counts."""
    return _fields(value) | {"tally": tally_json(value.tally)}


def _fields(value: Any) -> dict[str, Any]:
    """Of a dataclass; unlike `asdict` it copies no values, of which a path has thousands."""
    return {field.name: getattr(value, field.name) for field in fields(value)}
