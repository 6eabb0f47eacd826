"""Engines that workers build: which kinds are ordered, used and refused, and what is said."""

import shutil
import uuid
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest
from asking import Store
from builders import LEASE, build_result, built, new_validation, new_worker, parameter, stage
from masters import FakeSleep
from shell import Shell

from spsa.builds.builder import BuildOrder, archive_of, ordered
from spsa.builds.commands import BuildCancelled
from spsa.builds.recipe import Recipe
from spsa.builds.tree import pin
from spsa.core.json_values import stored
from spsa.core.params import Space
from spsa.errors import BuildFailed, DatabaseUnreachable, TuningError
from spsa.master.delivery import EngineSource
from spsa.master.match_engines import MatchDelivery, NamedEngine
from spsa.master.worker_builds import WorkerDelivery

ARM = ("aarch64", "linux")
V3 = ("linux", "x86-64", "x86-64-v2", "x86-64-v3")
KINDS: dict[str, int | None] = {"linux aarch64": 7, "linux x86-64-v3": 7}
MARGIN = parameter("margin")


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "constants.h").write_text("const int margin = 50;\n")
    (folder / "build.sh").write_text("#!/bin/sh\n")
    (folder / "build.sh").chmod(0o755)
    (folder / "link").symlink_to("build.sh")
    return folder


@pytest.fixture
def delivery(sqlite_store, source, tmp_path):
    pinned, constants = pin(source, tmp_path / "work", cargo=False), "constants.h"
    texts = {constants: (source / constants).read_text()}
    levels = ("", "x86-64-v2", "x86-64-v3")
    recipes = {one: Recipe(command=("sh", "build.sh", one), binary="engine") for one in levels}
    engine_source = EngineSource(Space((MARGIN,)), pinned, texts)
    return WorkerDelivery(store=sqlite_store, source=engine_source, recipes=recipes)


class Builder:
    """Workers that build what `benches` says for each kind; without a bench they fail."""

    def __init__(self, store, benches):
        self.store, self.benches, self.orders = store, benches, dict[str, BuildOrder]()
        self.labels = dict[str, str]()  # of sources
        self.workers = [
            store.register_worker(
                new_worker(kind[0], host=kind[0], provides=(*kind, "builds"), concurrency=slots)
            )
            for kind, slots in ((ARM, 1), (V3, 8))
        ]

    def __call__(self):
        for worker in self.workers:
            build = self.store.claim_build(uuid.uuid4().hex, worker, LEASE)
            if build is None:
                continue
            order = stored(BuildOrder, build.recipe, "recipe")
            name = " ".join(order.kind)
            self.orders[name] = order
            label = self.labels.get(order.source_sha256, "")
            bench = self.benches.get(name + label, self.benches[name])
            if bench is None:
                self.store.fail_build(build, "no compiler")
            else:
                plus, minus = (f"{side} {name}{label}".encode() for side in "+-")
                words = (*order.kind, "x86-64-v2") if "x86" in name else order.kind
                sides = {"plus": built(plus, bench), "minus": built(minus, bench)}
                result = build_result(build, target=name, requires=tuple(words), **sides)
                self.store.publish_build(result, plus, minus)


def prepared(delivery, meanwhile, margin=55.0):
    """What it has built when this was called whenever it waits."""
    delivery._stopping = FakeSleep(meanwhile)
    return delivery.prepare({"margin": margin}, {"margin": 45.0})


def test_each_kind_has_its_engines(delivery, sqlite_store, source, tmp_path):
    builder = Builder(sqlite_store, KINDS)
    sides = prepared(delivery, builder)
    assert sides.requires == ("aarch64", "linux")
    assert list(sides.variants) == ["% linux % x86-64-v2 % x86-64-v3 %"]
    assert sides.plus.engine.content == b"+ linux aarch64"
    ((plus, minus),) = sides.variants.values()
    assert (plus.content, minus.content) == (b"+ linux x86-64-v3", b"- linux x86-64-v3")
    order = builder.orders["linux x86-64-v3"]
    assert order.recipe.command == ("sh", "build.sh", "x86-64-v3")
    assert builder.orders["linux aarch64"].recipe.command == ("sh", "build.sh", "")
    assert order.plus.files == {"constants.h": "const int margin = 55;\n"}
    archive = sqlite_store.file(order.source_sha256)
    with ordered(order, archive, tmp_path / "other", {}) as made:
        copy = tmp_path / "other" / order.source_sha256 / "source"
        assert made.artifacts.folder.parent == copy.parent, "on the disk of the cache"
        assert (copy / "constants.h").read_text() == (source / "constants.h").read_text()
        assert (copy / "build.sh").stat().st_mode & 0o777 == 0o755
        assert (copy / "link").readlink() == Path("build.sh")
    (copy / "constants.h").unlink()
    with pytest.raises(TuningError), ordered(order, archive + b"x", tmp_path / "third", {}):
        pass


