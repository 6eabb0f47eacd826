"""Values as JSON."""

from typing import Any

from spsa.dashboard.reading import BatchView, IterationView, ParameterView, WorkerView
from spsa.db.history_rows import IterationLine
from spsa.report.export_json import counted_json, share_json
from spsa.report.status import fields_json, tally_json
from spsa.report.workers import to_json as fleet_json


def parameter_json(view: ParameterView) -> dict[str, Any]:
    return {
        **fields_json(view.tuned),
        "steps_moved": view.tuned.steps_moved,
        "bound": view.tuned.bound,
        "path": None if view.path is None else fields_json(view.path),
        "effect": None if view.effect is None else fields_json(view.effect),
    }


def worker_json(view: WorkerView) -> dict[str, Any]:
    own: dict[str, Any] = fleet_json([view.member])["workers"][0]
    return own | {"of_run": None if view.share is None else share_json(view.share)}


def iteration_json(line: IterationLine) -> dict[str, Any]:
    return counted_json(line)


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
        "batches": [counted_json(batch) for batch in view.batches],
    }


def batch_view_json(view: BatchView) -> dict[str, Any]:
    return {
        "iteration_number": view.iteration.iteration_number,
        **counted_json(view.batch),
        "failures_of_machines": [fields_json(one) for one in view.failures],
        "purged": [counted_json(one) for one in view.purged],
    }
