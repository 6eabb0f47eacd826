"""An hour on one SQLite file: `make soak ARGS="--minutes 60"`.

A master, the server, a direct and two remote workers play batches of about a second. Meanwhile a
page is asked for every two seconds, and the log of the file is measured. Nothing may say "database
is locked", the log stays under 64 MB, the median page comes within 100 ms, and `doctor` finds
nothing in the end.
"""

import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import click
from asking import Store
from tuner import Tuner
from uci_tuner import uci_tuner

from benches.cluster import free_port

THINK = 0.012
"""Seconds a move of the scripted engine: a batch of two games of twenty moves takes one second."""

LOG_BYTES = 64 * 2**20
PAGE_SECONDS = 0.1
_EVERY = 2.0


@dataclass(slots=True)
class Seen:
    """What was measured: seconds of each page, and the largest log in bytes."""

    pages: list[float] = field(default_factory=list)
    log: int = 0
    unanswered: int = 0

    def look(self, address: str, log: Path) -> None:
        self.log = max(self.log, log.stat().st_size if log.exists() else 0)
        began = time.monotonic()
        try:
            urlopen(f"{address}/run", timeout=10).read()
        except URLError:
            self.unanswered += 1
        else:
            self.pages.append(time.monotonic() - began)


def played(tuner: Tuner, seconds: float) -> Seen:
    """Let everybody play for so long."""
    port = free_port()
    tuner.master()
    tuner.wait_for_work()
    tuner.server(port)
    tuner.worker("--idle-timeout", "3600")
    for machine in ("first", "second"):
        tuner.remote_worker(port, machine, tuner.invite(machine), "--idle-timeout", "3600")
    time.sleep(10)
    seen, end = Seen(), time.monotonic() + seconds
    log = tuner.folder / "spsa.db-wal"
    while time.monotonic() < end:
        seen.look(tuner.address(port), log)
        time.sleep(_EVERY)
    return seen


def faults(tuner: Tuner, seen: Seen) -> list[str]:
    """What was not as it has to be."""
    found = []
    if "database is locked" in tuner.words():
        found.append("`database is locked` reached somebody")
    if seen.log > LOG_BYTES:
        found.append(f"the log of the file had {seen.log} bytes")
    if seen.unanswered:
        found.append(f"{seen.unanswered} pages were not answered")
    if statistics.median(seen.pages) > PAGE_SECONDS:
        found.append(f"the median page took {statistics.median(seen.pages):.3f} s")
    doctor = tuner.ask("doctor")
    if doctor.returncode:
        found.append(f"doctor: {doctor.stdout}{doctor.stderr}")
    return found


@click.command()
@click.option("--minutes", type=float, default=60.0, show_default=True)
def main(minutes: float) -> None:
    """Play on one SQLite file for so long, and say what was seen."""
    with tempfile.TemporaryDirectory(prefix="spsa-soak-") as name:
        folder = Path(name) / "tuner"
        tuner = uci_tuner(folder, f"sqlite:///{folder}/spsa.db", iterations=1_000_000, think=THINK)
        try:
            seen = played(tuner, 60 * minutes)
            with Store(tuner.url) as store:
                run = store.run()
                games = store.totals(run.id).tally.games
                shares = {w.name: w.games for w in store.workers()}
            wrong = faults(tuner, seen)
        finally:
            tuner.kill_all()
    pages = sorted(seen.pages)
    click.echo(
        f"{run.applied} iterations, {games} games, by worker {shares}; {len(pages)} pages: median "
        f"{1000 * statistics.median(pages):.0f} ms, p99 {1000 * pages[-1 - len(pages) // 100]:.0f} "
        f"ms; the log had at most {seen.log / 2**20:.1f} MiB"
    )
    for fault in wrong:
        click.echo(fault)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
