"""A database of any schema that was ever current is upgraded in the middle of an iteration.

The batch that a worker holds meanwhile is reported afterwards by the claim it was taken with, and
the run ends with the theta that it would have had. A program that is older than the database says
so and leaves.
"""

from dataclasses import replace

import pytest
from alembic import command
from alembic.script import ScriptDirectory
from builders import result_of, stage
from console import call, master, worker, write_project
from fleet import GAMES, NAME, SEED, iteration, undisturbed
from invariants import broken

from spsa import migrate
from spsa.connection import create_engine, parse_url
from spsa.doctor import check_run
from spsa.schema import REVISION
from spsa.store import open_store

RELEASED = [
    script.revision
    for script in ScriptDirectory.from_config(migrate.configuration()).walk_revisions()
    if script.revision != REVISION
]
ITERATIONS = 3


def brought_to(url, revision):
    """The tables as they were at a revision, with all the rows that are there."""
    engine = create_engine(parse_url(url), durable=True, create=True)
    with engine.begin() as connection:
        config = migrate.configuration()
        config.attributes["connection"] = connection
        command.downgrade(config, revision)
    engine.dispose()


def open_next(on):
    run = on.now()
    on.store.open_iteration(on.master, iteration(run.applied + 1, run.applied))


@pytest.mark.parametrize("revision", RELEASED)
def test_a_live_iteration_outlives_an_upgrade(database_url, sql, revision):
    with open_store(database_url) as store:
        on = stage(store, name=NAME, seed=SEED, max_iterations=ITERATIONS)
        open_next(on)
        on.play()
        on.apply()
        open_next(on)
        held = on.claim("held")
    brought_to(database_url, revision)
    assert migrate.upgrade(database_url) is True
    with open_store(database_url) as store:
        on = replace(on, store=store)
        assert store.report(held, result_of(held)) == "accepted"
        assert store.report(held, result_of(held)) == "already"
        on.play("after")
        on.apply()
        open_next(on)
        on.play("last")
        on.apply()
        store.finish(on.master)
        theta, tally = undisturbed(ITERATIONS)
        assert (on.now().theta, store.totals(on.run.id).tally) == (theta, tally)
        assert tally.games == ITERATIONS * GAMES
        assert broken(sql) == []
        assert [str(finding) for finding in check_run(store, on.now())] == []


@pytest.mark.parametrize(
    "program", [worker("--spsa", "-c", "1"), master("run"), master("status"), master("doctor")]
)
def test_an_older_program_says_so_and_leaves_a_newer_database_alone(
    sqlite_url, sql, tmp_path, program
):
    """A worker too, though it waits for databases that are not there yet."""
    with open_store(sqlite_url) as store:
        stage(store)
    sql("UPDATE alembic_version SET version_num = '9999'")
    write_project(tmp_path)
    done = call(program, tmp_path, DATABASE_URL=sqlite_url)
    assert done.returncode == 3 and done.stdout == ""
    (sentence,) = done.stderr.splitlines()
    assert f"schema 9999, newer than this program's {REVISION}" in sentence
    assert "install the newer version" in sentence
    assert sql("SELECT master_id FROM spsa_run WHERE name = 'first'") == [("m1",)]
    assert sql("SELECT COUNT(*) FROM spsa_worker")[0][0] == 1
