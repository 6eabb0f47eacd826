"""The schema: many processes create it once, any other state is refused; copies of a database."""

import multiprocessing
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
import sqlalchemy as sa
from asking import Store
from builders import LEASE, Stage, new_worker, result_of, stage
from console import call, master, worker
from shell import Shell, broken

from spsa.db import database, migrate
from spsa.db.base import named_texts
from spsa.db.database import create_engine
from spsa.db.migrate import REVISION, VIEWS, metadata, upgrade
from spsa.db.url import parse_url
from spsa.errors import DatabaseUnreachable, SchemaMismatch, TablesMissing, TuningError

PROCESSES = 6


@pytest.fixture
def empty(empty_database_url):
    engine = create_engine(parse_url(empty_database_url), durable=False, create=True)
    yield engine
    engine.dispose()


def names(engine):
    """The tables and views of a database."""
    with engine.begin() as connection:
        seen = sa.inspect(connection)
        return {*seen.get_table_names(), *seen.get_view_names()}


def test_all_tables_views_and_indexes_are_created_once(empty, empty_database_url):
    assert [upgrade(empty_database_url) for _ in range(2)] == [True, False]
    assert names(empty) == {*metadata.tables, *VIEWS, "alembic_version"}
    written = [*named_texts("protocol.sql").values(), *named_texts("views.sql").values()]
    assert not any("nps" in text for text in written), "all fields of `Measured` are put in"
    seen = sa.inspect(empty)
    for name, table in metadata.tables.items():
        found = {index["name"] for index in seen.get_indexes(name)}
        assert {index.name for index in table.indexes} <= found
        checks = {check["name"] for check in seen.get_check_constraints(name)}
        wanted = {c.name for c in table.constraints if isinstance(c, sa.CheckConstraint)}
        assert checks == wanted, name


def test_the_revision_says_all_of_the_schema(monkeypatch):
    """Whatever of it changes makes another revision."""
    batch = metadata.tables["spsa_batch"]
    (ready,) = (index for index in batch.indexes if index.name == "ix_spsa_batch_ready")
    (leased,) = (c for c in batch.constraints if c.name == "ck_spsa_batch_leased")
    changes: list[tuple[Any, Any, Any]] = [
        (batch.c.seq, "nullable", True),
        (batch.c.seq, "type", sa.BigInteger()),
        (batch.c.attempt, "server_default", None),
        (leased, "sqltext", sa.text("true")),
        (ready, "unique", True),
        (migrate, "VIEWS", {}),
    ]
    assert migrate._revision_of_this_program() == REVISION
    for thing, attribute, value in changes:
        with monkeypatch.context() as patch:
            patch.setattr(thing, attribute, value)
            assert migrate._revision_of_this_program() != REVISION, attribute


@pytest.mark.slow
def test_processes_that_start_together_all_find_it_done(empty_database_url):
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["alembic.command", "spsa.db.migrate"])
    with context.Pool(PROCESSES) as pool:
        did = pool.map(upgrade, [empty_database_url] * PROCESSES, chunksize=1)
    assert sorted(did) == [False] * (PROCESSES - 1) + [True]
    Store(empty_database_url).close()


def test_a_database_without_tables_says_what_to_do(empty, empty_sqlite_url):
    with empty.begin() as connection, pytest.raises(TablesMissing, match="spsa-master db upgrade"):
        migrate.check(connection)
    missing = f"{empty_sqlite_url}.none"
    with pytest.raises(TablesMissing, match="there is no such file yet: run `spsa-master run`"):
        Store(missing)


ANOTHER = "UPDATE alembic_version SET version_num = '0047'"


@pytest.mark.parametrize(
    ("statement", "found"), [(ANOTHER, "0047"), ("DROP TABLE alembic_version", "unknown")]
)
def test_any_other_state_is_refused_and_left_alone(statement, found, database_url, sql):
    sql(statement)
    engine = create_engine(parse_url(database_url), durable=False)
    before = names(engine)
    for attempt in (Store, upgrade):
        with pytest.raises(SchemaMismatch, match=f"schema {found}; this one needs"):
            attempt(database_url)
    assert names(engine) == before
    engine.dispose()


