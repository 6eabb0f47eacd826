"""`python -m benches.proof`: plays what is not yet played and prints the tables."""

import sys
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import click

from benches.proof.markdown import markdown
from benches.proof.places import HERE, RULES, Place, Plan, places
from benches.proof.playing import Against, Between, Hall
from benches.proof.verdict import Proof
from spsa.cli.demo import worker_beside
from spsa.cli.held_run import interruptible
from spsa.db import Store, migrate
from spsa.errors import TuningError
from spsa.report.matches import ThetaChoice
from spsa.report.table import terminal
from spsa.uci import system

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
@click.option(
    "--engine",
    "tuning",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=HERE,
    help="Another engine: the folder of its config.toml and params.toml, as `init` writes them.",
)
@click.option(
    "--detune",
    type=int,
    default=1,
    show_default=True,
    help="The seed of where its parameters start, two steps from their values at most.",
)
@click.option("--rule", "rules", multiple=True, default=RULES, show_default=True)
@click.option("--seed", "seeds", multiple=True, type=int, default=(1,), show_default=True)
@click.option("--iterations", type=_ONE, help="Of each run.")
@click.option("--games", type=_FEW, help="Of an iteration.")
@click.option("--match-games", type=_FEW, help="Against the untouched engine, after each run.")
@click.option(
    "--between-games",
    type=_FEW,
    help="At most, of a result with its start and another result; default: none.",
)
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
    thetas: Sequence[str],
    between_games: int | None,
    concurrency: int | None,
    **plan: Any,
) -> int:
    """An engine, detuned, is tuned by several rules and measured against the original.

    What is left out is as in its config.toml, or in benches/proof/config.toml. Stop it at any
    moment, by any means: the same command goes on.
    """
    plan["tuning"] = plan["tuning"].resolve()
    found = _played(
        list(places(Plan(**plan), folder.resolve())),
        [ThetaChoice(name) for name in thetas],
        between_games,
        concurrency or len(system.logical_cores()),
    )
    if found is None:
        return 130
    click.echo(markdown(found))
    return 0


def _played(
    where: Sequence[Place], thetas: Sequence[ThetaChoice], between_games: int | None, slots: int
) -> Proof | None:
    """Everything there is to play; None when it was stopped before the end."""
    first = where[0].config()
    migrate.upgrade(first.database.url)
    with (
        interruptible() as stopping,
        Store(first.database.url) as store,
        worker_beside(first, where[0].folder.parent, slots, *_LEASE),
    ):
        hall = Hall(store, terminal(stderr=True), stopping)
        return _proof(hall, where, thetas, between_games)


def _proof(
    hall: Hall, where: Sequence[Place], thetas: Sequence[ThetaChoice], between_games: int | None
) -> Proof | None:
    matches: list[Against] = []
    for place in where:
        run = hall.tuned(place.config())
        for which in thetas:
            match = None if run is None else hall.measured(place, run, which)
            if match is None:
                return None
            matches.append(match)
    start = hall.measured(where[0], matches[0].run, None)
    between = _between(hall, where, between_games) if between_games else ()
    if start is None or between is None:
        return None
    return Proof.of(start, tuple(matches), between)


def _between(hall: Hall, where: Sequence[Place], most: int) -> tuple[Between, ...] | None:
    """Each result with its start, then each two of a seed, the later rule first."""
    runs = {place: hall.store.run(place.folder.name) for place in where}
    pairs = [(one, later) for one, later in combinations(where, 2) if one.seed == later.seed]
    found: list[Between] = []
    for first, later in (*((None, place) for place in where), *pairs):
        other = None if first is None else runs[first]
        match = hall.between(later.config(), runs[later], other, most)
        if match is None:
            return None
        found.append(match)
    return tuple(found)


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
