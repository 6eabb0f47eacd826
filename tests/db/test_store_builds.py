"""Engines that workers build: ordered by a master, leased to one machine, published once."""

import hashlib
import time
from dataclasses import replace

import pytest
from builders import LEASE, new_worker
from shell import Shell

from spsa.db.grants import Grant, GrantQueries, Role
from spsa.db.store import NewBuild, Published, open_store
from spsa.errors import NotPermitted, OutOfRange

WORDS = ("linux", "x86-64")
ARCHIVE = b"an archive"
PLUS, MINUS = Published(b"plus", 1234), Published(b"minus", 4321)


class Orders:
    """One order for `WORDS`, and the workers that ask for it."""

    def __init__(self, store):
        self.store, self.asked = store, 0
        self.sha256 = hashlib.sha256(ARCHIVE).hexdigest()
        store.keep_archive(self.sha256, ARCHIVE)
        store.keep_archive(self.sha256, ARCHIVE)
        self.order()

    def order(self, key="k" * 64):
        self.store.order_build(
            NewBuild(
                key=key,
                requires=(*WORDS, "builds"),
                archive_sha256=self.sha256,
                recipe={"binary": "tern"},
                max_attempts=2,
            )
        )

    def worker(self, name, words=(*WORDS, "builds")):
        return self.store.register_worker(new_worker(name, host=name, provides=words))

    def claim(self, worker):
        self.asked += 1
        return self.store.claim_build(f"c{self.asked}", worker, LEASE)

    def claim_expired(self, worker):
        self.asked += 1
        build = self.store.claim_build(f"c{self.asked}", worker, 0)
        time.sleep(0.005)  # SQLite's clock has steps of a millisecond
        return build

    @property
    def state(self):
        (found,) = self.store.ordered_builds(["k" * 64])
        return found


@pytest.fixture
def orders(store):
    return Orders(store)


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
    assert store.engine_bytes(build.archive_sha256) == ARCHIVE
    assert store.renew_build(build, LEASE)
    assert store.publish_build(build, "x86_64-linux", WORDS, PLUS, MINUS) == "accepted"
    assert sql("SELECT status, recipe FROM spsa_build") == [("done", None)]
    assert store.publish_build(build, "x86_64-linux", WORDS, PLUS, MINUS) == "already"
    assert not store.renew_build(build, LEASE)
    store.fail_build(build, "published before")
    plus, minus = orders.state.engines
    assert store.engine_bytes(plus.sha256) == b"plus"
    assert (minus.sha256, minus.size) == (hashlib.sha256(b"minus").hexdigest(), 5)
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


def test_a_machine_that_failed_one_build_is_given_another(orders):
    one = orders.worker("one")
    failed = orders.claim(one)
    orders.store.fail_build(failed, "no compiler")
    orders.order("l" * 64)
    assert orders.claim(one).id > failed.id


def test_a_build_that_is_lost_or_handed_back_goes_to_another_machine(orders, sql):
    store = orders.store
    one, two = orders.worker("one"), orders.worker("two")
    store.fail_build(orders.claim(one), None)
    assert sql("SELECT status, claim_id, lease_expires_at, attempt FROM spsa_build") == [
        ("ready", None, None, 0)
    ]
    lost = orders.claim_expired(one)
    found = orders.claim(two)
    assert store.publish_build(lost, "x", (), PLUS, MINUS) == "lost"
    store.fail_build(lost, "too late")
    assert store.publish_build(found, "x", (), PLUS, MINUS) == "accepted"
    assert orders.state.failures == ()


def test_the_oldest_order_is_built_first(orders):
    one, two = orders.worker("one"), orders.worker("two")
    orders.order("l" * 64)
    orders.store.fail_build(orders.claim(one), None)
    assert orders.claim(two).id < orders.claim(one).id


def test_a_build_whose_workers_disappear_is_given_up(orders):
    one = orders.worker("one")
    orders.claim_expired(one)
    orders.claim_expired(one)
    assert orders.claim(one) is None
    assert orders.state.builders == 0


