"""`spsa-master params import`: params.toml and [spsa] from the files of other tuners."""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import tomli_w
import tomlkit

from spsa.cli.common import FileInFolder
from spsa.config import load_space
from spsa.config.document import file_text
from spsa.config.formats import FORMATS, Imported, gains_file, read_file
from spsa.config.peer import PeerTune, Plan, mapping_notes
from spsa.config.projection import params_file
from spsa.core.params import Location, Place, Space
from spsa.errors import InvalidInput
from spsa.files import write_whole
from spsa.output import echo, echo_raw
from spsa.text import plural

_USUAL = Plan()


def tune_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The settings of a run of another tuner, besides its parameters."""
    share = click.FloatRange(0.0, 1.0)
    for option in (
        click.option("--gamma", type=click.FloatRange(0.0, 0.5), default=_USUAL.gamma),
        click.option("--alpha", type=share, default=_USUAL.alpha),
        click.option(
            "--a-ratio",
            type=share,
            default=_USUAL.a_ratio,
            help="Spall's A, as a fraction of the number of iterations.",
        ),
        click.option(
            "--gains",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="weather-factory's spsa.json, with its config.json.",
        ),
        click.option(
            "--games-per-iteration",
            type=click.IntRange(2, 1_000_000),
            default=_USUAL.games_per_iteration,
            show_default=True,
            help="Games of an iteration here; twice OpenBench's pairs-per.",
        ),
        click.option(
            "--played",
            type=click.IntRange(0, 10**12),
            help="Games that the other tuner has played: the run goes on after them.",
        ),
        click.option(
            "--games",
            type=click.IntRange(2, 10**12),
            help="Games of the whole run there; prints its [games] and [spsa].",
        ),
    ):
        command = option(command)
    return command


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--format", "kind", type=click.Choice(FORMATS), help="Default: what the file looks like."
)
@click.option(
    "--output", type=FileInFolder(), default="params.toml", show_default=True, help="What to write."
)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@click.option(
    "--write-config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also set [games] and [spsa] in this config.toml; its comments stay.",
)
@tune_options
def import_(
    file: Path,
    kind: str | None,
    output: Path,
    force: bool,
    write_config: Path | None,
    gains: Path | None,
    **plan: Any,
) -> None:
    """Write params.toml from FILE, in the format of another tuner.

    With --games, stdout has the [games] and [spsa] of config.toml with which the tune goes on
    here: the same gains after the same games. stderr says how everything was mapped.

    With --force, a parameter keeps the place in the engine's source that the replaced params.toml
    gives to the same name, however that is written: BetaMargin is beta_margin. With UCI options it
    is the option of its name.
    """
    if plan["games_per_iteration"] % 2:
        raise click.UsageError("--games-per-iteration is odd, and games come in pairs")
    if output.exists() and not force:
        raise InvalidInput.of(
            output, output.name, "is there already", "use --force, or --output for another place"
        )
    asked = Plan(gains={} if gains is None else gains_file(gains), **plan)
    read = read_file(file, kind, asked)
    tables = None if read.tune is None else _tables(file, read.tune, asked)
    config = write_config or output.parent / "config.toml"
    space, placed = _placed(read.space, _places(output, config))
    write_whole(output, (_header(file, read) + params_file(space)).encode())
    count = plural(len(space.parameters), "parameter")
    notes = () if read.tune is None else mapping_notes(read.tune)
    if placed:
        notes = (*notes, f"{placed:,} of them stay where they are in the source")
    echo(f"{output}: {count} of {file}, format {read.format}", *notes, err=True)
    if tables is None:
        if read.tune is not None:
            echo(f"no --games: the gains are not known, and {config} stays as it is", err=True)
        return
    echo_raw(tomli_w.dumps(tables))
    if write_config is not None:
        _set(write_config, tables)
        echo(f"{write_config}: [games] and [spsa] are those of the tune", err=True)


def _places(replaced: Path, config: Path) -> dict[str, Place]:
    """Where a params.toml for a source has its parameters, by their names' letters and digits.

    Nothing for a file that is missing or wrong, or that names UCI options.
    """
    if not replaced.exists() or _has_options(config):
        return {}
    try:
        known = load_space(replaced).parameters
    except InvalidInput:
        return {}
    options = any(parameter.option != parameter.name for parameter in known)
    return {} if options else {_letters(one.name): one.place for one in known}


def _has_options(config: Path) -> bool:
    """Whether a config.toml, if it is there, tunes UCI options: each is named as it is imported."""
    try:
        found = tomllib.loads(file_text(config))
    except (InvalidInput, tomllib.TOMLDecodeError):
        return False
    delivery = found.get("delivery")
    return isinstance(delivery, dict) and delivery.get("kind") == "uci"


def _placed(space: Space, places: Mapping[str, Place]) -> tuple[Space, int]:
    """The space with these places for what has none of its own, and how many it took."""
    found = {
        one.name: places[_letters(one.name)]
        for one in space.parameters
        if _letters(one.name) in places and one.place == Place(Location(one.name.upper()))
    }
    parameters = tuple(
        replace(one, place=found.get(one.name, one.place)) for one in space.parameters
    )
    return replace(space, parameters=parameters), len(found)


def _letters(name: str) -> str:
    return name.replace("_", "").lower()


def _tables(file: Path, tune: PeerTune, plan: Plan) -> dict[str, dict[str, object]] | None:
    """[games] and [spsa] with the gains of the tune; None if it has none."""
    if tune.schedule is None:
        return None
    if tune.schedule.rest(plan.games_per_iteration) < 1:
        played, games = tune.schedule.played, tune.schedule.games
        found = f"{played:,.0f} of {games:,.0f} games are played: no iteration is left"
        raise InvalidInput.of(file, file.name, found, "give --games and --played as they are there")
    return {
        "games": {"games_per_iteration": plan.games_per_iteration},
        "spsa": tune.schedule.settings(tune.r_end, plan.games_per_iteration),
    }


def _header(file: Path, read: Imported) -> str:
    name = file.name if file.name.isprintable() else "a file"
    return f"# Imported from {name}, format {read.format}. The master rewrites only `value`.\n\n"


def _set(config: Path, tables: Mapping[str, Mapping[str, object]]) -> None:
    """Write the tables into config.toml; keys and comments of [spsa] belong to another rule."""
    document: Any = tomlkit.parse(file_text(config))
    document.setdefault("games", tomlkit.table()).update(tables["games"])
    rule = tomlkit.table()
    rule.update(tables["spsa"])
    if (stop := document.get("spsa", {}).get("stop_when")) is not None:
        rule["stop_when"] = stop
    rule.add(tomlkit.nl())
    document["spsa"] = rule
    most = int(document["games"]["games_per_iteration"])  # without its comment
    if document["games"].get("batch_size", 0) > most:
        document["games"]["batch_size"] = most
    write_whole(config.resolve(), tomlkit.dumps(document).encode())
