"""`spsa-master params export`, and the values that `params diff` prints."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import click

from spsa.builds.sources import render, unified_patch
from spsa.cli.common import Command, config_option, database_of, settings, url_option
from spsa.config import Config, load_space, read_sources
from spsa.config.document import as_number
from spsa.config.formats import PEERS
from spsa.config.peer import USUAL_R_END, PeerParameter, peer_parameters
from spsa.config.projection import params_file, params_json
from spsa.core.params import Space
from spsa.db import Store
from spsa.db.tables import Run
from spsa.errors import MAX_FAULTS, Fault, InvalidInput
from spsa.master.delivery_setup import source_of
from spsa.output import echo, echo_raw
from spsa.report.theta import ThetaChoice, chosen_theta
from spsa.text import plural

_OWN: Mapping[str, Callable[[Space], str]] = {"toml": params_file, "json": params_json}
EXPORTS = (*PEERS, *_OWN)


Values = Mapping[str, float]


START = "start"


def values_options(command: Command) -> Command:
    """The options that name the values of a run."""
    run_option = click.option(
        "--run", metavar="NAME", help="The theta of this run instead of params.toml's values."
    )
    theta_option = click.option(
        "--theta",
        type=click.Choice([START, *(theta.value for theta in ThetaChoice)]),
        help="With --run; start: what it was started with; final (default): theta now; averaged: "
        "the mean over iterations, late ones weigh more; supported: the optimum that all games "
        "together suggest.",
    )
    return run_option(theta_option(command))


def chosen_values(config: Config, space: Space, *, run: str | None, theta: str | None) -> Values:
    """The values by parameter: those of params.toml, unless a run is named."""
    _refuse_without_run(run, theta)
    if run is None:
        return {p.name: p.value for p in space.parameters}
    with Store(config.database.url) as store:
        return _values_of(store.run(run), theta)


def _refuse_without_run(run: str | None, theta: str | None) -> None:
    if run is None and theta is not None:
        raise click.UsageError("--theta is about a run: name it with --run NAME")


def _values_of(run: Run, theta: str | None) -> Values:
    if theta == START:
        return run.start_theta
    return chosen_theta(run, ThetaChoice(theta or ThetaChoice.FINAL))


def setoption_lines(space: Space, values: Values) -> str:
    """One line of UCI for each parameter, rounded as the engine gets it."""
    rounded = space.rounded(space.steps(values))
    return "".join(
        f"setoption name {name} value {v}\n" for name, v in space.options(rounded).items()
    )


def source_patch(config: Config, space: Space, values: Values) -> str:
    """What `git apply` puts into the source; empty if it has these values already."""
    source, constants = source_of(config), config.build.constants_file
    texts = read_sources(space, source, constants)
    rendered = render(space, space.rounded(space.steps(values)), texts, constants)
    return "".join(unified_patch(texts[name], text, name) for name, text in rendered.items())


@click.command("export")
@config_option
@url_option
@click.option(
    "--format", "kind", type=click.Choice(EXPORTS), required=True, help="What to write to stdout."
)
@values_options
def export(
    config: str | None,
    database_url: str | None,
    kind: str,
    run: str | None,
    theta: str | None,
) -> None:
    """The parameters in the format of another tuner, or of this one.

    Without --run those of params.toml, for which a config.toml is not needed. `params diff` prints
    the values alone, as the engine gets them.
    """
    _refuse_without_run(run, theta)
    if run is None:
        source = _of_file(config, database_url)
    else:
        with Store(database_of(config, database_url)) as store:
            row = store.run(run)
        space = _with_values(Space.from_json(row.space), _values_of(row, theta))
        source = _Source(f"run {row.name}", space, row.settings["rule"])
    if kind in _OWN:
        echo_raw(_OWN[kind](source.space))
        return
    each = tuple(source.peers())
    if not PEERS[kind].has_fractions:
        _refuse_fractions(source.name, each)
    echo_raw(PEERS[kind].write(each))
    if left := len(source.space.parameters) - len(each):
        echo(f"{plural(left, 'frozen parameter')} left out", err=True)


@dataclass(frozen=True, slots=True)
class _Source:
    """What is exported: parameters with their values, and the settings of the rule beside them."""

    name: str
    space: Space
    rule: Mapping[str, object]

    def peers(self) -> Iterable[PeerParameter]:
        c_end, r_end = (as_number(self.rule.get(key)) for key in ("c_end", "r_end"))
        values = {p.name: p.value for p in self.space.parameters}
        return peer_parameters(self.space, values, c_end=c_end or 1.0, r_end=r_end or USUAL_R_END)


def _of_file(config: str | None, database_url: str | None) -> _Source:
    """What params.toml says; without a config.toml, that of this folder."""
    if config is None and not Path("config.toml").exists():
        path = Path("params.toml")
        return _Source(str(path), load_space(path), {})
    found = settings(config, database_url)
    return _Source(str(found.run.params), load_space(found.run.params), found.spsa.settings)


def _with_values(space: Space, values: Mapping[str, float]) -> Space:
    parameters = (replace(p, value=values.get(p.name, p.value)) for p in space.parameters)
    return replace(space, parameters=tuple(parameters))


def _refuse_fractions(file: str, parameters: Iterable[PeerParameter]) -> None:
    faults = [
        Fault(
            file=file,
            line=p.line,
            name=p.name,
            found="is no whole number, and this format has no others",
            remedy="give it a scale, or export it to openbench or json",
        )
        for p in parameters
        if not p.integral
    ]
    if faults:
        raise InvalidInput(faults[:MAX_FAULTS])
