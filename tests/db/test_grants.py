"""A login can do its part and nothing else: every statement tried as each, and games played."""

import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from builders import LEASE, new_worker, result_of, stage
from console import Done, call, master
from shell import Shell
from uci_tuner import uci_tuner

from spsa.cli import execute
from spsa.core.limits import COUNTS, LEASE_SECONDS, MACHINES_A_DAY, WORKERS_A_DAY
from spsa.core.scoring import Tally
from spsa.db.connection import parse_url
from spsa.db.grants import Grant, GrantQueries, Role
from spsa.db.row_values import COSTS
from spsa.db.schema import PRIVATE_VIEWS, VIEWS, metadata
from spsa.db.sql_files import functions, worker_functions
from spsa.db.store import BatchResult, open_store
from spsa.errors import IllegalTransition, LeaseLost, NameTaken, NotPermitted, TuningError
from spsa.master.session import MasterSession

YES = "allowed"
NO = "42501"  # insufficient privilege
CHECKED = "23514"  # by a constraint
TOO_LARGE = "22003"  # outside its range
STRANGER = "23503"  # no worker of the caller's machine
MISCOUNTED = "23000"  # by the trigger that compares sums
ROLES = ("worker", "viewer", "master")
DONE, HELD, FREE = "1", "2", "3"  # the batches, by their ids


def told(batch: str, claim: str, **over: object) -> str:
    """A report by hand; one pair drawn twice and one won, unless told otherwise."""
    zero: dict[str, object] = dict.fromkeys((*COUNTS, "void_games", *COSTS), 0)
    usual = {"plus_wins": 2, "draws": 2, "ptnml_2": 1, "ptnml_4": 1, "voids": "'{}'"}
    values = {"batch_id": batch, "claim_id": f"'{claim}'"} | zero | usual | over
    return f"SELECT spsa_report({_named(values)}) AS outcome"


def _named(values: Mapping[str, object]) -> str:
    return ", ".join(f"p_{name} => {value}" for name, value in values.items())


