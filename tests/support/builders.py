"""Small true examples of what goes into the database, each with fields to be overridden."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from asking import Store

from spsa.core import Update
from spsa.core.game_settings import GameSettings, TimeControl, TimeKind
from spsa.core.scoring import Tally
from spsa.db.master_queries import NewIteration, Sides
from spsa.db.run_queries import NO_FILES
from spsa.db.run_view import MasterLease, RunView
from spsa.db.tables import EngineFile, Iteration, Run
from spsa.lifecycle import Purpose
from spsa.master.decide import Pause, upkeep
from spsa.planning.games_needed import evenly
from spsa.protocol import BatchResult, Claim, RegisteredWorker, WorkerInfo

THETA = {"margin": 200.0, "depth": 3.0, "ratio": 0.1 + 0.2}
TERMS = GameSettings(time_control=TimeControl(low=0.05, high=0.1))
LEASE = 1000.0
"""Seconds that no test lasts; a lease that shall have run out is made so by `expire`."""


def new_engine(name: str = "plus", **over) -> EngineFile:
    """An engine whose bytes are its name."""
    facts = {
        "sha256": hashlib.sha256(name.encode()).hexdigest(),
        "build_key": f"key of {name}",
        "target": "x86_64-unknown-linux-gnu",
        "size": len(name),
        "bench": 4711,
        "path": f"/engines/{name}",
    }
    return EngineFile(**facts | over)


def new_run(**over) -> Run:
    """A run of three parameters and three iterations."""
    facts = {
        "name": "first",
        "seed": 42,
        "algorithm": "spsa",
        "settings": {"games_per_iteration": 8},
        "space": {"parameters": list(THETA)},
        "game_settings": TERMS,
        "source_sha256": None,
        "max_iterations": 3,
        "theta": THETA,
        "state": {"k": 0},
    }
    return Run(**facts | over)


def new_iteration(*, batch_games: int = 4, **over) -> NewIteration:
    """Iteration k=1: eight games in two batches of two pairs, each to be tried three times."""
    target = over.get("target_games", 8)
    sides = {
        "plus": new_engine("plus"),
        "minus": new_engine("minus"),
        "plus_options": {"Margin": "220"},
        "minus_options": {"Margin": "180"},
        **{name: over.pop(name) for name in _SIDES & over.keys()},
    }
    batches = over.pop("batches", None) or evenly(target, batch_games)
    max_attempts = over.pop("max_attempts", 3)
    facts = {
        "purpose": Purpose.TUNE,
        "k": 1,
        "opened_on": 0,
        "in_flight": 1,
        "a_k": 0.5,
        "c_k": 1.5,
        "game_settings": TERMS,
        "target_games": 8,
        "base_parameters": THETA,
        "plus_parameters": {"margin": 220.0, "depth": 4.0, "ratio": 0.35},
        "minus_parameters": {"margin": 180.0, "depth": 2.0, "ratio": 0.25},
        "perturbation_signs": {"margin": 1, "depth": 1, "ratio": 1},
    }
    row = Iteration(**facts | over)
    return NewIteration(row=row, sides=Sides(**sides), batches=batches, max_attempts=max_attempts)


_SIDES = frozenset(Sides.__dataclass_fields__)


def new_validation(**over) -> NewIteration:
    """A match that measures and moves nothing."""
    return new_iteration(
        **{"purpose": Purpose.VALIDATE, "k": None, "a_k": None, "c_k": None} | over
    )


def new_worker(name: str = "machine-1", **over) -> WorkerInfo:
    """A worker of the machine "machine", or of `host`; machines differ by their secrets."""
    facts = {
        "host": "machine",
        "platform": "Linux",
        "cores": 8,
        "concurrency": 4,
        "version": "0.1.0",
    }
    secret = {"secret": f"of {over.get('host', 'machine')}"}
    return WorkerInfo(name=name, **facts | secret | over)


def tally_of_seed(seed: int, pairs: int) -> Tally:
    """What "playing" a batch gives: a pure function of its seed, any of the nine pair results."""
    total = Tally()
    for pair in range(pairs):
        digest = hashlib.sha256(f"{seed}/{pair}".encode()).digest()
        total += Tally.of_pair(digest[0] % 3, digest[1] % 3)
    return total


def result_of(claim: Claim, **over) -> BatchResult:
    """The one right report of a claim."""
    return BatchResult(tally=tally_of_seed(claim.seed, claim.pairs), **over)


def step_from(run: Run, tally: Tally, **over) -> tuple[Run, Update]:
    """The run, and the next step of a made-up rule: theta moves by the score, a little differently
    by name."""
    delta = {
        name: (tally.wins - tally.losses) * 0.1 / (place + 1)
        for place, name in enumerate(sorted(run.theta))
    }
    k = run.applied + 1
    update = Update(
        k=k,
        delta=delta,
        theta={name: run.theta[name] + delta[name] for name in run.theta},
        state={"k": k},
        gradient=dict.fromkeys(run.theta, 0.0),
        elo=float(tally.wins - tally.losses),
    )
    return run, replace(update, **over)


def looked(store: Store, master: MasterLease) -> RunView:
    """What a master sees, after it has paused its run if that cannot go on."""
    view = store.tick(master, LEASE)
    if isinstance(upkeep(view), Pause):
        store.pause_at_obstacles(master)
        view = store.tick(master, LEASE)
    return view


@dataclass(frozen=True)
class Stage:
    """A run with a master and one worker, and the usual moves on it in one word each."""

    store: Store
    run: Run
    master: MasterLease
    worker: RegisteredWorker

    def now(self) -> Run:
        return self.store.run(self.run.name)

    def open(self, **over) -> int:
        """Open the next iteration in the gain schedule, or what `over` says."""
        run = self.now()
        usual = {"k": run.applied + 1, "opened_on": run.applied, "opened_purges": run.purges}
        return self.store.open_iteration(self.master, new_iteration(**usual | over))

    def claim(self, claim_id: str, lease: float = LEASE) -> Claim | None:
        return self.store.claim(claim_id, self.worker, lease)

    def play(self, prefix: str = "c", **costs) -> list[Claim]:
        """Claim and report everything that is free now."""
        played = []
        while (claim := self.claim(f"{prefix}-{self.now().applied}-{len(played)}")) is not None:
            self.store.report(claim, result_of(claim, **costs))
            played.append(claim)
        return played

    def view(self) -> RunView:
        return looked(self.store, self.master)

    def apply(self, **over) -> None:
        """Apply the oldest open iteration."""
        view = self.store.tick(self.master, LEASE)
        oldest = view.open[0]
        self.store.apply(self.master, oldest.id, *step_from(view.run, oldest.tally, **over))

    def whole_iteration(self, **over) -> None:
        self.open(**over)
        self.play()
        self.apply()


def stage(store: Store, files: Mapping[str, bytes] = NO_FILES, **over) -> Stage:
    """A started run (see `new_run`), its master "m1", and the worker "machine-1"."""
    run = store.create_run(new_run(**over), files=files)
    master = store.acquire_master_lease(run.id, "m1", LEASE)
    return Stage(store, run, master, store.register_worker(new_worker()))


NODES = TimeControl(kind=TimeKind.NODES, low=2000, high=2000)
"""Scripted engines move at once; a worker would wait twenty seconds for so many nodes."""


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def published(path: Path, **over: object) -> EngineFile:
    return new_engine(path.name, **{"sha256": digest(path), "path": str(path)} | over)
