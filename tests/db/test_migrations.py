"""The migration leads to just the tables of `schema`, on both databases, by anybody."""

import multiprocessing
import tomllib
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.script import ScriptDirectory
from builders import stage

from spsa.db import migrate, sql_files
from spsa.db.alembic_runner import configuration
from spsa.db.connection import create_engine, parse_url
from spsa.db.indexes import metadata
from spsa.db.schema import PRIVATE_VIEWS, REVISION, VIEWS
from spsa.db.store import open_store
from spsa.errors import DatabaseUnreachable, SchemaMismatch, TuningError

PROCESSES = 6


@pytest.fixture
def engine(empty_database_url):
    engine = create_engine(parse_url(empty_database_url), durable=False, create=True)
    yield engine
    engine.dispose()


def make_all(engine):
    with engine.begin() as connection:
        metadata.create_all(connection)
        for name, query in (PRIVATE_VIEWS | VIEWS).items():
            connection.exec_driver_sql(f"CREATE VIEW {name} AS {query}")


def drop_all(engine):
    with engine.begin() as connection:
        for name in reversed(PRIVATE_VIEWS | VIEWS):
            connection.exec_driver_sql(f"DROP VIEW {name}")
        metadata.drop_all(connection)


def described(engine):
    """All that a database says of its tables, by name, without alembic's own."""
    with engine.begin() as connection:
        seen = sa.inspect(connection)
        tables = {name: _table(seen, name) for name in seen.get_table_names()}
        tables.pop("alembic_version", None)
        views = {name: _words(seen.get_view_definition(name)) for name in seen.get_view_names()}
        return tables | views


def _table(seen, name):
    columns = {
        column["name"]: (
            repr(column["type"]),
            column["nullable"],
            column["default"],
            column.get("autoincrement"),
        )
        for column in seen.get_columns(name)
    }
    return {
        "columns": columns,
        "key": seen.get_pk_constraint(name),
        "foreign": sorted(seen.get_foreign_keys(name), key=str),
        "unique": sorted(seen.get_unique_constraints(name), key=str),
        "checks": sorted(seen.get_check_constraints(name), key=str),
        "indexes": sorted((_index(index) for index in seen.get_indexes(name)), key=str),
    }


def _index(index):
    options = index.get("dialect_options", {})
    return index | {"dialect_options": {key: str(value) for key, value in options.items()}}


def _words(text):
    return " ".join(text.split())


def test_there_is_one_head_and_it_is_the_programs():
    scripts = ScriptDirectory.from_config(configuration())
    assert scripts.get_heads() == [REVISION]


def test_migrations_lead_to_the_tables_of_the_schema(engine, empty_database_url):
    make_all(engine)
    wanted = described(engine)
    drop_all(engine)
    assert migrate.upgrade(empty_database_url) is True
    reached = described(engine)
    assert set(reached) == set(wanted)
    for name in wanted:
        assert reached[name] == wanted[name]
    for table, of in (
        ("spsa_batch", "ready"),
        ("spsa_batch", "leased"),
        ("spsa_iteration", "open"),
    ):
        (partial,) = (i for i in reached[table]["indexes"] if i["name"] == f"ix_{table}_{of}")
        assert any("status" in condition for condition in partial["dialect_options"].values())


def test_the_database_runs_the_committed_programs(engine, empty_database_url):
    """The triggers on both databases, and on PostgreSQL the functions, that this program names."""
    migrate.upgrade(empty_database_url)
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            text = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        else:
            text = "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal"
            known = "SELECT proname FROM pg_proc WHERE proname LIKE 'spsa%'"
            assert sorted(connection.scalars(sa.text(known))) == sorted(sql_files.functions())
        assert sorted(connection.scalars(sa.text(text))) == sorted(sql_files.triggers())
        for _ in range(2):  # each text may be executed again
            migrate.install_programs(connection)
        assert sorted(connection.scalars(sa.text(text))) == sorted(sql_files.triggers())


def test_a_revision_imports_nothing_of_the_product():
    versions = Path(configuration().get_main_option("script_location")) / "versions"
    texts = [path.read_text() for path in versions.glob("*.py")]
    assert texts
    assert not [text for text in texts if "import spsa" in text or "from spsa" in text]


def test_upgrading_twice_does_nothing_the_second_time(empty_database_url):
    assert migrate.upgrade(empty_database_url) is True
    assert migrate.upgrade(empty_database_url) is False


def test_data_survives_an_upgrade(database_url):
    with open_store(database_url) as store:
        run = stage(store)
        run.whole_iteration()
        before = (store.runs(), store.iterations(run.run.id), store.steps(run.run.id))
        migrate.upgrade(database_url)
        assert (store.runs(), store.iterations(run.run.id), store.steps(run.run.id)) == before


@pytest.mark.slow
def test_processes_that_start_together_all_find_it_done(empty_database_url):
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["alembic.command", "spsa.db.migrate"])
    with context.Pool(PROCESSES) as pool:
        did = pool.map(migrate.upgrade, [empty_database_url] * PROCESSES, chunksize=1)
    assert sorted(did) == [False] * (PROCESSES - 1) + [True]
    open_store(empty_database_url).close()


def test_a_database_without_tables_says_what_to_do(empty_database_url):
    with pytest.raises(SchemaMismatch, match=r"yet: run .*`spsa-master db upgrade`"):
        open_store(empty_database_url)


def test_an_older_database_says_what_to_do(database_url, sql):
    sql("UPDATE alembic_version SET version_num = '0000'")
    with pytest.raises(SchemaMismatch, match=r"is at schema 0000, this program needs .* upgrade"):
        open_store(database_url)


def test_a_newer_database_is_left_alone(database_url, sql):
    sql("UPDATE alembic_version SET version_num = '9999'")
    for attempt in (open_store, migrate.upgrade):
        with pytest.raises(SchemaMismatch, match="schema 9999, newer than this program's"):
            attempt(database_url)


def test_a_failed_migration_leaves_nothing(engine, empty_database_url):
    """Both databases have transactional DDL; half a schema would be nobody's to mend."""
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE spsa_progress (mine INTEGER)")
    with pytest.raises(TuningError, match="exist"):
        migrate.upgrade(empty_database_url)
    assert list(described(engine)) == ["spsa_progress"]


def test_tables_that_no_migration_made_are_left_alone(engine, empty_database_url):
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE spsa_step (mine INTEGER)")
    with pytest.raises(SchemaMismatch, match=r"\(spsa_step\) and alembic_version is missing"):
        migrate.upgrade(empty_database_url)
    assert list(described(engine)) == ["spsa_step"]


def test_an_sqlite_file_in_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(DatabaseUnreachable, match="there is no folder"):
        migrate.upgrade(f"sqlite:///{tmp_path}/absent/spsa.db")


def test_a_server_that_is_not_there_is_unreachable_and_keeps_its_password():
    with pytest.raises(DatabaseUnreachable) as refused:
        open_store("postgresql://me:hunter2@127.0.0.1:1/nothing")
    assert "hunter2" not in str(refused.value)


def test_a_wheel_would_hold_the_migrations_where_they_are_looked_for():
    root = Path(migrate.__file__).parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text())
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included["migrations"] == "spsa/_migrations"
    assert Path(configuration().get_main_option("script_location")).samefile(root / "migrations")
