"""Engines that workers build: ordered by a master, leased to one machine, published once."""

import hashlib
import time
from dataclasses import replace

import pytest
from builders import LEASE, build_result, built, new_worker

from spsa.errors import IllegalTransition, OutOfRange
from spsa.lifecycle import MachineRole
from spsa.protocol import RegisteredWorker

WORDS = ("linux", "x86-64")
ARCHIVE = b"an archive"
PLUS, MINUS = b"plus", b"minus"


class Orders:
    """One order for `WORDS`, and the workers that ask for it."""

    def __init__(self, store, sql):
        self.store, self.sql, self.asked = store, sql, 0
        self.sha256 = hashlib.sha256(ARCHIVE).hexdigest()
        store.keep_files({self.sha256: ARCHIVE})
        store.keep_files({self.sha256: ARCHIVE})
        self.order()

    def order(self, key="k" * 64):
        self.store.order_build(
            key, (*WORDS, "builds"), self.sha256, {"binary": "tern"}, max_attempts=2
        )

    def worker(self, name, words=(*WORDS, "builds")):
        return self.store.register_worker(new_worker(name, host=name, provides=words))

    def claim(self, worker):
        self.asked += 1
        return self.store.claim_build(f"c{self.asked}", worker, LEASE)

    def claim_expired(self, worker):
        build = self.claim(worker)
        self.sql("UPDATE spsa_build SET lease_expires_at = leased_at, leased_at = created_at")
        time.sleep(0.005)  # a lease that ends in this millisecond has not expired
        return build

    def publish(self, build, **over):
        facts = {"plus": built(PLUS, 1234), "minus": built(MINUS, 4321), "requires": WORDS}
        return self.store.publish_build(build_result(build, **facts | over), PLUS, MINUS)

    @property
    def state(self):
        (found,) = self.store.ordered_builds(["k" * 64])
        return found


@pytest.fixture
def orders(store, sql):
    return Orders(store, sql)


def test_one_machine_of_the_kind_builds_and_others_take_what_it_publishes(orders, sql):
    store = orders.store
    assert orders.claim(orders.worker("plays only", WORDS)) is None
    assert orders.claim(orders.worker("other kind", ("aarch64", "builds", "linux"))) is None
    assert orders.state.builders == 0
    one, two = orders.worker("one"), orders.worker("two")
    assert orders.state.builders == 2
    build = orders.claim(one)
    assert orders.claim(two) is None
    assert store.claim_build(build.claim_id, one, LEASE) == build
    assert (build.recipe, build.archive_sha256) == ({"binary": "tern"}, orders.sha256)
    assert store.file(build.archive_sha256) == ARCHIVE
    assert store.renew_build(build, LEASE)
    assert orders.publish(build) == "accepted"
    assert sql("SELECT status, recipe FROM spsa_build") == [("done", None)]
    assert orders.publish(build) == "already"
    assert not store.renew_build(build, LEASE)
    store.fail_build(build, "published before")
    plus, minus = orders.state.engines
    assert store.file(plus.sha256) == PLUS
    assert (minus.sha256, minus.size) == (hashlib.sha256(MINUS).hexdigest(), 5)
    assert (plus.bench, minus.bench, plus.target) == (1234, 4321, "x86_64-linux")
    assert store.claim_build(build.claim_id, one, LEASE) is None, "published"
    assert (orders.state.requires, orders.state.failures) == (WORDS, ())
    orders.order()  # wanted again: it is there
    assert orders.state.engines == (plus, minus)


def test_a_machine_that_cannot_build_says_why_and_is_not_asked_again(orders):
    one, two = orders.worker("one"), orders.worker("two")
    orders.store.fail_build(orders.claim(one), "no compiler")
    assert orders.claim(one) is None
    assert (orders.state.failures, orders.state.builders) == ((("one", "no compiler"),), 1)
    orders.order()  # by another master: nothing changes while a machine is left
    assert orders.claim(one) is None
    orders.store.fail_build(orders.claim(two), "nor here")
    assert orders.state.builders == 0
    assert [machine for machine, _ in orders.state.failures] == ["one", "two"]
    orders.order()
    assert (orders.state.failures, orders.state.builders) == ((), 2)


