"""`python -m benches.proof`: plays what is not yet played and prints the tables."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from benches.proof.markdown import markdown
from benches.proof.places import RULES, Plan, places
from benches.proof.playing import Against, Hall
from benches.proof.verdict import Proof
from spsa.cli.demo import worker_beside
from spsa.cli.held_run import interruptible
from spsa.config import Config, load_config
from spsa.db import Store, migrate
from spsa.errors import TuningError
from spsa.report.table import terminal
from spsa.report.theta import ThetaChoice
from spsa.uci.system import logical_cores

_FEW = click.IntRange(min=2)
_ONE = click.IntRange(min=1)
_LEASE = ("--lease", "15")  # seconds until a worker that was killed is missed; this one is near


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=".tuning/proof",
    show_default=True,
    help="Where the runs and their database are, and go on.",
)
@click.option("--rule", "rules", multiple=True, default=RULES, show_default=True)
@click.option("--seed", "seeds", multiple=True, type=int, default=(1,), show_default=True)
@click.option("--iterations", type=_ONE, help="Of each run.")
@click.option("--games", type=_FEW, help="Of an iteration.")
@click.option("--match-games", type=_FEW, help="Against the untouched engine, after each run.")
@click.option("--nodes", type=_ONE, help="A move.")
@click.option("--untouched", is_flag=True, help="Start at the engine's own values, not detuned.")
@click.option(
    "--theta",
    "thetas",
    multiple=True,
    type=click.Choice([theta.value for theta in ThetaChoice]),
    default=[ThetaChoice.FINAL.value],
    show_default=True,
    help="Which values of each run are measured.",
)
@click.option("-c", "--concurrency", type=_ONE, help="Default: one game a core.")
def proof(
    folder: Path,
    rules: Sequence[str],
    seeds: Sequence[int],
    iterations: int | None,
    games: int | None,
    match_games: int | None,
    nodes: int | None,
    untouched: bool,
    thetas: Sequence[str],
    concurrency: int | None,
) -> int:
    """The bundled engine, detuned, is tuned by several rules and measured against the original.

    What is left out is as in benches/proof/config.toml. Stop it at any moment, by any means: the
    same command goes on.
    """
    plan = Plan(
        rules=rules,
        seeds=seeds,
        iterations=iterations,
        games=games,
        match_games=match_games,
        nodes=nodes,
        untouched=untouched,
    )
    configs = [load_config(place.config, {}) for place in places(plan, folder)]
    found = _played(
        configs, [ThetaChoice(name) for name in thetas], folder, concurrency or len(logical_cores())
    )
    if found is None:
        return 130
    click.echo(markdown(found))
    return 0


def _played(
    configs: Sequence[Config], thetas: Sequence[ThetaChoice], folder: Path, slots: int
) -> Proof | None:
    """Everything there is to play; None when it was stopped before the end."""
    first = configs[0]
    migrate.upgrade(first.database.url)
    with (
        interruptible() as stopping,
        Store(first.database.url) as store,
        worker_beside(first, folder, slots, *_LEASE),
    ):
        return _proof(Hall(store, terminal(stderr=True), stopping), configs, thetas)


def _proof(hall: Hall, configs: Sequence[Config], thetas: Sequence[ThetaChoice]) -> Proof | None:
    matches: list[Against] = []
    for config in configs:
        run = hall.tuned(config)
        for which in thetas:
            match = None if run is None else hall.measured(config, run, which)
            if match is None:
                return None
            matches.append(match)
    start = hall.measured(configs[0], matches[0].run, None)
    return None if start is None else Proof.of(start, tuple(matches))


def main() -> None:
    """Every failure ends in one sentence and its exit code."""
    try:
        code = proof.main(standalone_mode=False)
    except TuningError as error:
        click.echo(f"proof: {error}", err=True)
        code = error.exit_code
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    sys.exit(code)


if __name__ == "__main__":
    main()
