"""Small true examples of what goes into the database, each with fields to be overridden."""

import hashlib
import tempfile
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import floor, tanh
from pathlib import Path
from random import Random

from asking import Store

from spsa.algorithms.tuning import tuning
from spsa.config.space import load_space
from spsa.core import Update
from spsa.core.game_settings import GameSettings, TimeControl, TimeControlShare, TimeKind
from spsa.core.parameter import Location, Parameter
from spsa.core.params import Space
from spsa.core.scoring import ELO_PER_SCORE, Tally
from spsa.db.master_queries import NewIteration, Side, Sides
from spsa.db.run_view import MasterLease, RunView
from spsa.db.tables import EngineRow, Iteration, Run
from spsa.history.replay import updated
from spsa.lifecycle import Purpose
from spsa.master.decide import Pause, upkeep
from spsa.master.session import RunSettings, tuning_of
from spsa.planning.games_needed import evenly
from spsa.protocol import (
    BatchResult,
    BuildResult,
    BuiltFile,
    Claim,
    HeldBuild,
    RegisteredWorker,
    WorkerInfo,
)

THETA = {"margin": 200.0, "depth": 3.0, "ratio": 0.1 + 0.2}
TERMS = GameSettings(time_control=TimeControl(low=0.05, high=0.1))
LEASE = 1000.0
"""Seconds that no test lasts; a lease that shall have run out is made so by `expire`."""


def new_engine(name: str = "plus", **over) -> EngineRow:
    """An engine whose bytes are its name."""
    facts = {
        "sha256": hashlib.sha256(name.encode()).hexdigest(),
        "build_key": f"key of {name}",
        "target": "x86_64-unknown-linux-gnu",
        "size": len(name),
        "bench": 4711,
        "path": f"/engines/{name}",
    }
    return EngineRow(**facts | over)


