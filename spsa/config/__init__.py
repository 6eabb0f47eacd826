"""Reads config.toml, params.toml and the environment into frozen values, or lists all faults."""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from spsa.builds.artifacts import sha256_of
from spsa.config.document import Found, Key, nth, read_document
from spsa.config.play import GamesSection
from spsa.config.section import read_table
from spsa.config.settings import Config, RunSection, Sections
from spsa.config.space import readable_space
from spsa.core.game_settings import (
    Book,
    GameSettings,
    HashedFile,
    Scale,
    TimeControlShare,
    divided_by_shares,
)
from spsa.core.params import Space
from spsa.core.uci_options import CHESS960
from spsa.db.url import parsed, with_absolute_path
from spsa.errors import MAX_FAULTS, Fault, InvalidInput, TuningError
from spsa.files import MAX_TEXT, content
from spsa.openings import BUILTIN_BOOKS, NAME_A_BOOK, builtin_bytes

_NOTIFY_URLS, _NOTIFY_FILE = "SPSA_NOTIFY_URLS", "SPSA_NOTIFY_URLS_FILE"


def load_config(path: Path, environ: Mapping[str, str], *, and_params: bool = False) -> Config:
    """Read config.toml; DATABASE_URL in `environ` overrides its [database], and so on.

    Paths in it are relative to the file, and one in DATABASE_URL to the current folder. Raises
    InvalidInput with all faults; `and_params`: with those of params.toml. `missing_files` checks
    that the named files exist, because some commands need none (a server needs no source).
    """
    document = read_document(path)
    data, url = document.data, environ.get("DATABASE_URL", "").strip()
    if url:
        parsed(url)
        data = {**data, "database": {"url": with_absolute_path(url, Path.cwd())}}
    written = data.get("notify", {})
    variable, urls = _notified(environ)
    if urls and isinstance(written, dict):
        data = {**data, "notify": {**written, "urls": urls}}
    faults: list[Found] = []
    folder = path.resolve().parent
    tables = read_table(Sections, data, faults, folder=folder)
    if tables is None:
        others = _params_faults(data.get("run"), folder) if and_params else ()
        raise InvalidInput((*document.faults(faults), *others)[:MAX_FAULTS])
    own = {**dict(tables), "games": _divisible(tables)}
    return Config(path=path, game_settings=_game_settings(tables), notify_variable=variable, **own)


def _params_faults(run: object, folder: Path) -> tuple[Fault, ...]:
    """What is wrong in the params.toml of a faulty config.toml, whose [run] this is."""
    named = {"params": run["params"]} if isinstance(run, dict) and "params" in run else {}
    known = read_table(RunSection, named, [], folder=folder)
    return () if known is None else readable_params(known.params)[1]


def _divisible(tables: Sections) -> GamesSection:
    """The games, of which a default is as many as the shares divide in whole pairs."""
    games = tables.games
    if "games_per_iteration" in games.model_fields_set:
        return games
    shares = [one.share for one in tables.time_control]
    fitting = divided_by_shares(games.games_per_iteration, shares)
    fitted = games.model_copy(update={"games_per_iteration": fitting})
    fitted.model_fields_set.discard("games_per_iteration")
    return fitted


def _notified(environ: Mapping[str, str]) -> tuple[str, list[str]]:
    """The addresses of a variable, or of the file that one names, and which; else nothing."""
    file, urls = environ.get(_NOTIFY_FILE), environ.get(_NOTIFY_URLS, "").split()
    if urls or not file:
        return (_NOTIFY_URLS if urls else ""), urls
    try:
        urls = content(Path(file), MAX_TEXT).decode().split()
    except (OSError, UnicodeDecodeError):
        remedy = "name a file with an address on each line"
        raise InvalidInput.of(file, "notify.urls", "cannot be read", remedy) from None
    return (_NOTIFY_FILE if urls else ""), urls


def _game_settings(tables: Sections) -> GameSettings:
    games, engine = tables.games, tables.engine
    chess960 = {CHESS960: "true"} if games.chess960 else {}
    controls = tuple(
        TimeControlShare(time_control=one.limits, share=one.share, weight=one.weight)
        for one in tables.time_control
    )
    return GameSettings(
        time_control=controls[0].time_control,
        time_controls=controls if len(controls) > 1 else (),
        adjudication=tables.adjudication.rules,
        book=Book(
            name=games.book,
            sha256=_hash_of_book(games.book),
            plies=games.plies,
            chess960=games.chess960,
        ),
        scale=None if games.target_nps is None else Scale(target_nps=games.target_nps),
        engine_options=chess960 | engine.options,
        engine_arguments=engine.arguments,
        engine_files={
            option: HashedFile(path=str(file), sha256=_hash(file))
            for option, file in engine.files.items()
        },
    )


def _hash_of_book(name: str) -> str:
    is_builtin = name in BUILTIN_BOOKS
    return sha256(builtin_bytes(name)).hexdigest() if is_builtin else _hash(Path(name))


def _hash(path: Path) -> str:
    """Empty for a file that cannot be read: a command that plays nothing does not need it."""
    try:
        return sha256_of(path)
    except TuningError:
        return ""


def readable_params(path: Path) -> tuple[Space, tuple[Fault, ...]]:
    """params.toml as far as it can be read, and its faults.

    With the faults of all files in one message a user corrects them in one round.
    """
    try:
        return readable_space(read_document(path))
    except InvalidInput as error:
        return Space(()), error.faults


def missing_files(config: Config) -> tuple[Fault, ...]:
    """A fault if the source, the book, the engine or a file of an option is not there.

    Who reads params.toml or a file of the source says so.
    """
    settings, engine = config.game_settings, config.delivery.engine
    book, source = settings.book, config.source_folder
    other = config.validation.against
    of_source = "name the folder of the engine's Cargo.toml or Makefile"
    needed: list[tuple[Key, object, bool, str]] = [
        (("games", "book"), book.name, bool(book.sha256), NAME_A_BOOK),
        (("build", "source_path"), source, source is None or source.is_dir(), of_source),
        (("delivery", "engine"), engine, engine is None or engine.exists(), "build it first"),
        (("validation", "against"), other, other is None or other.is_file(), "name its binary"),
    ]
    for option, file in settings.engine_files.items():
        remedy = f"name the file that {option} takes"
        needed.append((("engine", "files", option), file.path, bool(file.sha256), remedy))
    return read_document(config.path).faults(
        (key, f"{path} is not there, or cannot be read", remedy)
        for key, path, is_there, remedy in needed
        if not is_there
    )


def unwritten_games(config: Config) -> tuple[Fault, ...]:
    """A fault if the shares need iterations of more than twice the default number of games."""
    games, field = config.games, "games_per_iteration"
    most = 2 * type(games).model_fields[field].default
    if field in games.model_fields_set or games.games_per_iteration <= most:
        return ()
    found = f"the shares need iterations of {games.games_per_iteration:,} games"
    remedy = f"write {field} in [games] if that is meant, or other shares, as 1 and 2"
    return read_document(config.path).faults([(("time_control", nth(0)), found, remedy)])
