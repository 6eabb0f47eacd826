"""Reads the tables of config.toml about games, algorithm, build, delivery, validation, alarms."""

from difflib import get_close_matches
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from spsa.algorithms import rule_entry, settings_faults
from spsa.builds.requirements import LEVELS, WORD
from spsa.config.play import read_time_control
from spsa.config.section import Section, shown
from spsa.config.settings import (
    AlarmsConfig,
    BuildConfig,
    DeliveryConfig,
    DeliveryKind,
    Distribution,
    GamesConfig,
    MessageFormat,
    Validation,
)
from spsa.core.params import SOURCE_SUFFIXES

DEFAULT_ALGORITHM = "mixture"

_USUAL = GamesConfig()
_FORMATS = {
    "hooks.slack.com": MessageFormat.SLACK,
    "discord.com": MessageFormat.DISCORD,
    "discordapp.com": MessageFormat.DISCORD,
}
_MAX_GAMES = 1_000_000
_MIN_PART = 1e-3
_MAX_IN_FLIGHT = 1000
_MAX_ATTEMPTS = 1000
_MAX_SECONDS = 7 * 86_400
_MAX_BUILDS = 1000
_MAX_WORDS = 50


def read_games(section: Section) -> GamesConfig:
    """[games] without the book."""
    per_iteration = _even(section, "games_per_iteration", _USUAL.per_iteration)
    batch = _even(section, "batch_size", min(_USUAL.batch_size, per_iteration))
    in_flight = _in_flight(section)
    attempts = section.whole("max_attempts", _USUAL.max_attempts, least=1, most=_MAX_ATTEMPTS)
    if section.sound and batch > per_iteration:
        found = f"batch_size {batch} is more than games_per_iteration {per_iteration}"
        section.fault("batch_size", found, f"use at most {per_iteration}")
    section.close()
    return GamesConfig(
        per_iteration=per_iteration,
        batch_size=batch,
        iterations_in_flight=in_flight,
        max_attempts=attempts,
    )


def _in_flight(section: Section) -> int | Literal["auto"]:
    key = "iterations_in_flight"
    if not isinstance(section.get(key), str | None):
        return section.whole(key, least=1, most=_MAX_IN_FLIGHT)
    section.choice(key, ("auto",), "auto")
    return "auto"


def _even(section: Section, key: str, default: int, least: int = 2) -> int:
    number = section.whole(key, default, least=least, most=_MAX_GAMES)
    if number % 2:
        remedy = f"games come in pairs: use {number - 1} or {number + 1}"
        section.fault(key, f"{key} = {number} is odd", remedy)
        return number + 1
    return number


def read_algorithm(section: Section) -> str:
    """The algorithm that [spsa] names, or the default.

    Early configurations name none and set the gains of SPSA, which no other algorithm has.
    """
    own, gains = (
        {setting.name for setting in rule_entry(name).settings}
        for name in (DEFAULT_ALGORITHM, "spsa")
    )
    usual = "spsa" if any(key in gains - own for key in section.keys) else DEFAULT_ALGORITHM
    return section.text("algorithm", usual)


def read_settings(section: Section, algorithm: str, known: tuple[str, ...]) -> dict[str, object]:
    """The keys of [spsa] that belong to the algorithm: all but the `known` ones."""
    settings = {key: section.get(key) for key in section.keys if key not in known}
    for key, found, remedy in settings_faults(algorithm, settings):
        near = [] if key in known else get_close_matches(key, known, n=1, cutoff=0.8)
        section.fault(key, f"{key}: {found}", f'did you mean "{near[0]}"?' if near else remedy)
    return settings


def read_build(section: Section, folder: Path, *, needed: bool) -> BuildConfig:
    """[build]; `needed` if engines are built, and not only stored."""
    usual = BuildConfig(engines_path=folder / "engines")
    command = section.texts("command", ())
    if command:
        _check_command(section)
    by_workers = section.choice("where", ("master", "worker"), usual.where) == "worker"
    build = BuildConfig(
        source_path=_source(section, folder, needed=needed),
        constants_file=_constants_file(section, usual.constants_file),
        engines_path=section.path("engines_path", folder, "engines"),
        command=command,
        package=section.text("package") or None,
        binary=section.text("binary") or None,
        flags=section.texts("flags", usual.flags),
        target=section.text("target") or None,
        levels=_levels(section, command),
        timeout=section.number("timeout", usual.timeout, above=0.0, most=_MAX_SECONDS),
        bench=None if section.get("bench") is None else section.flag("bench", default=True),
        bench_timeout=section.number(
            "bench_timeout", usual.bench_timeout, above=0.0, most=_MAX_SECONDS
        ),
        at_once=section.whole("at_once", 0, least=1, most=_MAX_BUILDS) or None,
        distribute=_distribution(section, by_workers=by_workers),
        where="worker" if by_workers else "master",
    )
    if by_workers and not needed:
        section.fault("where", 'where = "worker", and nothing is built', "remove where")
    section.close()
    return build


def _distribution(section: Section, *, by_workers: bool) -> Distribution:
    """`distribute`: what workers build, workers get from the database."""
    usual = Distribution.DATABASE if by_workers else Distribution.PATH
    written = Distribution(section.choice("distribute", tuple(Distribution), usual))
    if by_workers and written is Distribution.PATH:
        found = 'distribute = "path", and where = "worker": no worker writes into a folder'
        section.fault("distribute", found, "remove distribute, or where")
    return written


