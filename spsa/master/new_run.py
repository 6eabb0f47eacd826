"""Creates runs: from the files alone, or where another run was."""

import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from spsa.algorithms import rule_entry
from spsa.algorithms.tuning import Tuning, tuning
from spsa.config import Config
from spsa.core.params import Parameter, Space
from spsa.db import Store
from spsa.db.tables import Run, Values
from spsa.errors import NothingToDo
from spsa.history.purge import results_of
from spsa.history.replay import ReplayedState, replay
from spsa.master.delivery import Delivery
from spsa.master.delivery_setup import delivery_of, shared_files
from spsa.master.session import AUTO, RunSettings, settings_from, tuning_of
from spsa.planning.games_needed import in_flight_limit
from spsa.text import plural

_MAX_NAMED = 6

FREE_IN_FLIGHT = 8
"""A greater fixed number of iterations in flight costs part of the gain in runs of any length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A run with all that a master needs; `notes` are for the user who started it."""

    run: Run
    tuning: Tuning
    settings: RunSettings
    delivery: Delivery
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a run starts: where `run` was after its result `k`.

    `doubt` is how much wider the deviations of what its rule knew become, at least 1.
    """

    run: Run
    k: int
    doubt: float

    def to_json(self) -> dict[str, Any]:
        return {"run": self.run.name, "at": self.k, "doubt": self.doubt}


def create(
    config: Config,
    store: Store,
    space: Space,
    name: str,
    seed: int | None,
    old: Run | None,
    origin: Origin | None = None,
) -> Prepared:
    """Create the run that the files describe, instead of `old`, which has opened no iteration.

    Raises:
        NothingToDo: the run of `origin` has fewer results.
        IllegalTransition: a run of this name exists.
    """
    settings = settings_from(config)
    notes: tuple[str, ...] = ()
    if origin is None:
        rules = tuning_from(config, space, seed)
    else:
        rules, notes = _begun(config, store, space, seed, origin)
        settings = replace(settings, origin=origin.to_json())
    delivery, more = delivery_of(config, rules.space, settings.delivery, None, store)
    run = store.create_run(
        run_from(config, settings, rules, delivery, name),
        files=shared_files(config),
        replacing=None if old is None else old.id,
        origin=settings.origin,
    )
    warnings = _in_flight_warning(
        settings, rule_entry(config.spsa.algorithm).iterations_per_one_in_flight
    )
    return Prepared(
        run=run,
        tuning=rules,
        settings=settings,
        delivery=delivery,
        notes=(*notes, *more, *warnings),
    )


def _begun(
    config: Config, store: Store, space: Space, seed: int | None, origin: Origin
) -> tuple[Tuning, tuple[str, ...]]:
    """The tuning of a run that starts where another one was, and a note for the user.

    What the other run did not tune starts from params.toml. What its rule knew goes along if both
    runs have the same rule; else theta alone does.
    """
    parent, moment = origin.run, moment_at(store, origin.run, origin.k)
    theta = {p.name: moment.theta[p.name] for p in Space.from_json(parent.space).active}
    rules = tuning_from(config, _at_theta(space, theta), seed)
    knows = config.spsa.algorithm == parent.algorithm
    if knows:
        rules = rules.forked(tuning_of(parent), moment.state, origin.doubt)
    else:
        rules = replace(rules, begun=rules.start())
    return rules, (_note(origin, rules, theta, knows=knows and rules.rule.witness is None),)


def _note(origin: Origin, rules: Tuning, theta: Values, *, knows: bool) -> str:
    """One sentence: what a run has from its origin, and what it has not."""
    now = {p.name: p.value for p in rules.space.active}
    both = plural(len(now.keys() & theta.keys()), "parameter")
    learned = f"theta, and knowledge of {both}" if knows else f"theta of {both}"
    parts = [
        f"starts where run {origin.run.name} was after {plural(origin.k, 'result')}, "
        f"with doubt {origin.doubt:g}: {learned}",
        _listed("from params.toml", now.keys() - theta.keys()),
        _listed("not tuned any more", theta.keys() - now.keys()),
        _listed("moved into new bounds", (n for n in now if theta.get(n, now[n]) != now[n])),
    ]
    return "; ".join(part for part in parts if part)


def _listed(what: str, names: Iterable[str]) -> str:
    """`what: a, b and 3 more`; empty without names."""
    ordered = sorted(names)
    more = f" and {len(ordered) - _MAX_NAMED} more" if len(ordered) > _MAX_NAMED else ""
    return f"{what}: {', '.join(ordered[:_MAX_NAMED])}{more}" if ordered else ""


def moment_at(store: Store, run: Run, k: int) -> ReplayedState:
    """Theta and the rule's state after the result k, by the games that count now.

    Raises:
        NothingToDo: the run has fewer results.
    """
    if k > run.applied:
        raise NothingToDo(
            f"run {run.name} has {plural(run.applied, 'result')}, so no theta of k={k}"
        )
    if k == run.applied:
        return ReplayedState(k, run.theta, run.state)
    *_, last = replay(tuning_of(run), results_of(store, run, k))
    return last


def _at_theta(space: Space, theta: Values) -> Space:
    """The space whose parameters have the parent's values, inside the bounds that they have now.

    Parameters that are frozen now keep their own.
    """
    parameters = tuple(_at(p, theta) if p.active else p for p in space.parameters)
    return Space(parameters, space.constraints)


def _at(parameter: Parameter, theta: Values) -> Parameter:
    value = theta.get(parameter.name, parameter.value)
    return replace(parameter, value=min(max(value, parameter.minimum), parameter.maximum))


def tuning_from(config: Config, space: Space, seed: int | None) -> Tuning:
    """The tuning of a new run; without a seed here and in the files, one is drawn."""
    return tuning(
        space,
        config.spsa.algorithm,
        config.spsa.settings,
        iterations=config.spsa.max_iterations,
        pairs=config.games.pairs,
        seed=next(s for s in (seed, config.run.seed, secrets.randbits(31)) if s is not None),
    )


def run_from(
    config: Config, settings: RunSettings, rules: Tuning, delivery: Delivery, name: str
) -> Run:
    """The row of a new run."""
    theta, state = rules.start()
    return Run(
        name=name,
        seed=rules.seed,
        algorithm=config.spsa.algorithm,
        settings=settings.to_json(),
        space=rules.space.to_json(),
        game_settings=config.game_settings,
        source_sha256=delivery.source_sha256,
        max_iterations=config.spsa.max_iterations,
        theta=theta,
        state=state,
        start_state=None if rules.begun is None else state,
        priority=config.run.priority,
        share=config.run.share,
    )


def _in_flight_warning(settings: RunSettings, iterations_per_one_in_flight: int) -> Iterator[str]:
    """Iterations in flight cost nothing in long runs, but most of the gain in very short ones."""
    in_flight = settings.iterations_in_flight
    free = in_flight_limit(
        settings.planned_iterations, iterations_per_one_in_flight, FREE_IN_FLIGHT
    )
    if in_flight != AUTO and in_flight > free:
        yield (
            f"iterations_in_flight = {in_flight} lets a run of "
            f"{settings.planned_iterations} iterations move on old results; {free} gains more"
        )
