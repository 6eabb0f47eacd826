"""Creates the delivery of a run: a pinned source and a builder, or one binary with UCI options.

The settings that decide what is built are stored with the run; folders and timeouts are those of
this machine.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spsa.builds.artifacts import ArtifactStore, verified_bytes
from spsa.builds.builder import Builder, FileMaker, adopt
from spsa.builds.commands import Commands
from spsa.builds.git import SourceCommit, checkout, commit_at, commit_of, split
from spsa.builds.recipe import Recipe
from spsa.builds.requirements import provided
from spsa.builds.smoke import declared_options
from spsa.builds.tree import Pinned, pin
from spsa.config.document import refused
from spsa.config.settings import Config
from spsa.config.source import option_places, read_sources
from spsa.core.params import Space
from spsa.db import Store
from spsa.db.tables import Run
from spsa.files import WORK
from spsa.master.delivery import BinaryDelivery, BuildDelivery, Delivery, EngineSource
from spsa.master.session import RunSettings
from spsa.master.worker_builds import AT_ONCE, WorkerDelivery
from spsa.openings import BUILTIN_BOOKS
from spsa.uci import system

MAX_BUILDS = 8
_CORES_A_BUILD = 4  # two compilers, each of them with more than one thread most of the time

_DECIDING = {"constants_file", "command", "package", "binary", "flags", "target", "levels", "where"}


def delivery_settings(config: Config) -> dict[str, Any]:
    """The settings that decide the binaries, besides the source and the values."""
    delivery = {"kind": config.delivery.kind, "require": list(config.fleet.require)}
    if config.delivery.kind != "build":
        own = {"command": list(config.delivery.command)} if config.delivery.command else {}
        return {**delivery, "engine": str(config.delivery.engine), **own}
    return {**delivery, **config.build.model_dump(mode="json", include=_DECIDING)}


def source_of(config: Config, began: SourceCommit | None = None) -> Path:
    """The folder of the engine's source; of a run the one that it `began` with, if git has it.

    InvalidInput if config.toml names none, or the checkout has no such folder.
    """
    path, named = config.build.source_path, config.engine.source
    address, ref = split(named) if named is not None else (None, "")
    if began is not None and began.ref:
        address, ref = address or began.place, began.commit
    if address is None:
        if path is None:
            remedy = "name the folder that holds the engine's Cargo.toml"
            raise refused(config.path, ("build", "source_path"), "source_path is missing", remedy)
        return path
    folder, commit = checkout(address, ref)
    inside = folder_in_source(config)
    if not (folder / inside).is_dir():
        found, remedy = f"{commit} has no folder {inside}", "write its path from the top of that"
        raise refused(config.path, ("build", "source_path"), found, remedy)
    return folder / inside


def source_texts(config: Config, space: Space, folder: Path | None = None) -> dict[str, str]:
    """The texts of the files in `folder` that hold parameters, see `read_sources`."""
    folder, constants = folder or source_of(config), config.build.constants_file
    return read_sources(space, folder, constants, config.run.params)


def folder_in_source(config: Config) -> Path:
    """What source_path names in the repository of [engine] source."""
    home = config.path.resolve().parent
    return (config.build.source_path or home).relative_to(home)


def source_commit(config: Config) -> SourceCommit | None:
    """The commit that config.toml names, or that the folder of the source has."""
    if config.engine.source is not None:
        return commit_at(*split(config.engine.source))
    return None if config.delivery.kind == "uci" else commit_of(source_of(config))


def delivery_of(
    config: Config, space: Space, run: Run | None = None, store: Store | None = None
) -> tuple[Delivery, tuple[str, ...]]:
    """A run's delivery, and notes for the user about its source.

    Settings and source of `run` are kept, and its engine has been tried; without one, the delivery
    is that of config.toml. With `store`, workers build the engines if that is wanted. InvalidInput:
    this machine cannot build them, or may not. Raises TuningError: the source of the run is gone.
    """
    build, game_settings = config.build, config.game_settings
    own = None if run is None else RunSettings.of(run)
    wanted = delivery_settings(config) if own is None else own.delivery
    common = {**common_settings(config), "require": tuple(wanted["require"])}
    common["usual"] = run.builds.usual if run else None
    if wanted["kind"] != "build":
        place, arguments = Path(wanted["engine"]), game_settings.engine_arguments
        untried = game_settings.played if run is None else ()
        sent = game_settings.common_options if run is None and wanted["kind"] == "uci" else None
        engine = adopt(place, build.engines_path, arguments, untried, sent)
        if wanted["kind"] == "uci":
            return BinaryDelivery(space=space, engine=engine, **common), ()
    by_workers = store is not None and wanted.get("where") == "worker"
    if not by_workers:
        wanted = _possible_here(config, wanted)
    began = None if own is None else own.source
    pinned, notes = _pinned(config, wanted, run.source_sha256 if run else None, began)
    common["at_once"] = build.at_once or (AT_ONCE if by_workers else usual_builds())
    if wanted["kind"] == "command":
        maker = FileMaker(
            pinned=pinned,
            command=wanted["command"],
            declared=declared_options(engine.path, arguments),
            work=work_folder(config),
            store=ArtifactStore(build.engines_path.resolve()),
            timeout=build.timeout,
            commands=Commands(os.environ),
        )
        sha256 = pinned.sha256
        return BinaryDelivery(engine=engine, maker=maker, source_sha256=sha256, **common), notes
    source = EngineSource(space, pinned, read_sources(space, pinned.path, wanted["constants_file"]))
    return _built(config, source, wanted, store, work_folder(config), common), notes


def given_source(config: Config, source: Path, store: Store, side: str) -> Delivery:
    """The engine in another folder as [build] makes it, in work copies of its own."""
    wanted: Mapping[str, Any] = config.build.model_dump(mode="json", include=_DECIDING)
    if wanted["where"] != "worker":
        wanted = _possible_here(config, wanted)
    given = EngineSource(Space(()), _copy(config, source, wanted), {})
    work, name = work_folder(config) / "matches" / side, f"{side} engine"
    return _built(config, given, wanted, store, work, common_settings(config), name)


def common_settings(config: Config) -> dict[str, Any]:
    """What all deliveries of this config.toml have."""
    return {"keep_bytes": config.build.distribute == "database", "require": config.fleet.require}


def _built(
    config: Config,
    source: EngineSource,
    wanted: Mapping[str, Any],
    store: Store | None,
    work: Path,
    common: Mapping[str, Any],
    name: str = "engine",
) -> Delivery:
    """Engines of a source: ordered from workers in `store`, if that is wanted, else built here."""
    common = {**common, "source_sha256": source.pinned.sha256}
    if store is not None and wanted["where"] == "worker":
        recipes = {level: _recipe(config, wanted, level) for level in ("", *wanted["levels"])}
        return WorkerDelivery(store=store, source=source, recipes=recipes, **common)
    builder = Builder(
        source.pinned,
        _recipe(config, wanted, *wanted["levels"]),
        work,
        config.build.engines_path,
        os.environ,
        common.get("at_once", 1),
        option_places(config),
    )
    return BuildDelivery(source=source, builder=builder, name=name, **common)


@contextmanager
def temporary_delivery(config: Config, space: Space) -> Iterator[Delivery]:
    """A delivery whose engines are in a folder of their own, which is removed at the end."""
    work = work_folder(config)
    work.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="engines-", dir=work) as folder:
        build = config.build.model_copy(update={"engines_path": Path(folder)})
        own = config.model_copy(update={"build": build})
        yield delivery_of(own, space)[0]


def shared_files(config: Config) -> dict[str, bytes]:
    """Make the book and the side files of a new run available where its binaries will be.

    Those for the database are returned by their hashes; others are copied to `engines_path`. Raises
    TuningError: a file is gone, or has changed since config.toml was read.
    """
    game_settings = config.game_settings
    wanted = {file.sha256: Path(file.path) for file in game_settings.engine_files.values()}
    if game_settings.book.name not in BUILTIN_BOOKS:
        wanted[game_settings.book.sha256] = Path(game_settings.book.name)
    files = {sha256: verified_bytes(path.resolve(), sha256) for sha256, path in wanted.items()}
    if config.build.distribute == "database":
        return files
    for sha256, data in files.items():
        ArtifactStore(config.build.engines_path).put(data, sha256)
    return {}


def _pinned(
    config: Config, wanted: Mapping[str, Any], source_sha256: str | None, began: SourceCommit | None
) -> tuple[Pinned, tuple[str, ...]]:
    """The run's own copy of the source, and notes of its commit, or of changes in the folder."""
    source = source_of(config, began)
    pinned = _copy(config, source, wanted, source_sha256)
    if config.engine.source is not None or (began is not None and began.ref):
        return pinned, tuple(_commits(config, began))
    drift = () if source_sha256 is None else pinned.drift()
    if not drift:
        return pinned, ()
    return pinned, (
        f"{source} has changed since the run began ({', '.join(drift[:5])}); "
        "the run goes on with the source it was started with",
    )


