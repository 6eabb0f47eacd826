"""Reads the tables of config.toml that decide how games are played."""

from collections.abc import Collection
from hashlib import sha256
from pathlib import Path

from spsa.builds.artifacts import sha256_of
from spsa.config.section import Section, as_number, shown
from spsa.core.game_settings import (
    Adjudication,
    Book,
    DrawRule,
    EngineFile,
    ResignRule,
    Scale,
    TablebaseRule,
    TimeControl,
    TimeKind,
)
from spsa.core.game_settings.numbers import (
    MAX_CENTIPAWNS,
    MAX_DEPTH_TO_SEARCH,
    MAX_IN_A_ROW,
    MAX_MOVES,
    MAX_NODES_TO_SEARCH,
    MAX_NPS,
    MAX_OPTION_LENGTH,
    MAX_PIECES,
    MAX_PLIES,
    MAX_SCALE,
    MAX_SECONDS,
    MIN_PIECES,
    MIN_SCALE,
)
from spsa.core.game_settings.options import CHESS960
from spsa.errors import TuningError
from spsa.files import MAX_BOOK, content
from spsa.openings import BUILTIN, NAME_A_BOOK, builtin_book
from spsa.text import is_printable


def read_time_control(section: Section) -> TimeControl:
    """[time_control]: `timelow`, `timehigh` in seconds, or `low`, `high` in nodes or plies."""
    kind = TimeKind(section.choice("kind", tuple(TimeKind), TimeKind.MOVETIME))
    if not section.sound:
        return _unknown_kind(section)
    timed = kind in (TimeKind.MOVETIME, TimeKind.CLOCK)
    most = MAX_DEPTH_TO_SEARCH if kind is TimeKind.DEPTH else MAX_NODES_TO_SEARCH
    low, high = _seconds(section) if timed else _counts(section, most)
    clocked = kind is TimeKind.CLOCK
    increment = section.number("increment", 0.0, least=0.0, most=MAX_SECONDS) if clocked else 0.0
    moves = section.whole("moves", 0, least=1, most=MAX_MOVES) if clocked else 0
    margin = section.number("margin", 0.05, least=0.0, most=MAX_SECONDS) if clocked else 0.05
    if section.sound and low > high:
        first, second = ("timelow", "timehigh") if timed else ("low", "high")
        section.fault(first, f"{first} {low:g} is more than {second} {high:g}", "exchange them")
    _refuse_others(section, kind)
    return TimeControl(
        kind=kind, low=low, high=high, increment=increment, margin=margin, moves=moves
    )


def _unknown_kind(section: Section) -> TimeControl:
    """An unknown kind is one fault; which keys would go with it is unknown."""
    for key in section.keys:
        section.get(key)
    return TimeControl(low=1.0, high=1.0)


def _seconds(section: Section) -> tuple[float, float]:
    low = _time(section, "timelow", 0.25)
    return low, _time(section, "timehigh", max(low, 1.0))


def _time(section: Section, key: str, default: float) -> float:
    """At least one millisecond, the unit of UCI."""
    return float(section.number(key, default, above=0.0, least=0.001, most=MAX_SECONDS))


def _counts(section: Section, most: int) -> tuple[int, int]:
    low = section.whole("low", least=1, most=most)
    return low, section.whole("high", low or 1, least=1, most=most)


def _refuse_others(section: Section, kind: TimeKind) -> None:
    """Keys of another kind of time control get their own message, because they look right."""
    kinds = {
        "timelow": (TimeKind.MOVETIME, TimeKind.CLOCK),
        "timehigh": (TimeKind.MOVETIME, TimeKind.CLOCK),
        "margin": (TimeKind.CLOCK,),
        "increment": (TimeKind.CLOCK,),
        "moves": (TimeKind.CLOCK,),
        "low": (TimeKind.NODES, TimeKind.DEPTH),
        "high": (TimeKind.NODES, TimeKind.DEPTH),
    }
    for key, owners in kinds.items():
        if key in section and kind not in owners:
            section.get(key)
            section.fault(key, f'{key} does not go with kind = "{kind}"', _instead(key, owners))
    section.close()


def _instead(key: str, owners: tuple[TimeKind, ...]) -> str:
    needs = "it needs kind = " + " or ".join(f'"{owner}"' for owner in owners)
    twin = {"low": "timelow", "high": "timehigh", "timelow": "low", "timehigh": "high"}.get(key)
    return f"write {twin} instead, or {needs}" if twin else needs


def read_scale(section: Section, control: TimeControl) -> Scale | None:
    """`scale` of [games] and the keys that go with it; None where times are the same everywhere."""
    if section.choice("scale", ("none", "nps"), "none") == "none":
        for key in ("target_nps", "least_scale", "most_scale"):
            if section.get(key) is not None:
                remedy = 'write scale = "nps", or remove it'
                section.fault(key, f'{key} goes with scale = "nps" only', remedy)
        return None
    if control.reproducible:
        found = f'scale = "nps" does not go with kind = "{control.kind}" of [time_control]'
        section.fault("scale", found, "remove it: these games need no scale")
    target = section.whole("target_nps", least=1, most=MAX_NPS)
    usual = Scale(target_nps=target)
    return Scale(
        target_nps=target,
        least=section.number("least_scale", usual.least, least=MIN_SCALE, most=1.0),
        most=section.number("most_scale", usual.most, least=1.0, most=MAX_SCALE),
    )


