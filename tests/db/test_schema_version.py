"""A database whose schema was changed by hand: each command says what it found and what to do."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa
from builders import stage
from console import write_project

from spsa.cli import execute as master
from spsa.db import migrate
from spsa.db.connection import create_engine, parse_url
from spsa.db.grants import Grant, GrantQueries, Role
from spsa.db.inventory import missing
from spsa.db.schema import PRIVATE_VIEWS, REVISION, VIEWS, metadata
from spsa.db.sql_files import functions, triggers
from spsa.db.store import open_store
from spsa.errors import SchemaMismatch

COMMANDS = (["db", "upgrade"], ["db", "check"], ["doctor"], ["status"], ["run"], ["pause"])

STATES = {
    "emptied": (["DELETE FROM alembic_version"], "and alembic_version is empty: restore it"),
    "deleted": (["DROP TABLE alembic_version"], "and alembic_version is missing: restore it"),
    "doubled": (
        ["DROP TABLE alembic_version", "CREATE TABLE alembic_version (version_num TEXT)"]
        + ["INSERT INTO alembic_version VALUES ('{revision}')"] * 2,
        "alembic_version has 2 rows ({revision}, {revision}) and must have one",
    ),
    "two versions": (
        ["INSERT INTO alembic_version VALUES ('0000')"],
        "alembic_version has 2 rows",
    ),
    "older than the tables": (
        ["UPDATE alembic_version SET version_num = '0000'"],
        "the database is at schema 0000, ",
    ),
    "newer": (
        ["UPDATE alembic_version SET version_num = '9999'"],
        "the database is at schema 9999, newer than this program's {revision}",
    ),
    "another column": (
        ["ALTER TABLE alembic_version RENAME COLUMN version_num TO version"],
        "the database's tables are no longer those of this program",
    ),
}


@pytest.fixture
def rows(database_url: str, sql: Callable[..., list[Any]]) -> Callable[[], list[Any]]:
    """All that a run that has begun has in the database."""
    with open_store(database_url) as store:
        stage(store).whole_iteration()
    tables = metadata.sorted_tables
    return lambda: [sorted(map(str, sql(str(table.select())))) for table in tables]


@pytest.mark.slow
@pytest.mark.parametrize("state", STATES)
def test_every_command_says_what_it_found_and_changes_nothing(
    state, database_url, sql, rows, tmp_path, monkeypatch, capsys
):
    before = rows()
    statements, said = STATES[state]
    for statement in statements:
        sql(statement.format(revision=REVISION))
    write_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", database_url)
    for command in COMMANDS:
        assert master(command) == 3, command
        heard = capsys.readouterr()
        assert heard.out == ""
        (sentence,) = heard.err.splitlines()
        assert said.format(revision=REVISION) in sentence, (command, sentence)
        assert ":" in sentence.removeprefix("spsa-master:")  # and what to do
    assert rows() == before


@pytest.mark.parametrize("state", ["emptied", "deleted"])
def test_the_remedy_that_is_named_is_one(state, database_url, sql, rows):
    before = rows()
    for statement in STATES[state][0]:
        sql(statement)
    with pytest.raises(SchemaMismatch) as refused:
        migrate.upgrade(database_url)
    remedy = str(refused.value).partition("of this version of the program, run: ")[2]
    for statement in remedy.split("; "):
        sql(statement)
    assert migrate.upgrade(database_url) is False
    assert rows() == before


def test_the_database_of_another_program_is_left_alone(empty_database_url):
    engine = create_engine(parse_url(empty_database_url), durable=True, create=True)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR(32))")
        connection.exec_driver_sql("INSERT INTO alembic_version VALUES ('ae1027a6acf')")
    with pytest.raises(SchemaMismatch, match=r"says ae1027a6acf and .* use another database for"):
        migrate.upgrade(empty_database_url)
    assert sa.inspect(engine).get_table_names() == ["alembic_version"]
    engine.dispose()


def test_what_is_made_is_complete(database_url):
    migrate.check_complete(database_url)


def gone(database_url: str) -> tuple[tuple[str, str], ...]:
    engine = create_engine(parse_url(database_url), durable=True)
    with engine.begin() as connection:
        found = missing(connection)
    engine.dispose()
    return found


def drop(kind: str, name: str, dialect: str, sql: Callable[..., list[Any]]) -> None:
    if dialect == "sqlite":
        sql(f"DROP {kind} {name}")
    elif kind == "trigger":
        ((table,),) = sql(
            "SELECT tgrelid::regclass::text FROM pg_trigger WHERE tgname = :name", name=name
        )
        sql(f"DROP TRIGGER {name} ON {table}")
    elif kind == "function":
        ((signature,),) = sql(
            "SELECT oid::regprocedure::text FROM pg_proc WHERE proname = :name", name=name
        )
        sql(f"DROP FUNCTION {signature} CASCADE")
    else:
        sql(f"DROP {kind} {name} CASCADE")


@pytest.mark.parametrize("command", [["doctor"], ["db", "check"]])
@pytest.mark.parametrize("name", ["spsa_event", "spsa_purge"])
def test_a_table_that_is_gone_is_named(
    command, name, database_url, sql, tmp_path, monkeypatch, capsys
):
    drop("table", name, sql.dialect, sql)
    write_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", database_url)
    assert master(command) == 3
    heard = capsys.readouterr()
    assert f"lacks table {name}" in heard.err
    assert ": restore the database from a backup" in heard.err
    assert heard.out == ""
    with pytest.raises(SchemaMismatch, match=f"lacks table {name}"):
        migrate.upgrade(database_url)


def test_a_column_that_is_gone_is_named(database_url, sql):
    sql("ALTER TABLE spsa_event RENAME COLUMN actor TO who")
    with pytest.raises(SchemaMismatch, match=r"lacks column spsa_event.actor: restore the"):
        migrate.check_complete(database_url)


def test_a_disabled_trigger_is_as_good_as_none(postgresql_url):
    engine = create_engine(parse_url(postgresql_url), durable=True)
    name = triggers()[0]
    with engine.begin() as connection:
        table = connection.scalar(
            sa.text("SELECT tgrelid::regclass::text FROM pg_trigger WHERE tgname = :name"),
            {"name": name},
        )
        connection.exec_driver_sql(f"ALTER TABLE {table} DISABLE TRIGGER {name}")
    engine.dispose()
    assert gone(postgresql_url) == (("trigger", name),)


def test_what_holds_no_data_is_made_again(database_url, sql, rows):
    before = rows()
    lost = [("view", min(VIEWS)), ("trigger", triggers()[0])]
    if sql.dialect == "postgresql":
        lost.append(("function", functions()[-1]))
    for kind, name in lost:
        drop(kind, name, sql.dialect, sql)
    assert gone(database_url) == tuple(lost)
    with pytest.raises(SchemaMismatch, match=f"lacks view {min(VIEWS)}, .*db upgrade` to create"):
        migrate.check_complete(database_url)
    assert migrate.upgrade(database_url) is True
    assert (gone(database_url), migrate.upgrade(database_url)) == ((), False)
    assert rows() == before


@pytest.mark.parametrize("name", PRIVATE_VIEWS)
def test_a_view_of_the_functions_is_made_again_with_them(name, database_url, sql):
    drop("view", name, sql.dialect, sql)
    assert ("view", name) in gone(database_url)
    assert migrate.upgrade(database_url) is True
    migrate.check_complete(database_url)
    with open_store(database_url) as store:
        run = stage(store)
        run.whole_iteration()


CHANGES = {
    "sqlite": {
        "trigger spsa_count": (
            "DROP TRIGGER spsa_count",
            "CREATE TRIGGER spsa_count AFTER UPDATE ON spsa_batch BEGIN SELECT 1; END",
        ),
    },
    "postgresql": {
        "trigger spsa_check_counts": (
            "DROP TRIGGER spsa_check_counts ON spsa_iteration",
            "CREATE CONSTRAINT TRIGGER spsa_check_counts AFTER UPDATE ON spsa_iteration"
            " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.games_played < 0)"
            " EXECUTE FUNCTION spsa_check_counts()",
        ),
        "function spsa_work_left": (
            "DROP FUNCTION spsa_work_left",
            "CREATE FUNCTION spsa_work_left() RETURNS BOOLEAN LANGUAGE sql STABLE"
            " SECURITY DEFINER AS 'SELECT true'",
        ),
        "function spsa_release": ("ALTER FUNCTION spsa_release SECURITY INVOKER",),
        "function spsa_count": ("ALTER FUNCTION spsa_count RESET search_path",),
        "function spsa_fail": (
            "CREATE FUNCTION spsa_fail(one_more INTEGER) RETURNS VOID LANGUAGE sql AS ''",
        ),
        "function spsa_renew": (
            "DROP FUNCTION spsa_renew",
            "CREATE FUNCTION spsa_renew(claims TEXT[]) RETURNS BOOLEAN LANGUAGE sql"
            " AS 'SELECT true'",
        ),
    },
}


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, names in CHANGES.items() for name in names]
)
def test_another_definition_is_named_and_replaced(kind, name, request):
    """As of an earlier version of the program, whose tables are the same."""
    url = request.getfixturevalue(f"{kind}_url")
    engine = create_engine(parse_url(url), durable=True)
    with engine.begin() as connection:
        for statement in CHANGES[kind][name]:
            connection.exec_driver_sql(statement)
    engine.dispose()
    with pytest.raises(SchemaMismatch, match=rf"definition of {name} than this .*`spsa-master db"):
        migrate.check_complete(url)
    assert migrate.upgrade(url) is True
    migrate.check_complete(url)
    assert migrate.upgrade(url) is False


def test_logins_keep_their_rights_and_only_the_owner_replaces_functions(postgresql_url):
    users = {role: f"spsa_{role}_{uuid4().hex[:12]}" for role in (Role.WORKER, Role.MASTER)}
    urls = {r: postgresql_url.replace("//postgres@", f"//{user}@") for r, user in users.items()}
    with GrantQueries(postgresql_url) as queries:
        for role, user in users.items():
            queries.grant(Grant(role=role, user=user, connections=9))
    owner = sa.create_engine(parse_url(postgresql_url), isolation_level="AUTOCOMMIT")
    with owner.connect() as connection:
        connection.exec_driver_sql("DROP FUNCTION spsa_work_left")
        connection.exec_driver_sql(
            "CREATE FUNCTION spsa_work_left(x INTEGER) RETURNS BOOLEAN LANGUAGE sql AS 'SELECT 1=1'"
        )
        with pytest.raises(SchemaMismatch, match=r"spsa_work_left .* as the owner of the tables"):
            migrate.upgrade(urls[Role.MASTER])
        assert migrate.upgrade(postgresql_url) is True
        assert migrate.upgrade(urls[Role.MASTER]) is False
        with open_store(urls[Role.WORKER]) as store:
            assert store.work_left() == []
        for user in users.values():
            connection.exec_driver_sql(f"DROP OWNED BY {user}")
            connection.exec_driver_sql(f"DROP ROLE {user}")
    owner.dispose()
