"""Creates runs: from the files alone, from what an earlier run learned, or as a fork of one."""

import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from spsa.algorithms import rule_entry
from spsa.algorithms.tuning import Tuning, tuning
from spsa.config import Config, EarlierRun
from spsa.core.params import Parameter, Space
from spsa.db.entries import Values
from spsa.db.run_tables import Run
from spsa.db.store import Store
from spsa.errors import Fault, InvalidInput, NothingToDo, UnusableState
from spsa.history.purge import results_of
from spsa.history.replay import ReplayedState, replay
from spsa.lab.planning.games_needed import in_flight_limit
from spsa.master.delivery import Delivery
from spsa.master.delivery_setup import delivery_of, shared_files
from spsa.master.session import AUTO, RunSettings, settings_from, tuning_of
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


def create(
    config: Config, store: Store, space: Space, name: str, seed: int | None, old: Run | None
) -> Prepared:
    """Create the run that the files describe, instead of `old`, which has opened no iteration.

    Raises:
        InvalidInput: what `[spsa] prior` names is no run to start from.
        IllegalTransition: a run of this name exists.
    """
    settings = settings_from(config)
    delivery, notes = delivery_of(config, space, settings.delivery, None, store)
    rules, detail = tuning_from(config, space, seed), None
    if config.prior is not None:
        parent = _parent(config.prior, config, store, name)
        rules = _from_prior(config.prior, parent, config, space, rules.seed)
        detail = {"of": parent.name, "at": parent.applied, "doubt": config.prior.doubt}
        notes = (*notes, _carried(config.prior, parent, rules))
    run = store.create_run(
        run_from(config, rules, delivery, name),
        files=shared_files(config),
        replacing=None if old is None else old.id,
        prior=detail,
    )
    warnings = _in_flight_warning(
        settings, rule_entry(config.algorithm).iterations_per_one_in_flight
    )
    return Prepared(
        run=run,
        tuning=rules,
        settings=settings,
        delivery=delivery,
        notes=(*notes, *warnings),
    )


def _parent(prior: EarlierRun, config: Config, store: Store, name: str) -> Run:
    """The run that the files name as the prior of run `name`."""
    parent = store.find_run(prior.run)
    if prior.run == name:
        raise _refused(prior, config, "is this run itself", "name another, or set [run] name")
    if parent is None:
        known = ", ".join(run.name for run in store.runs()[:_MAX_NAMED]) or "none"
        raise _refused(prior, config, "is not in this database", f"its runs: {known}")
    if parent.applied == 0:
        remedy = "name a run with results, or start without a prior"
        raise _refused(prior, config, "has no finished iteration", remedy)
    if parent.algorithm != config.algorithm:
        found = f'has algorithm = "{parent.algorithm}", and this run "{config.algorithm}"'
        raise _refused(prior, config, found, "`spsa-master fork` starts from its theta alone")
    return parent


def _refused(prior: EarlierRun, config: Config, found: str, remedy: str) -> InvalidInput:
    fault = Fault(
        file=str(config.path),
        line=prior.line,
        name="spsa.prior",
        found=f"run {prior.run} {found}",
        remedy=remedy,
    )
    return InvalidInput([fault])


def _from_prior(prior: EarlierRun, parent: Run, config: Config, space: Space, seed: int) -> Tuning:
    """The tuning that begins with what the parent knows now, widened."""
    rules = tuning_from(config, _at_theta(space, _tuned(parent)), seed)
    try:
        return rules.forked(tuning_of(parent), parent.state, prior.doubt)
    except UnusableState as error:
        remedy = "start without a prior"
        raise _refused(prior, config, f"cannot be used: {error}", remedy) from error


def _carried(prior: EarlierRun, parent: Run, rules: Tuning) -> str:
    """One sentence: what a run has from its prior, and what it has not."""
    theta = _tuned(parent)
    now = {p.name: p.value for p in rules.space.active}
    both = plural(len(now.keys() & theta.keys()), "parameter")
    learned = (
        f"theta, and knowledge of {both}" if rules.rule.witness is None else f"theta of {both}"
    )
    parts = [
        f"starts from what run {parent.name} learned in {plural(parent.applied, 'iteration')}, "
        f"with doubt {prior.doubt:g}: {learned}",
        _listed("without knowledge, from params.toml", now.keys() - theta.keys()),
        _listed("not tuned any more", theta.keys() - now.keys()),
        _listed("moved into new bounds", (n for n in now if theta.get(n, now[n]) != now[n])),
    ]
    return "; ".join(part for part in parts if part)


