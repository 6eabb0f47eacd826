"""Reads config.toml and the environment into one frozen Config."""

from collections.abc import Collection, Mapping
from pathlib import Path

from spsa.config.document import Document, read_document
from spsa.config.play import (
    read_adjudication,
    read_book,
    read_files,
    read_options,
    read_scale,
    read_time_control,
)
from spsa.config.section import Faults, Section
from spsa.config.settings import Config, DeliveryKind
from spsa.config.source import check_against_source, read_sources
from spsa.config.space import readable_space
from spsa.config.tuning import (
    read_alarms,
    read_algorithm,
    read_build,
    read_delivery,
    read_fleet,
    read_games,
    read_settings,
    read_validation,
)
from spsa.core.game_settings import GameSettings
from spsa.core.params import Space
from spsa.db.database import configured_url, parsed, with_absolute_path
from spsa.errors import MAX_FAULTS, Fault, InvalidInput
from spsa.openings import NAME_A_BOOK, builtin_book

PRIORITIES = 1000
"""Priorities lie between minus this and this; the default is 0."""

MIN_SHARE, MAX_SHARE = 1e-6, 1e6
MAX_ITERATIONS = 10_000_000

_SPSA_KEYS = ("algorithm", "max_iterations", "stop_when")
_MAX_ELO = 1000.0


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
    faults = Faults(document)
    config = _config(document, Section(faults, (), dict(document.data)), environ)
    if faults.found:
        raise InvalidInput((*faults.found, *_further(config, faults.found))[:MAX_FAULTS])
    return config


def readable_params(config: Config) -> tuple[Space, tuple[Fault, ...]]:
    """params.toml as far as it can be read, and its faults; `missing_files` tells if it is missing.

    With the faults of all files in one message a user corrects them in one round.
    """
    return _readable(config.params_path)


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
    params = config.params_path
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
    if config.delivery.kind is DeliveryKind.UCI or source is None:
        return ()
    try:
        texts = read_sources(space, source, constants)
    except InvalidInput:
        return ()  # `missing_files` names what is not there
    return check_against_source(space, texts, constants, str(config.params_path))


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


def _config(document: Document, root: Section, environ: Mapping[str, str]) -> Config:
    folder = document.path.resolve().parent
    run, games, rule = (root.section(name) for name in ("run", "games", "spsa"))
    engine = root.section("engine")
    algorithm = read_algorithm(rule)
    book, time_control = read_book(games, folder), read_time_control(root.section("time_control"))
    options = read_options(engine.section("options"), chess960=book.chess960)
    game_settings = GameSettings(
        time_control=time_control,
        adjudication=read_adjudication(root.section("adjudication"), folder),
        book=book,
        scale=read_scale(games, time_control),
        engine_options=options,
        engine_arguments=engine.texts("arguments"),
        engine_files=read_files(engine.section("files"), folder, options),
    )
    engine.close()
    delivery = read_delivery(root.section("delivery"), folder)
    sets_aside, require = read_fleet(root.section("fleet"))
    needs_source = delivery.kind is DeliveryKind.BUILD
    build = read_build(root.section("build"), folder, needed=needs_source)
    config = Config(
        path=document.path,
        params_path=run.path("params", folder, "params.toml"),
        name=run.text("name", folder.name) or folder.name,
        seed=None if run.get("seed") is None else run.whole("seed"),
        priority=run.whole("priority", 0, least=-PRIORITIES, most=PRIORITIES),
        share=run.number("share", 1.0, above=0.0, least=MIN_SHARE, most=MAX_SHARE),
        database_url=read_url(root.section("database"), folder, environ.get("DATABASE_URL", "")),
        game_settings=game_settings,
        games=read_games(games),
        algorithm=algorithm,
        max_iterations=rule.whole("max_iterations", 500, least=1, most=MAX_ITERATIONS),
        stop_when=_stop_when(rule),
        settings=read_settings(rule, algorithm, _SPSA_KEYS),
        build=build,
        delivery=delivery,
        validation=read_validation(root.section("validation")),
        alarms=read_alarms(root.section("alarms")),
        sets_aside=sets_aside,
        require=require,
    )
    for section in (run, rule, root):
        section.close()
    return config


def _stop_when(rule: Section) -> float | None:
    if rule.get("stop_when") is None:
        return None
    return rule.number("stop_when", above=0.0, most=_MAX_ELO)


def _needed(config: Config) -> list[tuple[str, Path | None, str]]:
    source, book = config.build.source_path, config.game_settings.book.name
    needed: list[tuple[str, Path | None, str]] = [
        ("run.params", config.params_path, "write it, or let `spsa-master init` do it"),
        ("games.book", None if builtin_book(book) else Path(book), NAME_A_BOOK),
        ("delivery.engine", config.delivery.engine, "build the engine first"),
        *(
            ("engine.files", Path(file.path), f"name the file that {option} takes")
            for option, file in config.game_settings.engine_files.items()
        ),
    ]
    if config.delivery.kind is DeliveryKind.BUILD and source is not None:
        constants = source / config.build.constants_file
        manifest = source if config.build.command else source / "Cargo.toml"
        remedy = "name the folder that holds the engine's Cargo.toml, or give a command"
        needed += [
            ("build.source_path", manifest, remedy),
            ("build.constants_file", constants, "name the file, relative to source_path"),
        ]
    return needed


def read_url(section: Section, folder: Path, variable: str) -> str:
    """`variable` (DATABASE_URL's value, "" when unset) or the section's url, driver named.

    In config.toml, a relative SQLite path is relative to `folder`, the folder of config.toml, so
    that programs started in different folders use the same database. In the variable it is
    relative to the current folder, as users of a shell expect.
    """
    written = section.get("url")
    section.close()
    if not isinstance(written, str | None):
        section.fault("url", "url is not a text", 'write url = "sqlite:///spsa.db"')
        return ""
    url = (
        with_absolute_path(variable.strip(), Path.cwd())
        if variable
        else configured_url(folder, written)
    )
    if (fault := _fault(variable or written or url)) is None:
        return url
    if variable:
        section.fault_elsewhere("DATABASE_URL or --database-url", fault.found, fault.remedy)
    else:
        section.fault("url", f"url {fault.found}", fault.remedy)
    return ""


def _fault(url: str) -> Fault | None:
    """What is wrong with a URL; the text quotes nothing of it, as it may hold a password."""
    try:
        parsed(url.strip())
    except InvalidInput as error:
        return error.faults[0]
    return None
