"""Every order in which two workers and two masters can share one batch, and every way to fail.

A search through all states of a run of one iteration of one batch, on an SQLite file whose
transactions are what the steps are made of: SQLite runs one writing transaction at a time, so no
finer interleaving exists there. Each step may be cut off before or after its commit, anybody may
stop for good anywhere, and a lease may run out at any moment. Every state keeps the invariants, and
from every one others can bring the run to its end, with the theta that it has to have.
"""

import random
import sqlite3
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from builders import (
    LEASE,
    THETA,
    new_iteration,
    new_run,
    new_worker,
    result_of,
    step_from,
    tally_of_seed,
)
from invariants import broken
from processes import LONG, SEED
from shell import Shell

from spsa.core.seeds import derived_seed
from spsa.db.store import Claim, MasterLease, RunView, Store, open_store
from spsa.errors import IllegalTransition, LeaseLost, MasterLeaseLost
from spsa.lifecycle import RunStatus

ATTEMPTS = 1_000
REFUSALS = (IllegalTransition, LeaseLost, MasterLeaseLost)
TABLES = ("spsa_run", "spsa_iteration", "spsa_batch", "spsa_step")
OUR_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'spsa_%'"
Rows = tuple[tuple[str, tuple[tuple[object, ...], ...]], ...]
UNTOLD = ("_at", "attempt", "worker_id", "epoch")


@dataclass(frozen=True, slots=True)
class Hand:
    """What a process knows: the last answers it was given."""

    claim: Claim | None = None
    master_lease: MasterLease | None = None
    view: RunView | None = None

    def leads(self, epoch: int) -> bool | None:
        """Whether it has the present mastership; None if it never had one."""
        return None if self.master_lease is None else self.master_lease.epoch == epoch


@dataclass(frozen=True, slots=True)
class State:
    """What the database holds, and what everybody knows."""

    database: Rows
    hands: tuple[Hand, ...]


class World:
    """One SQLite file that is set back to any state, and all that can happen in a state."""

    def __init__(self, template: Path, folder: Path) -> None:
        self.path = folder / "spsa.db"
        self.path.write_bytes(template.read_bytes())
        url = f"sqlite:///{self.path}"
        self.store: Store = open_store(url, durable=False)
        self.sql = Shell(url)
        self.run = self.store.create_run(new_run(max_iterations=1))
        self.workers = [self.store.register_worker(new_worker(name)) for name in ("w1", "w2")]
        self._raw = sqlite3.connect(self.path, isolation_level=None)
        self._tables = [name for (name,) in self._raw.execute(OUR_TABLES)]
        self._raw.execute("PRAGMA synchronous = OFF")
        for trigger in ("spsa_insert_batch", "spsa_delete_batch"):  # `go_to` copies whole states
            self._raw.execute(f"DROP TRIGGER {trigger}")

    def close(self) -> None:
        self._raw.close()
        self.sql.close()
        self.store.close()

    def saved(self) -> Rows:
        return tuple(
            (table, tuple(self._raw.execute(f"SELECT * FROM {table}")))  # noqa: S608
            for table in self._tables
        )

    def go_to(self, database: Rows) -> None:
        self._raw.execute("BEGIN IMMEDIATE")
        for table, rows in database:
            self._raw.execute(f"DELETE FROM {table}")  # noqa: S608
            if rows:
                places = ", ".join("?" * len(rows[0]))
                self._raw.executemany(f"INSERT INTO {table} VALUES ({places})", rows)  # noqa: S608
        self._raw.execute("COMMIT")

    def content(self) -> str:
        """What makes two databases the same: of times only whether a lease has run out.

        How often a batch was tried and a mastership taken is left out; there is no end to it, and
        all that counts of an epoch is whose is the present one.
        """
        return repr([self._rows(table) for table in TABLES])

    def epoch(self) -> int:
        """Of the present mastership."""
        return int(self._raw.execute("SELECT epoch FROM spsa_run").fetchone()[0])

    def _rows(self, table: str) -> list[tuple[object, ...]]:
        past = "lease_expires_at < strftime('%Y-%m-%d %H:%M:%f', 'now')"
        ran_out = past if table in ("spsa_run", "spsa_batch") else "0"
        cursor = self._raw.execute(f"SELECT *, {ran_out} FROM {table} ORDER BY id")  # noqa: S608
        names = [column[0] for column in cursor.description]
        kept = [i for i, name in enumerate(names) if not name.endswith(UNTOLD)]
        return [tuple(row[i] for i in kept) for row in cursor]

    def steps(self, state: State) -> Iterator[tuple[int, Callable[[], Hand]]]:
        """Everything that somebody may do now, by place; each gives what that one then knows."""
        for place, hand in enumerate(state.hands):
            for call in self._worker(place, hand) if place < 2 else self._master(place, hand):
                yield place, call

    def _worker(self, place: int, hand: Hand) -> Iterator[Callable[[], Hand]]:
        if hand.claim is None:
            name, worker = f"w{place}", self.workers[place]
            yield lambda: replace(hand, claim=self.store.claim(name, worker, LEASE))
        else:
            claim = hand.claim
            yield lambda: self._done(hand, lambda: self.store.report(claim, result_of(claim)))

    def _master(self, place: int, hand: Hand) -> Iterator[Callable[[], Hand]]:
        lead = hand.master_lease
        if lead is None:
            yield lambda: replace(
                hand, master_lease=self.store.acquire_master_lease(self.run.id, f"m{place}", LEASE)
            )
            return
        yield lambda: replace(hand, view=self.store.tick(lead, LEASE))
        if hand.view is not None:
            view = hand.view
            yield lambda: self._done(hand, lambda: move(self.store, lead, view))

    @staticmethod
    def _done(hand: Hand, call: Callable[[], object]) -> Hand:
        call()
        return hand

    def expiries(self) -> Iterator[Callable[[], None]]:
        """A lease that is held runs out: the batch's, or the master's."""
        for (batch,) in self._raw.execute("SELECT id FROM spsa_batch WHERE status = 'leased'"):
            yield lambda batch=batch: self.sql.expire(batch)
        for (run,) in self._raw.execute("SELECT id FROM spsa_run WHERE master_id IS NOT NULL"):
            yield lambda run=run: self.sql.expire(run_id=run)


