"""Closed loops of pgbench, a client in C: what is measured is the server."""

import math
import os
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

from benches.database.loop import Measured, measured
from benches.database.scene import BARE_POLL, BARE_REPORT, DONE, moving, shell

# where nothing is free, the report is of no batch, and counts nothing
_OURS = """
\\set worker :client_id + 1
SELECT coalesce(max(id), 0) AS batch, coalesce(max(claim_id), '-') AS claim
  FROM spsa_claim(:worker, 'bench-' || :worker, gen_random_uuid()::text, random(), 600) \\gset
SELECT spsa_report(
    :batch, :claim, 0, 0, 2, 0, 0, 1, 0, 0, 0, '{}', 0, 0, 80, 0, 0, 1.5, 1.2, 0, 1.0);
"""
_BARE = f"{BARE_POLL.strip()};\n{BARE_REPORT.strip()};\n"


_WARM = 0.05
"""Seconds that one session takes to plan all its statements on a busy core; then it counts."""


def play(programs: Path, url: str, bare: bool, connections: int, seconds: float) -> Measured:
    """As many cycles as `connections` make in so many seconds; ours are batches that count."""
    if bare:
        return _play(programs, url, _BARE, "on", connections, seconds)
    with moving(url):
        found = _play(programs, url, _OURS, "off", connections, seconds)
    with shell(url) as connection:
        counted = int(connection.scalar(DONE) or 0)
    return replace(found, rate=found.rate * min(1, counted / found.cycles))


def _play(
    programs: Path, url: str, script: str, synchronous: str, connections: int, seconds: float
) -> Measured:
    """A script in a closed loop; `synchronous` is whether a commit waits for the disk."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "cycle.sql")
        path.write_text(script)
        lasting = math.ceil(1 + _WARM * connections + seconds)
        command = [programs / "pgbench", "-n", "-M", "prepared", "-f", path, "-c", connections]
        command += ["-j", min(2, connections), "-T", lasting, "-l", url]
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
    ended_at = [float(line[4]) + float(line[5]) / 1e6 for line in lines]
    end = max(ended_at)
    late = [
        float(line[2]) / 1000
        for line, at in zip(lines, ended_at, strict=True)
        if at > end - seconds
    ]
    return measured(late, seconds, len(lines))
