"""Closed loops of pgbench, a client in C: what is measured is the server."""

import os
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import sqlalchemy as sa
from spsa.store.reports import REPORTED

from benches.database.loop import Measured, measured
from benches.database.scene import BARE_POLL, BARE_REPORT, shell

_RESULT = dict.fromkeys(REPORTED, "0") | {
    "draws": "2",
    "ptnml_2": "1",
    "voids": "'{}'::json",
    "moves": "80",
    "seconds": "1.5",
    "batch_id": "id",
    "claim_id": "claim_id",
    "void_games": "0",
}
_TOLD = ", ".join(f"'{name}', {value}" for name, value in _RESULT.items())
# what is reported in a call is what the last one gave: the server makes its text from its own
# answer, which a worker would do itself
_OURS = """
SELECT coalesce(json_agg(json_build_object(TOLD)), '[]') AS played FROM spsa_exchange(
    :played, ARRAY[IDS], ARRAY[LOTS], :client_id + 1, 600) WHERE id IS NOT NULL \\gset
""".replace("TOLD", _TOLD)


def _ours(slots: int) -> str:
    """Hand in what the last call gave, and take out a batch for each slot."""
    ids, lots = ", ".join(["gen_random_uuid()::text"] * slots), ", ".join(["random()"] * slots)
    return _OURS.replace("IDS", ids).replace("LOTS", lots)


_BARE = f"{BARE_POLL.strip()};\n{BARE_REPORT.strip()};\n"
_DONE = "SELECT count(*) FROM spsa_batch WHERE status = 'done'"


def play(
    programs: Path, url: str, scheme: str, connections: int, slots: int, seconds: float
) -> Measured:
    """As many cycles as `connections` make in so many seconds; ours are batches that were counted.

    `slots` is how many batches one call of ours hands in and takes out.
    """
    if scheme != "ours":
        return _play(programs, url, _BARE, "on", connections, seconds)
    found = _play(programs, url, _ours(slots), "off", connections, seconds)
    with shell(url) as connection:
        return replace(found, rate=int(connection.scalar(sa.text(_DONE)) or 0) / seconds)


def _play(
    programs: Path, url: str, script: str, synchronous: str, connections: int, seconds: float
) -> Measured:
    """A script in a closed loop; `synchronous` is whether a commit waits for the disk."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "cycle.sql")
        path.write_text(script)
        command = [programs / "pgbench", "-n", "-M", "prepared", "-f", path, "-c", connections]
        command += ["-D", "played=[]", "-j", min(2, connections)]
        command += ["-T", max(1, round(seconds)), "-l", url]
        ended = subprocess.run(
            [str(word) for word in command],
            cwd=folder,
            capture_output=True,
            text=True,
            env={**os.environ, "PGOPTIONS": f"-c synchronous_commit={synchronous}"},
        )
        if ended.returncode != 0:
            raise RuntimeError(f"pgbench: {ended.stderr}")
        logs = Path(folder).glob("pgbench_log.*")
        # client, transaction, microseconds, script, second, microsecond
        lines = [line.split() for log in logs for line in log.read_text().splitlines()]
    return measured([float(line[2]) / 1000 for line in lines], max(1, round(seconds)))