def read_book(section: Section, folder: Path) -> Book:
    """The book of [games]. The hash of a missing file is empty; `missing_files` tells."""
    name, chess960 = section.text("book", BUILTIN), section.flag("chess960", False)
    plies = section.whole("plies", 0, least=1, most=MAX_PLIES) or None
    if (builtin := builtin_book(name)) is not None:
        if chess960:
            remedy = 'name a file of Chess960 positions: book = "..."'
            section.fault("chess960", "the built-in books have no positions of Chess960", remedy)
        return Book(name=name, sha256=_digest(builtin), plies=plies, chess960=chess960)
    path = section.path("book", folder)
    digest = _digest_of(path, section) if section.sound else ""
    return Book(name=str(path), sha256=digest, plies=plies, chess960=chess960)


def _digest_of(path: Path, section: Section) -> str:
    """Empty if the file is missing: a command that plays nothing does not need it."""
    try:
        return _digest(path)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return ""
    except OSError as error:
        found = f"book = {shown(str(path))} cannot be read: {error.strerror}"
        section.fault("book", found, NAME_A_BOOK)
        return ""


def _digest(path: Path) -> str:
    return sha256(content(path, MAX_BOOK)).hexdigest()


def read_adjudication(section: Section, folder: Path) -> Adjudication:
    """[adjudication]: each rule a table or false, `max_moves` a number or false."""
    usual = Adjudication()
    moves = usual.max_moves if section.get("max_moves") is not False else None
    if "max_moves" in section and moves is not None:
        moves = section.whole("max_moves", moves, least=1, most=MAX_MOVES)
    adjudication = Adjudication(
        draw=_draw(section),
        resign=_resign(section),
        max_moves=moves,
        syzygy=_syzygy(section, folder),
    )
    section.close()
    return adjudication


def _draw(section: Section) -> DrawRule | None:
    if section.get("draw") is False:
        return None
    usual, rule = DrawRule(), section.section("draw")
    draw = DrawRule(
        move_number=rule.whole("move_number", usual.move_number, least=0, most=MAX_MOVES),
        count=rule.whole("count", usual.count, least=1, most=MAX_IN_A_ROW),
        score=rule.whole("score", usual.score, least=0, most=MAX_CENTIPAWNS),
    )
    rule.close()
    return draw


def _resign(section: Section) -> ResignRule | None:
    if section.get("resign") is False:
        return None
    usual, rule = ResignRule(), section.section("resign")
    resign = ResignRule(
        count=rule.whole("count", usual.count, least=1, most=MAX_IN_A_ROW),
        score=rule.whole("score", usual.score, least=1, most=MAX_CENTIPAWNS),
    )
    rule.close()
    return resign


def _syzygy(section: Section, folder: Path) -> TablebaseRule | None:
    if section.get("syzygy") in (None, False):
        return None
    rule = section.section("syzygy")
    if not rule.sound:
        return None
    tables = TablebaseRule(
        pieces=rule.whole("pieces", least=MIN_PIECES, most=MAX_PIECES),
        fifty_moves=rule.flag("fifty_moves", True),
        folder=str(rule.path("folder", folder)) if "folder" in rule else "",
    )
    rule.close()
    return tables


def read_options(section: Section, *, chess960: bool) -> dict[str, str]:
    """[engine.options]: the options that both engines get by `setoption`, as UCI writes them.

    Games of Chess960 add the option that announces them.
    """
    options: dict[str, str] = {CHESS960: "true"} if chess960 else {}
    for name in section.keys:
        value = section.get(name)
        if name.lower() == CHESS960.lower():
            remedy = "remove it, and write chess960 = true in [games] to play Chess960"
            section.fault(name, f"{name} follows chess960 of [games]", remedy)
        elif _is_value(value) and all(_is_sendable(text) for text in (name, str(value))):
            options[name] = str(value).lower() if isinstance(value, bool) else str(value)
        else:
            remedy = (
                "write a number, a text or true on one line, "
                f"of at most {MAX_OPTION_LENGTH} printable characters"
            )
            section.fault(name, f"{name} = {shown(value)} is not a value of an option", remedy)
    return options


def read_files(section: Section, folder: Path, options: Collection[str]) -> dict[str, EngineFile]:
    """[engine.files]: the options that take the path of a file, each with that path."""
    files: dict[str, EngineFile] = {}
    for option in section.keys:
        path = section.path(option, folder)
        if not _is_sendable(option):
            section.fault(option, f"{shown(option)} is no name of an option", "write its name")
        elif option in options:
            found = f"{option} is in [engine.options] too"
            section.fault(option, found, "keep it in [engine.files], which sends its path")
        else:
            files[option] = EngineFile(path=str(path), sha256=_hash_of(option, path, section))
    return files


def _hash_of(option: str, path: Path, section: Section) -> str:
    """Empty if the file is missing, as for a book; `missing_files` tells."""
    if not path.exists():
        return ""
    try:
        return sha256_of(path)
    except TuningError as error:
        section.fault(option, f"{option}: {error}", "name a file that can be read")
        return ""


def _is_value(value: object) -> bool:
    return isinstance(value, bool | str) or as_number(value) is not None


def _is_sendable(text: str) -> bool:
    """UCI sends an option on one line and cannot quote a line break."""
    return text == "" or is_printable(text, MAX_OPTION_LENGTH)
