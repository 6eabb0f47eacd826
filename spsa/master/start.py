"""Prepares a run from config.toml and params.toml: a new one, or the one in the database.

A run has its own copy of all its settings. If the files have been edited since, the user is told
what differs; the run continues with its copy.
"""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace

from spsa.algorithms import method, settings_faults
from spsa.algorithms.tuning import Tuning, tuning
from spsa.builds.builder import declared
from spsa.config import (
    Config,
    check_against_engine,
    check_against_source,
    missing_files,
    read_sources,
    readable_params,
)
from spsa.core.params import Space, differences
from spsa.core.stored_json import as_written
from spsa.db.store import NewRun, Run, Store
from spsa.errors import (
    MOST_FAULTS,
    BuildFailed,
    Fault,
    IllegalTransition,
    InvalidInput,
    NothingToDo,
    UnusableState,
)
from spsa.lab.planning.games_needed import depth_limit
from spsa.lifecycle import RunStatus
from spsa.master.delivery import Delivery
from spsa.master.delivery_setup import (
    delivery_of,
    delivery_settings,
    shared_files,
    source_of,
)
from spsa.master.session import AUTO, RunSettings
from spsa.security.keys import SigningKey
from spsa.security.signing import Sign

FREE_DEPTH = 8
"""A greater fixed number of iterations in flight costs part of the gain in runs of any length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A run with all that a master needs; `notes` are for the user who started it."""

    run: Run
    tuning: Tuning
    settings: RunSettings
    delivery: Delivery
    notes: tuple[str, ...]


def checked_space(config: Config) -> Space:
    """The space of params.toml, after every check that does not need a build.

    Raises:
        InvalidInput: all faults of both files, and of the constants or options that they name.
    """
    space, wrong = readable_params(config)
    faults = (*missing_files(config), *wrong)
    faults += _engine_faults(config, space, known=bool(faults))
    if faults:
        raise InvalidInput(faults[:MOST_FAULTS])
    return space


def _engine_faults(config: Config, space: Space, *, known: bool) -> tuple[Fault, ...]:
    """Where the space does not fit the source, or the options of the engine.

    If faults are `known` already, a source or an engine that cannot be asked adds none.
    """
    try:
        return _asked_faults(config, space)
    except InvalidInput as error:
        return () if known else error.faults
    except BuildFailed:
        if known:
            return ()
        raise


def _asked_faults(config: Config, space: Space) -> tuple[Fault, ...]:
    if config.delivery.engine is not None:
        arguments = config.terms.engine_arguments
        declarations = declared(config.delivery.engine, arguments=arguments)
        return check_against_engine(space, declarations, config)
    constants = config.build.constants_file
    texts = read_sources(space, source_of(config), constants)
    return check_against_source(space, texts, constants, str(config.params_path))


def prepare(
    config: Config, store: Store, name: str | None = None, seed: int | None = None
) -> Prepared:
    """The run of this name, which is created if it does not exist.

    If several masters start at once, one creates the run and the others find it.

    Raises:
        InvalidInput: the files are wrong.
        NothingToDo: the run of this name has ended.
        SourceChanged: the source of the run is no longer available.
    """
    space = checked_space(config)
    wanted = name or config.name
    known = store.find_run(wanted)
    # a run whose first engines could not be built is replaced, because the files are right now
    if known is None or (_is_unmoved(known) and store.is_unopened(known.id)):
        try:
            return _new(config, store, space, wanted, seed, known)
        except IllegalTransition:
            known = store.find_run(wanted)
            if known is None:
                raise
    if has_ended(known):
        raise NothingToDo(
            f"run {known.name} is {known.status}: see `spsa-master status`; "
            "start another with --run NAME"
        )
    return reopened(config, known, space)


def _is_unmoved(run: Run) -> bool:
    """Whether the files say all that there is of a run: no result, no change, no fork."""
    return run.applied == 0 and run.changes == 0 and run.start_state is None


def signer(config: Config) -> Sign | None:
    """Signs orders with the key that [trust] names; None if it names none.

    Raises:
        InvalidInput: the key's file is missing, is readable by others, or holds no such key.
    """
    return None if config.signing_key is None else SigningKey.read(config.signing_key).sign


def has_ended(run: Run) -> bool:
    """Whether a run tunes no more."""
    return run.status in (RunStatus.FINISHED, RunStatus.STOPPED)


def reopened(config: Config, run: Run, file_space: Space | None = None) -> Prepared:
    """An existing run, with its own settings; `file_space` is compared with its space."""
    space = Space.from_json(run.space)
    with as_written("a column `theta` or `start_theta`"):
        for theta in (run.theta, run.start_theta):
            space.steps(theta)
    settings = RunSettings.from_json(run.settings, run.terms)
    edited = () if file_space is None else _edited(config, run, settings, space, file_space)
    delivery, more = delivery_of(config, space, settings.delivery, run.source_sha256)
    return Prepared(
        run=run,
        tuning=tuning_of(run),
        settings=settings,
        delivery=delivery,
        notes=(*edited, *more),
    )


