"""PostgreSQL itself is what fails: it crashes under load, forgets what it acknowledged, only reads,
or has no room left; theta comes out as if nothing had been.

SPSA_TEST_LONG=1 is fifty restarts; SPSA_TEST_SEED when they come.
"""

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from disks import disk_of, fill, open_folder
from fleet import LEASE_SECONDS, ProcessSettings
from postgres_server import CrashingServer, binaries
from processes import (
    LONG,
    Entry,
    assert_undisturbed,
    entries,
    insist,
    of_six,
    working,
)
from shell import Shell

from spsa.db.connection import parse_url
from spsa.db.migrate import upgrade
from worker.batches.database_client import RECONNECT

RESTARTS = 50 if LONG else 2
CRASHES = 40 if LONG else 2
LOST = 50 if LONG else 1
FILLINGS = 10 if LONG else 2
RECONNECT_SECONDS = 15.0
"""Less than the longest wait of RECONNECT, with room for a machine that stands still."""

ROOM = 192  # MiB; a fresh cluster takes 30

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def small_disk() -> Iterator[Path]:
    with disk_of(ROOM) as disk:
        yield disk


@contextmanager
def crashing(folder: Path, *settings: str) -> Iterator[CrashingServer]:
    found = binaries()
    if found is None:
        pytest.skip("no PostgreSQL: no initdb in PATH")
    cluster = folder / "cluster"
    cluster.mkdir()
    server = CrashingServer(found, cluster, *settings)
    try:
        server.start()
        yield server
    finally:
        server.crash()


@pytest.fixture(scope="module")
def server() -> Iterator[CrashingServer]:
    """One that is in no hurry to write down what need not be."""
    with open_folder() as folder, crashing(folder, "wal_writer_delay=10s") as made:
        yield made


