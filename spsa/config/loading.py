"""Reads config.toml and the environment into one frozen Config."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from spsa.builds.artifacts import sha256_of
from spsa.config.document import Faults, Key, read_document, shown
from spsa.config.section import read_table
from spsa.config.settings import Config, Sections
from spsa.config.source import check_against_source, read_sources
from spsa.config.space import readable_space
from spsa.core.game_settings import Book, EngineFile, GameSettings
from spsa.core.params import Space
from spsa.core.uci_options import CHESS960
from spsa.db.url import parsed, with_absolute_path
from spsa.errors import MAX_FAULTS, Fault, InvalidInput, TuningError
from spsa.files import MAX_BOOK, content
from spsa.openings import NAME_A_BOOK, builtin_book


def load_config(path: Path, environ: Mapping[str, str]) -> Config:
    """Read config.toml; DATABASE_URL in `environ` overrides its [database] url.

    Paths in it are relative to the file. Raises InvalidInput with all faults, also those of
    params.toml and the source. `missing_files` checks that the named files exist, because some
    commands need none (a server needs no source).
    """
    try:
        document = read_document(path)
    except InvalidInput as error:
        more = _readable(path.parent / "params.toml")[1]
        raise InvalidInput((*error.faults, *more)[:MAX_FAULTS]) from None
    data, origins = _overridden(document.data, environ.get("DATABASE_URL", "").strip())
    faults = Faults(document, origins)
    config = _config(document.path, data, faults)
    if config is None or faults.found:
        further = () if config is None else _further(config, faults.found)
        raise InvalidInput((*faults.found, *further)[:MAX_FAULTS])
    return config


def _overridden(
    data: Mapping[str, object], url: str
) -> tuple[Mapping[str, object], Mapping[Key, str]]:
    """The tables with DATABASE_URL in the place of [database] url, and where that comes from.

    A relative SQLite path in it is relative to the current folder, as users of a shell expect.
    """
    database = data.get("database", {})
    if not url or not isinstance(database, dict):
        return data, {}
    with suppress(InvalidInput):  # reading the table tells
        parsed(url)
        url = with_absolute_path(url, Path.cwd())
    key: Key = ("database", "url")
    overridden = {**data, "database": {**database, "url": url}}
    return overridden, {key: "DATABASE_URL or --database-url"}


def _config(path: Path, data: Mapping[str, object], faults: Faults) -> Config | None:
    tables = read_table(Sections, data, faults, folder=path.resolve().parent)
    if tables is None:
        return None
    files = {
        option: EngineFile(path=str(file), sha256=_hash_of_file(option, file, faults))
        for option, file in tables.engine.files.items()
    }
    game_settings = GameSettings(
        time_control=tables.time_control.limits,
        adjudication=tables.adjudication.rules,
        book=_book(tables, faults),
        scale=tables.games.scale,
        engine_options=({CHESS960: "true"} if tables.games.chess960 else {})
        | tables.engine.options,
        engine_arguments=tables.engine.arguments,
        engine_files=files,
    )
    return Config(path=path, game_settings=game_settings, **dict(tables))


def _book(tables: Sections, faults: Faults) -> Book:
    """The hash of a missing book is empty: a command that plays nothing does not need it."""
    games = tables.games
    digest = ""
    try:
        digest = sha256(content(builtin_book(games.book) or Path(games.book), MAX_BOOK)).hexdigest()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        pass  # `missing_files` tells
    except OSError as error:
        found = f"book = {shown(games.book)} cannot be read: {error.strerror}"
        faults.note(("games", "book"), found, NAME_A_BOOK)
    return Book(name=games.book, sha256=digest, plies=games.plies, chess960=games.chess960)


def _hash_of_file(option: str, path: Path, faults: Faults) -> str:
    """Empty if the file is missing, as for a book."""
    if not path.exists():
        return ""
    try:
        return sha256_of(path)
    except TuningError as error:
        found = f"{option}: {error}"
        faults.note(("engine", "files", option), found, "name a file that can be read")
        return ""


def readable_params(config: Config) -> tuple[Space, tuple[Fault, ...]]:
    """params.toml as far as it can be read, and its faults; `missing_files` tells if it is missing.

    With the faults of all files in one message a user corrects them in one round.
    """
    return _readable(config.run.params)


def _readable(params: Path) -> tuple[Space, tuple[Fault, ...]]:
    if not _is_there(params):
        return Space(()), ()
    try:
        return readable_space(read_document(params))
    except InvalidInput as error:
        return Space(()), error.faults


def _further(config: Config, own: Collection[Fault]) -> tuple[Fault, ...]:
    """What is wrong with the files that a faulty config.toml names, as far as it can be read.

    A section with a fault of its own may name something else than its author means.
    """
    params = config.run.params
    if params.is_dir():  # which replaces a path that is refused
        return ()
    space, wrong = readable_params(config)
    if not _is_there(params):  # a machine that tunes nothing, such as that of a server
        return wrong
    doubtful = {fault.name.partition(".")[0] for fault in own}
    missing = [f for f in missing_files(config) if f.name.partition(".")[0] not in doubtful]
    return (*missing, *wrong, *(() if "build" in doubtful else _of_source(config, space)))


def _of_source(config: Config, space: Space) -> tuple[Fault, ...]:
    """Where the space does not fit the source, if that can be read."""
    source, constants = config.build.source_path, config.build.constants_file
    if config.delivery.kind == "uci" or source is None:
        return ()
    try:
        texts = read_sources(space, source, constants)
    except InvalidInput:
        return ()  # `missing_files` names what is not there
    return check_against_source(space, texts, constants, str(config.run.params))


def missing_files(config: Config) -> list[Fault]:
    """A fault for every file or folder that a run needs and that is missing."""
    return [
        Fault(
            file=str(config.path), line=None, name=name, found=f"{path} is not there", remedy=remedy
        )
        for name, path, remedy in _needed(config)
        if path is not None and not _is_there(path)
    ]


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except OSError:  # also for a name that is too long
        return False
    return True


def _needed(config: Config) -> list[tuple[str, Path | None, str]]:
    source, book = config.build.source_path, config.games.book
    needed: list[tuple[str, Path | None, str]] = [
        ("run.params", config.run.params, "write it, or let `spsa-master init` do it"),
        ("games.book", None if builtin_book(book) else Path(book), NAME_A_BOOK),
        ("delivery.engine", config.delivery.engine, "build the engine first"),
        *(
            ("engine.files", path, f"name the file that {option} takes")
            for option, path in config.engine.files.items()
        ),
    ]
    if config.delivery.kind == "build" and source is not None:
        constants = source / config.build.constants_file
        manifest = source if config.build.command else source / "Cargo.toml"
        remedy = "name the folder that holds the engine's Cargo.toml, or give a command"
        needed += [
            ("build.source_path", manifest, remedy),
            ("build.constants_file", constants, "name the file, relative to source_path"),
        ]
    return needed
