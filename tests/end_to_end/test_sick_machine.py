"""One machine among four spoils games: it stands out, is set aside, and its results are purged."""

from pathlib import Path

import pytest
from tuner import Tuner, before_each_answer, uci_tuner

pytestmark = pytest.mark.timeout(600)

CRASHES = """\
import os as _os, random as _random, sys as _sys
if "sick" in _sys.argv and _random.random() < 0.015:
    _os._exit(1)
"""


def prepared(folder: Path, url: str) -> Tuner:
    """A run of short games, whose engine now and then crashes on the machine `sick`."""
    tuner = uci_tuner(folder, url, iterations=500)
    tuner.configure("games_per_iteration = 4", "games_per_iteration = 16")
    tuner.configure(
        "max_moves = 20", "max_moves = 5\n[notify]\nafter = 1\n[fleet]\nset_aside = true"
    )
    before_each_answer(folder / "optional.py", CRASHES)
    engine = folder / "optional"
    start = engine.read_text().rstrip()
    chosen = 'case "$0" in */sick/*) what=sick;; esac\n'
    engine.write_text(start.replace("exec", f"{chosen}exec") + " $what\n")
    return tuner


@pytest.mark.slow
@pytest.mark.long_on("postgresql")
def test_a_planted_sick_machine_is_found_set_aside_and_purged(tmp_path, database_url, sql):
    tuner = prepared(tmp_path / "run", database_url)
    tuner.master()
    tuner.wait_for_work()
    for machine in ("sick", "one", "two", "three"):
        tuner.worker("--idle-timeout", 600, machine=machine)
    tuner.until(lambda _: sql("SELECT machine FROM spsa_set_aside"))
    tuner.kill_all()
    ((sick, sha256, reason),) = sql("SELECT machine, sha256, reason FROM spsa_set_aside")
    assert sha256 is None and "batches had a void game" in reason
    faulty = sql(
        "SELECT w.host FROM spsa_batch b JOIN spsa_worker w ON w.id = b.worker_id"
        " GROUP BY w.host HAVING MAX(LENGTH(CAST(b.voids AS TEXT))) > 4"
    )
    assert [row.host for row in faulty] == [sick]
    dry = tuner.ask("purge", "--host", sick, "--dry-run").stdout
    assert "games in" in dry and "purge 1" not in dry
    listed = tuner.ask_json("workers", "list")["workers"]
    shown = {one["machine"]: one["against_others"] for one in listed}
    assert [name for name, one in shown.items() if one["is_suspect"]] == [sick]
    assert len(shown) == 4 and shown[sick]["findings"][0]["kind"] == "worker_voids"
    tuner.ask("purge", "--host", sick, "--yes")
    ((count,),) = sql(
        "SELECT COUNT(*) FROM spsa_batch b JOIN spsa_worker w ON w.id = b.worker_id"
        " WHERE w.host = :sick AND b.status = 'done'",
        sick=sick,
    )
    assert count == 0
    tuner.ask("doctor")