def _tuned(run: Run) -> dict[str, float]:
    """Theta without the parameters that are frozen."""
    return {p.name: run.theta[p.name] for p in Space.from_json(run.space).active}


def _listed(what: str, names: Iterable[str]) -> str:
    """`what: a, b and 3 more`; empty without names."""
    ordered = sorted(names)
    more = f" and {len(ordered) - _MAX_NAMED} more" if len(ordered) > _MAX_NAMED else ""
    return f"{what}: {', '.join(ordered[:_MAX_NAMED])}{more}" if ordered else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """A run to start as a copy of `parent` after its result `k`; None: after the last one.

    `doubt` is how much wider than the parent's the deviations of the rule are, at least 1.
    """

    parent: Run
    k: int | None
    name: str
    doubt: float
    seed: int | None = None


def fork_run(
    config: Config, store: Store, space: Space, wanted: Fork, actor: str
) -> tuple[Run, tuple[str, ...]]:
    """Create the run that the files describe, from the parent's theta; and notes for the user.

    Parameters that the parent did not have start from the values of params.toml. What the rule knew
    goes along if both runs have the same rule; else only theta does.

    Raises:
        NothingToDo: the parent has fewer results.
        IllegalTransition: a run of this name exists.
    """
    config, parent = replace(config, prior=None), wanted.parent
    k = parent.applied if wanted.k is None else wanted.k
    moment = moment_at(store, parent, k)
    theta = moment.theta
    start = _at_theta(space, theta)
    rules = tuning_from(config, start, wanted.seed)
    same_rule = config.algorithm == parent.algorithm
    if same_rule:
        rules = rules.forked(tuning_of(parent), moment.state, wanted.doubt)
    else:
        rules = replace(rules, begun=rules.start())
    delivery, notes = delivery_of(config, start, settings_from(config).delivery, None, store)
    detail = {"of": parent.name, "at": k, "doubt": wanted.doubt, "knows": same_rule}
    new = run_from(config, rules, delivery, wanted.name)
    run = store.fork_run(new, actor, detail, shared_files(config))
    return run, (*_notes(parent, config, start, theta), *notes)


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


def _notes(parent: Run, config: Config, space: Space, theta: Values) -> tuple[str, ...]:
    """How the fork differs from its parent."""
    notes = []
    if config.algorithm != parent.algorithm:
        notes.append(
            f"the rule of {parent.name} is {parent.algorithm}, not {config.algorithm}: the fork "
            "has its theta and nothing else"
        )
    names = {p.name for p in space.parameters}
    notes += [f"{name} is new; it starts from params.toml" for name in sorted(names - theta.keys())]
    notes += [f"{name} is not tuned any more" for name in sorted(theta.keys() - names)]
    notes += [
        f"{p.name} was {theta[p.name]:.12g}, its bounds now begin or end at {p.value:.12g}"
        for p in space.parameters
        if p.active and theta.get(p.name, p.value) != p.value
    ]
    return tuple(notes)


def tuning_from(config: Config, space: Space, seed: int | None) -> Tuning:
    """The tuning of a new run; without a seed here and in the files, one is drawn."""
    return tuning(
        space,
        config.algorithm,
        config.settings,
        iterations=config.max_iterations,
        pairs=config.pairs,
        seed=next(s for s in (seed, config.seed, secrets.randbits(31)) if s is not None),
    )


def run_from(config: Config, rules: Tuning, delivery: Delivery, name: str) -> Run:
    """The row of a new run."""
    theta, state = rules.start()
    return Run(
        name=name,
        seed=rules.seed,
        algorithm=config.algorithm,
        settings=settings_from(config).to_json(),
        space=rules.space.to_json(),
        game_settings=config.game_settings,
        source_sha256=delivery.source_sha256,
        max_iterations=config.max_iterations,
        theta=theta,
        state=state,
        start_state=None if rules.begun is None else state,
        priority=config.priority,
        share=config.share,
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
