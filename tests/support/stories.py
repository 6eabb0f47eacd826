"""Stories of a database: commands in a text file beside a test, and what the store says to each.

They stand in the form of `transcripts`. A command is `VERB WORDS NAME=VALUE ...`: a method of
`Story`, or else of the store. `show=a,b` tells these attributes of what it returns, `times=N` does
it so often. A run is called by its name, a claim by its number; names that are not there yet come
into being: run `first`, and for a machine `rig` the worker `rig-1`.
"""

import hashlib
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import count
from operator import attrgetter
from random import Random
from typing import Any

from asking import Store
from builders import (
    LEASE,
    looked,
    new_engine,
    new_iteration,
    new_run,
    new_validation,
    new_worker,
    result_of,
    step_from,
)
from console import Said
from shell import Shell

from spsa.core.scoring import Tally
from spsa.db.master_queries import NewIteration
from spsa.db.run_view import MasterLease, RunView
from spsa.db.tables import EngineRow, Run, Worker
from spsa.errors import TuningError
from spsa.lifecycle import MachineRole
from spsa.protocol import BatchResult, Claim, Failure, KeptVoid, Measured, RegisteredWorker

OF_RUNS = {
    *("batches", "events", "is_unopened", "iterations", "matches", "purges", "steps", "void_games"),
    "worker_shares",
}
"""Calls of the store that want the id of a run."""

OF_MASTERS = {"abandon_validation", "complete_validation", "finish", "release_master_lease"}
"""Those that want the lease of its master."""

_NAMED = re.compile(r"\w+=")


