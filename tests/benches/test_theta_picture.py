"""The picture of a run has a line for each parameter and the result of the match."""

import sqlite3
from pathlib import Path

from builders import THETA, new_validation, stage

from benches.theta_picture import draw, paths
from spsa.db import Store


def test_a_run_with_a_match_is_drawn(sqlite_url: str, tmp_path: Path) -> None:
    space = {"parameters": [{"name": name, "step": 2.0} for name in THETA]}
    with Store(sqlite_url) as store:
        tuned = stage(store, space=space)
        tuned.whole_iteration()
        tuned.whole_iteration()
        store.open_iteration(tuned.master, new_validation())
        tuned.play("match")
        match = store.tick(tuned.master, 60.0).open[0]
        store.complete_validation(tuned.master, match.id, 12.0)
    database = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))
    assert {name: len(path) for name, path in paths(database, "first").items()} == dict.fromkeys(
        THETA, 3
    )
    draw(database, "first", tmp_path / "first.svg")
    drawn = (tmp_path / "first.svg").read_text(encoding="utf-8")
    assert f"{match.tally.games} games" in drawn
    assert all(f"<!-- {name} -->" in drawn for name in THETA)