def _edited(
    config: Config, run: Run, settings: RunSettings, space: Space, file_space: Space
) -> tuple[str, ...]:
    """How the files differ from the settings of the run."""
    notes = [f"params.toml: {text}" for text in differences(space, file_space)]
    notes += [f"config.toml: {text}" for text in _config_differences(config, run, settings)]
    if notes:
        notes.append("the run keeps its own settings; `spsa-master run --run NAME` starts another")
    return tuple(notes)


def _config_differences(config: Config, run: Run, settings: RunSettings) -> Iterator[str]:
    if config.algorithm != run.algorithm:
        yield f"algorithm is {config.algorithm}, the run has {run.algorithm}"
    yield from settings.differences(settings_from(config, settings.planned_iterations))
    changeable = {
        "max_iterations": "`spsa-master extend` changes it",
        "priority": "`spsa-master prioritize` changes it",
        "share": "`spsa-master prioritize` changes it",
    }
    for name, remedy in changeable.items():
        here, there = getattr(run, name), getattr(config, name)
        if here != there:
            yield f"{name} is {there:.12g}, the run has {here:.12g}; {remedy}"


def tuning_of(run: Run) -> Tuning:
    """The space and the rule of a run, from its own settings.

    Raises:
        UnusableState: this program has no such rule, or the rule has no such settings.
    """
    settings, now = RunSettings.from_json(run.settings, run.terms), Space.from_json(run.space)
    if faults := settings_faults(run.algorithm, settings.rule):
        found = "; ".join(f"{key}: {found}, {remedy}" for key, found, remedy in faults)
        raise UnusableState(f"another version of this program started run {run.name}: {found}")
    first = tuning(
        now if run.start_space is None else Space.from_json(run.start_space),
        run.algorithm,
        settings.rule,
        iterations=settings.planned_iterations,
        pairs=settings.games_per_iteration // 2,
        seed=run.seed,
    )
    if run.start_state is not None:
        theta = {p.name: run.start_theta[p.name] for p in first.space.parameters}
        first = replace(first, begun=(theta, run.start_state))
    return first if run.start_space is None else first.on(now)


def _new(
    config: Config, store: Store, space: Space, name: str, seed: int | None, old: Run | None
) -> Prepared:
    settings = settings_from(config)
    delivery, notes = delivery_of(config, space, settings.delivery, None)
    rules = tuning_from(config, space, seed)
    run = store.create_run(
        run_from(config, rules, delivery, name), replacing=None if old is None else old.id
    )
    return Prepared(
        run=run,
        tuning=rules,
        settings=settings,
        delivery=delivery,
        notes=(*notes, *_depth_warning(settings, method(config.algorithm).iterations_per_depth)),
    )


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


def run_from(config: Config, rules: Tuning, delivery: Delivery, name: str) -> NewRun:
    """The row of a new run."""
    theta, state = rules.start()
    return NewRun(
        name=name,
        seed=rules.seed,
        algorithm=config.algorithm,
        settings=settings_from(config).to_json(),
        space=rules.space.to_json(),
        terms=config.terms,
        source_sha256=delivery.source_sha256,
        max_iterations=config.max_iterations,
        theta=theta,
        state=state,
        known=None if rules.begun is None else state,
        priority=config.priority,
        share=config.share,
        files=shared_files(config),
    )


def _depth_warning(settings: RunSettings, iterations_per_depth: int) -> Iterator[str]:
    """Iterations in flight cost nothing in long runs, but most of the gain in very short ones."""
    depth = settings.iterations_in_flight
    free = depth_limit(settings.planned_iterations, iterations_per_depth, FREE_DEPTH)
    if depth != AUTO and depth > free:
        yield (
            f"iterations_in_flight = {depth} lets a run of "
            f"{settings.planned_iterations} iterations move on old results; {free} gains more"
        )


def settings_from(config: Config, planned_iterations: int | None = None) -> RunSettings:
    """The settings of a new run; `planned_iterations` are those of the files unless given."""
    return RunSettings(
        rule=dict(config.settings),
        planned_iterations=planned_iterations or config.max_iterations,
        games_per_iteration=config.games.per_iteration,
        batch_size=config.games.batch_size,
        iterations_in_flight=config.games.iterations_in_flight,
        max_attempts=config.games.max_attempts,
        delivery=delivery_settings(config),
        terms=config.terms,
        stop_when=config.stop_when,
    )
