"""The order of a master's decisions is fixed by the run's rows alone."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from builders import new_iteration, new_run
from golden import compare_cases

from spsa.db.run_view import MachineFailures, Obstacles, RunView, TriedBatch
from spsa.db.tables import Compared
from spsa.lifecycle import Purpose, RunStatus
from spsa.master.decide import FAILURE_BUDGET, Pacing, Pause, next_decision, upkeep


def iteration(k, games=0, background=None):
    """With so many of ten games played; without a k it is a round of a validation."""
    row = new_iteration(k=k, target_games=10, batches=[10]).row
    row = replace(row, id=k or 5, games_played=games)
    compared = Compared(background=background)
    return row if k else replace(row, purpose=Purpose.VALIDATE, compared=compared)


TRIED = TriedBatch(
    id=7,
    iteration_number=3,
    seq=0,
    reason="no book",
    machines=1,
    max_attempts=3,
    is_suited=True,
    is_wanted=True,
)
BAD = MachineFailures(
    machine="bad",
    batches=FAILURE_BUDGET,
    batch_ids=(1, 2, 3),
    sha256="p",
    reason="no such book",
    played=0,
    played_by_others=0,
    set_aside=frozenset(),
)


def view(*, status="running", applied=0, rows=(), failed=(), ready=0, **obstacles):
    """A run of ten iterations; `failed` are the iterations whose batches have failed."""
    open_ones = [iteration(*one) for one in rows]
    for name, usual in (("tried", TRIED), ("failures", BAD)):
        obstacles[name] = [replace(usual, **one) for one in obstacles.get(name, ())]
    return RunView(
        run=new_run(id=1, status=RunStatus(status), max_iterations=10, applied=applied),
        opened=applied + sum(one.k is not None for one in open_ones),
        open=open_ones,
        failed=[SimpleNamespace(iteration_id=one, last_error="no book") for one in failed],
        ready_games=ready,
        leased_batches=0,
        game_seconds=None,
        active_slots=0,
        obstacles=Obstacles(**obstacles),
    )


def test_in_order():
    """Open iterations are [k, games played]; two may be in flight, unless the pacing differs."""

    def shown(files):
        given = {name: json.loads(text) for name, text in files.items()}
        pacing = Pacing(**{"in_flight": 2} | given.get("pacing", {}))
        return [str(next_decision(view(**given["view"]), pacing, **given.get("builds", {})))]

    compare_cases(Path(__file__).with_name("decisions.txt"), shown)


def test_what_a_run_needs_before_anything_else():
    """Here all open iterations are played, but the validation; or `rows` are open."""

    def shown(files):
        facts = {name: json.loads(text) for name, text in files.items()}
        for one in facts.get("failures", ()):
            one["set_aside"] = frozenset(one.get("set_aside", ()))
        needed = upkeep(view(**{"rows": [[1, 10], [None, 9, False]]} | facts))
        if isinstance(needed, Pause):
            yield from needed.reasons
            yield f"fails {sorted(needed.batch_ids)}"
        elif hasattr(needed, "iteration"):
            yield str(replace(needed, iteration=needed.iteration.id))
        elif needed is not None:
            yield str(needed)

    compare_cases(Path(__file__).with_name("pauses.txt"), shown)
