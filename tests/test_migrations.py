"""Migrations lead to just the tables of `schema`, from anywhere, on both databases, by anybody."""

import json
import multiprocessing
import tomllib
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.script import ScriptDirectory
from builders import LEASE, TERMS, THETA, Stage, new_worker, stage

from spsa import migrate
from spsa.connection import create_engine, parse_url
from spsa.errors import DatabaseUnreachable, SchemaMismatch
from spsa.estimates import Estimates
from spsa.indexes import metadata
from spsa.schema import REVISION, VIEWS
from spsa.store import open_store

PROCESSES = 6


@pytest.fixture
def engine(empty_database_url):
    engine = create_engine(parse_url(empty_database_url), durable=False, create=True)
    yield engine
    engine.dispose()


def make_all(engine):
    with engine.begin() as connection:
        metadata.create_all(connection)
        for name, query in VIEWS.items():
            connection.exec_driver_sql(f"CREATE VIEW {name} AS {query}")


def drop_all(engine):
    with engine.begin() as connection:
        for name in VIEWS:
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


def migrated(engine, act, to):
    """Alembic's own command, on the database of the test."""
    with engine.begin() as connection:
        config = migrate.configuration()
        config.attributes["connection"] = connection
        act(config, to)


def test_there_is_one_head_and_it_is_the_programs():
    scripts = ScriptDirectory.from_config(migrate.configuration())
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


def test_up_down_and_up_again(engine, empty_database_url):
    migrate.upgrade(empty_database_url)
    first = described(engine)
    migrated(engine, command.downgrade, "base")
    assert described(engine) == {}
    migrated(engine, command.upgrade, "head")
    assert described(engine) == first


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


FIRST_RUN = """
INSERT INTO spsa_run
       (name, seed, algorithm, settings, space, terms, max_iterations, start_theta, theta, state,
        applied)
VALUES ('old', 42, 'spsa', '{}', '{}', :terms, 9, :theta, :theta, '{"theta": [0.5]}', 0)
"""


def test_a_live_run_of_the_first_tables_is_taken_along(engine, empty_database_url):
    """Upgraded while somebody has it open, who may go on writing; then moved, estimates and all."""
    migrated(engine, command.upgrade, "0001")
    facts = {"terms": json.dumps(TERMS.to_json()), "theta": json.dumps(THETA)}
    with engine.begin() as connection:
        connection.execute(sa.text(FIRST_RUN), facts)
    with engine.connect() as older:
        assert older.scalar(sa.text("SELECT name FROM spsa_run")) == "old"
        older.commit()
        assert migrate.upgrade(empty_database_url) is True
        older.execute(sa.text("UPDATE spsa_run SET epoch = epoch + 1"))
        older.commit()
    with open_store(empty_database_url) as store:
        run = store.run("old")
        assert (run.theta, run.state, run.terms) == (THETA, {"theta": [0.5]}, TERMS)
        assert run.estimates.averaged is run.estimates.averaged_sd is None
        assert run.estimates.supported is run.estimates.supported_sd is None
        on = Stage(
            store, run, store.acquire(run.id, "m", LEASE), store.register_worker(new_worker())
        )
        on.open()
        on.play()
        on.apply(estimates=Estimates(averaged=THETA, averaged_sd={"margin": 0.1 + 0.2}))
        assert on.now().estimates.averaged == THETA
        assert on.now().estimates.averaged_sd == {"margin": 0.1 + 0.2}


def test_going_back_loses_the_estimates_alone(engine, empty_database_url):
    migrate.upgrade(empty_database_url)
    with open_store(empty_database_url) as store:
        run = stage(store)
        run.whole_iteration()
        theta = run.now().theta
    migrated(engine, command.downgrade, "0001")
    with pytest.raises(SchemaMismatch, match=f"is at schema 0001, this program needs {REVISION}"):
        open_store(empty_database_url)
    assert migrate.upgrade(empty_database_url) is True
    with open_store(empty_database_url) as store:
        assert store.run("first").theta == theta


def test_whoever_had_the_database_open_follows_the_new_constraints(engine, empty_database_url):
    """A CHECK that was changed in place holds for connections that are older than it, too."""
    migrated(engine, command.upgrade, "0003")
    with engine.connect() as older:
        assert older.scalar(sa.text("SELECT count(*) FROM spsa_batch")) == 0
        older.commit()
        assert migrate.upgrade(empty_database_url) is True
        with open_store(empty_database_url) as store:
            stage(store).open()
        older.execute(sa.text("UPDATE spsa_batch SET status = 'struck'"))
        older.commit()
        with pytest.raises(sa.exc.IntegrityError, match="ck_spsa_batch_status"):
            older.execute(sa.text("UPDATE spsa_batch SET status = 'lost'"))
        older.rollback()
        with pytest.raises(sa.exc.IntegrityError, match=r"ck_spsa_iteration_(struck|sound)"):
            older.execute(sa.text("UPDATE spsa_iteration SET struck_games = 4"))


def test_there_is_no_way_back_behind_a_purge(engine, empty_database_url):
    migrate.upgrade(empty_database_url)
    with open_store(empty_database_url) as store:
        stage(store)
    purge = (
        "INSERT INTO spsa_purge"
        " (run_id, number, applied, theta_before, theta_after, games, selection, actor, reason)"
        " VALUES (1, 1, 0, '{}', '{}', 4, '{}', 'me', 'bad memory')"
    )
    with engine.begin() as connection:
        connection.execute(sa.text(purge))
    with pytest.raises(sa.exc.InvalidRequestError, match="no way back"):
        migrated(engine, command.downgrade, "0003")
    open_store(empty_database_url).close()


def test_processes_that_start_together_all_find_it_done(empty_database_url):
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["alembic.command", "spsa.migrate"])
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
        connection.exec_driver_sql("CREATE TABLE spsa_step (mine INTEGER)")
    with pytest.raises((sa.exc.DBAPIError, DatabaseUnreachable)):
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
    root = Path(migrate.__file__).parent.parent
    project = tomllib.loads((root / "pyproject.toml").read_text())
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included["migrations"] == "spsa/_migrations"
    assert Path(migrate.configuration().get_main_option("script_location")).samefile(
        root / "migrations"
    )
