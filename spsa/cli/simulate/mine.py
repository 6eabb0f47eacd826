"""`spsa-master simulate mine`."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spsa.cli.common import (
    Assumed,
    assumption_options,
    config_option,
    database_option,
    settings,
)
from spsa.cli.plan import known
from spsa.cli.simulate.jobs import JobPool, processes_option, seed_option
from spsa.cli.simulate.pictures import Curve, Picture, plot_option, save
from spsa.lab.planning.precision import alternatives
from spsa.live_display import working
from spsa.master.start import checked_space
from spsa.output import echo_json
from spsa.report.plan import alternatives_json, alternatives_table
from spsa.report.text import sentence, terminal

if TYPE_CHECKING:
    from spsa.lab.planning.recovery import Recovery

Found = dict[tuple[str, float], "Recovery"]
"""What every alternative recovers of every stake."""


@click.command()
@config_option
@database_option
@assumption_options
@click.option(
    "--replicas",
    type=click.IntRange(min=2),
    default=100,
    show_default=True,
    help="Simulated runs of each.",
)
@processes_option
@seed_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
@plot_option
def mine(
    config: str | None,
    database_url: str | None,
    replicas: int,
    processes: int,
    seed: int,
    as_json: bool,
    plot: Path | None,
    **assumed: Any,
) -> None:
    """What the run of your own files will recover, and whether other settings would do better.

    All alternatives tune the same engines, drawn with the Elo to gain, by the same seed.
    """
    files = settings(config, database_url)
    with working("finding what games and builds take"):
        asked = known(files, checked_space(files), Assumed(**assumed), replicas=replicas, seed=seed)
    found = _recoveries(asked.inputs, processes)
    if plot is not None:
        save(_picture(found), plot)
    if as_json:
        echo_json(alternatives_json(found, asked.sources))
        return
    console = terminal()
    for source in asked.sources:
        console.print(sentence(source))
    for elo_to_gain in asked.inputs.elos_to_gain:
        console.print("", alternatives_table(found, elo_to_gain), sep="\n")


def _recoveries(inputs: Any, processes: int) -> Found:
    jobs = {
        (name, elo_to_gain): partial(inputs.recovery, design, elo_to_gain)
        for name, design in alternatives(inputs.design)
        for elo_to_gain in inputs.elos_to_gain
    }
    done = dict(JobPool(processes, "tuning synthetic engines").finished(jobs))
    return {key: done[key] for key in jobs}


def _picture(found: Found) -> Picture:
    """The part recovered by how much there is to gain, a curve an alternative."""
    return Picture(
        title="What the run would recover",
        x_label="Elo to gain",
        y_label="part recovered",
        curves=[_curve(found, name) for name in dict.fromkeys(name for name, _ in found)],
        x_log=True,
    )


def _curve(found: Found, name: str) -> Curve:
    chosen = {elo_to_gain: recovery for (at, elo_to_gain), recovery in found.items() if at == name}
    return Curve(
        label=name,
        x=list(chosen),
        y=[recovery.mean for recovery in chosen.values()],
        error=[recovery.error for recovery in chosen.values()],
    )