def new_run(**over) -> Run:
    """A run of three parameters and three iterations."""
    facts = {
        "name": "first",
        "seed": 42,
        "algorithm": "spsa",
        "settings": run_settings(3).to_json(),
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
    sides = [
        Side(
            over.pop(name, new_engine(name)),
            over.pop(f"{name}_options", {"Margin": margin}),
            over.pop(f"{name}_files", {}),
        )
        for name, margin in (("plus", "220"), ("minus", "180"))
    ]
    named = {name: over.pop(name) for name in ("requires", "variants", "refused") if name in over}
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
    return NewIteration(
        row=row, sides=Sides(*sides, **named), batches=batches, max_attempts=max_attempts
    )


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
    return WorkerInfo(name=name, **facts | {"secret": f"of {over.get('host', 'machine')}"} | over)


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


def built(content: bytes, bench: int | None = None) -> BuiltFile:
    return BuiltFile(sha256=hashlib.sha256(content).hexdigest(), size=len(content), bench=bench)


def build_result(build: HeldBuild, **over) -> BuildResult:
    """What a worker says of the engines `plus` and `minus` that it has built."""
    held = {name: getattr(build, name) for name in ("worker_id", "build_id", "claim_id")}
    return BuildResult(**held | {"target": "x86_64-linux", "requires": ("linux",)} | over)


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
    if isinstance(needed := upkeep(view), Pause):
        store.pause_at_obstacles(master, view, needed.reasons, needed.batch_ids)
        view = store.tick(master, LEASE)
    return view


def play(
    store: Store, worker: RegisteredWorker | None = None, elo: float | None = None, **over: object
) -> list[Claim]:
    """Claim and report all that is free: what the seeds say, or as if plus had so much more Elo.

    `over` is what else the reports say.
    """
    worker = worker or store.register_worker(new_worker())
    played = []
    while (claim := store.claim(uuid.uuid4().hex, worker, LEASE)) is not None:
        result = result_of(claim) if elo is None else _result_at(claim, elo)
        store.report(claim, replace(result, **over))  # type: ignore[arg-type]
        played.append(claim)
    return played


def _result_at(claim: Claim, elo: float) -> BatchResult:
    """Pairs whose half points are spread around the score by the batch's seed."""
    total, chance = Tally(), Random(claim.seed)
    for _ in range(claim.pairs):
        points = min(max(floor(1.5 + 2 * (tanh(elo / ELO_PER_SCORE) + chance.random())), 0), 4)
        total += Tally.of_pair(points // 2, points - points // 2)
    return BatchResult(
        tally=total,
        seconds=2.0 * claim.pairs,
        think_seconds=1.5 * claim.pairs,
        slot=0,
        plus_nodes=1000 * claim.pairs,
        minus_nodes=1000 * claim.pairs,
    )


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

    def play(self, elo: float | None = None, **over: object) -> list[Claim]:
        return play(self.store, self.worker, elo, **over)

    def view(self) -> RunView:
        return looked(self.store, self.master)

    def apply(self, **over) -> None:
        """Apply the oldest open iteration by a made-up rule."""
        view = self.store.tick(self.master, LEASE)
        oldest = view.open[0]
        self.store.apply(self.master, oldest.id, *step_from(view.run, oldest.tally, **over))

    def whole_iteration(self, **over) -> None:
        self.open(**over)
        self.play()
        self.apply()

    def iterate(self, **over: object) -> None:
        """One more iteration by the run's own rule; `over` is what its reports say."""
        run = self.now()
        rules = tuning_of(run)
        asked = rules.propose(run.state, run.theta, run.applied + 1)
        games = run.settings["games_per_iteration"]
        self.open(
            target_games=games,
            batch_games=games // 2,
            a_k=asked.a_k,
            c_k=asked.c_k,
            base_parameters=asked.base,
            plus_parameters=asked.played.plus,
            minus_parameters=asked.played.minus,
            perturbation_signs=asked.signs,
        )
        self.play(_ahead(run, asked.played.plus, asked.played.minus), **over)
        iteration = self.store.open_iterations(run.id)[0]
        update = updated(rules, run.state, run.theta, iteration)
        self.store.apply(self.master, iteration.id, run, update)

    def validate(self, games: int = 8, **over: object) -> None:
        """A match of the tuned values against the start, played and complete."""
        run = self.now()
        space = Space.from_json(run.space)
        values = {
            "opened_on": run.applied,
            "plus_parameters": space.rounded(space.steps(run.theta)),
            "minus_parameters": space.rounded(space.steps(run.start_theta)),
            "target_games": games,
            **over,
        }
        self.store.open_iteration(self.master, new_validation(**values))
        self.play(_ahead(run, values["plus_parameters"], values["minus_parameters"]))
        one = self.store.iterations(run.id, purpose=Purpose.VALIDATE)[-1]
        self.store.complete_validation(self.master, one.id, 0.0)


def _ahead(run: Run, plus: Mapping[str, float], minus: Mapping[str, float]) -> float:
    """Elo of plus over minus: quadratic, best three steps up; without values it is at the start."""
    space, start = Space.from_json(run.space), run.start_theta
    away = [space.steps(start | values) - space.steps(start) - 3 for values in (plus, minus)]
    return 9 * float((away[1] ** 2 - away[0] ** 2).mean())


def stage(
    store: Store,
    space: Space | None = None,
    applied: int = 0,
    *,
    planned: int = 0,
    files: Mapping[str, bytes] | None = None,
    **over,
) -> Stage:
    """A started run, its master "m1", and the worker "machine-1".

    A run of a space has applied so many results by its own rule (see `tunable_run`); without a
    space it is one that only rows know (see `new_run`).
    """
    run = tunable_run(space, planned or max(applied, 1), **over) if space else new_run(**over)
    store.keep_files(files or {})
    run = store.create_run(run)
    master = store.acquire_master_lease(run.id, "m1", LEASE)
    staged = Stage(store, run, master, store.register_worker(new_worker()))
    for _ in range(applied):
        staged.iterate()
    return staged


def run_settings(iterations: int, **over) -> RunSettings:
    facts = {
        "rule": {},
        "planned_iterations": iterations,
        "games_per_iteration": 8,
        "batch_size": 4,
        "iterations_in_flight": 1,
        "max_attempts": 3,
        "delivery": {},
        "game_settings": TERMS,
    }
    return RunSettings(**facts | over)


def tunable_run(
    space: Space,
    iterations: int,
    *,
    algorithm: str = "mixture",
    games: int = 8,
    seed: int = 42,
    **over,
) -> Run:
    """A run of this space as a master makes it."""
    settings = run_settings(iterations, games_per_iteration=games, batch_size=games // 2)
    rules = tuning(
        space,
        algorithm,
        {},
        iterations=iterations,
        pairs=games // 2,
        seed=seed,
        weights=over.get("game_settings", TERMS).weights,
    )
    theta, state = rules.start()
    facts = {
        "seed": seed,
        "algorithm": algorithm,
        "settings": settings.to_json(),
        "space": space.to_json(),
        "max_iterations": iterations,
        "theta": theta,
        "state": state,
    }
    return new_run(**facts | over)


def space_from(params: str) -> Space:
    """The space that a params.toml with this text has."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "params.toml"
        path.write_text(params)
        return load_space(path)


def parameter(name: str, **over) -> Parameter:
    facts = {
        "name": name,
        "value": 50,
        "minimum": 0,
        "maximum": 100,
        "step": 8,
        "location": Location(name),
        "option": name,
    }
    return Parameter(**facts | over)


def several(*shares: TimeControlShare) -> GameSettings:
    """Game settings with these time controls."""
    return GameSettings(time_control=shares[0].time_control, time_controls=shares)


def of_nodes(nodes: int, share: float = 1.0, weight: float | None = None) -> TimeControlShare:
    control = TimeControl(kind=TimeKind.NODES, low=nodes, high=nodes)
    return TimeControlShare(time_control=control, share=share, weight=weight)


NODES = TimeControl(kind=TimeKind.NODES, low=2000, high=2000)
"""Scripted engines move at once; a worker would wait twenty seconds for so many nodes."""


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def published(path: Path, /, **over: object) -> EngineRow:
    return new_engine(path.name, **{"sha256": digest(path), "path": str(path)} | over)