@pytest.mark.parametrize(
    ("mine", "said"), [("spsa_run", "no upgrade leads from there: use"), ("spsa_progress", "exist")]
)
def test_an_upgrade_beside_tables_of_other_programs_leaves_nothing(
    mine, said, empty, empty_database_url
):
    """Both databases create tables in the transaction."""
    with empty.begin() as connection:
        connection.exec_driver_sql(f"CREATE TABLE {mine} (mine INTEGER)")
    with pytest.raises(TuningError, match=said):
        upgrade(empty_database_url)
    assert names(empty) == {mine}


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_a_file_that_another_process_writes_for_long(empty_sqlite_url, monkeypatch, mode):
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.3)
    path = empty_sqlite_url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(f"PRAGMA journal_mode = {mode}")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseUnreachable, match="database is locked"):
            upgrade(empty_sqlite_url)
    assert upgrade(empty_sqlite_url)


def test_a_table_that_changes_under_a_program_is_a_sentence(database_url, sql):
    with Store(database_url, durable=False) as store:
        on = stage(store)
        on.open()
        sql("ALTER TABLE spsa_batch RENAME COLUMN first_pair TO place")
        with pytest.raises(SchemaMismatch, match="are no longer those of this program"):
            on.claim("a")


@pytest.mark.slow
def test_a_worker_does_not_wait_for_other_tables(sqlite_url, tmp_path, sql):
    """As it waits for a database that is not there yet."""
    sql(ANOTHER)
    done = call(worker("--spsa", "-c", "1"), tmp_path, DATABASE_URL=sqlite_url)
    assert (done.returncode, done.stdout) == (3, ""), done.stderr
    (sentence,) = done.stderr.splitlines()
    assert f"schema 0047; this one needs {REVISION}" in sentence


ITERATIONS = 40


def played(run, iterations):
    while run.now().applied < iterations:
        if not run.store.open_iterations(run.run.id):
            run.open()
        run.play()
        run.apply()
    return dict(run.now().theta)


def of_the_copy(url):
    """What becomes of the copy: time has passed, a new master and a new worker come."""
    with Store(url, durable=False) as store, closing(Shell(url)) as sql:
        run = store.run()
        assert 0 < run.applied < ITERATIONS
        for row in sql("SELECT id FROM spsa_batch WHERE status = 'leased'"):
            sql.expire(row.id)
        sql.expire(run_id=run.id)
        master = store.acquire_master_lease(run.id, "m2", LEASE)
        worker = store.register_worker(new_worker())
        theta = played(Stage(store, run, master, worker), ITERATIONS)
        assert broken(sql) == []
    return theta


@pytest.mark.slow
def test_a_file_is_copied_while_the_run_goes_on_and_no_copy_written_over(sqlite_url, project):
    """With a batch leased, and what is left of a copy that was cut off."""
    unfinished, copy = project / "copy.db.unfinished", project / "copy.db"
    unfinished.write_text("of a copy that was cut off")
    with Store(sqlite_url, durable=False) as store, ThreadPoolExecutor(1) as pool:
        run = stage(store, max_iterations=ITERATIONS)
        run.whole_iteration()
        run.open()
        held = run.claim("held while the copy is made")
        playing = pool.submit(
            lambda: (store.report(held, result_of(held)), played(run, ITERATIONS - 2))
        )
        done = call(master("db", "backup", "copy.db"), project, DATABASE_URL=sqlite_url)
        assert (done.returncode, done.stdout) == (0, f"{sqlite_url} is copied to copy.db\n")
        playing.result()
        theta = played(run, ITERATIONS)
    assert list(project.glob("copy.db*")) == [copy]
    before = copy.read_bytes()
    for place, said in (
        ("copy.db", "copy.db: [db backup] it exists; name a file"),
        ("no/copy.db", "no/copy.db: [db backup] there is no folder no"),
    ):
        refused = call(master("db", "backup", place), project, DATABASE_URL=sqlite_url)
        assert (refused.returncode, said in refused.stderr) == (2, True), refused.stderr
    assert copy.read_bytes() == before
    assert of_the_copy(f"sqlite:///{copy}") == theta


@pytest.mark.slow
def test_of_a_server_the_right_tool_is_named(postgresql_url, project):
    done = call(master("db", "backup", "copy.db"), project, DATABASE_URL=postgresql_url)
    assert (done.returncode, "pg_dump --format=custom" in done.stderr) == (2, True)
