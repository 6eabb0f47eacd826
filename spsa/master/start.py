"""Prepares a run from config.toml and params.toml: a new one, or the one in the database.

A new run starts from the files, or where another run was. A run has its own copy of all its
settings. If the files have been edited since, the user is told what differs; the run continues with
its copy.
"""

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from shlex import quote
from typing import Any

from spsa.algorithms.tuning import Tuning
from spsa.builds.smoke import NAME_AN_ENGINE, declared_options
from spsa.config import missing_files, readable_params, unwritten_games
from spsa.config.document import read_document
from spsa.config.settings import Config
from spsa.config.source import check_against_engine, check_against_source, other_values
from spsa.config.space import write_keys
from spsa.core import Values
from spsa.core.json_values import to_json
from spsa.core.parameter import Number
from spsa.core.params import Space
from spsa.db import Store
from spsa.db.tables import Run
from spsa.errors import MAX_FAULTS, BuildFailed, Fault, IllegalTransition, InvalidInput, NothingToDo
from spsa.history.replay import theta_at
from spsa.master.delivery import Delivery
from spsa.master.delivery_setup import (
    delivery_of,
    delivery_settings,
    shared_files,
    source_commit,
    source_texts,
)
from spsa.master.session import RunSettings, differences, tuning_of
from spsa.openings.book import load
from spsa.text import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A run with its delivery; `notes` are for the user who started it."""

    run: Run
    delivery: Delivery
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a run starts: where `run` was after its result `k`.

    `same_engine`: what its rule knew holds for the new run. `learned_steps`: the steps that its
    games suggest take the place of those of params.toml.
    """

    run: Run
    k: int
    same_engine: bool
    learned_steps: bool


def settings_from(config: Config) -> RunSettings:
    """The settings of a new run."""
    games = config.games
    return RunSettings(
        rule=dict(config.spsa.settings),
        planned_iterations=config.spsa.max_iterations,
        delivery=delivery_settings(config),
        game_settings=config.game_settings,
        games_per_iteration=games.games_per_iteration,
        batch_size=games.batch_size,
        iterations_in_flight=games.iterations_in_flight,
        max_attempts=games.max_attempts,
    )


def checked_space(config: Config, *, is_played: bool = False) -> Space:
    """The space of params.toml, after every check that does not need a build.

    The book, which may be large, is read last, and only if it `is_played` or something is wrong.
    InvalidInput has all faults of both files, and of the constants or options that they name.
    """
    space, found = readable_params(config.run.params)
    faults = (*missing_files(config), *unwritten_games(config), *found)
    try:
        faults += _engine_faults(config, space)
    except InvalidInput as error:  # a source that cannot be read
        faults += error.faults
    except BuildFailed as error:  # an engine that cannot be asked, or a repository
        if not faults and config.delivery.engine is None:
            raise
        if not faults:
            wrong = (("delivery", "engine"), " ".join(str(error).split()), NAME_AN_ENGINE)
            faults = read_document(config.path).faults([wrong])
    if (faults or is_played) and (book := config.game_settings.book).sha256:  # else it is missing
        try:
            load(book)
        except InvalidInput as error:
            faults += error.faults
    if faults:
        raise InvalidInput(faults[:MAX_FAULTS])
    return space


def _engine_faults(config: Config, space: Space) -> tuple[Fault, ...]:
    """Where the space does not fit the source, or the options of the engine."""
    folder = config.source_folder
    if config.delivery.kind == "command" or (folder is not None and not folder.is_dir()):
        return ()  # a folder that is missing is told before
    if config.delivery.engine is not None:
        arguments = config.game_settings.engine_arguments
        declarations = declared_options(config.delivery.engine, arguments=arguments)
        return check_against_engine(space, declarations, config)
    return check_against_source(space, source_texts(config, space), str(config.run.params))


