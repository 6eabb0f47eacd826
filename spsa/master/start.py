"""Prepares a run from config.toml and params.toml: a new one, or the one in the database.

A run has its own copy of all its settings. If the files have been edited since, the user is told
what differs; the run continues with its copy.
"""

from collections.abc import Iterator
from dataclasses import replace

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
from spsa.db import Store
from spsa.db.tables import Run
from spsa.errors import (
    MAX_FAULTS,
    BuildFailed,
    Fault,
    IllegalTransition,
    InvalidInput,
    NothingToDo,
)
from spsa.lifecycle import RunStatus
from spsa.master.delivery_setup import delivery_of, source_of
from spsa.master.new_run import Origin, Prepared, create
from spsa.master.session import RunSettings, settings_from, tuning_of
from spsa.openings.book import load


def checked_space(config: Config) -> Space:
    """The space of params.toml, after every check that does not need a build.

    Raises:
        InvalidInput: all faults of both files, and of the constants or options that they name.
    """
    space, wrong = readable_params(config)
    faults = (*missing_files(config), *wrong)
    faults += _engine_faults(config, space, known=bool(faults))
    if faults:
        raise InvalidInput((*faults, *_book_faults(config))[:MAX_FAULTS])
    return space


def _book_faults(config: Config) -> tuple[Fault, ...]:
    """What is wrong in the book, which is read last, because it may be large."""
    book = config.game_settings.book
    try:
        if book.sha256:  # else it is missing
            load(book)
    except InvalidInput as error:
        return error.faults
    return ()


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
        arguments = config.game_settings.engine_arguments
        declarations = declared(config.delivery.engine, arguments=arguments)
        return check_against_engine(space, declarations, config)
    constants = config.build.constants_file
    texts = read_sources(space, source_of(config), constants)
    return check_against_source(space, texts, constants, str(config.run.params))


def prepare(
    config: Config,
    store: Store,
    name: str | None = None,
    seed: int | None = None,
    origin: Origin | None = None,
) -> Prepared:
    """The run of this name, which is created if it does not exist, at `origin` if that is given.

    If several masters start at once, one creates the run and the others find it.

    Raises:
        InvalidInput: the files are wrong.
        NothingToDo: the run of this name has ended.
        SourceChanged: the source of the run is no longer available.
    """
    space = checked_space(config)
    wanted = name or config.run.name
    known = store.find_run(wanted)
    # a run whose first engines could not be built is replaced, because the files are right now
    if known is None or (_is_replaceable(known, origin) and store.is_unopened(known.id)):
        try:
            return create(config, store, space, wanted, seed, known, origin)
        except IllegalTransition:
            known = store.find_run(wanted)
            if known is None:
                raise
    if has_ended(known):
        raise NothingToDo(
            f"run {known.name} is {known.status}: see `spsa-master status`; "
            "`spsa-master set --iterations N` lengthens a finished run, --run NAME starts another"
        )
    again = reopened(config, store, known, space)
    if origin is None:
        return again
    note = f"run {known.name} has begun and goes on; --from is for a new run"
    return replace(again, notes=(note, *again.notes))


def _is_replaceable(run: Run, origin: Origin | None) -> bool:
    """Whether a run has no result, and the files and the origin say all that there is of it."""
    return run.applied == 0 and (run.start_state is None or origin is not None)


def has_ended(run: Run) -> bool:
    """Whether a run tunes no more."""
    return run.status in (RunStatus.FINISHED, RunStatus.STOPPED)


def reopened(config: Config, store: Store, run: Run, file_space: Space | None = None) -> Prepared:
    """An existing run, with its own settings; `file_space` is compared with its space."""
    space = Space.from_json(run.space)
    with as_written("a column `theta` or `start_theta`"):
        for theta in (run.theta, run.start_theta):
            space.steps(theta)
    settings = RunSettings.from_json(run.settings, run.game_settings)
    edited = () if file_space is None else _edited(config, run, settings, space, file_space)
    delivery, more = delivery_of(config, space, settings.delivery, run.source_sha256, store)
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
    if config.spsa.algorithm != run.algorithm:
        yield f"algorithm is {config.spsa.algorithm}, the run has {run.algorithm}"
    yield from settings.differences(settings_from(config, settings.planned_iterations))
    changeable = {
        "max_iterations": config.spsa.max_iterations,
        "priority": config.run.priority,
        "share": config.run.share,
    }
    for name, there in changeable.items():
        if (here := getattr(run, name)) != there:
            yield (f"{name} is {there:.12g}, the run has {here:.12g}; `spsa-master set` changes it")
