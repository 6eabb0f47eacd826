"""`spsa-master params`: the space, what it does to the source, and other tuners' formats of it."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import click
import tomli_w

from spsa.builds.sources.rewriting import render, unified_patch
from spsa.cli.common import (
    FILE,
    Command,
    config_option,
    database_of,
    json_option,
    settings,
    url_option,
    with_both,
)
from spsa.config.formats import EXPORTED, exported, left_out, read_file, spsa_tables
from spsa.config.settings import Config
from spsa.config.source import other_values, source_lines
from spsa.config.space import load_space, params_file, written
from spsa.core.params import Space
from spsa.db import Store
from spsa.db.tables import Run
from spsa.errors import InvalidInput
from spsa.files import encoding_of, write_whole
from spsa.live_display import working
from spsa.master.delivery_setup import source_of, source_texts
from spsa.master.session import RunSettings
from spsa.master.start import checked_space
from spsa.output import echo, echo_json, echo_raw
from spsa.report.matches import ThetaChoice, chosen_theta
from spsa.report.plan import space_table
from spsa.report.table import terminal
from spsa.text import plural


@click.group()
def params() -> None:
    """Show, import or export the parameters; print tuned values as a patch."""


def _values_options(command: Command) -> Command:
    """The options that name the values of a run."""
    run_option = click.option(
        "--run", metavar="NAME", help="The theta of this run instead of params.toml's values."
    )
    theta_option = click.option(
        "--theta",
        type=click.Choice([theta.value for theta in ThetaChoice]),
        help="With --run; start: what it was started with; final (default): theta now; supported: "
        "the optimum that all games together suggest.",
    )
    return run_option(theta_option(command))


@params.command()
@with_both
@json_option
def show(config: Config, as_json: bool) -> None:
    """Show what params.toml tunes.

    All of it is checked against the engine first, as `run` does.
    """
    space = _checked(config)
    if as_json:
        echo_json(space.to_json())
        return
    lines, others = None, {}  # the values are options
    if config.delivery.kind == "build":
        texts = source_texts(config, space)
        lines, others = source_lines(space, texts), other_values(space, texts)
    terminal().print(
        space_table(space, lines, {name: there for name, (there, _) in others.items()})
    )


@params.command()
@config_option
@url_option
@_values_options
def diff(config: str | None, database_url: str | None, run: str | None, theta: str | None) -> None:
    """Print the values as a patch, `setoption` lines or JSON.

    A patch is for `git apply`, in the folder of the engine's Cargo.toml. An empty one says that the
    source has these values already. With --run it is for the commit that the run began with, if
    [engine] source names a repository. With [delivery] engine each parameter is one line of
    UCI; with its command the values are the JSON that the program reads.

    Without a config.toml the values of a run come from its database alone, not as a patch.
    """
    if run is not None and config is None and not Path("config.toml").exists():
        _print_values(*_of_run(database_of(config, database_url), run, theta))
        return
    found = settings(config, database_url, and_params=True)
    space = _checked(found)
    chosen, began, row = space, None, None
    if run is None:
        _refuse_theta(theta)
    else:
        chosen, row = _of_run(found.database.url, run, theta)
        began = RunSettings.of(row).source
        if advice := chosen.step_advice(row.estimates.better_step):
            echo(*advice.splitlines(), err=True)
    values = _playable(space, chosen)
    if _print_options(found.delivery.kind, space, values):
        return
    folder, patch = source_of(found, began), b""
    for name, text in render(space, values, source_texts(found, space, folder)).items():
        before = (folder / name).read_bytes()
        patch += unified_patch(before, text.encode(encoding_of(before)), name)
    echo_raw(patch)
    if not patch:
        why = "the source has these values already"
        if row is not None and not row.applied:
            why = f"run {row.name} has no result yet"
        echo(f"an empty patch: {why}", err=True)


def _playable(space: Space, chosen: Space) -> Mapping[str, float]:
    """The values of `chosen` as `space` can play them."""
    return space.rounded(space.steps({p.name: p.value for p in chosen.parameters}))


def _print_options(kind: object, space: Space, values: Mapping[str, float]) -> bool:
    """Print the options of an engine, or what a program reads; False if a source has the values."""
    if kind == "command":
        echo_json(values)
    if kind == "uci":
        options = space.options(values).items()
        echo_raw("".join(f"setoption name {name} value {v}\n" for name, v in options))
    return kind in ("uci", "command")


def _print_values(space: Space, run: Run) -> None:
    """The values of a run whose source is not known here."""
    values = _playable(space, space)
    if not _print_options(RunSettings.of(run).delivery.get("kind"), space, values):
        echo_raw("".join(f"{name} = {value}\n" for name, value in values.items()))
        echo("a patch needs the source: name the config.toml that has it by --config", err=True)


def _checked(config: Config) -> Space:
    with working("checking params.toml against the engine"):
        return checked_space(config)


def _refuse_theta(theta: str | None) -> None:
    if theta is not None:
        raise click.UsageError("--theta is about a run: name it with --run NAME")


def _of_run(url: str, run: str, theta: str | None) -> tuple[Space, Run]:
    """The space at the values of a run, and the run."""
    with Store(url) as store:
        row = store.run(run)
    values = chosen_theta(row, ThetaChoice(theta or "final"))
    space = Space.from_json(row.space)
    parameters = (
        replace(p, value=written(p, values.get(p.name, p.value))) for p in space.parameters
    )
    return replace(space, parameters=tuple(parameters)), row


@params.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--output", type=FILE, default="params.toml", show_default=True, help="What to write."
)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@click.option(
    "--games",
    type=click.IntRange(2, 10**12),
    help="Games of the whole run there; prints its [games] and [spsa].",
)
@click.option(
    "--played",
    type=click.IntRange(0, 10**12),
    default=0,
    help="Games that the other tuner has played: the run goes on after them.",
)
@click.option(
    "--games-per-iteration",
    type=click.IntRange(2, 1_000_000),
    default=32,
    show_default=True,
    help="Games of an iteration here; twice OpenBench's pairs-per.",
)
def import_(
    file: Path, output: Path, force: bool, games: int | None, played: int, games_per_iteration: int
) -> None:
    """Write params.toml from FILE, in the format of another tuner.

    With --games, stdout has the [games] and [spsa] of config.toml with which the tune goes on
    here: the same gains after the same games. stderr says how everything was mapped.
    """
    if games_per_iteration % 2:
        raise click.UsageError("--games-per-iteration is odd, and games come in pairs")
    if games is not None and games - played < games_per_iteration:
        raise click.UsageError(f"{played:,} of {games:,} games are played: no iteration is left")
    if output.exists() and not force:
        raise InvalidInput.of(
            output, output.name, "is there already", "use --force, or --output for another place"
        )
    read = read_file(file)
    header = f"# Imported from {read.format}. The master rewrites only `value`.\n\n"
    write_whole(output, (header + params_file(read.space)).encode())
    count = plural(len(read.space.parameters), "parameter")
    echo(f"{output}: {count} of {file}, format {read.format}", *read.notes, err=True)
    if games is not None:
        echo_raw(tomli_w.dumps(spsa_tables(read.r_end, games, played, games_per_iteration)))


@params.command()
@config_option
@url_option
@click.option(
    "--format",
    "kind",
    type=click.Choice((*EXPORTED, "toml")),
    required=True,
    help="What to write to stdout.",
)
@_values_options
def export(
    config: str | None, database_url: str | None, kind: str, run: str | None, theta: str | None
) -> None:
    """The parameters in the format of another tuner, or of this one.

    A params.toml alone is enough, and for a run its database. `params diff` prints the values
    alone, as the engine gets them.
    """
    file = Path("params.toml")
    rule: Mapping[str, object] = {}
    if run is not None:
        file = Path(f"run {run}")
        space, row = _of_run(database_of(config, database_url), run, theta)
        rule = RunSettings.of(row).rule
    else:
        _refuse_theta(theta)
        if config is not None or Path("config.toml").exists():
            found = settings(config, database_url, and_params=True)
            file, rule = found.run.params, found.spsa.settings
        space = load_space(file)
    if kind == "toml":
        echo_raw(params_file(space))
        return
    echo_raw(exported(kind, space, rule, str(file)))
    if kind != "json" and (left := ", ".join(left_out(space))):
        echo(f"left out: {left}; --format toml and json have everything", err=True)
