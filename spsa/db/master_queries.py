"""The queries with which a master changes its run: open, apply, finish.

Every write checks the master lease, and that the run is still as it was when the master decided. A
check that fails raises an error.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from operator import attrgetter
from typing import Any

import sqlalchemy as sa
from sqlalchemy import insert, select, update
from sqlalchemy.orm import load_only, undefer

from spsa.core import Update, Values, derived_seed
from spsa.core.game_settings import HashedFile, assigned
from spsa.db.base import execute, time_from_now
from spsa.db.database import add, may_become, rows
from spsa.db.run_queries import abandon, pause_for_failure, set_run_status, write_event
from spsa.db.run_view import (
    LEASES_EXPIRED,
    MasterLease,
    RunView,
    RunViewQueries,
    miscounted,
    obstacles,
)
from spsa.db.tables import (
    IS_OPEN,
    IS_VALIDATION,
    Batch,
    EngineRow,
    Event,
    Iteration,
    Run,
    Step,
    run_columns,
)
from spsa.errors import IllegalTransition
from spsa.lifecycle import ITERATION, IterationStatus, Purpose, RunStatus
from spsa.protocol import required_pattern, words_of

REFUSED = "level_refused"
"""The kind of the event that binaries for a level of x86-64 are not used."""


@dataclass(frozen=True, slots=True)
class Side:
    """An engine, the UCI options that are sent to it, and files by the options for their paths."""

    engine: EngineRow
    options: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, EngineRow] = field(default_factory=dict)

    @property
    def options_here(self) -> dict[str, str]:
        """What it is sent on the machine that has its files."""
        return {**self.options, **{option: file.path for option, file in self.files.items()}}


@dataclass(frozen=True, slots=True)
class Sides:
    """The two engines of an iteration.

    A worker has to provide the words of `requires`. `variants` are plus and minus for higher levels
    of x86-64, the highest first, or for patterns of other words than `requires`; `refused` says why
    there are none for such a key.
    """

    plus: Side
    minus: Side
    requires: tuple[str, ...] = ()
    variants: Mapping[str, tuple[EngineRow, EngineRow]] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewIteration:
    """An iteration to be opened: its row without what follows from its place and its engines.

    `batches` has the number of games of each: even numbers that add up to the row's `target_games`.
    Of several time controls each gets its share of them.
    """

    row: Iteration
    sides: Sides
    batches: Sequence[int]
    max_attempts: int


class MasterQueries(RunViewQueries):
    """What a master may do with its run. Each raises MasterLeaseLost if another master holds it."""

    def open_iteration(
        self, master_lease: MasterLease, new: NewIteration, *, beside: NewIteration | None = None
    ) -> int:
        """Write an iteration with its engines and all its batches; returns its number.

        Repeated after an unknown outcome, it finds the row by its k and changes nothing. `beside`
        is a round of a background validation, which gets the number before it. IllegalTransition:
        the run is not as it was when the master decided.
        """
        known = select(Iteration.iteration_number)
        known = known.where(Iteration.run_id == master_lease.run_id, Iteration.k == new.row.k)
        with self._led(master_lease) as (connection, run):
            number = None if new.row.k is None else connection.scalar(known)
            if number is not None:
                return number
            if new.row.purpose is Purpose.TUNE:
                _refuse_outdated(run, new.row)
            if beside is not None:
                begun = _match_begun(connection, run.id, beside)
                _open(connection, run, beside, begun)
            return _open(connection, run, new, new.row.match_number)

    def sides_of(self, row: Iteration) -> Sides:
        """The engines that an iteration was opened with, and their bytes where they are kept."""
        chosen = select(EngineRow).where(EngineRow.sha256.in_(row.files))
        engines = {one.sha256: one for one in self._rows(chosen.options(undefer("*")))}

        def located(files: Mapping[str, HashedFile]) -> dict[str, EngineRow]:
            return {name: engines[one.sha256] for name, one in files.items()}

        return Sides(
            Side(engines[row.plus_sha256], row.plus_options, located(row.plus_files)),
            Side(engines[row.minus_sha256], row.minus_options, located(row.minus_files)),
            words_of(row.requires),
            {
                key: (engines[plus.sha256], engines[minus.sha256])
                for key, (plus, minus) in row.variants.items()
            },
        )

    def pause_at_obstacles(
        self,
        master_lease: MasterLease,
        seen: RunView,
        reasons: Iterable[str],
        batch_ids: Iterable[int],
    ) -> None:
        """Fail these batches, and pause a run that cannot go on.

        The reasons are in its row and in an event each; a resume offers the batches again. Raises
        IllegalTransition: its obstacles are not those of the view any more.
        """
        with self._led(master_lease) as (connection, run):
            now = (run.status, obstacles(connection, run.id))
            if now != (seen.run.status, seen.obstacles):
                raise IllegalTransition(f"other obstacles keep run {run.name} from going on")
            execute(connection, "exhaust", batch_ids=list(batch_ids), reason=LEASES_EXPIRED)
            for reason in reasons:
                pause_for_failure(connection, run.id, reason)

    def apply(self, master_lease: MasterLease, iteration_id: int, seen: Run, new: Update) -> None:
        """Complete an iteration and move theta by it; `seen` is the run of the update.

        Raises IllegalTransition: it is not the run's next iteration, or games are missing, or its
        counts are not the sums over its batches.
        """
        with self._led(master_lease) as (connection, run):
            if run.applied != new.k - 1 or run.theta != seen.theta:
                raise IllegalTransition(f"k={new.k} is not the next result of run {run.name}")
            _refuse_purged(run, seen.purges)
            _complete(connection, run.id, iteration_id, new.elo, k=new.k, gradient=new.gradient)
            row = Step(
                run_id=run.id,
                iteration_id=iteration_id,
                epoch=master_lease.epoch,
                k=new.k,
                theta_before=run.theta,
                delta=new.delta,
                theta_after=new.theta,
                bounded=new.bounded,
            )
            add(connection, row)
            moved = {"applied": new.k, **run_columns(new)}
            connection.execute(update(Run).where(Run.id == run.id).values(moved))

    def complete_validation(
        self, master_lease: MasterLease, iteration_id: int, elo: float, purges: int = 0
    ) -> None:
        """Close a validation that has all its games; theta does not move.

        `purges` is how many the run had when its games were counted.
        """
        with self._led(master_lease) as (connection, run):
            _refuse_purged(run, purges)
            _complete(connection, run.id, iteration_id, elo)

    def abandon_validation(self, master_lease: MasterLease, iteration_id: int) -> None:
        """Give up a validation that cannot be played; IllegalTransition if it has ended."""
        with self._led(master_lease) as (connection, _):
            its = (Iteration.id == iteration_id, IS_VALIDATION)
            if not abandon(connection, master_lease.run_id, *its):
                raise IllegalTransition(f"iteration row {iteration_id} cannot be abandoned now")

    def finish(self, master_lease: MasterLease) -> None:
        """End a run that has applied all its iterations."""
        with self._led(master_lease) as (connection, run):
            if run.applied != run.max_iterations:
                raise IllegalTransition(f"run {run.name} has iterations left")
            set_run_status(connection, run.name, RunStatus.FINISHED, "master")

    def record(
        self, master_lease: MasterLease, events: Iterable[tuple[str, Mapping[str, Any]]]
    ) -> None:
        """Write an event for each kind and detail: alarms, and changes of the verdict."""
        with self._led(master_lease) as (connection, run):
            for kind, detail in events:
                write_event(connection, run.id, kind, "master", detail)

    def retire_engines(self, master_lease: MasterLease, k: int) -> list[str]:
        """Delete the bytes of the binaries of iteration k that no later or open iteration uses.

        Returns their hashes, so that the caller can delete the files.
        """
        with self._led(master_lease) as (connection, run):
            mine = Iteration.run_id == run.id
            number = select(Iteration.iteration_number).where(mine, Iteration.k == k)
            at = number.scalar_subquery()
            # the round of a validation that was opened with it has the number before it
            beside = sa.and_(IS_VALIDATION, Iteration.iteration_number == at - 1)
            old = _engines_of(connection, sa.and_(mine, sa.or_(Iteration.k == k, beside)))
            later = sa.and_(mine, Iteration.iteration_number > at)
            unused = old - _engines_of(connection, later, IS_OPEN)
            forget = update(EngineRow).where(EngineRow.sha256.in_(unused)).values(content=None)
            return list(connection.scalars(forget.returning(EngineRow.sha256)))


def _open(connection: sa.Connection, run: Run, new: NewIteration, match: int | None) -> int:
    """Write the next iteration of a run with its engines and all its batches; its number.

    Pairs are numbered through the whole run, so that no opening repeats before the book is used up.
    Each batch has its own seed and time control, so what is played is fixed before a worker claims
    it. A validation that goes on with no match begins one.
    """
    sides, (number, first_pair) = new.sides, _place(connection, run.id)
    _write_engines(connection, sides)
    _write_refused(connection, run.id, sides.refused)
    settings = new.row.game_settings
    timed = [one for one in settings.played if not one.reproducible]
    is_validation = new.row.purpose is Purpose.VALIDATE
    values = {
        "run_id": run.id,
        "iteration_number": number,
        "first_pair": first_pair,
        "rng_seed": derived_seed(run.seed, "iteration", number),
        "match_number": (match or number) if is_validation else None,
        **_columns_of(sides),
    }
    if timed:
        values["timelow_ms"] = round(1000 * min(one.low for one in timed))
        values["timehigh_ms"] = round(1000 * max(one.high for one in timed))
    iteration_id = add(connection, new.row, **values)
    seed = derived_seed(run.seed, "time_control", number)
    played = list(assigned(new.batches, settings.shares, seed))
    starts = accumulate((games // 2 for games, _ in played), initial=first_pair)
    batches = [
        {
            "iteration_id": iteration_id,
            "seq": seq,
            "games": games,
            "first_pair": start,
            "seed": derived_seed(run.seed, "batch", number, seq),
            "time_control": time_control,
            "max_attempts": new.max_attempts,
        }
        for seq, ((games, time_control), start) in enumerate(zip(played, starts, strict=False))
    ]
    connection.execute(insert(Batch), batches)
    return number


def _place(connection: sa.Connection, run_id: int) -> tuple[int, int]:
    """The number of the next iteration, and that of its first pair."""
    its = select(Iteration).where(Iteration.run_id == run_id)
    for last in rows(connection, its.order_by(Iteration.iteration_number.desc()).limit(1)):
        return last.iteration_number + 1, last.first_pair + last.target_games // 2
    return 1, 0


def _write_engines(connection: sa.Connection, sides: Sides) -> None:
    """Insert the engines' rows, or update where their bytes are."""
    own = [(side.engine, *side.files.values()) for side in (sides.plus, sides.minus)]
    for engine in chain.from_iterable((*own, *sides.variants.values())):
        location = {"path": engine.path, "content": engine.content}
        known = update(EngineRow).where(EngineRow.sha256 == engine.sha256).values(location)
        if not connection.execute(known).rowcount:
            add(connection, engine)