def _check_command(section: Section) -> None:
    """Options of cargo are refused beside another command, which has to name what it makes."""
    for key in ("flags", "package", "target"):
        if section.get(key) is not None:
            section.fault(key, f"{key} is for cargo, and command is given", f"remove {key}")
    binary = section.text("binary")
    if not binary:
        remedy = 'write binary = "src/engine", the path from source_path of what it makes'
        section.fault("binary", "command is given without binary", remedy)
    elif not _is_inside(binary):
        remedy = "write the path from source_path of what the command makes"
        section.fault("binary", f"{shown(binary)} is not a path inside the source", remedy)


def _levels(section: Section, command: tuple[str, ...]) -> tuple[str, ...]:
    """The levels of x86-64 in ascending order, each once."""
    named = section.texts("levels")
    for level in named:
        if level not in LEVELS:
            remedy = f"name some of {', '.join(LEVELS)}"
            section.fault("levels", f"{shown(level)} is no level of x86-64", remedy)
    several = len(set(named)) > 1
    if several and command and not any("{level}" in word for word in command):
        remedy = 'write it where the compiler takes a processor, as "CXXFLAGS=-O3 -march={level}"'
        section.fault("command", "there are several levels and no {level} in command", remedy)
    if several and section.get("bench") is False:
        found = "bench = false, and engines of several levels are compared by bench"
        section.fault("bench", found, "remove bench, or name one level")
    return tuple(level for level in LEVELS if level in named)


def _is_inside(path: str) -> bool:
    """Whether a path stays in the folder that it starts in."""
    return not path.startswith("/") and ".." not in path.split("/")


def _source(section: Section, folder: Path, *, needed: bool) -> Path | None:
    """`source_path`, or its first name `rusty_rival_path`."""
    written, old = section.text("source_path"), section.text("rusty_rival_path")
    if written and old:
        section.fault("rusty_rival_path", "source_path is given too", "keep source_path")
    elif needed and section.sound and not written and not old:
        remedy = 'write source_path = "../my-engine", the folder with its Cargo.toml or Makefile'
        section.fault("source_path", "source_path is missing", remedy)
    key = "source_path" if written else "rusty_rival_path"
    return section.path(key, folder) if written or old else None


def _constants_file(section: Section, usual: str) -> str:
    name = section.text("constants_file", usual)
    if not _is_inside(name) or name.rpartition(".")[2] not in SOURCE_SUFFIXES:
        found = f"{shown(name)} is no file of Rust, C or C++ inside the source"
        remedy = f'write it relative to source_path, as "{usual}" or "src/search.cpp"'
        section.fault("constants_file", found, remedy)
    return name


def read_delivery(section: Section, folder: Path) -> DeliveryConfig:
    """[delivery]."""
    kind = DeliveryKind(section.choice("kind", tuple(DeliveryKind), DeliveryKind.BUILD))
    engine = section.text("engine")
    section.close()
    if kind is DeliveryKind.UCI and section.sound and not engine:
        section.fault("engine", "engine is missing", "name the binary that takes the options")
    if kind is DeliveryKind.BUILD and engine:
        section.fault("engine", 'engine does not go with kind = "build"', 'it needs kind = "uci"')
    return DeliveryConfig(kind=kind, engine=section.path("engine", folder) if engine else None)


def read_validation(section: Section) -> Validation:
    """[validation] and, where it has one, [validation.time_control]."""
    usual = Validation()
    games = _even(section, "games", 0, least=0)
    every = section.whole("every", usual.every, most=_MAX_GAMES)
    share = section.number("share", usual.share, above=0.0, least=_MIN_PART, most=1.0)
    if section.sound and "share" in section and not every:
        section.fault("share", "share is that of validations in the background", "add every = 100")
    own = "time_control" in section
    time_control = read_time_control(section.section("time_control")) if own else None
    section.close()
    return Validation(games=games, every=every, share=share, time_control=time_control)


def read_alarms(section: Section) -> AlarmsConfig:
    """[alarms]; the format is by default that of the URL's host."""
    url = section.text("url")
    host = _host(url)
    if url and not host:
        remedy = 'write url = "https://ntfy.sh/TOPIC", or the webhook of Slack or Discord'
        section.fault("url", "url is no address of http or https", remedy)
    format_ = section.choice("format", tuple(MessageFormat), _FORMATS.get(host, MessageFormat.TEXT))
    alarms = AlarmsConfig(
        command=section.text("command"),
        url=url,
        format=MessageFormat(format_),
        after=section.number("after", AlarmsConfig().after, least=0.0, most=86_400.0),
    )
    section.close()
    return alarms


def _host(url: str) -> str:
    """The host of an http URL, which any client can connect to; empty for anything else."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return ""
    is_http = parts.scheme in ("http", "https") and port != 0 and url.isascii() and " " not in url
    return (parts.hostname or "") if is_http else ""


def read_fleet(section: Section) -> tuple[bool, tuple[str, ...]]:
    """`set_aside` and `require` of [fleet]."""
    sets_aside = section.flag("set_aside", default=False)
    require = section.texts("require")
    for word in require:
        if not WORD.fullmatch(word):
            remedy = "write at most 40 small letters, digits, `.` and `-`, as for `compete --label`"
            section.fault("require", f"{shown(word)} is not a word", remedy)
    if len(require) > _MAX_WORDS:
        found = f"{len(require)} words are required"
        section.fault("require", found, f"use at most {_MAX_WORDS}")
    section.close()
    return sets_aside, tuple(dict.fromkeys(require))
