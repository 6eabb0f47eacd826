"""Runs that a real rule has moved, played by a made-up landscape in milliseconds."""

import tempfile
from math import floor
from pathlib import Path

from asking import Store
from builders import TERMS, Stage, new_validation, stage
from elo import score_of_elo

from spsa.algorithms.tuning import tuning
from spsa.config.space import load_space
from spsa.core.params import Space
from spsa.core.scoring import Tally
from spsa.history.replay import games_of
from spsa.lifecycle import Purpose
from spsa.master.session import RunSettings, tuning_of
from spsa.protocol import BatchResult, Claim


def space_from(params: str) -> Space:
    """The space that a params.toml with this text has."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "params.toml"
        path.write_text(params)
        return load_space(path)


def tuned(
    store: Store,
    space: Space,
    iterations: int,
    *,
    algorithm: str = "mixture",
    games: int = 8,
    seed: int = 42,
    name: str = "first",
    planned: int | None = None,
) -> Stage:
    """A run of this space that has applied so many iterations; plus wins where it is larger."""
    settings = RunSettings(
        rule={},
        planned_iterations=iterations,
        games_per_iteration=games,
        batch_size=games // 2,
        iterations_in_flight=1,
        max_attempts=3,
        delivery={},
        game_settings=TERMS,
    )
    rules = tuning(space, algorithm, {}, iterations=iterations, pairs=games // 2, seed=seed)
    theta, state = rules.start()
    staged = stage(
        store,
        name=name,
        seed=seed,
        algorithm=algorithm,
        settings=settings.to_json(),
        space=space.to_json(),
        max_iterations=planned or max(iterations, 1),
        theta=theta,
        state=state,
    )
    for _ in range(iterations):
        iterate(staged, games)
    return staged


def iterate(staged: Stage, games: int = 8, **over: object) -> None:
    """One more iteration, opened, played and applied by the run's own rule; `over`: its reports."""
    run = staged.now()
    rules = tuning_of(run)
    k = run.applied + 1
    asked = rules.propose(run.state, run.theta, k)
    staged.open(
        target_games=games,
        batch_games=games // 2,
        a_k=asked.a_k,
        c_k=asked.c_k,
        base_parameters=asked.base,
        plus_parameters=asked.played.plus,
        minus_parameters=asked.played.minus,
        perturbation_signs=asked.signs,
    )
    signs = sum(asked.signs.values()) / max(1, len(asked.signs))
    play(staged, f"{run.name}-k{k}", 60.0 * signs, **over)
    iteration = staged.store.open_iterations(run.id)[0]
    update = rules.update(run.state, run.theta, games_of(iteration))
    staged.store.apply(staged.master, iteration.id, run, update)


def play(staged: Stage, prefix: str, elo: float, **over: object) -> None:
    """Claim and report everything that is free, with plus so many Elo stronger."""
    count = 0
    while (claim := staged.claim(f"{prefix}-{count}")) is not None:
        usual = {"seconds": 2.0 * claim.pairs, "think_seconds": 1.5 * claim.pairs, "slot": 0}
        nodes = {"plus_nodes": 1000 * claim.pairs, "minus_nodes": 1000 * claim.pairs}
        tally = _tally(claim, score_of_elo(elo))
        staged.store.report(claim, BatchResult(tally=tally, **usual | nodes | over))  # type: ignore[arg-type]
        count += 1


def _tally(claim: Claim, score: float) -> Tally:
    """Pairs whose half points are spread around the score by the batch's seed."""
    total = Tally()
    for pair in range(claim.pairs):
        chance = ((claim.seed >> pair) % 1009) / 1009
        points = min(4, floor(4 * score + 2 * chance))
        total += Tally.of_pair(points // 2, points - points // 2)
    return total


def validated(staged: Stage, games: int = 8, **over: object) -> None:
    """A match of the tuned values against the start, played and complete."""
    run = staged.now()
    space = Space.from_json(run.space)
    values = {
        "opened_on": run.applied,
        "plus_parameters": space.rounded(space.steps(run.theta)),
        "minus_parameters": space.rounded(space.steps(run.start_theta)),
        "target_games": games,
    }
    number = staged.store.open_iteration(staged.master, new_validation(**values | over))
    play(staged, f"{run.name}-v{number}", 20.0)
    one = staged.store.iterations(run.id, purpose=Purpose.VALIDATE)[-1]
    staged.store.complete_validation(staged.master, one.id, 0.0)
