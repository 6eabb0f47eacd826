"""`spsa-master plan`."""

from typing import Any

import click

from spsa.cli.common import config_option, database_option, settings
from spsa.cli.planning import Assumed, assumption_options, known, precision_asked
from spsa.lab.planning.plan import plan as planned
from spsa.master.start import checked_space
from spsa.output import echo_json
from spsa.report.plan import planned_json, planned_text
from spsa.report.text import terminal


@click.command()
@config_option
@database_option
@assumption_options
@click.option(
    "--precision",
    type=click.FloatRange(min=0.0, min_open=True),
    help="For the rule constant: Elo to end within; default: a tenth of what there is to gain.",
)
@click.option(
    "--confidence",
    type=click.FloatRange(0.0, 1.0, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="And how surely.",
)
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON object, for programs.")
def plan(
    config: str | None,
    database_url: str | None,
    precision: float | None,
    confidence: float,
    seed: int,
    as_json: bool,
    **assumed: Any,
) -> None:
    """What the run of these files will take and bring, before anything is played.

    Simulates the rule with its settings on engines that all have the Elo to gain.
    """
    found = settings(config, database_url)
    asked = known(found, checked_space(found), Assumed(**assumed), replicas=32, seed=seed)
    designs = precision_asked(asked.question, precision, confidence)
    with terminal(stderr=True).status("tuning synthetic engines"):
        answer = planned(asked.question)
    if as_json:
        echo_json(planned_json(asked.question, answer, asked.sources, designs))
    else:
        terminal().print(planned_text(asked.question, answer, asked.sources, designs))
