"""From a person's files to a run that can be moved: a new one, or the one that was left.

A run keeps its own copy of everything that decides it. Files that were edited since are compared
with that copy and what differs is said; the run goes on as it was started.
"""

import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spsa.algorithms import method, settings_faults
from spsa.build import Builder, BuildSettings, Patience, Pinned, adopt, declared, pin, resume
from spsa.config import (
    Config,
    DeliveryKind,
    Distribution,
    check_against_engine,
    check_against_source,
    check_files,
    load_space,
    read_sources,
)
from spsa.errors import Fault, InvalidInput, NothingToDo, UnusableState
from spsa.lifecycle import RunStatus
from spsa.master.delivery import BuildDelivery, Delivery, UciDelivery
from spsa.master.settings import AUTO, RunSettings
from spsa.params import Space, differences
from spsa.planning.supply import bearable_depth
from spsa.store import NewRun, Run, Store
from spsa.tuning import Tuning, tuning

FREE_DEPTH = 8
"""More iterations in flight from the start cost part of the gain in runs of any length."""

MOST_BUILDS = 8
_CORES_A_BUILD = 4  # two compilers, each of them with more than one thread most of the time

WORK = ".tuning"
"""The folder beside config.toml that holds the pinned source and the private work trees."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A run with all that is needed to move it; `notes` are for the person who started it."""

    run: Run
    tuning: Tuning
    settings: RunSettings
    delivery: Delivery
    notes: tuple[str, ...]


def checked_space(config: Config) -> Space:
    """The space of params.toml, with everything that could go wrong later looked at now.

    Raises:
        InvalidInput: all faults of both files and of what they name in the source.
    """
    check_files(config)
    space = load_space(config.params_path)
    if faults := _refusals(config, space):
        raise InvalidInput(faults)
    return space


def _refusals(config: Config, space: Space) -> tuple[Fault, ...]:
    """What the source, or the engine that takes options, will not have."""
    if config.delivery.engine is not None:
        return check_against_engine(space, declared(config.delivery.engine), config)
    constants = config.build.constants_file
    texts = read_sources(space, source_of(config), constants)
    return check_against_source(space, texts, constants, str(config.params_path))


def prepare(
    config: Config, store: Store, name: str | None = None, seed: int | None = None
) -> Prepared:
    """The run of this name as it stands, or a new one.

    Raises:
        InvalidInput: the files are wrong.
        NothingToDo: the run of this name has ended.
        SourceChanged: the run's source is not to be had any more.
    """
    space = checked_space(config)
    known = store.find_run(name or config.name)
    # of a run whose first engines could not be built nothing is to be kept: the files are right now
    if known is None or (known.applied == 0 and store.never_began(known.id)):
        return _new(config, store, space, name or config.name, seed, known)
    if known.status in (RunStatus.FINISHED, RunStatus.STOPPED):
        raise NothingToDo(
            f"run {known.name} is {known.status}: see `spsa-master status`; "
            "start another with --run NAME"
        )
    return reopened(config, store, known, space)


def reopened(config: Config, store: Store, run: Run, file_space: Space | None = None) -> Prepared:
    """A run that exists, by its own copy of everything; `file_space` is compared with it."""
    space = Space.from_json(run.space)
    settings = RunSettings.from_json(run.settings, run.terms)
    notes = []
    if file_space is not None:
        notes = [f"params.toml: {text}" for text in differences(space, file_space)]
        if config.algorithm != run.algorithm:
            notes.append(
                f"config.toml: algorithm is {config.algorithm}, the run has {run.algorithm}"
            )
        notes += [
            f"config.toml: {t}"
            for t in settings.differences(_settings(config, settings.planned_iterations))
        ]
        if config.max_iterations != run.max_iterations:
            notes.append(
                f"config.toml: max_iterations is {config.max_iterations}, the run has "
                f"{run.max_iterations}; `spsa-master extend` changes it"
            )
        notes += _service_differences(config, run)
        if notes:
            notes.append(
                "the run goes on by its own copy; `spsa-master run --run NAME` starts another"
            )
    delivery, more = _delivery(config, space, settings, run.source_sha256)
    return Prepared(
        run=run,
        tuning=tuning_of(run),
        settings=settings,
        delivery=delivery,
        notes=(*notes, *more),
    )


def _service_differences(config: Config, run: Run) -> Iterator[str]:
    for name in ("priority", "share"):
        here, there = getattr(run, name), getattr(config, name)
        if here != there:
            yield (
                f"config.toml: {name} is {there:g}, the run has {here:g}; "
                "`spsa-master prioritize` changes it"
            )


def tuning_of(run: Run) -> Tuning:
    """The space and rule of a run, by its own copy of both.

    Raises:
        UnusableState: this program has no such rule, or it takes no such settings.
    """
    settings = RunSettings.from_json(run.settings, run.terms)
    if wrong := settings_faults(run.algorithm, settings.rule):
        found = "; ".join(f"{key}: {found}, {remedy}" for key, found, remedy in wrong)
        raise UnusableState(f"run {run.name} is of another version of this program: {found}")
    return tuning(
        Space.from_json(run.space),
        run.algorithm,
        settings.rule,
        iterations=settings.planned_iterations,
        pairs=settings.games_per_iteration // 2,
        seed=run.seed,
    )


