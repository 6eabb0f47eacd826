"""What workers that find nothing to do cost the server."""

import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benches.database.server import seconds_of_cpu
from worker.batches.database_client import POLL

CONNECTIONS = 250
_POLL = """
\\set worker :client_id + 1
SELECT * FROM spsa_claim(
    :worker, 'bench-' || :worker, gen_random_uuid()::text, random(), 600);
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Idling:
    """Polls a second, how much of one core the server used for them, and how long one took."""

    polls: float
    cores: float
    milliseconds: float


def idle(programs: Path, url: str, pid: int, workers: int, seconds: int) -> Idling:
    """So many workers that have found nothing for a while ask again and again.

    They share `CONNECTIONS` connections, and pgbench keeps their pace.
    """
    wanted = workers / POLL.cap
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "poll.sql").write_text(_POLL)
        command = ["pgbench", "-n", "-M", "prepared", "-f", "poll.sql", "-c", str(CONNECTIONS)]
        command += ["-j", "2", "-R", str(wanted), "-T", str(seconds + 2), "-l", url]
        environment = {**os.environ, "PGOPTIONS": "-c synchronous_commit=off"}
        command[0] = str(programs / "pgbench")
        asking = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL)
        time.sleep(1.5)  # until all are connected
        began, before = time.monotonic(), seconds_of_cpu(pid)
        time.sleep(seconds)
        lasted, used = time.monotonic() - began, seconds_of_cpu(pid) - before
        asking.wait()
        logs = Path(folder).glob("pgbench_log.*")
        # client, transaction, microseconds with the lag of the schedule, ..., the lag
        lines = [line.split() for log in logs for line in log.read_text().splitlines()]
    took = sorted((float(line[2]) - float(line[6])) / 1000 for line in lines)
    return Idling(
        polls=len(lines) / (seconds + 2),
        cores=used / lasted,
        milliseconds=took[len(took) // 2],
    )
