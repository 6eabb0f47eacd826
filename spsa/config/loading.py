"""Reads config.toml and the environment into one frozen Config."""

from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from spsa.builds.artifacts import sha256_of
from spsa.config.document import Faults, Key, read_document, shown
from spsa.config.section import read_table
from spsa.config.settings import Config, Sections
from spsa.config.space import readable_space
from spsa.core.game_settings import Book, EngineFile, GameSettings
from spsa.core.params import Space
from spsa.core.uci_options import CHESS960
from spsa.db.url import parsed, with_absolute_path
from spsa.errors import Fault, InvalidInput, TuningError
from spsa.files import MAX_BOOK, content
from spsa.openings import NAME_A_BOOK, builtin_book


def load_config(path: Path, environ: Mapping[str, str]) -> Config:
    """Read config.toml; DATABASE_URL in `environ` overrides its [database] url.

    Paths in it are relative to the file. Raises InvalidInput with all faults. `missing_files`
    checks that the named files exist, because some commands need none (a server needs no source).
    """
    document = read_document(path)
    data, origins = _overridden(document.data, environ.get("DATABASE_URL", "").strip())
    faults = Faults(document, origins)
    config = _config(document.path, data, faults)
    if config is None or faults.found:
        raise InvalidInput(faults.found)
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
    overridden = {**data, "database": {**database, "url": url}}
    return overridden, {("database", "url"): "DATABASE_URL or --database-url"}


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
    """params.toml as far as it can be read, and its faults.

    With the faults of all files in one message a user corrects them in one round.
    """
    try:
        return readable_space(read_document(config.run.params))
    except InvalidInput as error:
        return Space(()), error.faults


def missing_files(config: Config) -> list[Fault]:
    """A fault if the book, the engine or a file of an option is missing.

    Who reads params.toml or the source says so.
    """
    book, engine = config.games.book, config.delivery.engine
    needed = [] if builtin_book(book) else [("games.book", Path(book), NAME_A_BOOK)]
    needed += [] if engine is None else [("delivery.engine", engine, "build the engine first")]
    needed += [
        ("engine.files", path, f"name the file that {option} takes")
        for option, path in config.engine.files.items()
    ]
    return [
        Fault(
            file=str(config.path), line=None, name=name, found=f"{path} is not there", remedy=remedy
        )
        for name, path, remedy in needed
        if not path.exists()
    ]