def _copy(
    config: Config, source: Path, wanted: Mapping[str, Any], sha256: str | None = None
) -> Pinned:
    """A copy of this source, without files of the tuner that may lie in its folder."""
    cargo, ours = not wanted["command"], [config.path, config.run.params, config.build.engines_path]
    if wanted.get("binary") and not cargo:
        ours.append(source / wanted["binary"])  # which an earlier build may have left there
    return pin(source, work_folder(config), ours, cargo=cargo, sha256=sha256)


def _commits(config: Config, began: SourceCommit | None) -> Iterator[str]:
    """The commit of a run, and where the files or a ref that has moved name another."""
    now = source_commit(config)
    yield f"the source is {began or now}"
    if began is not None and now is not None and now.commit != began.commit:
        yield f"config.toml names {now} now; the run goes on with {began}"


def _possible_here(config: Config, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
    """The delivery settings for this machine, which tests what it builds.

    Of several levels it takes the highest that it has.
    """
    here, levels = provided(), wanted.get("levels", ())
    possible = [level for level in levels if level in here]
    if levels and not possible:
        found = f"this machine, which tests the binaries, has only {', '.join(here)}"
        remedy = f"leave out {', '.join(levels)}, or build on a machine that has them"
        raise refused(config.path, ("build", "levels"), found, remedy)
    return {**wanted, "levels": possible[-1:]}


def work_folder(config: Config) -> Path:
    """The folder for what is made of this config.toml."""
    return config.path.resolve().parent / WORK


def _recipe(config: Config, wanted: Mapping[str, Any], level: str = "") -> Recipe:
    """How engines are built for a level of x86-64; "" is no level."""
    return Recipe(
        command=tuple(word.replace("{level}", level) for word in wanted["command"]),
        level=level or None,
        package=wanted["package"],
        binary=wanted["binary"],
        flags=tuple(wanted["flags"]),
        target=wanted["target"],
        timeout=config.build.timeout,
        bench=True if len(wanted["levels"]) > 1 else config.build.bench,
        time_controls=config.game_settings.played,
        options=config.game_settings.engine_options,
        arguments=config.game_settings.engine_arguments,
    )


def usual_builds() -> int:
    """How many iterations this machine builds at a time by default."""
    return min(max(1, len(system.logical_cores()) // _CORES_A_BUILD), MAX_BUILDS)