class Story:
    """A database, its runs with their masters, and the claims of its workers."""

    def __init__(self, store: Store, sql: Shell) -> None:
        self.store, self._shell = store, sql
        self._masters: dict[str, MasterLease] = {}
        self._workers: dict[str, RegisteredWorker] = {}
        self._names: dict[str, RegisteredWorker] = {}
        self._claims: dict[int, Claim | None] = {}
        self._asked = count(1)
        self._tokens: dict[str, str] = {}
        self._engines: dict[str, EngineRow] = {}

    def __call__(self, line: str) -> Said:
        """Carry out a command, and what it says."""
        verb, _, rest = line.partition(" ")
        if verb == "sql":
            rows = self._shell(rest)
            names = [", ".join(rows[0]._mapping)] if "*" in rest else []
            return Said(0, "\n".join((*names, *_shown(rows or None))), "")
        words = shlex.split(rest)
        values = [_value(word) for word in words if not _NAMED.match(word)]
        pairs = (word.split("=", 1) for word in words if _NAMED.match(word))
        named = {name: _value(text) for name, text in pairs}
        show = str(named.pop("show", "")).split(",") if "show" in named else []
        try:
            for n in range(named.pop("times", 1)):
                words = [one.replace("{n}", str(n)) if one == str(one) else one for one in values]
                lines = [*_shown(self._call(verb)(*words, **named), show)]
        except TuningError as error:
            told = re.sub(r"(?<=the database refused).*", "", str(error))  # in its own words
            return Said(0, "", f"{type(error).__name__}: {told}")
        return Said(0, "\n".join(lines), "")

    def _call(self, verb: str) -> Callable[..., Any]:
        if hasattr(self, verb):
            return getattr(self, verb)
        call = getattr(self.store, verb)
        if verb in OF_RUNS:
            return lambda run, *more, **over: call(self.store.run(run).id, *more, **over)
        if verb in OF_MASTERS:
            return lambda run, *more: call(self._masters[run], *more)
        return call

    def run(
        self, name: str = "first", *, replacing: str | None = None, led: bool = True, **over: Any
    ) -> None:
        """A run, and its master if it is led."""
        old = None if replacing is None else self.store.run(replacing).id
        self.store.create_run(new_run(name=name, **over), replacing=old)
        if led:
            self.lead(name)

    def lead(self, name: str = "first") -> None:
        run_id = self.store.run(name).id
        self._masters[name] = self.store.acquire_master_lease(run_id, f"m of {name}", LEASE)

    def expire_master(self, name: str = "first") -> None:
        self._shell.expire(run_id=self.store.run(name).id)

    def displace(self, name: str = "first") -> None:
        """Another master gets the run, and this one does not know it."""
        self.expire_master(name)
        self.store.acquire_master_lease(self.store.run(name).id, "another", LEASE)

    def tick(self, name: str = "first") -> RunView:
        return self.store.tick(self._masters[name], LEASE)

    def open(self, name: str = "first", *, beside: str | None = None, **over: Any) -> None:
        """The next iteration, of `batches`; `beside` it a match of an engine."""
        if name not in self._masters:
            self.run(name)
        match = self._new(new_validation, name, plus=beside, minus=beside) if beside else None
        new = self._new(new_iteration, name, **{"k": self.store.run(name).applied + 1} | over)
        self.store.open_iteration(self._masters[name], new, beside=match)

    def validate(self, name: str = "first", **over: Any) -> None:
        self.store.open_iteration(self._masters[name], self._new(new_validation, name, **over))

    def _new(
        self,
        new: Callable[..., NewIteration],
        name: str,
        batches: int = 2,
        games: int = 4,
        **over: Any,
    ) -> NewIteration:
        """On the results that the run has; an engine is named, and so is a side's net."""
        for side in ("plus", "minus"):
            if side in over:
                over[side] = self._engine(over[side])
            if f"{side}_files" in over:
                over[f"{side}_files"] = {"EvalFile": self._engine(over[f"{side}_files"])}
        if "variants" in over:
            kind, *engines = over["variants"]
            over["variants"] = {kind: tuple(map(self._engine, engines))}
        if "refused" in over:
            levels, reasons = over["refused"][::2], over["refused"][1::2]
            over["refused"] = dict(zip(levels, reasons, strict=True))
        usual = {"opened_on": self.store.run(name).applied, "target_games": batches * games}
        return new(**usual | over, batch_games=games)

    def _engine(self, name: str) -> EngineRow:
        self._engines[name] = new_engine(name, content=name.encode())
        return self._engines[name]

    def retire(self, name: str, k: int) -> list[str]:
        """The engines that are given up, and what is left of all."""
        gone = set(self.store.retire_engines(self._masters[name], k))
        left = {name: self.store.file(one.sha256) for name, one in self._engines.items()}
        given_up = [name for name, one in self._engines.items() if one.sha256 in gone]
        return [f"given up: {', '.join(given_up)}", f"left: {', '.join(filter(left.get, left))}"]

    def whole(self, name: str = "first", **over: Any) -> None:
        """An iteration, opened, played and applied."""
        self.open(name, **over)
        self.plays("machine")
        self.apply(name)

    def nameless(self) -> Run:
        return self.store.run()

    def worker(self, machine: str, **over: Any) -> RegisteredWorker:
        """The worker of a machine, which says `over` of itself."""
        if over or machine not in self._workers:
            self.register(f"{machine}-1", **{"host": machine} | over)
        return self._workers[machine]

    def workers(self) -> list[Worker]:
        return sorted(self.store.workers(), key=attrgetter("name"))

    def here(self, *machines: str, **over: Any) -> None:
        for machine in machines:
            self.worker(machine, **over)

    def register(self, name: str, invited: str | None = None, **over: Any) -> str:
        """A worker of a direct machine, or of one that was invited."""
        machine = [invited] if invited else []
        worker = self.store.register_worker(new_worker(name, **over), *machine)
        told = " as before" if self._names.get(name) == worker else ""
        self._names[name] = worker
        self._workers.setdefault(worker.machine, worker)
        return f"of {worker.machine}{told}"

    def touch(self, machine: str, **measured: Any) -> str | None:
        return self.store.touch_worker(self.worker(machine), Measured(**measured))

    def invite(self, machine: str, role: str, actor: str, name: str | None = None) -> str:
        token = self.store.invite_machine(machine, MachineRole(role), actor)
        self._tokens[name or machine] = token
        return token

    def known(self, token: str, worker: str | None = None) -> str:
        """By a token, or a word that is none, and the name of a worker."""
        sha256 = hashlib.sha256(self._tokens.get(token, token).encode()).hexdigest()
        found = self.store.machine_of_token(sha256, worker and self._names[worker].id)
        if found is None:
            return "nobody"
        machine, owner = found
        told = ", revoked" if machine.revoked_at else ", may build" if machine.may_build else ""
        return f"{machine.name}, by {machine.invited_by}{told}; the worker is of {owner}"

    def claim(
        self, machine: str, again: int | None = None, low: float = 0.0, high: float = 1.0
    ) -> str:
        """The next batch, or that of a claim again; the first two draws are between low and high.

        They decide whose batch it is.
        """
        number = again or next(n for n in self._asked if _draws_between(n, low, high))
        got = self.store.claim(f"claim {number}", self.worker(machine), LEASE)
        if again is None:
            self._claims[number] = got
        if got is None:
            return "nothing"
        place = f"{got.run_name} iteration {got.iteration_number} batch {got.seq}"
        return f"claim {number}: {place}, attempt {got.attempt}"

    def claimed(self, machine: str) -> Claim | None:
        self.claim(machine)
        return self._claims[max(self._claims)]

    def takes(self, machine: str, batches: int) -> str:
        """So many batches; the runs of them."""
        claims = [self.claimed(machine) for _ in range(batches)]
        return " ".join(claim.run_name if claim else "nothing" for claim in claims)

    def _claim(self, number: int) -> Claim:
        claim = self._claims[number]
        assert claim is not None, f"claim {number} got nothing"
        return claim

    def said(self, number: int) -> Claim:
        return self._claim(number)

    def report(self, number: int, voids: int = 0, pair: int | None = None, **over: Any) -> str:
        """With so many void games, of which that of a pair is kept."""
        claim = self._claim(number)
        if voids:
            over["voids"] = {"crash": voids}
        if pair is not None:
            over["kept_voids"] = kept(pair)
        return self.store.report(claim, result_of(claim, **over))

    def win(self, number: int) -> str:
        """All games, for plus."""
        claim = self._claim(number)
        won = sum([Tally.of_pair(2, 2)] * claim.pairs, Tally())
        return self.store.report(claim, BatchResult(tally=won))

    def lie(self, number: int) -> str:
        tally = result_of(self._claim(number)).tally
        return self.store.report(self._claim(number), BatchResult(tally=tally + -tally))

    def fail(
        self, number: int, reason: str = "it broke", pair: int | None = None, **over: Any
    ) -> None:
        voids = {} if pair is None else {"kept_voids": kept(pair)}
        self.store.fail(self._claim(number), Failure(reason=reason, **voids, **over))

    def release(self, number: int) -> None:
        self.store.release(self._claim(number))

    def expire(self, *numbers: int) -> None:
        """Time passes for the leases of these claims."""
        for number in numbers:
            self._shell.expire(self._claim(number).batch_id)

    def renew(self, machine: str, *numbers: int) -> Iterable[str]:
        asked = [f"claim {number}" for number in numbers]
        return sorted(self.store.renew(self.worker(machine), asked, LEASE))

    def plays(self, machine: str, **over: Any) -> str:
        """Claim and report whatever is free; the runs of it."""
        played = list[str]()
        while (claim := self.claimed(machine)) is not None:
            played.append(claim.run_name)
            self.store.report(claim, result_of(claim, **over))
        return " ".join(played) or "nothing"

    def look(self, name: str = "first") -> Iterator[str]:
        """What its master sees, which pauses a run that cannot go on."""
        view = looked(self.store, self._masters[name])
        yield f"{view.run.status}: {view.run.reason}" if view.run.reason else view.run.status
        yield from (f"failed: {batch.last_error}" for batch in view.failed)
        for one in view.obstacles.failures:
            counted = f"failed {one.batches}, played {one.played}, others {one.played_by_others}"
            yield f"{one.machine}: {counted}: {one.reason}"

    def apply(self, name: str = "first", **over: Any) -> None:
        view = self.store.tick(self._masters[name], LEASE)
        oldest = view.open[0]
        self.store.apply(self._masters[name], oldest.id, *step_from(view.run, oldest.tally, **over))