# name -> the statement, and what becomes of it for a worker, a viewer and a master
STATEMENTS = {
    "claim": ("SELECT * FROM spsa_claim(1, 'theirs', 'new', 0.5, 60)", STRANGER, NO, STRANGER),
    "keep a lease": ("SELECT spsa_renew(ARRAY['held'], 60)", YES, NO, YES),
    "keep a build for ever": ("SELECT spsa_renew_build('c', 1e9)", NO, NO, TOO_LARGE),
    "keep no lease": ("SELECT spsa_renew('{}', 0)", YES, NO, YES),
    "report": (told(HELD, "held"), "accepted", NO, "accepted"),
    "publish an engine without a byte": (
        "SELECT spsa_publish_build(1, 'c', 'x', '', 'plus', '', 1, 1)",
        NO,
        NO,
        TOO_LARGE,
    ),
    "publish an engine for no target": (
        "SELECT spsa_publish_build(1, 'c', '', '', 'plus', 'minus', 1, 1)",
        NO,
        NO,
        TOO_LARGE,
    ),
    "publish an engine for too long a target": (
        "SELECT spsa_publish_build(1, 'c', repeat('x', 101), '', 'plus', 'minus', 1, 1)",
        NO,
        NO,
        TOO_LARGE,
    ),
    "report again": (told(DONE, "done"), "conflict", NO, "conflict"),
    "change theta": ("UPDATE spsa_run SET theta = '{}'", NO, NO, YES),
    "change what is executed": ("UPDATE spsa_engine SET path = path", NO, NO, YES),
    "change counts": ("UPDATE spsa_iteration SET void_games = 0", NO, NO, YES),
    "change counts alone": (
        "SET CONSTRAINTS ALL IMMEDIATE; UPDATE spsa_iteration SET void_games = 1",
        NO,
        NO,
        MISCOUNTED,
    ),
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
    "report void games without all reasons": (
        told(HELD, "held", void_games=3, voids="""'{"crash": 2}'"""),
        CHECKED,
        NO,
        CHECKED,
    ),
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

    def as_owner(self, statement: str) -> None:
        engine = sa.create_engine(parse_url(self.url), poolclass=sa.NullPool)
        with engine.begin() as connection:
            connection.exec_driver_sql(statement)

    @contextmanager
    def ending_at_once(self) -> Iterator[None]:
        """Sessions are stalled as soon as they have a transaction, and not after half a minute."""
        name = "'spsa_end_stalled_sessions()'::regprocedure"
        (ending,) = Shell(self.url)(f"SELECT pg_get_functiondef({name})")[0]
        self.as_owner(ending.replace("00:00:30", "0 s").replace("30 seconds", "0 s"))
        try:
            yield
        finally:
            self.as_owner(ending)

    def outcome(self, role: str, statement: str) -> str:
        """What becomes of a statement, which leaves nothing behind."""
        engine = sa.create_engine(parse_url(self.url_of(role)), poolclass=sa.NullPool)
        with engine.connect() as connection:
            try:
                done = connection.execute(sa.text(statement.replace(":", "\\:")))
                return str(done.scalar()) if statement.endswith("AS outcome") else YES
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
        claim = run.claim("done")
        assert claim is not None
        store.report(claim, result_of(claim))
        run.claim("held")
    with GrantQueries(url) as queries:
        for role, user in users.items():
            grant = Grant(role=Role(role), user=user, connections=9, password="it's")
            queries.grant(grant)
            queries.grant(grant)
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
        me = store.register_worker(new_worker("of a login", host="own"))
        assert store.touch_worker(me, 1e6) is None
        assert store.work_left()
        claim = store.claim("of a login", me, LEASE)
        assert claim is not None and claim.seq == 2
        assert store.renew([claim.claim_id], LEASE) == {claim.claim_id}
        store.fail(claim, "a try", void_games=1)
        claim = store.claim("of a login again", me, LEASE)
        assert claim is None  # others are there that have not tried it
        for refused in (store.runs, store.workers, lambda: store.pause("first", "me", "why")):
            with pytest.raises(NotPermitted, match=r"permission denied for table .* grant"):
                refused()


def test_a_login_that_rules_is_nobodys_part(logins: Logins) -> None:
    grant = Grant(role=Role.WORKER, user="postgres", connections=9)
    with GrantQueries(logins.url) as queries, pytest.raises(NotPermitted, match="another --user"):
        queries.grant(grant)
    with GrantQueries(logins.url_of("viewer")) as queries, pytest.raises(NotPermitted):
        queries.grant(Grant(role=Role.WORKER, user="somebody", connections=9))


@pytest.mark.slow
def test_a_run_is_tuned_and_looked_at_by_logins_of_their_own(
    tmp_path: Path, logins: Logins, postgresql_url: str
) -> None:
    with GrantQueries(postgresql_url) as queries:
        for role, user in logins.users.items():
            queries.grant(Grant(role=Role(role), user=user, connections=9))
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
    for asked in (["doctor"], ["watch"], ["events"], ["report", "--html", "r.html", "--csv", "r"]):
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


# what else a worker's login tries: the statement, and what becomes of it
HOSTILE = {
    "draw a number": ("SELECT nextval('spsa_batch_id_seq')", NO),
    "set a number": ("SELECT setval('spsa_batch_id_seq', 1)", NO),
    "make a large object": ("SELECT lo_create(0)", NO),
    "make a large object of bytes": ("SELECT lo_from_bytea(0, 'x')", NO),
    "import a file": ("SELECT lo_import('/etc/passwd')", NO),
    "copy a table out": ("COPY spsa_run TO '/tmp/x'", NO),
    "copy a file in": ("COPY spsa_event FROM '/etc/passwd'", NO),
    "list files": ("SELECT pg_ls_dir('.')", NO),
    "end others": ("SELECT pg_terminate_backend(pid) FROM pg_stat_activity", NO),
    "become the owner": ("SET ROLE postgres", NO),
    "become another session": ("SET SESSION AUTHORIZATION postgres", NO),
    "load a library": ("LOAD 'auto_explain'", NO),
    "make an extension": ("CREATE EXTENSION file_fdw", NO),
    "make a function": ("CREATE FUNCTION mine() RETURNS INTEGER LANGUAGE sql AS 'SELECT 1'", NO),
    "make a login": ("CREATE ROLE mine", NO),
    "own a function of ours": ("ALTER FUNCTION spsa_work_left OWNER TO CURRENT_USER", NO),
    "replace a function of ours": (
        "CREATE OR REPLACE FUNCTION spsa_work_left() RETURNS BOOLEAN LANGUAGE sql AS 'SELECT true'",
        NO,
    ),
    "put another table before ours": ("CREATE TABLE pg_temp.spsa_run (x INTEGER)", NO),
    "note a failure of others": ("SELECT spsa_note_failure(1, 1, NULL, 'x')", NO),
    "count by hand": ("SELECT spsa_count()", NO),
    "ask for another's machine": ("SELECT spsa_machine_of(1, '')", NO),
    "claim for another machine": ("SELECT * FROM spsa_claim(1, 'guess', 'c', 0, 60)", STRANGER),
    "claim for nobody": ("SELECT * FROM spsa_claim(NULL, NULL, 'c', 0, 60)", STRANGER),
    # what PostgreSQL lets every login do; of ours only an upgrade takes an advisory lock, and
    # nothing listens
    "lock by a number": ("SELECT pg_advisory_xact_lock(1)", YES),
    "listen": ("LISTEN x", YES),
    "notify": ("NOTIFY x", YES),
    "have no time limit": ("SET statement_timeout = 0", YES),
}

PAST = 20_000_000
"""Characters of a text that no column takes."""


def _registered(**over: str) -> str:
    usual = {"name": "'w'", "secret": "'s'", "host": "'h'", "platform": "'p'", "cores": "1"}
    rest = {"concurrency": "1", "version": "'v'", "confinement": "NULL"}
    rest |= dict.fromkeys(("provides", "only_runs", "not_runs"), "NULL")
    return f"SELECT * FROM spsa_register_worker({_named(usual | rest | over)})"  # noqa: S608


LONG_TEXT = f"repeat('x', {PAST})"
ODD_INTEGERS = ("-1", "2147483647")
ODD_DOUBLES = ("'NaN'", "'Infinity'", "'-Infinity'", "-1", "1e300")
# a column -> statements whose argument for it lies outside
OUTSIDE = {
    "spsa_worker_name": [_registered(name=LONG_TEXT), _registered(name="''")],
    "spsa_machine_name": [_registered(host=LONG_TEXT, secret="'new'")],
    "spsa_worker_platform": [_registered(platform=LONG_TEXT)],
    "spsa_worker_version": [_registered(version=LONG_TEXT)],
    "spsa_worker_confinement": [_registered(confinement=LONG_TEXT)],
    **{
        f"spsa_worker_{name}": [_registered(**{name: f"json_build_object({LONG_TEXT}, 1)"})]
        for name in ("only_runs", "not_runs")
    },
    "spsa_worker_provides": [_registered(provides=LONG_TEXT)],
    "spsa_worker_cores": [_registered(cores=odd) for odd in (*ODD_INTEGERS, "0")],
    "spsa_worker_concurrency": [_registered(concurrency=odd) for odd in (*ODD_INTEGERS, "0")],
    "spsa_worker_nps": [
        f"SELECT spsa_touch_worker(:me, 'mine', {odd}, NULL)" for odd in ODD_DOUBLES
    ],
    "spsa_worker_scale": [
        f"SELECT spsa_touch_worker(:me, 'mine', NULL, {odd})" for odd in ODD_DOUBLES
    ],
    "spsa_batch_claim_id": [
        f"SELECT * FROM spsa_claim(:me, 'mine', {odd}, 0, 60)"  # noqa: S608
        for odd in (LONG_TEXT, "''")
    ],
    "spsa_batch_voids": [told(HELD, "held", voids=f"json_build_object({LONG_TEXT}, 0)")],
    "spsa_batch_void_log": [
        told(HELD, "held", void_log=f"json_build_array({LONG_TEXT})"),
        f"SELECT spsa_fail({HELD}, 'held', NULL, 'why', 0, json_build_array({LONG_TEXT}))",
    ],
    "voids do not add up": [
        told(HELD, "held", void_games=void_games, voids=f"'{voids}'")
        for void_games, voids in (
            (1, "{}"),
            (2, "{}"),
            (0, '{"crash": 1}'),
            (2, '{"crash": 3, "hang": -1}'),
            (1, '{"crash": 0.5, "hang": 0.5}'),
            (1, '{"crash": null}'),
            (1, '{"crash": "1 "}'),
            (2, '{"crash": [1, 1]}'),
        )
    ],
    "cannot call json_object_keys": [
        told(HELD, "held", voids=f"'{odd}'") for odd in ("[]", "7", '"x"')
    ],
    "void_games is": [
        *(told(HELD, "held", void_games=odd) for odd in ("-1", "2000000000", "NULL")),
        *(f"SELECT spsa_fail({HELD}, 'held', NULL, 'why', {odd})" for odd in ("-1", "NULL")),
        told(DONE, "done", void_games=-1),  # also where nothing would be written
    ],
    "has unprintable characters": [
        *(_registered(**{name: r"E'a\x1b[2Jb'"}) for name in ("name", "host", "platform")),
        *(_registered(**{name: r"E'a\nb'"}) for name in ("version", "confinement")),
        rf"SELECT spsa_fail({HELD}, 'held', NULL, E'a\u202eb', 0)",
    ],
    **{
        f"spsa_batch_{column}": [told(HELD, "held", **{column: odd}) for odd in odd_ones]
        for column, odd_ones in {
            "plus_nodes": ("-1", "9223372036854775807"),
            "minus_nodes": ("-1", "9223372036854775807"),
            "moves": ("-1", "9223372036854775807"),
            "plus_time_losses": ODD_INTEGERS,
            "minus_time_losses": ODD_INTEGERS,
            "slot": ODD_INTEGERS,
            "seconds": ODD_DOUBLES,
            "think_seconds": ODD_DOUBLES,
            "scale": ODD_DOUBLES,
        }.items()
    },
    "spsa_batch_last_error": [f"SELECT spsa_fail({HELD}, 'held', NULL, {LONG_TEXT}, 0)"],
    "spsa_failure_sha256": [f"SELECT spsa_fail({HELD}, 'held', 'x', 'why', 0)"],
    "spsa_batch_counts": [told(HELD, "held", **{column: "9"}) for column in COUNTS],
    "lease_seconds is": [
        call
        for odd in (*ODD_DOUBLES, "NULL", LEASE_SECONDS[1] + 1)
        for call in (
            f"SELECT * FROM spsa_claim(:me, 'mine', 'c', 0, {odd})",  # noqa: S608
            f"SELECT spsa_renew(ARRAY['held'], {odd})",
        )
    ],
    "leases renewed at once is": ["SELECT spsa_renew(array_fill('x'::text, ARRAY[100000]), 60)"],
}


def _reading_and_writing() -> Iterator[str]:
    for name in (*metadata.tables, *VIEWS, *PRIVATE_VIEWS):
        yield f"SELECT * FROM {name}"  # noqa: S608
        yield f"COPY (SELECT * FROM {name}) TO '/tmp/x'"  # noqa: S608
    for name, table in metadata.tables.items():
        column = next(iter(table.c)).name
        yield f"INSERT INTO {name} DEFAULT VALUES"
        yield f"UPDATE {name} SET {column} = {column}"  # noqa: S608
        yield f"DELETE FROM {name}"  # noqa: S608
        yield f"TRUNCATE {name} CASCADE"
        yield f"LOCK TABLE {name} IN ACCESS SHARE MODE"
    yield "UPDATE alembic_version SET version_num = '9999'"
    yield "DELETE FROM alembic_version"


@pytest.mark.slow
def test_a_hostile_workers_login_tries_everything(logins: Logins) -> None:
    """What it may is to call the functions of a worker, with values that games can have."""
    tried = {text: logins.outcome("worker", text) for text in _reading_and_writing()}
    assert {text: found for text, found in tried.items() if found != NO} == {}
    found = {name: logins.outcome("worker", text) for name, (text, _) in HOSTILE.items()}
    assert found == {name: expected for name, (_, expected) in HOSTILE.items()}
    engine = sa.create_engine(parse_url(logins.url_of("worker")), poolclass=sa.NullPool)
    with engine.connect() as connection:
        allowed = connection.scalars(
            sa.text(
                "SELECT proname FROM pg_proc WHERE proname LIKE 'spsa%'"
                " AND has_function_privilege(oid, 'EXECUTE')"
            )
        ).all()
    assert sorted(allowed) == sorted(worker_functions())
    assert set(functions()) - set(allowed) > {"spsa_note_failure", "spsa_count", "spsa_next_run"}


@pytest.mark.slow
def test_values_that_no_games_have_are_refused_by_their_column(logins: Logins) -> None:
    with open_store(logins.url_of("worker"), durable=False) as store:
        me = store.register_worker(new_worker("odd", host="odd", secret="mine"))
    engine = sa.create_engine(parse_url(logins.url_of("worker")))
    for column, statements in OUTSIDE.items():
        for statement in statements:
            text = statement.replace(":me", str(me.id))
            with engine.connect() as connection, pytest.raises(sa.exc.DBAPIError) as refused:
                connection.exec_driver_sql(text)
            said = str(refused.value.orig).splitlines()[0]
            assert column in said or "out of range" in said, (text[:200], said)
    engine.dispose()


def test_a_member_of_a_superusers_role_is_nobodys_part(postgresql_url: str) -> None:
    engine = sa.create_engine(parse_url(postgresql_url), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection, GrantQueries(postgresql_url) as queries:
        connection.exec_driver_sql("CREATE ROLE friend IN ROLE postgres")
        try:
            with pytest.raises(NotPermitted, match="is a member of such a role"):
                queries.grant(Grant(role=Role.WORKER, user="friend", connections=9))
        finally:
            connection.exec_driver_sql("DROP ROLE friend")
        most = int(connection.exec_driver_sql("SHOW max_connections").scalar_one())
        assert queries.usual_connections(Role.WORKER, None) < most
    engine.dispose()


def test_a_transaction_that_a_worker_leaves_open_is_ended_by_the_master(logins: Logins) -> None:
    """A login may lift the limits of its own sessions."""
    url = logins.url_of("worker")
    with open_store(url, durable=False) as store:
        me = store.register_worker(new_worker("stalled", host="stalled", secret="mine"))
    engine, viewer = (
        sa.create_engine(parse_url(one), poolclass=sa.NullPool)
        for one in (url, logins.url_of("viewer"))
    )
    with (
        engine.connect() as connection,
        viewer.connect() as looking,
        open_store(logins.url_of("master")) as master,
    ):
        looking.exec_driver_sql("SELECT 1")  # it keeps no lock that a master waits for
        connection.exec_driver_sql("SET idle_in_transaction_session_timeout = 0")
        connection.commit()
        connection.exec_driver_sql(f"SELECT spsa_touch_worker({me.id}, 'mine', 1, 1)")
        assert master.end_stalled_sessions() == [], "it may be at work"
        with logins.ending_at_once():
            assert master.end_stalled_sessions() == [logins.users["worker"]]
        with pytest.raises(sa.exc.DBAPIError):
            connection.exec_driver_sql("SELECT 1")
    engine.dispose()


def test_a_report_that_is_not_committed_does_not_keep_the_others_from_reporting(
    logins: Logins,
) -> None:
    """It locks the counts of its iteration, for which every other report of it waits."""
    engine = sa.create_engine(parse_url(logins.url_of("worker")), poolclass=sa.NullPool)
    with engine.connect() as connection, open_store(logins.url_of("master")) as store:
        session = MasterSession(
            store, store.acquire_master_lease(1, "m1", 1000), threading.Event(), tick=0
        )
        connection.exec_driver_sql("SET idle_in_transaction_session_timeout = 0")
        assert connection.exec_driver_sql(told(HELD, "held")).scalar_one() == "accepted"
        with logins.ending_at_once():
            session.view()
        with pytest.raises(sa.exc.DBAPIError):
            connection.exec_driver_sql("COMMIT")
    engine.dispose()
    assert logins.outcome("worker", told(HELD, "held")) == "accepted"


@pytest.mark.slow
def test_a_login_registers_so_many_machines_a_day(rivals: dict[str, str]) -> None:
    """Another login is not affected, and neither are workers that are registered already."""
    engine = sa.create_engine(parse_url(rivals["shared"]), poolclass=sa.NullPool)
    series = f"generate_series(1, {MACHINES_A_DAY}) AS n"
    with engine.begin() as connection:
        names = {name: f"'{name}' || n" for name in ("name", "secret", "host")}
        call = _registered(**names).removeprefix("SELECT * FROM ")
        connection.exec_driver_sql(f"SELECT count({call}) FROM {series}")  # noqa: S608
    with engine.connect() as connection:
        with pytest.raises(sa.exc.IntegrityError, match=r"login spsa_rival_.* within a day"):
            connection.exec_driver_sql(_registered(name="'new'", secret="'new'", host="'new'"))
        connection.rollback()
        again = _registered(name="'name1'", secret="'secret1'", host="'host1'")
        assert connection.exec_driver_sql(again).one().machine == "host1"
    with open_store(rivals["mine"]) as store:
        assert store.register_worker(new_worker("w1")).machine == "mine"


def test_the_workers_of_one_login_do_not_count_against_another(rivals: dict[str, str]) -> None:
    shell = Shell(rivals["owner"])
    shell(
        "INSERT INTO spsa_worker (name, host, platform, cores, concurrency, version)"
        " SELECT 'theirs' || n, 'theirs', '', 1, 1, '' FROM generate_series(1, :most) AS n",
        most=WORKERS_A_DAY,
    )
    shell.close()
    with open_store(rivals["mine"]) as store:
        assert store.register_worker(new_worker("w1")).machine == "mine"
    with open_store(rivals["theirs"]) as store, pytest.raises(TuningError, match="within a day"):
        store.register_worker(new_worker("w2"))


def test_a_secret_of_null_makes_no_machine_of_all_that_have_the_login(logins: Logins) -> None:
    engine = sa.create_engine(parse_url(logins.url_of("worker")), poolclass=sa.NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql(_registered(name="'null'", host="'null'", secret="NULL"))
    with open_store(logins.url_of("worker"), durable=False) as store:
        assert store.register_worker(new_worker("honest", host="honest")).machine == "honest"


@pytest.fixture
def rivals(postgresql_url: str) -> Iterator[dict[str, str]]:
    """URLs of a run's database for its owner and for two workers, each with a machine's login."""
    marks = uuid.uuid4().hex[:12]
    users = {name: f"spsa_rival_{marks}_{name}" for name in ("mine", "theirs", "shared")}
    with GrantQueries(postgresql_url) as queries:
        for name, user in users.items():
            machine = None if name == "shared" else name
            grant = Grant(role=Role.WORKER, user=user, connections=9, machine=machine)
            queries.grant(grant)
            queries.grant(grant)
    yield {"owner": postgresql_url} | {
        name: postgresql_url.replace("//postgres@", f"//{user}@") for name, user in users.items()
    }
    server = sa.create_engine(parse_url(postgresql_url), isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        for user in users.values():
            connection.exec_driver_sql(f"DROP OWNED BY {user}")
            connection.exec_driver_sql(f"DROP ROLE {user}")
    server.dispose()


def test_what_a_login_of_a_machine_registers_belongs_to_that_machine(
    rivals: dict[str, str],
) -> None:
    with open_store(rivals["mine"]) as store:
        one = store.register_worker(new_worker("w1", host="anything"))
        two = store.register_worker(new_worker("w2", host="else", secret="another"))
    assert (one.machine, two.machine) == ("mine", "mine")
    shell = Shell(rivals["owner"])
    assert sorted(shell("SELECT name FROM spsa_machine")) == [("mine",), ("theirs",)]
    shell.close()
    with open_store(rivals["shared"]) as store:
        assert store.register_worker(new_worker("w3", host="mine")).machine.startswith("mine-")


def test_two_logins_cannot_speak_for_each_other(rivals: dict[str, str]) -> None:
    with (
        open_store(rivals["owner"], durable=False) as owner,
        open_store(rivals["mine"], durable=False) as mine,
        open_store(rivals["theirs"], durable=False) as theirs,
    ):
        on = stage(owner)
        on.open()
        me = mine.register_worker(new_worker("w1"))
        thief = theirs.register_worker(new_worker("thief"))
        with pytest.raises(NameTaken, match="belongs to the machine 'mine'"):
            theirs.register_worker(new_worker("w1"))
        with pytest.raises(IllegalTransition, match="not registered by this machine"):
            theirs.claim("c", me, LEASE)
        theirs.touch_worker(me, 1.0)
        first, second = mine.claim("a", me, LEASE), mine.claim("b", me, LEASE)
        assert first is not None and second is not None
        assert theirs.claim("c", thief, LEASE) is None
        forged = replace(first, claim_id="forged")
        won = BatchResult(tally=Tally(4, 0, 0, (0, 0, 0, 0, 2)))
        assert theirs.renew(["forged"], LEASE) == frozenset()
        theirs.release(forged)
        theirs.fail(forged, "why")
        assert mine.report(first, result_of(first)) == "accepted"
        assert mine.report(second, result_of(second)) == "accepted"
        for result in (result_of(first), won):
            with pytest.raises(LeaseLost):
                theirs.report(forged, result)
        (iteration,) = owner.iterations(on.run.id)
        assert iteration.tally == result_of(first).tally + result_of(second).tally
        assert {w.name: w.nps for w in owner.workers()} == {
            "machine-1": None,
            "w1": None,
            "thief": None,
        }


def test_a_machine_has_one_login_and_a_login_one_machine(rivals: dict[str, str]) -> None:
    mine = str(parse_url(rivals["mine"]).username)
    with GrantQueries(rivals["owner"]) as queries:
        for user, machine, words in (
            ("spsa_eve", "mine", f"'mine' belongs to the login '{mine}': choose another --machine"),
            (mine, "other", "belongs to the machine 'mine': choose another --user"),
        ):
            with pytest.raises(NotPermitted, match=words):
                queries.grant(Grant(role=Role.WORKER, user=user, connections=9, machine=machine))


def test_a_machines_statement_can_be_read_too(tmp_path: Path, postgresql_url: str) -> None:
    asked = ["grant", "--role", "worker", "--machine", "it's", "--print"]
    done = _with_config(asked, tmp_path, postgresql_url)
    assert done.returncode == 0, done.stderr
    said = done.stdout
    assert "INSERT INTO spsa_machine (name, login) VALUES ('it''s', 'spsa_worker_it''s')" in said


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (["--role", "viewer", "--machine", "machine"], "--machine is for --role worker"),
        (["--role", "worker", "--machine", ""], "1 to 220 printable characters"),
        (["--role", "worker", "--machine", "x" * 221], "1 to 220 printable characters"),
        (["--role", "worker", "--machine", "a\nb"], "1 to 220 printable characters"),
        (["--role", "worker", "--machine", "x" * 60], "would be too long"),
        (["--role", "worker", "--user", "x" * 64], "1 to 63 bytes"),
    ],
)
def test_a_login_or_machine_that_cannot_be_is_refused(
    asked: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["grant", *asked]) == 2
    assert words in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
def test_a_file_has_no_logins(tmp_path: Path, sqlite_url: str) -> None:
    done = _with_config(["grant", "--role", "worker"], tmp_path, sqlite_url)
    assert done.returncode == 2
    assert "is a file, which has no logins" in done.stderr


def _with_config(asked: list[str], folder: Path, url: str) -> Done:
    uci_tuner(folder, url)
    return call(master(*asked), folder, DATABASE_URL=url)
