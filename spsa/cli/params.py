"""`spsa-master params`: the space, what it does to the source, and changes of it in a run."""

from collections.abc import Mapping
from math import isfinite

import click

from spsa.builds.sources import render, unified_patch
from spsa.cli.common import (
    actor,
    config_option,
    database_option,
    run_option,
    settings,
    theta_option,
)
from spsa.config import DeliveryKind, project_parameter, read_sources
from spsa.core.params import Space
from spsa.db.store import open_store
from spsa.errors import InvalidInput
from spsa.history.steering import Edit, change_space
from spsa.master.delivery_setup import source_of
from spsa.master.start import checked_space, tuning_of
from spsa.output import echo, echo_json, echo_raw
from spsa.report.plan import space_table
from spsa.report.text import terminal
from spsa.report.theta import Theta, chosen_theta


@click.group()
def params() -> None:
    """The parameter space: what it does to the source, and changes of it in a run."""


@params.command()
@config_option
@database_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def show(config: str | None, database_url: str | None, as_json: bool) -> None:
    """What params.toml would tune.

    All of it is checked against the engine first, as `run` does.
    """
    found = settings(config, database_url)
    space = checked_space(found)
    if as_json:
        echo_json(space.to_json())
    else:
        over_uci = found.delivery.kind is DeliveryKind.UCI
        terminal().print(space_table(space, over_uci=over_uci))


@params.command()
@config_option
@database_option
@click.option(
    "--run", metavar="NAME", help="The theta of this run instead of params.toml's values."
)
@click.option("--start", is_flag=True, help="With --run: the values it was started with.")
@theta_option
def diff(
    config: str | None, database_url: str | None, run: str | None, start: bool, theta: str | None
) -> None:
    """The values as a patch of the source, or as `setoption` lines.

    A patch is for `git apply`, in the folder of the engine's Cargo.toml. An empty one says that the
    source has these values already. With `kind = "uci"` each parameter is one line of UCI.
    """
    _refuse_contradictions(run, start, theta)
    found = settings(config, database_url)
    space = checked_space(found)
    wanted: Mapping[str, float] = {p.name: p.value for p in space.parameters}
    if run is not None:
        wanted = _values_of(found.database_url, run, start, theta)
    values = space.rounded(space.steps(wanted))
    if found.delivery.kind is DeliveryKind.UCI:
        lines = (f"setoption name {name} value {v}\n" for name, v in space.options(values).items())
        echo_raw("".join(lines))
        return
    source, constants = source_of(found), found.build.constants_file
    texts = read_sources(space, source, constants)
    for name, text in render(space, values, texts, constants).items():
        echo_raw(unified_patch(texts[name], text, name))


def _refuse_contradictions(run: str | None, start: bool, theta: str | None) -> None:
    if start and theta is not None:
        raise click.UsageError("--start and --theta name two different sets of values")
    if run is None and (start or theta is not None):
        given = "--start" if start else "--theta"
        raise click.UsageError(f"{given} is about a run: name it with --run NAME")


def _values_of(database_url: str, name: str, start: bool, theta: str | None) -> Mapping[str, float]:
    with open_store(database_url) as store:
        run = store.run(name)
    return run.start_theta if start else chosen_theta(run, Theta(theta or Theta.FINAL))


def _finite(_context: click.Context, _option: click.Parameter, value: float | None) -> float | None:
    if value is not None and not isfinite(value):
        raise click.BadParameter(f"{value} is not a finite number")
    return value


@params.command("set")
@config_option
@database_option
@run_option
@click.argument("name", metavar="NAME")
@click.option(
    "--min", "minimum", type=float, callback=_finite, metavar="X", help="Its least value."
)
@click.option(
    "--max", "maximum", type=float, callback=_finite, metavar="X", help="Its greatest value."
)
@click.option("--step", type=float, callback=_finite, metavar="X", help="Its step.")
@click.option(
    "--freeze/--thaw",
    "frozen",
    default=None,
    help="Keep it where it is, or tune it again.",
)
@click.option("--reason", default="by its owner", show_default=True, help="Shown in the events.")
def set_(
    config: str | None,
    database_url: str | None,
    run: str | None,
    name: str,
    minimum: float | None,
    maximum: float | None,
    step: float | None,
    frozen: bool | None,
    reason: str,
) -> None:
    """Change a parameter of a run that goes on, from its next iteration on.

    The run keeps all results, and theta moves only if it is outside the new bounds. The change is
    written to params.toml, too.
    """
    if (minimum, maximum, step, frozen) == (None,) * 4:
        raise click.UsageError("give --min, --max, --step, --freeze or --thaw")
    active = None if frozen is None else not frozen
    edit = Edit(name=name, minimum=minimum, maximum=maximum, step=step, active=active)
    found = settings(config, database_url)
    with open_store(found.database_url) as store:
        chosen = store.run(run)
        changed = change_space(store, chosen, tuning_of, edit, actor(), reason)
        now = store.run(chosen.name)
    for key, values in changed.items():
        if key != "parameter":
            echo(f"{chosen.name}: {name}: {key} was {values['was']} and is {values['is']}")
    try:
        project_parameter(found.params_path, Space.from_json(now.space), name)
    except InvalidInput as error:
        echo(f"note: params.toml keeps what it says: {error}", err=True)