def test_a_claim_gives_the_right_to_its_own_build_only(orders):
    build = orders.claim(orders.worker("one"))
    for other in (replace(build, id=build.id + 1), replace(build, claim_id="forged")):
        orders.store.fail_build(other, "no compiler")
        assert orders.store.publish_build(other, "x", (), PLUS, MINUS) == "lost"
    assert not orders.store.renew_build(replace(build, claim_id="forged"), LEASE)
    assert orders.store.publish_build(build, "x", (), PLUS, MINUS) == "accepted"


def test_a_machine_that_gets_no_batches_of_one_binary_builds(orders):
    one, two = orders.worker("one"), orders.worker("two")
    orders.store.set_aside("one", "why", "me")
    orders.store.set_aside("two", "why", "me", sha256=orders.sha256)
    assert orders.claim(one) is None
    assert orders.claim(two) is not None


def test_engines_whose_bytes_were_deleted_are_built_again(orders, sql):
    for name in ("one", "two"):
        build = orders.claim(orders.worker(name))
        assert orders.store.publish_build(build, "x", WORDS, PLUS, MINUS) == "accepted"
        plus, minus = orders.state.engines
        found = [orders.store.engine_bytes(engine.sha256) for engine in (plus, minus)]
        assert found == [b"plus", b"minus"]
        sql("UPDATE spsa_engine SET bytes = NULL")
        orders.order()


def test_what_is_published_has_limits(orders):
    build = orders.claim(orders.worker("one"))
    for target, words, plus in (
        ("", (), PLUS),
        ("x" * 101, (), PLUS),
        ("a\x1b[31m", (), PLUS),
        ("x", ("a\x1b[31m",), PLUS),
        ("x", ("x" * 5000,), PLUS),
        ("x", (), Published(b"", None)),
        ("x", (), Published(b"plus", -1)),
        ("x", (), Published(b"plus", 10**18 + 1)),
    ):
        with pytest.raises(OutOfRange):
            orders.store.publish_build(build, target, words, plus, MINUS)
    with pytest.raises(OutOfRange, match="0 bytes"):
        orders.store.publish_build(build, "x", (), PLUS, Published(b"", None))
    with pytest.raises(OutOfRange, match="reason"):
        orders.store.fail_build(build, "a\x1b[31m")


def test_a_master_that_no_longer_asks_gets_nothing(orders, sql):
    build = orders.claim(orders.worker("one"))
    sql("UPDATE spsa_build SET wanted_until = leased_at")
    assert not orders.store.renew_build(build, LEASE)
    orders.store.fail_build(build, None)
    assert orders.claim(orders.worker("two")) is None


def test_only_the_login_of_a_builder_publishes(postgresql_url):
    with open_store(postgresql_url, durable=False) as store:
        orders = Orders(store)
        user = f"builder_{hashlib.sha256(postgresql_url.encode()).hexdigest()[:12]}"
        url = postgresql_url.replace("//postgres@", f"//{user}@")
        with GrantQueries(postgresql_url) as owner:
            owner.grant(Grant(role=Role.WORKER, user=user, connections=9))
            with open_store(url, durable=False) as mine:
                worker = mine.register_worker(new_worker("w", provides=(*WORDS, "builds")))
                with pytest.raises(NotPermitted):
                    mine.claim_build("c", worker, LEASE)
                assert orders.state.builders == 0, "it says that it builds"
                owner.grant(Grant(role=Role.BUILDER, user=user, connections=9))
                worker = mine.register_worker(new_worker("w", provides=(*WORDS, "builds")))
                assert orders.state.builders == 1
                mine.fail_build(mine.claim_build("a", worker, LEASE), None)
                build = mine.claim_build("c", worker, LEASE)
                assert mine.renew_build(build, LEASE)
                assert mine.publish_build(build, "x", (), PLUS, MINUS) == "accepted"
                with pytest.raises(NotPermitted):
                    mine.keep_archive("a" * 64, b"x")
    shell = Shell(postgresql_url)
    shell(f"DROP OWNED BY {user}")
    shell(f"DROP ROLE {user}")
    shell.close()
