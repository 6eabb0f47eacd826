"""What a playing worker has loaded: its database's driver, the rules, and little else."""

import json
import sys
from pathlib import Path

import pytest
from asking import Store
from builders import NODES
from console import call
from trials import opened

NEVER = {
    *("alembic", "chess.engine", "chess.pgn", "chess.svg", "http.client", "urllib3"),
    *("multiprocessing", "numpy", "pydantic", "rich", "spsa.config", "spsa.master"),
    *("tomlkit", "tree_sitter", "xml"),
}
OF_A_SERVER = frozenset({"psycopg2", "spsa.db.postgresql"})

START = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(sorted(sys.modules))))
from worker.cli import main
main()
"""


@pytest.fixture
def loaded(database_url: str, tmp_path: Path) -> frozenset[str]:
    """The modules of a worker at its end, after a batch."""
    with Store(database_url) as store:
        opened(store, tmp_path, NODES)
    command = [sys.executable, "-c", START, "--spsa", "-c", "1", "--max-batches", "1"]
    done = call(command, tmp_path, DATABASE_URL=database_url, XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    return frozenset(json.loads(done.stdout))


@pytest.mark.slow
def test_a_worker_loads_only_what_it_plays_with(loaded, database_url):
    of_a_server = OF_A_SERVER if database_url.startswith("postgresql") else set()
    assert loaded & (NEVER | OF_A_SERVER) == of_a_server
