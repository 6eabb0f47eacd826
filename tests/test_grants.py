"""A login can do its part and nothing else: every statement tried as each, and games played."""

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa
from builders import LEASE, result_of, stage
from console import call, master
from spsa.store.reports import REPORTED
from uci_tuner import uci_tuner

from spsa.connection import parse_url
from spsa.errors import NotPermitted
from spsa.store import open_store
from spsa.store.roles import Grant, GrantDesk, Role

YES = "allowed"
NO = "42501"  # insufficient privilege
CHECKED = "23514"  # by a constraint
ROLES = ("worker", "viewer", "master")
DONE, HELD, FREE = "1", "2", "3"  # the batches, by their ids


def told(batch: str, claim: str, **over: int) -> str:
    """A report by hand; one pair drawn twice and one won, unless told otherwise."""
    zero: dict[str, object] = dict.fromkeys(REPORTED, 0)
    usual = {"plus_wins": 2, "draws": 2, "ptnml_2": 1, "ptnml_4": 1, "voids": {}, "void_games": 0}
    report = json.dumps([{"batch_id": batch, "claim_id": claim} | zero | usual | over])
    return f"SELECT outcome FROM spsa_exchange('{report}', '{{}}', '{{}}', NULL, 0)"  # noqa: S608


# name -> the statement, and what becomes of it for a worker, a viewer and a master
STATEMENTS = {
    "claim": ("SELECT * FROM spsa_exchange('[]', '{new}', '{0.5}', 1, 60)", YES, NO, YES),
    "keep a lease": ("SELECT spsa_renew(ARRAY['held'], 60)", YES, NO, YES),
    "report": (told(HELD, "held"), "accepted", NO, "accepted"),
    "report again": (told(DONE, "done"), "known", NO, "known"),
    "change theta": ("UPDATE spsa_run SET theta = '{}'", NO, NO, YES),
    "change what is executed": ("UPDATE spsa_engine SET path = path", NO, NO, YES),
    "change counts": ("UPDATE spsa_iteration SET void_games = 0", NO, NO, YES),
    "change the size of a batch": ("UPDATE spsa_batch SET games = games", NO, NO, YES),
    "change a seed": ("UPDATE spsa_batch SET seed = seed", NO, NO, YES),
    "add a row": (
        "INSERT INTO spsa_event (kind, actor, detail) VALUES ('x', 'x', '{}')",
        NO,
        NO,
        YES,
    ),
    "delete rows": ("DELETE FROM spsa_event", NO, NO, YES),
    "empty a table": ("TRUNCATE spsa_event", NO, NO, NO),
    "drop a table": ("DROP TABLE spsa_event", NO, NO, NO),
    "switch triggers off": ("ALTER TABLE spsa_batch DISABLE TRIGGER ALL", NO, NO, NO),
    "make a table": ("CREATE TABLE mine (x INTEGER)", NO, NO, NO),
    "make a temporary table": ("CREATE TEMP TABLE mine (x INTEGER)", NO, NO, NO),
    "make a schema": ("CREATE SCHEMA mine", NO, NO, NO),
    "forge a batch that nobody leased": (
        "UPDATE spsa_batch SET status = 'ready' WHERE id = 3",
        NO,
        NO,
        YES,
    ),
    "report a batch that nobody leased": (told(FREE, "forged"), "lost", NO, "lost"),
    "report counts that cannot be": (told(HELD, "held", plus_wins=4), CHECKED, NO, CHECKED),
    "open a reported batch again": (
        "UPDATE spsa_batch SET attempt = attempt WHERE id = 1",
        NO,
        NO,
        YES,
    ),
    "read the claims of others": ("SELECT claim_id FROM spsa_batch", NO, NO, YES),
    "run a program": ("COPY (SELECT 1) TO PROGRAM 'true'", NO, NO, NO),
    "read a file": ("SELECT pg_read_file('postgresql.conf')", NO, NO, NO),
    "read passwords": ("SELECT rolpassword FROM pg_authid", NO, NO, NO),
    "switch checks off": ("SET session_replication_role = replica", NO, NO, NO),
    # what PostgreSQL lets every login do; nothing of ours listens or locks so
    "notify and lock": ("SELECT pg_notify('x', ''), pg_advisory_xact_lock(1)", YES, YES, YES),
    "look at a run": ("SELECT theta FROM spsa_run", NO, YES, YES),
    "look at batches": ("SELECT status, worker_id FROM spsa_batch", NO, YES, YES),
    "look at a view": ("SELECT * FROM spsa_progress", NO, YES, YES),
    "take the bytes of an engine": ("SELECT spsa_engine_bytes('x')", YES, NO, YES),
}


@dataclass(frozen=True)
class Logins:
    """A database with a batch reported by the claim "done", one held by "held" and one free."""

    url: str
    users: dict[str, str]

    def url_of(self, role: str) -> str:
        return self.url.replace("//postgres@", f"//{self.users[role]}@")

    def outcome(self, role: str, statement: str) -> str:
        """What becomes of a statement, which leaves nothing behind."""
        engine = sa.create_engine(parse_url(self.url_of(role)), poolclass=sa.NullPool)
        with engine.connect() as connection:
            try:
                done = connection.execute(sa.text(statement.replace(":", "\\:")))
                return str(done.scalar()) if statement.startswith("SELECT outcome") else YES
            except sa.exc.DBAPIError as error:
                return str(error.orig.pgcode)
            finally:
                connection.rollback()


