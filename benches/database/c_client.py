"""Closed loops of pgbench, a client in C: what is measured is the server."""

import os
import subprocess
import tempfile
from pathlib import Path

from benches.database.loop import Measured, measured
from benches.database.scene import BARE_POLL, BARE_REPORT
from spsa.store.reports import REPORTED

_RESULT = dict.fromkeys(REPORTED, "0") | {"draws": "2", "ptnml_2": "1", "voids": "'{}'"}
_TOLD = ", ".join(f"p_{name} => {value}" for name, value in _RESULT.items())
_OURS = """
SELECT id AS batch, claim_id AS claim
  FROM spsa_claim(gen_random_uuid()::text, :client_id + 1, 600, random()) \\gset
SELECT spsa_report(p_batch_id => :batch, p_claim_id => :claim, p_void_games => 0, TOLD);
""".replace("TOLD", _TOLD)
_BARE = f"{BARE_POLL.strip()};\n{BARE_REPORT.strip()};\n"
SCHEMES = {"ours": (_OURS, "off"), "bare increment": (_BARE, "on")}
"""Scheme -> what one cycle says, and whether a worker's commit waits for the disk."""


def play(programs: Path, url: str, scheme: str, connections: int, seconds: float) -> Measured:
    """As many cycles as `connections` make in so many seconds."""
    script, synchronous = SCHEMES[scheme]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "cycle.sql")
        path.write_text(script)
        command = [programs / "pgbench", "-n", "-M", "prepared", "-f", path, "-c", connections]
        command += ["-j", min(2, connections), "-T", max(1, round(seconds)), "-l", url]
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
