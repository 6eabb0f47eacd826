"""`compete --spsa --build`: an order is built from its archive, published, failed or given up."""

import os
import re
from contextlib import closing
from unittest.mock import Mock

import pytest
from asking import RemoteStore, Store
from builders import LEASE, new_worker
from console import FIXTURES
from engines.faulty import wait_until
from served import serving

from spsa.builds.builder import BuildOrder, archive_of
from spsa.builds.recipe import Recipe, Rendered
from spsa.builds.requirements import BUILDS
from spsa.builds.tree import pin
from spsa.core.json_values import to_json
from spsa.errors import DatabaseUnreachable, NotPermitted, TuningError
from spsa.lifecycle import MachineRole
from worker.batches.builds import BuildThread

ENGINE = (FIXTURES / "shell/engine.sh").read_text()
SIDES = {"plus": "55", "minus": "45"}
FAULTS = [(Store.file, "ended with 3.*no.x1b.2J such"), (lambda *_: None, "source hashes to")]
BUILD = ["sh", "-c", 'sed "s/MARGIN/$(cat margin)/" engine.sh > engine && chmod +x engine']


@pytest.fixture
def ordered(sqlite_store, tmp_path):
    """Orders two engines that are built by a command; returns the key of the order."""

    def order_build(command):
        source = tmp_path / "source"
        source.mkdir()
        (source / "engine.sh").write_text(ENGINE)
        (source / "margin").write_text("50")
        pinned = pin(source, tmp_path / "work", cargo=False)
        sha256 = pinned.sha256
        sqlite_store.keep_files({sha256: archive_of(pinned)})
        recipe = Recipe(command=tuple(command), binary="engine")
        sides = {side: Rendered({"margin": n}, {"margin": int(n)}) for side, n in SIDES.items()}
        order = BuildOrder(kind=("linux",), source_sha256=sha256, recipe=recipe, **sides)
        sqlite_store.order_build(order.key, (BUILDS,), sha256, to_json(order), max_attempts=5)
        return order.key

    return order_build


def until(store, key, reached):
    wait_until(lambda: reached(*store.ordered_builds([key])), 240)
    return store.ordered_builds([key])[0]


def builder(store, tmp_path, lease=LEASE):
    return BuildThread(store, new_worker(provides=(BUILDS,)), lease, tmp_path / "builds")


def test_an_order_is_built_from_its_archive(sqlite_store, tmp_path, ordered):
    key = ordered(BUILD)
    (tmp_path / "builds" / "old").mkdir(parents=True)
    os.utime(tmp_path / "builds" / "old", (1, 1))  # a source that was used long ago
    with builder(sqlite_store, tmp_path):
        state = until(sqlite_store, key, lambda one: one.engines)
    plus, minus = state.engines
    assert (plus.bench, minus.bench) == (55, 45)
    assert sqlite_store.file(plus.sha256) == ENGINE.replace("MARGIN", "55").encode()
    (home,) = (tmp_path / "builds").iterdir()
    assert {path.name for path in home.iterdir()} == {"linux", "source"}


@pytest.mark.parametrize("role", [MachineRole.BUILDER, MachineRole.WORKER])
def test_a_remote_worker_builds_if_it_may(sqlite_store, tmp_path, ordered, role, caplog):
    key = ordered(BUILD)
    token = sqlite_store.invite_machine("remote", role, "me")
    with (
        serving(sqlite_store) as address,
        closing(RemoteStore(address, token)) as store,
        builder(store, tmp_path) as thread,
    ):
        if role is MachineRole.BUILDER:
            state = until(sqlite_store, key, lambda one: one.engines)
            assert sqlite_store.file(state.engines[0].sha256).endswith(b"done\n")
        else:
            thread._thread.join(60)
            assert "was invited without --may-build" in caplog.text


@pytest.mark.parametrize(("file", "said"), FAULTS)
def test_what_fails_is_the_reason(file, said, sqlite_store, tmp_path, ordered, monkeypatch):
    key = ordered(["sh", "-c", "echo 'no\033[2J such header' >&2; exit 3"])
    monkeypatch.setattr(Store, "file", file)
    with builder(sqlite_store, tmp_path):
        state = until(sqlite_store, key, lambda one: one.failures)
    ((machine, reason),) = state.failures
    assert machine == "machine" and state.builders == 0 and re.search(said, reason)


def test_its_waits_are_short_again_when_it_is_served(tmp_path):
    failure, refusal = TuningError("no"), NotPermitted("no")
    answers = [*[failure] * 9, None, failure, refusal]
    thread = builder(Mock(), tmp_path)
    thread._client.ask = Mock(side_effect=answers)
    thread._stopping = Mock(**{"is_set.return_value": False})
    thread._run()
    *_, longest, usual, again = (one.args[0] for one in thread._stopping.wait.mock_calls)
    assert longest >= 10 > 1 == usual > again
    thread._store.ask.side_effect = [away := DatabaseUnreachable("no"), refusal, away]
    assert [thread._is_held(Mock()) for _ in "12"] == [True, False], "as far as can be known"
    with pytest.raises(DatabaseUnreachable):
        thread._retried(thread._store.ask)


@pytest.mark.parametrize("is_wanted", [True, False])
def test_a_build_is_handed_back_when_no_master_wants_it_or_its_worker_ends(
    is_wanted, sqlite_store, tmp_path, ordered, sql
):
    ordered(["sleep", "600"])
    with builder(sqlite_store, tmp_path, lease=10):
        wait_until(lambda: sql("SELECT 1 FROM spsa_build WHERE status = 'leased'"), 240)
        if not is_wanted:
            sql("UPDATE spsa_build SET wanted_until = created_at")
            wait_until(lambda: sql("SELECT 1 FROM spsa_build WHERE status = 'ready'"), 240)
    assert sql("SELECT status, attempt FROM spsa_build") == [("ready", 0)]