def _write_refused(connection: sa.Connection, run_id: int, refused: Mapping[str, str]) -> None:
    """Write an event for each level that is refused, the first time."""
    told = select(Event.detail).where(Event.run_id == run_id, Event.kind == REFUSED)
    known = {detail["level"] for detail in connection.scalars(told)} if refused else ()
    for level, reason in refused.items():
        if level not in known:
            write_event(connection, run_id, REFUSED, "master", {"level": level, "reason": reason})


def _columns_of(sides: Sides) -> dict[str, Any]:
    """The columns of an iteration for its engines."""
    pairs = sides.variants.items()
    variants = {level: (plus.location, minus.location) for level, (plus, minus) in pairs}
    columns: dict[str, Any] = {"requires": required_pattern(sides.requires), "variants": variants}
    for name, side in (("plus", sides.plus), ("minus", sides.minus)):
        columns |= {
            f"{name}_engine_path": side.engine.path,
            f"{name}_sha256": side.engine.sha256,
            f"{name}_options": dict(side.options),
            f"{name}_files": {option: file.location for option, file in side.files.items()},
        }
    return columns


def _match_begun(connection: sa.Connection, run_id: int, new: NewIteration) -> int | None:
    """The number of the background match that this is a round of, if that has begun."""
    is_first = Iteration.match_number == Iteration.iteration_number
    its = (Iteration.run_id == run_id, IS_VALIDATION, Iteration.opened_on == new.row.opened_on)
    begun = select(Iteration).where(*its, is_first).order_by(Iteration.iteration_number)
    same = attrgetter("plus_parameters", "minus_parameters", "compared", "game_settings")
    found = (one for one in rows(connection, begun) if same(one) == same(new.row))
    return next((one.iteration_number for one in found), None)


