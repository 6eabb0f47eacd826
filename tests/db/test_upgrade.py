"""A database is upgraded under those who use it: they go on safely, or end with a sentence."""

import shutil
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from builders import LEASE, result_of, stage
from console import call, master, worker, write_project
from fleet import NAME, SEED, iteration, undisturbed
from invariants import broken
from tuner import ENDLESS
from uci_tuner import engines_of, uci_tuner

from spsa.db import alembic_runner, migrate, schema_version
from spsa.db.alembic_runner import configuration
from spsa.db.connection import create_engine, parse_url
from spsa.db.schema import REVISION
from spsa.db.store import open_store
from spsa.errors import SchemaMismatch
from spsa.history.doctor import check_run

NEXT = "9001"
NEXT_REVISION = f'''
"""What a later version of this program would bring."""

import sqlalchemy as sa
from alembic import op

revision, down_revision = "{NEXT}", "{REVISION}"


def upgrade():
    op.add_column("spsa_batch", sa.Column("later", sa.Integer, nullable=False, server_default="0"))


def downgrade():
    op.drop_column("spsa_batch", "later")
'''


@pytest.fixture
def later(tmp_path):
    """Brings a database to the next version's schema, or back from it."""
    scripts = tmp_path / "later"
    shutil.copytree(Path(configuration().get_main_option("script_location")), scripts)
    (scripts / "versions" / f"{NEXT}_later.py").write_text(textwrap.dedent(NEXT_REVISION))

    def bring(url, act=command.upgrade, to=NEXT, script_location=scripts):
        engine = create_engine(parse_url(url), durable=True)
        config = Config()
        config.set_main_option("script_location", str(script_location))
        with engine.begin() as connection:
            config.attributes["connection"] = connection
            act(config, to)
        engine.dispose()

    return bring


@pytest.fixture
def later_program(tmp_path, later, monkeypatch):
    """From here on this process is the next version of the program."""

    def become():
        monkeypatch.setattr(alembic_runner, "_migrations", lambda: tmp_path / "later")
        for module in (migrate, schema_version):
            monkeypatch.setattr(module, "REVISION", NEXT)

    return become


def open_next(on):
    run = on.now()
    on.store.open_iteration(on.master, iteration(run.applied + 1, run.applied))


def test_a_live_iteration_outlives_an_upgrade(database_url, sql, later_program):
    """What a worker holds meanwhile counts, and theta ends where it would have ended."""
    with open_store(database_url) as store:
        on = stage(store, name=NAME, seed=SEED, max_iterations=2)
        open_next(on)
        held = on.claim("held")
    later_program()
    with pytest.raises(SchemaMismatch, match=f"at schema {REVISION}, this program needs {NEXT}"):
        open_store(database_url)
    assert migrate.upgrade(database_url) is True
    assert migrate.upgrade(database_url) is False
    with open_store(database_url) as store:
        on = replace(on, store=store)
        assert store.report(held, result_of(held)) == "accepted"
        assert store.report(held, result_of(held)) == "already"
        for _ in range(2):
            on.play("after")
            on.apply()
            if on.now().applied < 2:
                open_next(on)
        store.finish(on.master)
        theta, tally = undisturbed(2)
        assert (on.now().theta, store.totals(on.run.id).tally) == (theta, tally)
        assert broken(sql) == []
        assert [str(finding) for finding in check_run(store, on.now())] == []


@pytest.mark.slow
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


def test_nothing_is_written_into_tables_that_have_become_others(database_url, later, sql):
    with open_store(database_url, durable=False) as store:
        run = stage(store)
        run.open()
        claim = run.claim("a")
        later(database_url)
        before = sql("SELECT * FROM spsa_batch"), sql("SELECT * FROM spsa_run")
        verbs = {
            "tick": lambda: store.tick(run.master, LEASE),
            "pause": lambda: store.pause("first", "me", "why"),
        }
        if store.is_file:
            verbs |= {
                "claim": lambda: run.claim("b"),
                "renew": lambda: store.renew(["a"], LEASE),
                "report": lambda: store.report(claim, result_of(claim)),
            }
        for verb in verbs.values():
            with pytest.raises(SchemaMismatch, match=f"to schema {NEXT} while this program"):
                verb()
        assert (sql("SELECT * FROM spsa_batch"), sql("SELECT * FROM spsa_run")) == before
        if not store.is_file:  # a worker's verbs are functions of the database, and so upgraded
            assert store.report(claim, result_of(claim)) == "accepted"


def test_tables_and_functions_that_are_gone_are_a_sentence(database_url, sql):
    with open_store(database_url, durable=False) as store:
        run = stage(store)
        run.open()
        engine = create_engine(parse_url(database_url), durable=True)
        with engine.begin() as connection:
            if store.is_file:
                connection.execute(sa.text("ALTER TABLE spsa_batch RENAME COLUMN seq TO place"))
            else:
                connection.execute(sa.text("ALTER FUNCTION spsa_claim RENAME TO spsa_claim_2"))
        engine.dispose()
        with pytest.raises(SchemaMismatch, match="are no longer those of this program"):
            run.claim("a")


@pytest.fixture
def tuner(tmp_path):
    folder = tmp_path / "tuner"
    made = uci_tuner(folder, f"sqlite:///{tmp_path / 'spsa.db'}", iterations=ENDLESS)
    yield made
    made.kill_all()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_master_and_worker_end_with_a_sentence_and_go_on_with_the_right_version(tuner, later):
    moving = tuner.master()
    tuner.wait_for_tables()
    playing = tuner.worker("--drain", "0")
    tuner.wait_until("iterations_applied", 1)
    later(tuner.url)
    assert (tuner.ended(moving), tuner.ended(playing)) == (3, 3), tuner.account()
    said = tuner.words()
    assert said.count(f"was brought to schema {NEXT} while this program") == 2
    assert "Traceback" not in said
    assert engines_of(tuner.folder) == []
    refused = tuner.ask("status")
    assert refused.returncode == 3
    assert f"is at schema {NEXT}, newer than this program's {REVISION}" in refused.stderr
    later(tuner.url, command.downgrade, REVISION)
    tuner.expire()  # its master could not hand the run back
    tuner.end_soon()
    moving, playing = tuner.master(), tuner.worker()
    assert (tuner.ended(moving), tuner.ended(playing)) == (0, 0), tuner.account()
    assert tuner.ask("doctor").returncode == 0
