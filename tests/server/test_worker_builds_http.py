"""Engines that a remote worker builds: sent one by one, published together, by the holder alone."""

import hashlib
import select

import pytest
from attacks import Machine
from builders import LEASE, build_result, built
from served import serving
from test_worker_attacks import connected, head, status_of

from spsa.core.json_values import to_json
from spsa.lifecycle import MachineRole
from spsa.protocol import ENGINE_BYTES

ARCHIVE = b"the archive of a source"
PLUS, MINUS = b"plus" * 100_000, b"minus" * 100_000


class Orders:
    """One order, a server, two machines that may build and one that may not."""

    def __init__(self, store, url, sql):
        self.store, self.url, self.sql = store, url, sql
        self.archive = hashlib.sha256(ARCHIVE).hexdigest()
        store.keep_files({self.archive: ARCHIVE})
        self.order()
        self.one = Machine(store, url, "one", MachineRole.BUILDER)
        self.two = Machine(store, url, "two", MachineRole.BUILDER)
        self.player = Machine(store, url, "player", MachineRole.WORKER)

    def order(self):
        words = ("builds", "linux")
        recipe = {"binary": "tern"}
        self.store.order_build("k" * 64, words, self.archive, recipe, max_attempts=2)

    def claimed(self, machine, claim_id="build-1"):
        build = machine.api.claim_build(claim_id, machine.worker, LEASE)
        assert build is not None
        return build

    @property
    def uploads(self):
        """The engines that were sent and are not published: side and size."""
        sent = "SELECT '{0}', length({0}_bytes) FROM spsa_build WHERE {0}_bytes IS NOT NULL"
        return [row for side in ("plus", "minus") for row in self.sql(sent.format(side))]

    @property
    def engines(self):
        (state,) = self.store.ordered_builds(["k" * 64])
        return state.engines


@pytest.fixture
def orders(store, sql):
    with serving(store) as url:
        found = Orders(store, url, sql)
        machines = (found.one, found.two, found.player)
        yield found
        assert [s for machine in machines for s in machine.statuses if s >= 500] == []
        for machine in machines:
            machine.close()


def result_of(build, plus=PLUS, minus=MINUS, **over):
    return build_result(build, plus=built(plus, 1234), minus=built(minus, 1234), **over)


def path_of(build, side="plus"):
    return f"/worker/builds/{build.build_id}/{build.claim_id}/{side}"


def test_a_remote_worker_builds_for_others(orders):
    one = orders.one
    build = orders.claimed(one)
    assert (build.recipe, build.archive_sha256) == ({"binary": "tern"}, orders.archive)
    assert one.api.file(orders.archive) == ARCHIVE
    assert one.api.renew_build(build, LEASE)
    assert one.api.publish_build(result_of(build), PLUS, MINUS) == "accepted"
    assert one.api.publish_build(result_of(build), PLUS, MINUS) == "already"
    assert not one.api.renew_build(build, LEASE)
    assert [orders.store.file(engine.sha256) for engine in orders.engines] == [PLUS, MINUS]
    assert [engine.bench for engine in orders.engines] == [1234, 1234]
    assert orders.uploads == [], "they are engines now"


def test_what_is_sent_again_takes_the_place_of_the_first(orders):
    build = orders.claimed(orders.one)
    for i in range(4):
        answer = orders.one.send("PUT", path_of(build), b"x" * (i + 1))
        digest = hashlib.sha256(b"x" * (i + 1)).hexdigest()
        assert answer.json == {"sha256": digest, "size": i + 1}
    assert orders.uploads == [("plus", 4)]
    orders.one.api.fail_build(build, None)
    assert orders.uploads == [], "they would never be published"
    again = orders.claimed(orders.two, "build-2")
    assert orders.one.send("PUT", path_of(build), PLUS).refusal == (409, "lease_lost")
    assert orders.one.send("PUT", path_of(again), PLUS).refusal == (409, "lease_lost")
    assert orders.two.api.publish_build(result_of(again), PLUS, MINUS) == "accepted"