def move(store: Store, lead: MasterLease, view: RunView) -> None:
    """What a master does that saw this, perhaps long ago."""
    if view.opened == 0:
        new = new_iteration(target_games=2, batch_games=2, max_attempts=ATTEMPTS)
        store.open_iteration(lead, new)
    elif view.open and view.open[0].is_played:
        store.apply(lead, view.open[0].id, step_from(view.run, view.open[0].tally))
    elif not view.open:
        store.finish(lead)


def _seen(view: RunView) -> object:
    return (view.opened, view.run.applied, view.run.status, [i.is_played for i in view.open])


def _known(hands: tuple[Hand, ...], epoch: int) -> list[str]:
    workers = sorted(f"w{i} {hand.claim is not None}" for i, hand in enumerate(hands[:2]))
    masters = sorted(
        f"m{i} {hand.leads(epoch)} {hand.view and _seen(hand.view)}"
        for i, hand in enumerate(hands[2:], start=2)
    )
    return workers + masters


def _renamed(content: str, known: list[str], *pairs: tuple[str, str]) -> str:
    """All that makes a state, if those who are equals had each other's names."""
    for one, other in pairs:
        content, known = _swapped(content, one, other), [_swapped(x, one, other) for x in known]
    return f"{content} {sorted(known)}"


def _swapped(text: str, one: str, other: str) -> str:
    return text.replace(one, "\0").replace(other, one).replace("\0", other)


WORKERS, MASTERS = ("w0", "w1"), ("m2", "m3")
NAMINGS = ((), (WORKERS,), (MASTERS,), (WORKERS, MASTERS))


class Search:
    """All states, breadth first; `at_most` of them, in an order by chance where not all."""

    def __init__(self, world: World, at_most: int | None) -> None:
        self.world, self._at_most = world, at_most
        self._chance = random.Random(SEED)
        self._seen: set[str] = set()
        self._contents: set[str] = set()
        self._to_do: deque[State] = deque()
        self.transitions = 0
        self.finished = 0

    @property
    def states(self) -> int:
        return len(self._seen)

    def run(self) -> None:
        self._arrive((Hand(),) * 4)
        while self._to_do and not (self._at_most and self.states > self._at_most):
            self._leave(self._next())

    def _next(self) -> State:
        if self._at_most:
            self._to_do.rotate(self._chance.randrange(len(self._to_do)))
        return self._to_do.popleft()

    def _leave(self, state: State) -> None:
        world = self.world
        world.go_to(state.database)
        for expire in list(world.expiries()):
            world.go_to(state.database)
            expire()
            self._arrive(state.hands)
        for place, step in list(world.steps(state)):
            world.go_to(state.database)
            try:
                told = step()
            except REFUSALS:
                told = state.hands[place]
            self._arrive((*state.hands[:place], told, *state.hands[place + 1 :]))
            self._arrive(state.hands)  # the answer was lost

    def _arrive(self, hands: tuple[Hand, ...]) -> None:
        self.transitions += 1
        content = self.world.content()
        known = _known(hands, self.world.epoch())
        key = min(_renamed(content, known, *names) for names in NAMINGS)
        if key in self._seen:
            return
        self._seen.add(key)
        state = State(self.world.saved(), hands)
        self._to_do.append(state)
        if content not in self._contents:
            self._contents.add(content)
            assert broken(self.world.sql) == []
            self._assert_it_can_end()

    def _assert_it_can_end(self) -> None:
        """When all these are gone and others come."""
        world = self.world
        for expire in list(world.expiries()):
            expire()
        finish(world.store, world.run.id)
        (theta,) = {tuple(step.theta_after.items()) for step in world.store.steps(world.run.id)}
        assert dict(theta) == dict(world.store.run("first").theta) == RIGHT
        assert broken(world.sql) == []
        self.finished += 1


RIGHT_TALLY = tally_of_seed(derived_seed(42, "batch", 1, 0), 1)
RIGHT = {
    name: THETA[name] + (RIGHT_TALLY.wins - RIGHT_TALLY.losses) * 0.1 / (place + 1)
    for place, name in enumerate(sorted(THETA))
}


def finish(store: Store, run_id: int) -> None:
    """Undisturbed, by a master and a worker that nobody knew before."""
    if store.run("first").status is RunStatus.FINISHED:
        return
    lead, worker = (
        store.acquire_master_lease(run_id, "rescue", LEASE),
        store.register_worker(new_worker("r")),
    )
    for _ in range(5):
        move(store, lead, store.tick(lead, LEASE))
        claim = store.claim(uuid.uuid4().hex, worker, LEASE)
        if claim is not None:
            store.report(claim, result_of(claim))
        if store.run("first").status is RunStatus.FINISHED:
            return
    raise AssertionError("the run cannot be finished any more")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_order_of_steps_breaks_anything(sqlite_template, tmp_path, figures):
    began = time.monotonic()
    with closing(World(sqlite_template, tmp_path)) as world:
        search = Search(world, None if LONG else 150)
        search.run()
    figures(
        states=search.states,
        steps=search.transitions,
        databases_finished=search.finished,
        seconds=time.monotonic() - began,
    )
