"""Creates the delivery of a run: a pinned source and a builder, or one binary with UCI options.

A parameter that is added to a run has to fit its engine, and to start at the value that this has.

The settings that decide what is built are stored with the run; folders and timeouts are those of
this machine.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from spsa.builds.artifacts import FILES, MAX_BYTES, publish, verify
from spsa.builds.builder import (
    Builder,
    BuildSettings,
    FirstSearch,
    Pinned,
    SmokeTimeouts,
    adopt,
    pin,
    resume,
)
from spsa.builds.requirements import lacking, provided
from spsa.config import (
    Config,
    DeliveryKind,
    Distribution,
    read_sources,
)
from spsa.core.params import Space
from spsa.db import Store
from spsa.errors import Fault, InvalidInput
from spsa.files import content
from spsa.master.delivery import BuildDelivery, Delivery, UciDelivery
from spsa.master.worker_builds import WorkerDelivery
from spsa.openings import builtin_book

MAX_BUILDS = 8
_CORES_A_BUILD = 4  # two compilers, each of them with more than one thread most of the time

WORK = ".tuning"
"""The folder beside config.toml that holds the pinned source and the private work trees."""


def delivery_settings(config: Config) -> dict[str, Any]:
    """The settings that decide the binaries, besides the source and the values."""
    require = {"require": list(config.require)}
    if config.delivery.kind is DeliveryKind.UCI:
        return {
            "kind": DeliveryKind.UCI.value,
            "engine": str(config.delivery.engine),
            **require,
        }
    build = config.build
    return {
        **require,
        "kind": DeliveryKind.BUILD.value,
        "constants_file": build.constants_file,
        "command": list(build.command),
        "package": build.package,
        "binary": build.binary,
        "flags": list(build.flags),
        "target": build.target,
        "levels": list(build.levels),
        **({"where": build.where} if build.where == "worker" else {}),
    }


def source_of(config: Config) -> Path:
    """The folder of the engine's source; InvalidInput if config.toml names none."""
    if config.build.source_path is None:
        remedy = "name the folder that holds the engine's Cargo.toml"
        raise _refused(config, "build.source_path", "is missing", remedy)
    return config.build.source_path


def delivery_of(
    config: Config,
    space: Space,
    wanted: Mapping[str, Any],
    source_sha256: str | None,
    store: Store | None = None,
) -> tuple[Delivery, tuple[str, ...]]:
    """A run's delivery, and notes for the user about its source.

    Args:
        wanted: the run's own `delivery_settings`.
        source_sha256: the hash of its source; None for a new run.
        store: where workers build the engines, if the run wants that; without, this machine does.

    Raises:
        InvalidInput: this machine cannot build them, or may not.
        SourceChanged: the source of the run is no longer available.
    """
    keep_bytes = config.build.distribute is Distribution.DATABASE
    if wanted["kind"] == DeliveryKind.UCI:
        engine = adopt(
            Path(wanted["engine"]),
            config.build.engines_path,
            arguments=config.game_settings.engine_arguments,
            first_search=FirstSearch.of(config.game_settings.time_control),
        )
        return UciDelivery(space, engine, keep_bytes, tuple(wanted.get("require", ()))), ()
    if wanted.get("where") == "worker" and store is not None:
        pinned, notes = pinned_source(config, wanted, source_sha256)
        return _by_workers(store, config, space, wanted, pinned), notes
    if wanted.get("where") == "worker":
        wanted = _here(config, wanted)
    _refuse_untestable(config, wanted.get("levels", ()))
    pinned, notes = pinned_source(config, wanted, source_sha256)
    builders = _builders(config, wanted, pinned)
    lowest = next(iter(builders))
    delivery = BuildDelivery(
        space=space,
        builder=builders.pop(lowest),
        higher=dict(reversed(builders.items())),
        require=tuple(wanted.get("require", ())),
        source_sha256=pinned.sha256,
        sources=read_sources(space, pinned.crate, wanted["constants_file"]),
        constants_file=wanted["constants_file"],
        keep_bytes=keep_bytes,
    )
    return delivery, notes


def _by_workers(
    store: Store, config: Config, space: Space, wanted: Mapping[str, Any], pinned: Pinned
) -> WorkerDelivery:
    return WorkerDelivery(
        store=store,
        space=space,
        pinned=pinned,
        constants_file=wanted["constants_file"],
        settings=partial(_build_settings, config, wanted),
        levels=wanted.get("levels", ()),
        require=wanted.get("require", ()),
        at_once=config.build.at_once,
    )


@contextmanager
def temporary_delivery(config: Config, space: Space) -> Iterator[Delivery]:
    """A delivery whose engines are in a folder of their own, which is removed at the end."""
    work = _work(config)
    work.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="engines-", dir=work) as folder:
        own = replace(config, build=replace(config.build, engines_path=Path(folder)))
        yield delivery_of(own, space, delivery_settings(own), None)[0]


