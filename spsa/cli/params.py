"""`spsa-master params`: the space, what it does to the source, and changes of it in a run."""

import click

from spsa.cli.common import (
    actor,
    config_option,
    database_option,
    run_option,
    settings,
    theta_option,
)
from spsa.cli.params_export import chosen_values, export, setoption_lines, source_patch
from spsa.cli.params_import import import_
from spsa.config import Config, DeliveryKind, project_parameter
from spsa.config.section import MAX_NUMBER
from spsa.core.params import Space
from spsa.db.run_tables import Run
from spsa.db.store import open_store
from spsa.errors import InvalidInput
from spsa.history.steering import Addition, Edit, change_space
from spsa.live_display import working
from spsa.master.session import tuning_of
from spsa.master.start import addition_of, checked_space
from spsa.output import echo, echo_json, echo_raw
from spsa.report.events import changes_told
from spsa.report.plan import space_table
from spsa.report.text import terminal


@click.group()
def params() -> None:
    """Show, change, import or export the parameters; print tuned values as a patch."""


@params.command()
@config_option
@database_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def show(config: str | None, database_url: str | None, as_json: bool) -> None:
    """Show what params.toml tunes.

    All of it is checked against the engine first, as `run` does.
    """
    found = settings(config, database_url)
    space = _checked(found)
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
    """Print the values as a patch of the source, or as `setoption` lines.

    A patch is for `git apply`, in the folder of the engine's Cargo.toml. An empty one says that the
    source has these values already. With `kind = "uci"` each parameter is one line of UCI.
    """
    found = settings(config, database_url)
    space = _checked(found)
    values = chosen_values(found, space, run=run, start=start, theta=theta)
    if found.delivery.kind is DeliveryKind.UCI:
        echo_raw(setoption_lines(space, values))
    else:
        echo_raw(source_patch(found, space, values))


def _finite(_context: click.Context, _option: click.Parameter, value: float | None) -> float | None:
    if value is not None and not abs(value) <= MAX_NUMBER:  # nor nan
        raise click.BadParameter(f"{value:g} is not between {-MAX_NUMBER:g} and {MAX_NUMBER:g}")
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
@click.option("--add", is_flag=True, help="Tune it too: it is in params.toml, but not in the run.")
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
    add: bool,
    reason: str,
) -> None:
    """Change a parameter of an unfinished run, or add one.

    The change holds from the next iteration on. The run keeps all results, and theta moves only if
    it is outside the new bounds. The change is written to params.toml, too.

    A parameter to add is one more table of params.toml. Its value has to be the one that the engine
    has, because the results so far were played with it. Both knobs of an array are added together.
    """
    changes = (minimum, maximum, step, frozen) != (None,) * 4
    if changes == add:
        raise click.UsageError("give --min, --max, --step, --freeze or --thaw; or --add alone")
    active = None if frozen is None else not frozen
    edit = Edit(name=name, minimum=minimum, maximum=maximum, step=step, active=active)
    found = settings(config, database_url)
    with open_store(found.database_url) as store:
        chosen = store.run(run)
        wanted = _addition(found, chosen, name) if add else edit
        changed = change_space(store, chosen, tuning_of, wanted, actor(), reason)
        now = store.run(chosen.name)
    echo(*(f"{chosen.name}: {line}" for line in changes_told(changed)))
    try:
        for one in _names(wanted):
            project_parameter(found.params_path, Space.from_json(now.space), one)
    except InvalidInput as error:
        echo(f"note: params.toml keeps what it says: {error}", err=True)


def _names(wanted: Edit | Addition) -> tuple[str, ...]:
    partner = wanted.partner if isinstance(wanted, Addition) else None
    return (wanted.name,) if partner is None else (wanted.name, partner.name)


def _checked(config: Config) -> Space:
    with working("checking params.toml against the engine"):
        return checked_space(config)


def _addition(config: Config, run: Run, name: str) -> Addition:
    with working("checking it against the engine of the run"):
        return addition_of(config, run, name)


params.add_command(import_)
params.add_command(export)