def _draws_between(number: int, low: float, high: float) -> bool:
    chance = Random(f"claim {number}")
    return all(low < chance.random() < high for _ in range(2))


def kept(pair: int) -> tuple[KeptVoid, ...]:
    moves, output = "position startpos moves e2e4 e7e5", "readyok\nstderr: panicked\x1b[2J"
    where = {"white": "plus", "position": moves, "output": output}
    return (KeptVoid(pair=pair, culprit="minus", detail="crash", **where),)


def _value(word: str) -> Any:
    """A number, a flag, or several words with a comma behind each of them."""
    if re.fullmatch(r"-?\d{1,19}", word):
        return int(word)
    if re.fullmatch(r"-?\d+\.\d*", word):
        return float(word)
    if word.endswith(","):
        return tuple(word.split(",")[:-1])
    return {"no": False, "yes": True, "none": None}.get(word, word)


def _shown(found: Any, show: Sequence[str] = ()) -> Iterator[str]:
    """A line for each row; `show` are the attributes that are told of it."""
    if found is None or isinstance(found, RegisteredWorker):
        return
    if isinstance(found, dict):
        found = [f"{name}: {value}" for name, value in found.items()]
    rows = [found] if isinstance(found, str) or not isinstance(found, Iterable) else list(found)
    if not rows:
        yield "none"
    for row in rows:
        told = [attrgetter(name)(row) for name in show] or row
        is_several = isinstance(told, Sequence) and not isinstance(told, str)
        yield ", ".join(map(_plain, told)) if is_several else _plain(told)


def _plain(value: Any) -> str:
    """Floats and times as both databases write them."""
    value = value.astimezone(UTC) if isinstance(value, datetime) else value
    return f"{value:.14g}" if isinstance(value, float) else str(value)