def tables_on(server: CrashingServer) -> str:
    """The URL of a new database with the tuner's tables."""
    name = f"tuner_{uuid.uuid4().hex[:8]}"
    engine = sa.create_engine(parse_url(f"{server.url}/postgres"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    engine.dispose()
    upgrade(f"{server.url}/{name}")
    return f"{server.url}/{name}"


@pytest.mark.slow
def test_fifty_crashes_of_the_server_under_load(server, tmp_path, figures):
    """Everybody is back soon: the waits are the product's own, and grow with the outage."""
    began, url = time.monotonic(), tables_on(server)
    post = ProcessSettings(url, retry=RECONNECT, journal=tmp_path)
    outages = []
    with working(url, of_six(post)) as works:
        for _ in range(RESTARTS):
            time.sleep(works.chance.uniform(0.3, 1.2))
            crashed = time.monotonic()
            server.start()
            outages.append((crashed, time.monotonic()))
            works.await_everybody(tmp_path, since=outages[-1][1])
        works.finish()
        games = assert_undisturbed(works)
    back = returns(entries(tmp_path), [ready for _, ready in outages])
    longest = max(ready - crashed for crashed, ready in outages)
    assert max(back) < RECONNECT_SECONDS + 2 * longest
    figures(
        restarts=RESTARTS,
        longest_outage=longest,
        slowest_return=max(back),
        games=games,
        calls=len(entries(tmp_path)),
        seconds=time.monotonic() - began,
    )


def returns(written: list[Entry], ready: list[float]) -> list[float]:
    """Seconds from a server that answers again to each one's first answer."""
    answered = [entry for entry in written if entry.outcome != "DatabaseUnreachable"]
    return [
        min((e.ended - at for e in answered if e.name == name and e.ended > at), default=9e9)
        for name in {entry.name for entry in answered}
        for at in ready
    ]


@pytest.mark.slow
def test_commits_that_were_acknowledged_and_are_lost_are_done_again(server, tmp_path, figures):
    """No commit waits for the disk, not even a master's: it stands for a standby that lagged."""
    began, url = time.monotonic(), tables_on(server)
    with working(url, of_six(ProcessSettings(url, durable=False, journal=tmp_path))) as works:
        crashes = lost = 0
        while crashes < CRASHES or lost < LOST:
            time.sleep(works.chance.uniform(0.5, 1.0))
            server.start()
            crashes += 1
            works.await_everybody(tmp_path, since=time.monotonic())
            lost = forgotten(entries(tmp_path), works.sql)
        works.finish()
        games = assert_undisturbed(works)
        lost = forgotten(entries(tmp_path), works.sql)
    figures(crashes=crashes, lost_reports=lost, games=games, seconds=time.monotonic() - began)


def forgotten(written: list[Entry], sql: Shell) -> int:
    """How many reports were answered and are not what the database has."""
    told = {claim for e in written if e.accepted != "-" for claim in e.accepted.split(",")}
    query = "SELECT claim_id FROM spsa_batch WHERE status = 'done'"
    return len(told - {row.claim_id for row in insist(lambda: sql(query))})


@pytest.mark.slow
def test_a_database_that_only_reads_for_a_while(server, tmp_path, figures):
    began, url = time.monotonic(), tables_on(server)
    switch = sa.create_engine(parse_url(url), isolation_level="AUTOCOMMIT")

    def let_it(only_read: str) -> None:
        with switch.connect() as connection:
            connection.exec_driver_sql(
                f"ALTER SYSTEM SET default_transaction_read_only = {only_read}"
            )
            connection.exec_driver_sql("SELECT pg_reload_conf()")

    with working(url, of_six(ProcessSettings(url, journal=tmp_path))) as works:
        works.await_everybody(tmp_path, since=began)
        for _ in range(FILLINGS):
            time.sleep(works.chance.uniform(0.2, 0.6))
            let_it("on")
            works.await_refusals(tmp_path, since=time.monotonic())
            time.sleep(2 * LEASE_SECONDS)
            let_it("off")
        switch.dispose()
        works.finish()
        games = assert_undisturbed(works)
    refused = sum(entry.outcome == "DatabaseUnreachable" for entry in entries(tmp_path))
    assert refused > 0
    figures(times=FILLINGS, refused=refused, games=games, seconds=time.monotonic() - began)


@pytest.mark.slow
def test_no_room_left_on_an_sqlite_files_disk(small_disk, tmp_path, figures):
    began, url = time.monotonic(), f"sqlite:///{small_disk}/spsa.db"
    upgrade(url)
    with working(url, of_six(ProcessSettings(url, journal=tmp_path))) as works:
        works.await_everybody(tmp_path, since=began)
        for _ in range(FILLINGS):
            time.sleep(works.chance.uniform(0.2, 0.6))
            ballast = fill(small_disk)
            works.await_refusals(tmp_path, since=time.monotonic())
            time.sleep(3 * LEASE_SECONDS)
            ballast.unlink()
        works.finish()
        games = assert_undisturbed(works)
    refused = sum(entry.outcome == "DatabaseUnreachable" for entry in entries(tmp_path))
    assert refused > 0
    figures(times=FILLINGS, refused=refused, games=games, seconds=time.monotonic() - began)


@pytest.mark.slow
def test_no_room_left_on_postgresqls_disk(small_disk, tmp_path, figures):
    """Without room for its log PostgreSQL gives up; it is started when there is room again."""
    began = time.monotonic()
    with crashing(small_disk, "max_wal_size=8MB", "min_wal_size=2MB") as server:
        url = tables_on(server)
        with working(url, of_six(ProcessSettings(url, journal=tmp_path))) as works:
            works.await_everybody(tmp_path, since=began)
            for _ in range(FILLINGS):
                time.sleep(works.chance.uniform(0.2, 0.6))
                ballast = fill(small_disk)
                time.sleep(3 * LEASE_SECONDS)
                ballast.unlink()
                server.start()
            works.finish()
            games = assert_undisturbed(works)
    refused = sum(entry.outcome == "DatabaseUnreachable" for entry in entries(tmp_path))
    figures(times=FILLINGS, refused=refused, games=games, seconds=time.monotonic() - began)