def prepare(config: Config, store: Store, space: Space, origin: Origin | None = None) -> Prepared:
    """The run of config.toml, which is created if it does not exist, at `origin` if that is given.

    If several masters start at once, one creates the run and the others find it. `space` is the
    checked one of the files. Raises InvalidInput: a file has changed since. NothingToDo: the run of
    this name has ended, or that of `origin` has fewer results. TuningError: the run's source is
    gone.
    """
    known = store.find_run(config.run.name)
    # one whose first engines could not be built is replaced, if files and origin say all of it
    if known is None or (
        store.is_unopened(known.id) and (origin or RunSettings.of(known).origin is None)
    ):
        try:
            return _created(config, store, space, known, origin)
        except IllegalTransition:
            known = store.find_run(config.run.name)
            if known is None:
                raise
    if known.has_ended:
        raise NothingToDo(
            f"run {known.name} is {known.status}, and params.toml stays as it is: `spsa-master "
            f"params export --format toml --run {quote(known.name)}` prints that of its result; "
            f"`spsa-master set --run {quote(known.name)} --iterations N` lengthens a finished run, "
            "--run NAME starts another"
        )
    again = reopened(config, store, known, space)
    if origin is None:
        return again
    note = f"run {known.name} has begun and goes on; --from is for a new run"
    return replace(again, notes=(note, *again.notes))


def _created(
    config: Config, store: Store, space: Space, old: Run | None, origin: Origin | None
) -> Prepared:
    """Create the run that the files describe, instead of `old`, which has opened no iteration."""
    settings = settings_from(config)
    if origin is None:
        rules, begins = new_tuning(config, space), _elsewhere(config, space)
    else:
        rules, begins = _begun(config, store, space, origin)
        settings = replace(settings, origin={"run": origin.run.name, "at": origin.k})
    delivery, more = delivery_of(config, rules.space, store=store)
    settings = replace(settings, source=source_commit(config))
    store.keep_files(shared_files(config))
    row = new_row(config, settings, rules, delivery.source_sha256)
    run = store.create_run(row, replacing=None if old is None else old.id)
    pairs = zip(space.parameters, rules.space.parameters, strict=True)
    steps = {p.name: p.step for was, p in pairs if p.step != was.step}
    write_keys(config.run.params, "step", steps)
    if origin and origin.same_engine and row.source_sha256 != origin.run.source_sha256:
        found = f"the engine's source is not that of run {origin.run.name}"
        remedy = "if it plays otherwise, start the run without --same-engine"
        begins = (*begins, f"{found}: {remedy}")
    notes = (*begins, *more, *_rounded(config), *_out_of_order(rules.space))
    return Prepared(run=run, delivery=delivery, notes=notes)


def _rounded(config: Config) -> Iterator[str]:
    """A note about the games of an iteration that the files do not say."""
    written = "games_per_iteration" in config.games.model_fields_set
    if config.game_settings.time_controls and not written:
        games = config.games.games_per_iteration
        yield f"an iteration has {games} games, which the shares of [[time_control]] divide"


def _out_of_order(space: Space) -> Iterator[str]:
    """A note about each constraint that the start breaks, so that other values are played."""
    start = {p.name: p.value for p in space.parameters}
    played = space.playable(start)
    for one in (one for one in space.constraints if not one.holds(start)):
        both = " and ".join(f"{n} {start[n]:g} as {played[n]:g}" for n in (one.less, one.greater))
        yield f"params.toml: {one} does not hold: the start is played with {both}"


def _elsewhere(config: Config, space: Space) -> tuple[str, ...]:
    """A note about values that are not those of the source."""
    if config.delivery.engine is not None:
        return ()
    others = other_values(space, source_texts(config, space))
    told = [f"{name} at {own:g} ({there:g})" for name, (there, own) in others.items()]
    named = ", ".join([*told[:4], *["..."] * (len(told) > 4)])
    return (f"starts elsewhere than the source, whose values follow: {named}",) if told else ()


def new_row(config: Config, settings: RunSettings, rules: Tuning, source: str | None = None) -> Run:
    """The row of a new run, whose source has this hash."""
    theta, state = rules.start()
    return Run(
        name=config.run.name,
        seed=rules.observed.rule.problem.seed,
        algorithm=config.spsa.algorithm,
        settings=settings.to_json(),
        space=rules.space.to_json(),
        game_settings=config.game_settings,
        source_sha256=source,
        max_iterations=config.spsa.max_iterations,
        theta=theta,
        state=state,
        start_state=rules.start_state,
    )


