"""A real pgbouncer in transaction mode, with fewer connections than clients, loses nothing.

Whatever a client leaves in its session the next client would find there, and itself would miss.
"""

import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from builders import LEASE, new_worker, result_of, stage
from fleet import ProcessSettings
from pooler import Pooler, pooling
from processes import LONG, assert_undisturbed, of_six, working
from shell import Shell
from uci_tuner import uci_tuner

from spsa.db.connection import create_engine, parse_url
from spsa.db.grants import CONNECTIONS, Grant, GrantQueries, Role
from spsa.db.migrate import upgrade
from spsa.db.store import open_store
from spsa.history.doctor import check_run

SECONDS = 30 if LONG else 1.0
RESTARTS = 10 if LONG else 1
SETTINGS = ("statement_timeout", "synchronous_commit", "TimeZone", "DateStyle", "search_path")


@pytest.fixture
def pooler(postgresql_url: str) -> Iterator[Pooler]:
    with pooling(postgresql_url, connections=2) as made:
        yield made


def settings_of(url: str) -> dict[str, str]:
    """Those of a session, outside of any transaction."""
    engine = sa.create_engine(parse_url(url), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as connection:
        return {
            name: connection.scalar(sa.text("SELECT current_setting(:name)"), {"name": name})
            for name in SETTINGS
        }


@pytest.mark.slow
def test_two_masters_and_four_workers_share_two_connections(pooler: Pooler, figures) -> None:
    began = time.monotonic()
    with working(pooler.url, of_six(ProcessSettings(pooler.url))) as works:
        time.sleep(SECONDS)
        (sessions,) = works.sql(
            "SELECT COUNT(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND backend_type = 'client backend'"
        )
        assert sessions[0] <= 2
        works.finish()
        games = assert_undisturbed(works)
    figures(games=games, seconds=time.monotonic() - began)


@pytest.mark.slow
def test_a_pooler_that_is_killed_and_started_again(pooler: Pooler) -> None:
    with working(pooler.url, of_six(ProcessSettings(pooler.url))) as works:
        for _ in range(RESTARTS):
            time.sleep(works.chance.uniform(0.2, 0.6))
            pooler.kill()
            time.sleep(0.2)
            pooler.start()
        works.finish()
        assert_undisturbed(works)


def test_nothing_stays_in_a_session(postgresql_url: str) -> None:
    """One connection for a client whose commits wait for the disk and one whose do not."""
    untouched = settings_of(postgresql_url)
    with pooling(postgresql_url, connections=1) as pooler:
        for durable in (False, True):
            with open_store(pooler.url, durable=durable) as store:
                assert [run.name for run in store.runs()] == ([] if not durable else ["first"])
                if not durable:
                    stage(store).whole_iteration()
            assert settings_of(pooler.url) == untouched


@pytest.mark.parametrize("durable", [True, False])
def test_what_a_transaction_counts_on_holds_within_it(pooler: Pooler, durable: bool) -> None:
    engine = create_engine(parse_url(pooler.url), durable=durable)
    for _ in range(2):
        with engine.begin() as connection:
            asked = sa.text(
                "SELECT current_setting('statement_timeout'), current_setting('synchronous_commit')"
            )
            assert tuple(connection.execute(asked).one()) == ("15s", "on" if durable else "off")
    engine.dispose()


def test_a_new_database_gets_its_tables_through_a_pooler(empty_postgresql_url: str) -> None:
    with pooling(empty_postgresql_url, connections=1) as pooler:
        assert upgrade(pooler.url)
        with open_store(pooler.url) as store:
            assert store.runs() == []


@pytest.fixture
def logins(postgresql_url: str) -> Iterator[dict[Role, str]]:
    """Names of users who may do the part of a master, and of a worker."""
    names = {role: f"{role}_{uuid.uuid4().hex[:8]}" for role in (Role.MASTER, Role.WORKER)}
    with GrantQueries(postgresql_url) as owner:
        for role, user in names.items():
            owner.grant(Grant(role=role, user=user, connections=CONNECTIONS[role]))
    yield names
    with closing(Shell(postgresql_url)) as sql:
        for user in names.values():
            sql(f"DROP OWNED BY {user}")
            sql(f"DROP ROLE {user}")


def test_logins_of_a_master_and_a_worker(postgresql_url: str, logins: dict[Role, str]) -> None:
    """What the role sets holds for a worker's single statements, which are no transactions."""
    with (
        pooling(postgresql_url, connections=1, users=tuple(logins.values())) as pooler,
        open_store(pooler.url_of(logins[Role.MASTER])) as master,
        open_store(pooler.url_of(logins[Role.WORKER]), durable=False) as worker,
    ):
        on = stage(master)
        on.open()
        player = worker.register_worker(new_worker("machine-2"))
        while (claim := worker.claim(uuid.uuid4().hex, player, LEASE)) is not None:
            assert worker.renew([claim.claim_id], LEASE) == {claim.claim_id}
            worker.report(claim, result_of(claim))
        on.apply()
        assert check_run(master, on.now()) == []
        assert settings_of(pooler.url_of(logins[Role.WORKER]))["statement_timeout"] == "15s"


@pytest.mark.slow
def test_a_real_master_and_two_workers(pooler: Pooler, tmp_path: Path) -> None:
    tuner = uci_tuner(tmp_path / "tuner", pooler.url, iterations=2)
    try:
        master = tuner.master()
        tuner.wait_for_tables()
        workers = [tuner.worker() for _ in range(2)]
        assert tuner.ended(master) == 0, tuner.account()
        assert {tuner.ended(worker) for worker in workers} <= {0, 3}, tuner.account()
        with open_store(pooler.url) as store:
            run = store.run()
            assert (run.applied, store.totals(run.id).tally.games) == (2, 8)
            assert check_run(store, run) == []
    finally:
        tuner.kill_all()