@pytest.fixture(scope="module")
def logins(postgresql_server: str, postgresql_template: str) -> Iterator[Logins]:
    name = f"spsa_grants_{uuid.uuid4().hex[:12]}"
    users = {role: f"{name}_{role}" for role in ROLES}
    server = sa.create_engine(
        parse_url(f"{postgresql_server}/postgres"), isolation_level="AUTOCOMMIT"
    )
    with server.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name} TEMPLATE {postgresql_template}")
    url = f"{postgresql_server}/{name}"
    with open_store(url, durable=False) as store:
        run = stage(store)
        run.open(target_games=12)
        store.report(claim := run.claim("done"), result_of(claim))
        run.claim("held")
    with GrantDesk(url) as desk:
        for role, user in users.items():
            grant = Grant(role=Role(role), user=user, connections=9, password="it's")
            desk.grant(grant)
            desk.grant(grant)
    yield Logins(url, users)
    with server.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
        for user in users.values():
            connection.exec_driver_sql(f"DROP ROLE {user}")
    server.dispose()


@pytest.mark.parametrize("name", STATEMENTS)
def test_each_role_may_do_its_part_and_nothing_else(name: str, logins: Logins) -> None:
    statement, *expected = STATEMENTS[name]
    assert [logins.outcome(role, statement) for role in ROLES] == expected


def test_every_login_has_its_limits(logins: Logins) -> None:
    engine = sa.create_engine(parse_url(logins.url_of("worker")), poolclass=sa.NullPool)
    names = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
    with engine.connect() as connection:
        found = [connection.exec_driver_sql(f"SHOW {name}").scalar() for name in names]
        limit = "SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user"
        assert connection.exec_driver_sql(limit).scalar() == 9
    assert found == ["15s", "10s", "10s"]


def test_a_worker_has_the_whole_life_of_a_worker(logins: Logins) -> None:
    with open_store(logins.url_of("worker"), durable=False) as store:
        store.touch_worker(1, 1e6)
        assert store.work_left()
        claim = store.claim("of a login", 1, LEASE)
        assert claim is not None and claim.seq == 2
        assert store.renew([claim.claim_id], LEASE) == {claim.claim_id}
        store.fail(claim, "a try", void_games=1)
        claim = store.claim("of a login again", 1, LEASE)
        store.release(claim)
        for refused in (store.runs, store.workers, lambda: store.pause("first", "me", "why")):
            with pytest.raises(NotPermitted, match=r"permission denied for table .* grant"):
                refused()


def test_a_login_that_rules_is_nobodys_part(logins: Logins) -> None:
    grant = Grant(role=Role.WORKER, user="postgres", connections=9)
    with GrantDesk(logins.url) as desk, pytest.raises(NotPermitted, match="another --user"):
        desk.grant(grant)
    with GrantDesk(logins.url_of("viewer")) as desk, pytest.raises(NotPermitted):
        desk.grant(Grant(role=Role.WORKER, user="somebody", connections=9))


def test_a_run_is_tuned_and_looked_at_by_logins_of_their_own(
    tmp_path: Path, logins: Logins, postgresql_url: str
) -> None:
    with GrantDesk(postgresql_url) as desk:
        for role, user in logins.users.items():
            desk.grant(Grant(role=Role(role), user=user, connections=9))
    theirs = Logins(postgresql_url, logins.users)
    tuner = uci_tuner(tmp_path / "run", theirs.url_of("master"), iterations=1)
    moving = tuner.master()
    tuner.wait_for_tables()
    tuner.url = theirs.url_of("worker")
    playing = tuner.worker()
    try:
        assert (tuner.ended(moving), tuner.ended(playing)) == (0, 0), tuner.account()
    finally:
        tuner.kill_all()
    tuner.url = theirs.url_of("viewer")
    assert tuner.status()["games"]["games"] == 4
    for asked in (["doctor"], ["watch"]):
        done = call(master(*asked), tuner.folder, DATABASE_URL=tuner.url)
        assert done.returncode == 0, done.stderr
    for role, asked in (("viewer", ["extend", "3"]), ("worker", ["status"])):
        done = call(master(*asked), tuner.folder, DATABASE_URL=theirs.url_of(role))
        assert done.returncode == 2
        assert "permission denied for table" in done.stderr and "Traceback" not in done.stderr


def test_the_statements_can_be_read_before_they_are_run(
    tmp_path: Path, postgresql_url: str
) -> None:
    (tmp_path / "password").write_text("hunter2\n")
    asked = ["grant", "--role", "viewer", "--user", "eve", "--password-file", "password", "--print"]
    done = _with_config(asked, tmp_path, postgresql_url)
    assert done.returncode == 0, done.stderr
    assert "hunter2" not in done.stdout and "SCRAM-SHA-256" in done.stdout
    assert "claim_id" not in done.stdout and "GRANT CONNECT ON DATABASE" in done.stdout
    with open_store(postgresql_url) as store, store._read() as connection:
        known = sa.text("SELECT count(*) FROM pg_roles WHERE rolname = 'eve'")
        assert connection.scalar(known) == 0


def test_a_file_has_no_logins(tmp_path: Path, sqlite_url: str) -> None:
    done = _with_config(["grant", "--role", "worker"], tmp_path, sqlite_url)
    assert done.returncode == 2
    assert "is a file, which has no logins; whoever may write the file" in done.stderr


def _with_config(asked: list[str], folder: Path, url: str):
    uci_tuner(folder, url)
    return call(master(*asked), folder, DATABASE_URL=url)
