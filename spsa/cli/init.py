"""`spsa-master init`: a first config.toml and params.toml for an engine."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import click

from spsa.builds.git import checkout, is_address, shown, split
from spsa.builds.smoke import NAME_AN_ENGINE, declared_options, tuning_lines
from spsa.config import load_config
from spsa.config.play import TimeControlSection
from spsa.config.settings import Config
from spsa.config.starter import (
    BY_OPTIONS,
    Setup,
    read_source,
    setup_of_binary,
    setup_of_source,
    starter_config,
    starter_params,
)
from spsa.config.suggestions import Suggestions, select, suggest_options
from spsa.errors import BuildFailed, InvalidInput, NothingToDo
from spsa.live_display import working
from spsa.master.delivery_setup import usual_builds
from spsa.master.trial import Trial, TrialFailed, try_engine
from spsa.output import echo
from spsa.planning.plan_inputs import USUAL_BUILD_SECONDS, Capacity, Shape, fitted, game_seconds
from spsa.report.table import duration
from spsa.text import plural

_MAX_NAMED = 6


@dataclass(frozen=True, slots=True)
class _Start:
    """What the two files say of one engine, and notes for the user about them."""

    setup: Setup
    params: str
    chosen: Suggestions
    notes: tuple[str, ...] = ()


@click.command()
@click.argument("source", nargs=-1, metavar="SOURCE [PATH] | ARGUMENTS...")
@click.option(
    "--engine",
    metavar="BINARY",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    help="Tune the options of this UCI engine, started with ARGUMENTS; nothing is built.",
)
@click.option(
    "--folder",
    type=click.Path(file_okay=False, writable=True, path_type=Path),
    default=Path(),
    show_default="here",
    help="Where the two files go.",
)
@click.option(
    "--games",
    type=click.IntRange(100, 1_000_000_000),
    default=30_000,
    show_default=True,
    help="Games of the whole run; `plan` tells how much Elo they recover.",
)
@click.option(
    "-c",
    "--concurrency",
    type=click.IntRange(1, 100_000),
    help="Games at a time, on all machines; default: this machine's processors.",
)
@click.option("--force", is_flag=True, help="Replace files that are there.")
@click.option("--no-try", is_flag=True, help="Do not build the engine and search with it.")
def init(
    source: tuple[str, ...],
    engine: Path | None,
    folder: Path,
    games: int,
    concurrency: int | None,
    force: bool,
    no_try: bool,
) -> None:
    """Write config.toml and params.toml for the engine whose source is in SOURCE.

    SOURCE holds a Cargo.toml, or files of C or C++ with a Makefile or a CMakeLists.txt. It is a
    folder, or a repository for git: ADDRESS[@REF], as https://host/me/engine.git@v2.1, and PATH
    where the engine is not at its top. With --engine BINARY, it is for a finished engine; arguments
    of it that begin with `-` follow `--`.

    Every number that looks like a search or evaluation parameter is suggested, with a range and a
    step. Edit the suggestions: they are guesses. What is not suggested is told on stderr, with the
    reason. Then the engine is built and searches a few times, as config.toml says and to numbers of
    nodes, which tells what config.toml lacks; what one plain value mends is tried.
    """
    most = 2 if source and is_address(source[0]) else 1
    if engine is None and not 1 <= len(source) <= most:
        raise click.UsageError("name either one SOURCE, or --engine BINARY")
    targets = [folder / "config.toml", folder / "params.toml"]
    for target in targets:
        if target.exists() and not force:
            remedy = "use --force to replace it, or --folder for another place"
            raise InvalidInput.of(target, target.name, "is there already", remedy)
    with working(f"reading {engine or shown(source[0])}"):
        if engine is not None:
            start = _of_engine(engine, source, folder)
        else:
            start = _of_source(source[0], folder, *source[1:])
    shape = partial(_shape, games, concurrency or os.cpu_count() or 1)
    build_seconds = USUAL_BUILD_SECONDS if engine is None else 0.0
    folder.mkdir(parents=True, exist_ok=True)
    targets[0].write_text(
        starter_config(start.setup, shape(build_seconds, start.setup)), encoding="utf-8"
    )
    targets[1].write_text(start.params, encoding="utf-8")
    echo(*start.notes, *_skipped(start.chosen), err=True)
    if start.chosen.active and not no_try:
        _try(start.setup, targets[0], shape, build_seconds)
    chosen = start.chosen
    listed = plural(chosen.inside_functions, "number") if chosen.inside_functions else ""
    echo(
        f"{targets[0]} and {targets[1]}: {plural(chosen.active, 'parameter')} suggested, "
        f"{chosen.commented_out:,} more commented out{listed and f', {listed} inside functions'}; "
        "edit them, then `spsa-master params show`, `probe --write`, `plan`, `run`"
    )


def _try(
    setup: Setup, target: Path, shape: Callable[[float, Setup], Shape], build_seconds: float
) -> None:
    """Try the engine, and write what this teaches into config.toml."""

    def write(tried: Setup, seconds: float = build_seconds) -> Config:
        text = starter_config(tried, shape(seconds, tried))
        target.write_text(text, encoding="utf-8")
        return load_config(target, os.environ)

    try:
        with working(f"trying the engine: {'a build and ' if build_seconds else ''}a few searches"):
            trial = try_engine(write, setup, partial(echo, err=True))
    except (KeyboardInterrupt, TrialFailed):
        echo(
            f"{target} is written: correct it, then `spsa-master probe` builds it as it says; "
            "`init --force` writes both files anew, and tries other ways again",
            err=True,
        )
        raise
    write(trial.setup, 2 * trial.build_seconds if build_seconds else 0.0)
    echo(_told(trial), err=True)


def _told(trial: Trial) -> str:
    """One sentence about an engine that plays."""
    built = (
        f"built in {duration(trial.build_seconds)}, " if "source_path" in trial.setup.build else ""
    )
    has_speed = trial.nodes_per_second > 0
    speed = f"{trial.nodes_per_second:,.0f} nodes a second" if has_speed else "no node counts"
    game = duration(_game_seconds(trial.setup))
    nodes = 'kind = "nodes" works, too, from 1,000 a move'
    if why := trial.against_nodes:
        nodes = f"`go nodes` is no limit for it: {why}"
    return f"the engine plays: {built}{speed}; a game takes about {game} with this time control" + (
        f"; {nodes}" if has_speed else ""
    )


def _game_seconds(setup: Setup) -> float:
    limits = TimeControlSection.model_validate(
        {key: value for key, value in setup.time_control.items() if value is not None}
    ).limits
    return game_seconds(limits, None) or 0.0


def _shape(games: int, concurrency: int, build_seconds: float, setup: Setup) -> Shape:
    """The size of a run with the time control of the files."""
    capacity = Capacity(
        concurrency=concurrency, build_seconds=build_seconds, builders=usual_builds()
    )
    return fitted(games, capacity, _game_seconds(setup))


def _of_engine(engine: Path, arguments: tuple[str, ...], folder: Path) -> _Start:
    try:
        declarations = declared_options(engine, arguments=arguments)
    except BuildFailed as error:
        found = " ".join(str(error).removeprefix(f"{engine}: ").split())
        raise InvalidInput.of(engine, "--engine", found, NAME_AN_ENGINE) from None
    suggestions = suggest_options(declarations, tuning_lines(engine.absolute(), arguments))
    chosen = Suggestions("", {f"options of {engine.name}": suggestions})
    if not chosen.active:
        raise NothingToDo(
            f"{engine} declares no option with a number that can be tuned; "
            "`spsa-master init SOURCE` reads constants of Rust, C and C++"
        )
    setup = setup_of_binary(_seen_from(engine, folder), arguments)
    return _Start(setup, starter_params(chosen.suggestions, of_options=True), chosen)


def _of_source(source: str, folder: Path, inside: str = ".") -> _Start:
    by_git = is_address(source)
    place = checkout(*split(source))[0].resolve() if by_git else Path(source)
    if by_git and not (place / inside).resolve().is_relative_to(place):
        remedy = "write the path of a folder from its top"
        raise InvalidInput.of(
            shown(source), "PATH", f"{inside} leads out of the repository", remedy
        )
    engine = read_source(place / inside)
    chosen = select(engine.texts)
    if not (chosen.active or chosen.commented_out or chosen.inside_functions):
        unread = "".join(f"; skipped {file}: {why}" for file, why in engine.unread.items())
        raise NothingToDo(f"{engine.root} has no number that can be tuned{unread}; {BY_OPTIONS}")
    written = engine.root.relative_to(place) if by_git else _seen_from(engine.root, folder)
    setup = setup_of_source(written, chosen.constants_file, engine.build)
    if by_git:
        setup = replace(setup, engine={"source": source})
    notes = [f"skipped {file}: {reason}" for file, reason in engine.unread.items()]
    if switches := engine.switches:
        notes.append(
            f"note: {' or '.join(switches)} may turn on UCI options for tuning: a binary built so "
            "needs no more builds, `spsa-master init --engine BINARY`"
        )
    params = starter_params(chosen.suggestions, chosen.functions)
    return _Start(setup, params, chosen, tuple(notes))


def _skipped(chosen: Suggestions) -> Iterator[str]:
    for reason, names in sorted(chosen.skipped.items(), key=lambda item: -len(item[1])):
        more = f", and {len(names) - _MAX_NAMED:,} more" if len(names) > _MAX_NAMED else ""
        yield f"skipped {len(names):,}, {reason}: {', '.join(names[:_MAX_NAMED])}{more}"


def _seen_from(source: Path, folder: Path) -> Path:
    """A path as config.toml names it: as it was given, if that leads there from the folder."""
    if (folder.resolve() / source).resolve() == source.resolve():
        return source
    return source.resolve()