def test_nobody_but_the_holder_sends_or_publishes(orders):
    build = orders.claimed(orders.one)
    for machine in (orders.two, orders.player):
        other = to_json(result_of(build, worker_id=machine.id))
        refused = machine.send("PUT", path_of(build), PLUS)
        assert refused.status == (409 if machine is orders.two else 403)
        assert machine.post("/worker/builds/publish", other).json == {"reply": "lost"}
        held = {"worker_id": machine.id, "build_id": build.build_id, "claim_id": build.claim_id}
        assert machine.post("/worker/builds/fail", held).json == {"reply": None}
        assert machine.post("/worker/builds/renew", {**held, "lease_seconds": 60}).json == {
            "reply": False
        }
    asked = {"worker_id": orders.player.id, "claim_id": "x", "lease_seconds": 60}
    assert orders.player.post("/worker/builds/claim", asked).refusal == (403, "not_permitted")
    assert orders.player.get(f"/worker/files/{orders.archive}").status == 403
    assert orders.uploads == [] and orders.engines is None
    orders.store.revoke_machine("one", "owner")
    assert orders.one.send("PUT", path_of(build), PLUS).refusal == (403, "revoked")


def test_a_published_engine_is_the_one_that_was_sent(orders):
    build = orders.claimed(orders.one)
    publish = "/worker/builds/publish"
    right = to_json(result_of(build))
    missing = orders.one.post(publish, right)
    assert missing.refusal == (422, "out_of_range") and missing.json["field"] == "BuildResult.plus"
    orders.one.send("PUT", path_of(build), PLUS)
    assert orders.one.post(publish, right).json["field"] == "BuildResult.minus"
    orders.one.send("PUT", path_of(build, "minus"), MINUS)
    other = to_json(result_of(build, plus=MINUS, minus=PLUS))
    assert orders.one.post(publish, other).refusal == (422, "out_of_range")
    assert orders.sql("SELECT count(*) FROM spsa_engine") == [(0,)]
    assert orders.one.post(publish, right).json == {"reply": "accepted"}


def test_an_engine_has_a_byte_at_least_and_256_megabytes_at_most(orders):
    build = orders.claimed(orders.one)
    assert orders.one.send("PUT", path_of(build), b"").refusal == (422, "out_of_range")
    with connected(orders.url) as connection:
        length = f"Content-Length: {ENGINE_BYTES + 1}"
        connection.sendall(head(orders.one, path_of(build), length, method="PUT"))
        assert status_of(connection) == 413
    for path in (path_of(build, "other"), "/worker/builds/1/x/y/plus", "/worker/builds/../x/plus"):
        assert orders.one.send("PUT", path, PLUS).status == 404, path
    for place in (f"{2**64}/{build.claim_id}", f"x/{build.claim_id}", "-1/x", f"1/{'x' * 65}"):
        refused = orders.one.send("PUT", f"/worker/builds/{place}/plus", PLUS)
        assert refused.refusal == (422, "out_of_range"), place
    assert orders.uploads == []


def test_two_engines_of_a_machine_are_on_their_way_at_a_time(orders):
    build = orders.claimed(orders.one)
    start = head(orders.one, path_of(build), "Content-Length: 100", method="PUT")
    slow = [connected(orders.url) for _ in range(3)]
    for connection in slow:
        connection.sendall(start + b"x")
    (refused,), _, _ = select.select(slow, [], [], 20)  # the first two that were looked up are kept
    assert status_of(refused) == 429
    assert orders.one.send("PUT", path_of(build), PLUS).refusal == (429, "too_many")
    for connection in slow:
        connection.close()
    for _ in range(100):
        if orders.one.send("PUT", path_of(build), PLUS).status == 200:
            break
    assert orders.uploads == [("plus", len(PLUS))]
