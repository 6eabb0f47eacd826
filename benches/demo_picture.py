"""Draw the path of theta in a demo: `python -m benches.demo_picture DATABASE PICTURE`.

Needs matplotlib: `pip install -e '.[plot]'`.
"""

import json
import sqlite3
import sys
from collections.abc import Mapping
from pathlib import Path

import matplotlib.pyplot as plt

PATHS = "SELECT name, k, value FROM spsa_param_history WHERE run = 'demo' ORDER BY name, k"
MATCH = """SELECT elo, games_played FROM spsa_progress
            WHERE run = 'demo' AND purpose = 'validate' AND status = 'complete'"""
GAMES = "SELECT MAX(target_games) FROM spsa_progress WHERE run = 'demo' AND purpose = 'tune'"


def paths(database: sqlite3.Connection) -> dict[str, list[tuple[int, float]]]:
    """Parameter -> (iteration, value in the units of params.toml)."""
    found: dict[str, list[tuple[int, float]]] = {}
    for name, k, value in database.execute(PATHS):
        found.setdefault(name, []).append((k, value))
    return found


def steps(database: sqlite3.Connection) -> Mapping[str, float]:
    (text,) = database.execute("SELECT space FROM spsa_run WHERE name = 'demo'").fetchone()
    return {parameter["name"]: parameter["step"] for parameter in json.loads(text)["parameters"]}


def draw(database: sqlite3.Connection, picture: Path) -> None:
    """Write a picture of the run `demo`: games played, and how many steps theta has moved."""
    step = steps(database)
    (games,) = database.execute(GAMES).fetchone()
    elo, played = database.execute(MATCH).fetchone()
    plt.rcParams["svg.hashsalt"] = "spsa-tuner"  # the same database gives the same file
    figure, axes = plt.subplots(figsize=(8, 4))
    for name, path in paths(database).items():
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


if __name__ == "__main__":
    draw(sqlite3.connect(sys.argv[1]), Path(sys.argv[2]))
