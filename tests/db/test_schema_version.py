"""A database whose schema was changed by hand: each command says what it found and what to do."""

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from builders import stage
from console import write_project

from spsa.cli import execute as master
from spsa.db import migrate
from spsa.db.connection import create_engine, parse_url
from spsa.db.inventory import missing
from spsa.db.schema import REVISION, VIEWS, metadata
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