def test_a_build_that_is_lost_or_handed_back_goes_to_another_machine(orders, sql):
    store = orders.store
    one, two = orders.worker("one"), orders.worker("two")
    store.fail_build(orders.claim(one), None)
    assert sql("SELECT status, claim_id, lease_expires_at, attempt FROM spsa_build") == [
        ("ready", None, None, 0)
    ]
    lost = orders.claim_expired(one)
    found = orders.claim(two)
    assert orders.publish(lost) == "lost"
    store.fail_build(lost, "too late")
    assert orders.publish(found) == "accepted"
    assert orders.state.failures == ()


def test_a_build_whose_workers_disappear_is_given_up(orders):
    one = orders.worker("one")
    orders.claim_expired(one)
    orders.claim_expired(one)
    assert orders.claim(one) is None
    ((who, why),) = orders.state.failures
    assert (who, orders.state.builders) == ("all workers", 0) and why.startswith("left 2 times")


def test_a_claim_gives_the_right_to_its_own_build_only(orders):
    build = orders.claim(orders.worker("one"))
    for other in (
        replace(build, build_id=build.build_id + 1),
        replace(build, claim_id="forged"),
        replace(build, worker_id=orders.worker("two").id),
    ):
        orders.store.fail_build(other, "no compiler")
        assert orders.publish(other) == "lost"
        assert not orders.store.renew_build(other, LEASE)
    assert orders.publish(build) == "accepted"


def test_engines_whose_bytes_were_deleted_are_built_again(orders, sql):
    for name in ("one", "two"):
        build = orders.claim(orders.worker(name))
        assert orders.publish(build) == "accepted"
        assert [orders.store.file(engine.sha256) for engine in orders.state.engines] == [
            PLUS,
            MINUS,
        ]
        sql("UPDATE spsa_engine SET bytes = NULL")
        orders.order()


def test_what_is_published_has_limits(orders):
    build = orders.claim(orders.worker("one"))
    for over, words in (
        ({"target": ""}, "target has 0 characters"),
        ({"target": "x" * 101}, "target has 101 characters"),
        ({"target": "a\x1b[31m"}, "target has unprintable characters"),
        ({"requires": ("a\x1b[31m",)}, "requires.*unprintable"),
        ({"requires": ("x" * 5000,)}, "requires.*5000 characters"),
        ({"plus": built(b"")}, "plus.size is 0"),
        ({"plus": built(PLUS, -1)}, "plus.bench is -1"),
        ({"plus": built(PLUS, 10**18 + 1)}, "plus.bench is 1e"),
        ({"minus": replace(built(MINUS), size=4)}, "minus is not the engine of 5 bytes"),
        ({"minus": replace(built(MINUS), sha256="0" * 64)}, "minus is not the engine of 5 bytes"),
    ):
        with pytest.raises(OutOfRange, match=words):
            orders.publish(build, **over)
    with pytest.raises(OutOfRange, match="reason"):
        orders.store.fail_build(build, "a\x1b[31m")
    with pytest.raises(OutOfRange, match="lease_seconds is 5; allowed: 10 to 3,600"):
        orders.store.renew_build(build, 5)
    with pytest.raises(OutOfRange, match="lease_seconds is 0"):
        orders.store.claim_build("c", orders.worker("one"), 0)
    with pytest.raises(IllegalTransition, match="worker 99 is not registered"):
        orders.claim(RegisteredWorker(id=99, machine="one"))


@pytest.mark.parametrize(("role", "may"), [(MachineRole.BUILDER, 1), (MachineRole.WORKER, 0)])
def test_only_an_invited_machine_that_may_build_is_asked(orders, role, may):
    orders.store.invite_machine("far", role, "me")
    info = new_worker("far-1", host="any", provides=(*WORDS, "builds"))
    worker = orders.store.register_worker(info, "far")
    assert orders.state.builders == may
    assert [machine.may_build for _, machine in orders.store.active_workers()] == [bool(may)]
    assert (orders.claim(worker) is not None) == bool(may)


def test_a_machine_that_is_revoked_loses_its_build_and_gets_no_other(orders, sql):
    one, two = orders.worker("one"), orders.worker("two")
    build = orders.claim(one)
    orders.store.revoke_machine("one", "me")
    assert sql("SELECT status, claim_id, attempt FROM spsa_build") == [("ready", None, 0)]
    assert orders.publish(build) == "lost"
    assert orders.claim(one) is None
    assert [worker.words for worker, _ in orders.store.active_workers()] == [("builds", *WORDS)]
    assert orders.claim(two).build_id == build.build_id