def _new(
    config: Config, store: Store, space: Space, name: str, seed: int | None, old: Run | None
) -> Prepared:
    settings = _settings(config, config.max_iterations)
    delivery, notes = _delivery(config, space, settings, None)
    chosen = next(s for s in (seed, config.seed, secrets.randbits(31)) if s is not None)
    rules = tuning(
        space,
        config.algorithm,
        settings.rule,
        iterations=settings.planned_iterations,
        pairs=config.pairs,
        seed=chosen,
    )
    theta, state = rules.start()
    run = store.create_run(
        NewRun(
            name=name,
            seed=chosen,
            algorithm=config.algorithm,
            settings=settings.to_json(),
            space=space.to_json(),
            terms=config.terms,
            source_sha256=delivery.source_sha256,
            max_iterations=config.max_iterations,
            theta=theta,
            state=state,
            priority=config.priority,
            share=config.share,
        ),
        replacing=None if old is None else old.id,
    )
    return Prepared(
        run=run,
        tuning=rules,
        settings=settings,
        delivery=delivery,
        notes=(*notes, *_costly(settings, method(config.algorithm).iterations_per_depth)),
    )


def _costly(settings: RunSettings, iterations_per_depth: int) -> Iterator[str]:
    """Depth costs nothing in long runs, and most of the gain in very short ones (simulated)."""
    depth = settings.iterations_in_flight
    free = bearable_depth(settings.planned_iterations, iterations_per_depth, FREE_DEPTH)
    if depth != AUTO and depth > free:
        yield (
            f"iterations_in_flight = {depth} lets a run of "
            f"{settings.planned_iterations} iterations move on old results; {free} recovers more"
        )


def _settings(config: Config, planned_iterations: int) -> RunSettings:
    return RunSettings(
        rule=dict(config.settings),
        planned_iterations=planned_iterations,
        games_per_iteration=config.games.per_iteration,
        batch_size=config.games.batch_size,
        iterations_in_flight=config.games.iterations_in_flight,
        max_attempts=config.games.max_attempts,
        delivery=_delivery_settings(config),
        terms=config.terms,
    )


def _delivery_settings(config: Config) -> dict[str, Any]:
    """What decides the binaries besides the source and the values."""
    if config.delivery.kind is DeliveryKind.UCI:
        return {"kind": DeliveryKind.UCI.value, "engine": str(config.delivery.engine)}
    build = config.build
    return {
        "kind": DeliveryKind.BUILD.value,
        "constants_file": build.constants_file,
        "binary": build.binary,
        "flags": list(build.flags),
        "target": build.target,
    }


def source_of(config: Config) -> Path:
    """The engine's checkout; InvalidInput where config.toml names none."""
    if config.build.source_path is None:
        raise InvalidInput(
            [
                Fault(
                    file=str(config.path),
                    line=None,
                    name="build.source_path",
                    found="is missing",
                    remedy="name the folder that holds the engine's Cargo.toml",
                )
            ]
        )
    return config.build.source_path


def _delivery(
    config: Config, space: Space, settings: RunSettings, source_sha256: str | None
) -> tuple[Delivery, tuple[str, ...]]:
    keep_bytes = config.build.distribute is Distribution.DATABASE
    wanted = settings.delivery
    if wanted["kind"] == DeliveryKind.UCI:
        engine = adopt(Path(wanted["engine"]), config.build.engines_path)
        return UciDelivery(space, engine, keep_bytes), ()
    pinned, notes = _pinned(config, source_sha256)
    builder = Builder(
        pinned,
        _build_settings(config, wanted),
        _work(config),
        config.build.engines_path,
        os.environ,
    )
    delivery = BuildDelivery(
        space=space,
        builder=builder,
        source_sha256=pinned.sha256,
        sources=read_sources(space, pinned.crate, wanted["constants_file"]),
        constants_file=wanted["constants_file"],
        keep_bytes=keep_bytes,
    )
    return delivery, notes


def _pinned(config: Config, source_sha256: str | None) -> tuple[Pinned, tuple[str, ...]]:
    """The run's own copy of the source; what the checkout has become since is only told."""
    source, work = source_of(config), _work(config)
    # of a folder that holds both, these are the tuner's and not the engine's
    ours = [config.path, config.params_path, config.build.engines_path]
    if source_sha256 is None:
        return pin(source, work, ours), ()
    pinned = resume(source, work, source_sha256, ours)
    drift = pinned.drift()
    if not drift:
        return pinned, ()
    return pinned, (
        f"{source} has changed since the run began ({', '.join(drift[:5])}); "
        "the run goes on with the source it was started with",
    )


def _work(config: Config) -> Path:
    return config.path.resolve().parent / WORK


def _build_settings(config: Config, wanted: Mapping[str, Any]) -> BuildSettings:
    return BuildSettings(
        source_path=source_of(config),
        binary=wanted["binary"],
        flags=tuple(wanted["flags"]),
        target=wanted["target"],
        timeout=config.build.timeout,
        bench=config.build.bench,
        patience=Patience(bench=config.build.bench_timeout),
        at_once=config.build.at_once or usual_builds(),
    )


def usual_builds() -> int:
    """How many iterations' engines this machine builds at a time."""
    return min(max(1, (os.cpu_count() or 1) // _CORES_A_BUILD), MOST_BUILDS)