def new_tuning(config: Config, space: Space) -> Tuning:
    """The tuning of a new run; a seed is drawn if config.toml has none."""
    seed = secrets.randbits(31) if config.run.seed is None else config.run.seed
    return settings_from(config).tuning(space, config.spsa.algorithm, seed)


def _begun(
    config: Config, store: Store, space: Space, origin: Origin
) -> tuple[Tuning, tuple[str, ...]]:
    """The tuning of a run that starts where another one was, and a note for the user.

    What the other run did not tune starts from params.toml. What its rule knew goes along if the
    engine is the same, and the rule. After a change of the engine that knowledge does harm.
    """
    parent, before = origin.run, tuning_of(origin.run)
    theta, state, better = parent.theta, parent.state, parent.estimates.better_step
    if origin.k != parent.applied:
        then = theta_at(store, parent, before, origin.k)
        theta, state, better = then.theta, then.state, then.estimates.better_step
    theta = {p.name: theta[p.name] for p in before.space.active}
    steps = {p.name: n for p, n in space.far_steps(better).items() if origin.learned_steps}
    rules = new_tuning(config, _at_theta(space, theta, steps))
    knows = origin.same_engine and rules.observed.rule.name == before.observed.rule.name
    if knows:
        rules = rules.forked(before, state)
    both = sum(p.name in theta for p in rules.space.active)
    begins = (
        f"starts where run {parent.name} was after {plural(origin.k, 'result')}, "
        f"with{'' if knows else 'out'} what its rule knew: {plural(both, 'parameter')}; all others "
        "start from params.toml"
    )
    learned = ", ".join(f"{name} {step:g}" for name, step in steps.items())
    told = f"params.toml has the steps that its games suggest: {learned}"
    return rules, tuple(filter(None, (begins, told if steps else space.step_advice(better))))


def _at_theta(space: Space, theta: Values, steps: Mapping[str, Number]) -> Space:
    """The space with these steps, and the parent's values inside the bounds that they have now.

    Parameters that are frozen now keep their own.
    """
    values = {
        p.name: min(max(theta.get(p.name, p.value), p.minimum), p.maximum) for p in space.active
    }
    moved = (
        replace(p, value=values.get(p.name, p.value), step=steps.get(p.name, p.step))
        for p in space.parameters
    )
    return Space(tuple(moved), space.constraints)


def reopened(config: Config, store: Store, run: Run, file_space: Space | None = None) -> Prepared:
    """An existing run, with its own settings; `file_space` is compared with its space."""
    space = tuning_of(run).space
    for theta in (run.theta, run.start_theta):
        space.steps(theta)
    edited = () if file_space is None else _edited(config, run, space, file_space)
    delivery, more = delivery_of(config, space, run, store)
    return Prepared(run=run, delivery=delivery, notes=(*edited, *more))


def _edited(config: Config, run: Run, space: Space, file_space: Space) -> Iterator[str]:
    """How the files differ from the run."""
    files = new_row(config, settings_from(config), new_tuning(config, file_space))
    found = [f"params.toml: {text}" for text in differences(space.fixed(), file_space.fixed())]
    found += [f"config.toml: {text}" for text in differences(_told(run), _told(files))]
    yield from found
    if found:
        yield (
            "the run keeps its own settings; `spsa-master run --run NAME` starts another, "
            f"`spsa-master set --run {quote(run.name)} --iterations` changes max_iterations"
        )


def _told(run: Run) -> dict[str, Any]:
    """What config.toml says of a run."""
    controls = " and ".join(map(str, run.game_settings.time_controls)) or None
    row = {"algorithm": run.algorithm, "max_iterations": run.max_iterations}
    told = {**run.settings, **to_json(run.game_settings), **row, "time_controls": controls}
    return {name: told[name] for name in told.keys() - {"planned_iterations", "origin", "source"}}
