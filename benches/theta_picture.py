"""Draw the path of theta in a run: `python -m benches.theta_picture DATABASE RUN PICTURE`.

DATABASE is an SQLite file; matplotlib comes with `pip install -e '.[plot]'`.
"""

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path

import click
import matplotlib.pyplot as plt

PATHS = "SELECT name, k, value FROM spsa_param_history WHERE run = ? ORDER BY name, k"
SPACE = "SELECT space FROM spsa_run WHERE name = ?"
GAMES = "SELECT MAX(target_games) FROM spsa_progress WHERE run = ? AND purpose = 'tune'"
MATCH = """SELECT elo, games_played FROM spsa_progress
            WHERE run = ? AND purpose = 'validate' AND status = 'complete'
            ORDER BY iteration_number DESC"""


def paths(database: sqlite3.Connection, run: str) -> dict[str, list[tuple[int, float]]]:
    """Parameter -> (iteration, value in the units of params.toml)."""
    found: dict[str, list[tuple[int, float]]] = {}
    for name, k, value in database.execute(PATHS, (run,)):
        found.setdefault(name, []).append((k, value))
    return found


def steps(database: sqlite3.Connection, run: str) -> Mapping[str, float]:
    (text,) = database.execute(SPACE, (run,)).fetchone()
    return {parameter["name"]: parameter["step"] for parameter in json.loads(text)["parameters"]}


def draw(database: sqlite3.Connection, run: str, picture: Path) -> None:
    """Write a picture of a run that has a match: games played, and steps from the start."""
    step = steps(database, run)
    (games,) = database.execute(GAMES, (run,)).fetchone()
    elo, played = database.execute(MATCH, (run,)).fetchone()
    plt.rcParams["svg.hashsalt"] = "spsa-tuner"  # the same database gives the same file
    figure, axes = plt.subplots(figsize=(8, 4))
    for name, path in paths(database, run).items():
        start = path[0][1]
        axes.plot(
            [k * games for k, _ in path],
            [(value - start) / step[name] for _, value in path],
            label=name,
        )
    axes.axhline(0, color="grey", linewidth=0.5)
    axes.set_xlabel("games played")
    axes.set_ylabel("steps from the start")
    axes.set_title(f"tuned against start: {elo:+.0f} Elo in {played} games")
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(picture, bbox_inches="tight", metadata={"Date": None})


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("database", type=click.Path(exists=True, dir_okay=False))
@click.argument("run")
@click.argument("picture", type=click.Path(dir_okay=False, path_type=Path))
def main(database: str, run: str, picture: Path) -> None:
    """Draw the path of theta of a RUN in an SQLite file, and its match."""
    draw(sqlite3.connect(database), run, picture)


if __name__ == "__main__":
    main()