def test_a_match_of_two_sources_has_a_side_of_each(delivery, sqlite_store, source, tmp_path):
    (source / "constants.h").write_text("const int margin = 80;\n")
    pinned = pin(source, tmp_path / "work", cargo=False)
    old, new = (
        replace(delivery, source=EngineSource(Space(()), one, {}))
        for one in (delivery.source.pinned, pinned)
    )
    builder = Builder(sqlite_store, {**KINDS, "linux aarch64, new": None})
    builder.labels = {delivery.source.pinned.sha256: ", old", pinned.sha256: ", new"}
    match = MatchDelivery(
        plus=new, minus=NamedEngine(name="old", sha256=old.source.pinned.sha256, delivery=old)
    )
    old._stopping = new._stopping = FakeSleep(builder)
    sides = match.prepare({}, {})
    assert (sides.requires, sides.variants) == (("linux", "x86-64-v2", "x86-64-v3"), {})
    builder.benches = KINDS
    sides = match.prepare({}, {})
    found = [(sides.plus.engine, sides.minus.engine), *sides.variants.values()]
    assert [(plus.content, minus.content) for plus, minus in found] == [
        (b"+ linux aarch64, new", b"- linux aarch64, old"),
        (b"+ linux x86-64-v3, new", b"- linux x86-64-v3, old"),
    ]
    assert sides.requires == ("aarch64", "linux")
    assert builder.orders["linux aarch64"].plus.files == {}
    staged = stage(sqlite_store)
    sqlite_store.open_iteration(staged.master, replace(new_validation(), sides=sides))
    again = sqlite_store.sides_of(*sqlite_store.iterations(staged.run.id))
    engines = [(again.plus.engine, again.minus.engine), *again.variants.values()]
    assert [(plus.content, minus.content) for plus, minus in engines] == [
        (plus.content, minus.content) for plus, minus in found
    ]
    assert (again.requires, again.variants.keys()) == (sides.requires, sides.variants.keys())
    old.has_builder = False
    assert not match.has_builder
    new.by_kind = old.by_kind = lambda *_: {}
    with pytest.raises(BuildFailed, match="workers of no kind could build both"):
        match.prepare({}, {})


def test_the_archive_of_a_lost_copy_is_made_from_the_checkout(source, tmp_path):
    pinned = pin(source, tmp_path / "work", cargo=False)
    whole = archive_of(pinned)
    shutil.rmtree(pinned.path)
    assert archive_of(pinned) == whole


def test_a_kind_with_another_bench_is_refused(delivery, sqlite_store, caplog):
    builder = Builder(sqlite_store, dict(KINDS, **{"linux aarch64": 8}))
    for _ in range(2):
        sides = prepared(delivery, builder)
        assert sides.requires == ("linux", "x86-64-v2", "x86-64-v3")  # the kind with the most slots
        reason = "bench gives 8 and 8 nodes, not 7 and 7"
        assert (sides.variants, sides.refused) == ({}, {"linux aarch64": reason})
    assert caplog.messages == [f"no binaries for linux aarch64 are used: {reason}"]


def test_a_build_fails_where_no_kind_can_be_built(delivery, sqlite_store, caplog):
    """Where one kind can be built, the run goes on without the others."""
    builder = Builder(sqlite_store, dict(KINDS, **{"linux aarch64": None}))
    assert prepared(delivery, builder).requires == ("linux", "x86-64-v2", "x86-64-v3")
    assert caplog.messages == ["no worker can build for linux aarch64: aarch64: no compiler"]
    builder.benches = dict.fromkeys(KINDS)
    with pytest.raises(BuildFailed, match="no worker can build for linux x86-64-v3: linux: no"):
        prepared(delivery, builder, margin=60.0)


def test_a_build_that_ends_its_workers_fails(delivery, sqlite_store):
    (worker, _) = Builder(sqlite_store, KINDS).workers
    sqlite_store.set_aside("linux", "crashes", "me")

    def leaves():
        assert sqlite_store.claim_build("a", worker, LEASE)
        with closing(Shell(sqlite_store.where)) as shell:
            shell("UPDATE spsa_build SET attempt = 5, lease_expires_at = created_at")

    with pytest.raises(BuildFailed, match="linux aarch64: all workers: left 5 times while"):
        prepared(delivery, leaves)


@pytest.mark.parametrize("kept", [None, b"damaged"])
def test_an_engine_that_the_database_lost_is_not_used(kept, delivery, sqlite_store, monkeypatch):
    builder = Builder(sqlite_store, KINDS)
    monkeypatch.setattr(Store, "file", lambda *_: kept)
    with pytest.raises(TuningError, match="does not hold the engine"):
        prepared(delivery, builder)


def test_a_master_says_for_what_it_waits_and_stops(delivery, sqlite_store, caplog, monkeypatch):
    sqlite_store.register_worker(new_worker("plays", provides=ARM))
    away = Mock(side_effect=DatabaseUnreachable("away"))  # which its session tells
    monkeypatch.setattr(Store, "active_workers", away)
    had_builder = list[bool]()

    def set_aside():
        for machine in ("aarch64", "linux"):
            sqlite_store.set_aside(machine, "crashes", "me")

    def meanwhile():
        monkeypatch.undo()
        had_builder.append(delivery.has_builder)
        next(steps)()

    steps = iter((int, lambda: Builder(sqlite_store, KINDS), set_aside, delivery.cancel))
    with pytest.raises(BuildCancelled):
        prepared(delivery, meanwhile)
    assert had_builder == [True, False, True, False]
    assert caplog.messages == [
        "no worker builds for linux aarch64: start one with `compete --spsa --build`",
        "waiting for a worker that builds: `compete --spsa --build`",
    ]