def shared_files(config: Config) -> dict[str, bytes]:
    """Make the book and the side files of a new run available where its binaries will be.

    Those for the database are returned by their hashes; others are copied to `engines_path`.

    Raises:
        TuningError: a file is gone, or has changed since config.toml was read.
    """
    game_settings = config.game_settings
    wanted = {file.sha256: Path(file.path) for file in game_settings.engine_files.values()}
    if builtin_book(game_settings.book.name) is None:
        wanted[game_settings.book.sha256] = Path(game_settings.book.name)
    contents = {}
    for sha256, path in wanted.items():
        verify(path.resolve(), sha256)
        if config.build.distribute is Distribution.DATABASE:
            contents[sha256] = content(path, MAX_BYTES)
        else:
            publish(path.resolve(), config.build.engines_path / FILES, sha256)
    return contents


def pinned_source(
    config: Config, wanted: Mapping[str, Any], source_sha256: str | None
) -> tuple[Pinned, tuple[str, ...]]:
    """The run's own copy of the source, and a note if the folder has changed since."""
    source, work = source_of(config), _work(config)
    # files of the tuner that may lie in the folder of the engine
    ours = [config.path, config.params_path, config.build.engines_path]
    cargo = not wanted.get("command")
    if not cargo:
        ours.append(source / wanted["binary"])  # which an earlier build may have left there
    if source_sha256 is None:
        return pin(source, work, ours, cargo=cargo), ()
    pinned = resume(source, work, source_sha256, ours, cargo=cargo)
    drift = pinned.drift()
    if not drift:
        return pinned, ()
    return pinned, (
        f"{source} has changed since the run began ({', '.join(drift[:5])}); "
        "the run goes on with the source it was started with",
    )


def _here(config: Config, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
    """The delivery settings for this machine alone, of a run whose engines workers build.

    Of the levels it builds the highest that it has.
    """
    program = (*wanted["command"], "cargo")[0]
    who = "this command builds on the machine where you call it, which has"
    if shutil.which(program) is None and "/" not in program:
        remedy = "install it here, or call the command on a machine that builds"
        raise _refused(config, "build.where", f"{who} no `{program}`", remedy)
    levels = [level for level in wanted["levels"] if not lacking([level], provided())]
    if wanted["levels"] and not levels:
        found = f"{who} none of the levels {', '.join(wanted['levels'])}"
        raise _refused(config, "build.levels", found, "call the command on a machine that has one")
    return {**wanted, "levels": levels[-1:]}


def _refuse_untestable(config: Config, levels: Sequence[str]) -> None:
    """Refuse levels that this machine does not have: it tests what it builds."""
    here = provided()
    if missing := lacking(levels, here):
        found = f"this machine, which tests the binaries, has only {', '.join(here)}"
        remedy = f"leave out {', '.join(missing)}, or run the master where they are there"
        raise _refused(config, "build.levels", found, remedy)


def _refused(config: Config, name: str, found: str, remedy: str) -> InvalidInput:
    return InvalidInput(
        [Fault(file=str(config.path), line=None, name=name, found=found, remedy=remedy)]
    )


def _builders(config: Config, wanted: Mapping[str, Any], pinned: Pinned) -> dict[str, Builder]:
    """A builder for each level, the lowest first; one of no level where none is named."""
    engines, work = config.build.engines_path, _work(config)
    return {
        level: Builder(
            pinned, _build_settings(config, wanted, level), work / level, engines, os.environ
        )
        for level in wanted.get("levels") or [""]
    }


def _work(config: Config) -> Path:
    return config.path.resolve().parent / WORK


def _build_settings(config: Config, wanted: Mapping[str, Any], level: str) -> BuildSettings:
    return BuildSettings(
        source_path=source_of(config),
        command=tuple(word.replace("{level}", level) for word in wanted.get("command", ())),
        level=level or None,
        package=wanted.get("package"),
        binary=wanted["binary"],
        flags=tuple(wanted["flags"]),
        target=wanted["target"],
        timeout=config.build.timeout,
        bench=True if len(wanted.get("levels", ())) > 1 else config.build.bench,
        smoke=SmokeTimeouts(bench=config.build.bench_timeout),
        at_once=config.build.at_once or usual_builds(),
        first_search=FirstSearch.of(config.game_settings.time_control),
        options=config.game_settings.engine_options,
    )


def usual_builds() -> int:
    """How many iterations this machine builds at a time by default."""
    return min(max(1, (os.cpu_count() or 1) // _CORES_A_BUILD), MAX_BUILDS)
