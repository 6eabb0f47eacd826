"""A database is upgraded under those who use it: they go on safely, or end with a sentence."""

import shutil
import textwrap
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from builders import LEASE, result_of, stage
from tuner import ENDLESS
from uci_tuner import engines_of, uci_tuner

from spsa import migrate
from spsa.connection import create_engine, parse_url
from spsa.errors import SchemaMismatch
from spsa.schema import REVISION
from spsa.store import open_store

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
    shutil.copytree(Path(migrate.configuration().get_main_option("script_location")), scripts)
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


def to_first_schema(later, url):
    """What the first version of the program had; its migrations are those of this one."""
    later(url, command.downgrade, "0001")


def test_a_live_run_of_the_first_schema_ends_with_the_theta_it_would_have_had(
    database_url, empty_sqlite_url, later, request
):
    migrate.upgrade(empty_sqlite_url)
    with open_store(empty_sqlite_url, durable=False) as store:
        undisturbed = stage(store)
        for _ in range(3):
            undisturbed.whole_iteration()
        wanted = undisturbed.now().theta
    with open_store(database_url, durable=False) as store:
        run = stage(store)
        run.whole_iteration()
        run.open()
        held, lost = run.claim("held"), run.claim("lost")
    to_first_schema(later, database_url)
    with pytest.raises(SchemaMismatch, match="is at schema 0001, this program needs"):
        open_store(database_url)
    assert migrate.upgrade(database_url) is True
    request.getfixturevalue("expire")(lost.batch_id)
    with open_store(database_url, durable=False) as store:
        run = type(run)(store, run.run, store.acquire(run.run.id, "m1", LEASE), run.worker)
        assert store.renew(["held"], LEASE) == {"held"}
        assert store.report(held, result_of(held)) == "accepted"
        assert [claim.attempt for claim in run.play()] == [2]
        run.apply()
        run.whole_iteration()
        assert run.now().theta == wanted
        assert [iteration.games_played for iteration in store.iterations(run.run.id)] == [8] * 3


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
                connection.execute(
                    sa.text("ALTER FUNCTION spsa_exchange RENAME TO spsa_exchange_2")
                )
        engine.dispose()
        with pytest.raises(SchemaMismatch, match="are not those of this program any more"):
            run.claim("a")


@pytest.fixture
def tuner(tmp_path):
    folder = tmp_path / "tuner"
    made = uci_tuner(folder, f"sqlite:///{tmp_path / 'spsa.db'}", iterations=ENDLESS)
    yield made
    made.kill_all()


@pytest.mark.timeout(600)
def test_master_and_worker_end_with_a_sentence_and_go_on_with_the_right_version(tuner, later):
    master = tuner.master()
    tuner.wait_for_tables()
    worker = tuner.worker("--drain", "0")
    tuner.wait_until("iterations_applied", 1)
    later(tuner.url)
    assert (tuner.ended(master), tuner.ended(worker)) == (3, 3), tuner.account()
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
    master, worker = tuner.master(), tuner.worker()
    assert (tuner.ended(master), tuner.ended(worker)) == (0, 0), tuner.account()
    assert tuner.ask("doctor").returncode == 0