def _engines_of(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> set[str]:
    """The engines of iterations that meet any condition; one query for each uses its index."""
    names = (
        f"{side}_{name}"
        for side in ("plus", "minus")
        for name in ("engine_path", "sha256", "files")
    )
    engines = load_only(*(getattr(Iteration, name) for name in names), Iteration.variants)
    chosen = select(Iteration).options(engines)
    found = (rows(connection, chosen.where(condition)) for condition in conditions)
    return {sha256 for one in chain.from_iterable(found) for sha256 in one.files}


def _refuse_outdated(run: Run, new: Iteration) -> None:
    """A build takes minutes, in which the run may have changed."""
    name = f"iteration k={new.k}"
    if run.status is not RunStatus.RUNNING:
        raise IllegalTransition(f"{name} is too late: run {run.name} is {run.status}")
    if new.k is None or new.k > run.max_iterations:
        raise IllegalTransition(f"{name} is past the run's {run.max_iterations} iterations")
    if not max(0, new.k - new.in_flight) <= new.opened_on <= run.applied:
        raise IllegalTransition(
            f"{name} was decided on {new.opened_on} results, the run has {run.applied}"
        )
    _refuse_purged(run, new.opened_purges)


def _refuse_purged(run: Run, purges: int) -> None:
    """Refuse what was decided on results that were purged since."""
    if run.purges != purges:
        raise IllegalTransition(f"results of run {run.name} have been purged meanwhile")


def _complete(
    connection: sa.Connection,
    run_id: int,
    iteration_id: int,
    elo: float | None,
    *,
    k: int | None = None,
    gradient: Values | None = None,
) -> None:
    if (wrong := miscounted(connection, Iteration.id == iteration_id)) is not None:
        raise IllegalTransition(wrong)
    its = (Iteration.id == iteration_id, Iteration.run_id == run_id)
    is_played = Iteration.games_played == Iteration.target_games
    completed = (
        update(Iteration)
        .where(*its, Iteration.k.is_not_distinct_from(k), is_played)
        .where(may_become(Iteration.status, ITERATION, IterationStatus.COMPLETE))
        .values(
            status=IterationStatus.COMPLETE,
            gradient_estimate=gradient,
            elo_diff=elo,
            completed_at=time_from_now(),
        )
    )
    if not connection.execute(completed).rowcount:
        raise IllegalTransition(f"iteration row {iteration_id} cannot be completed now")
