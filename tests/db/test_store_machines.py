"""Which machine is given which batch, and what a machine is known by; each has one worker.

`test_protocol_model` has what is tried how often, in any order of calls.
"""

import hashlib
from dataclasses import replace

import pytest
from builders import LEASE, TERMS, new_engine, new_worker, result_of, stage
from invariants import broken

from spsa.core.game_settings import Book, EngineFile
from spsa.errors import LeaseLost, NameTaken, NothingToDo, NotPermitted, OutOfRange, TooManyRequests
from spsa.lifecycle import MachineRole
from spsa.protocol import MAX_WORKERS, Failure, Measured

PLUS, MINUS = new_engine("plus").sha256, new_engine("minus").sha256
LONG_AGO = "2000-01-01 00:00:00.000"


class Fleet:
    """A run with an open iteration; only the machines that a test names are there."""

    def __init__(self, store, sql, batches=2, **over):
        self.store, self.sql, self.asked, self.workers = store, sql, 0, {}
        self.on = stage(store)
        self.on.open(target_games=4 * batches, **over)
        sql("DELETE FROM spsa_worker")

    def here(self, machine):
        if machine not in self.workers:
            info = new_worker(f"{machine}-1", host=machine)
            self.workers[machine] = self.store.register_worker(info)
        return self.workers[machine]

    def claim(self, machine):
        self.asked += 1
        return self.store.claim(f"claim {self.asked}", self.here(machine), LEASE)

    def fails(self, machine, **more):
        """The machine takes a batch and cannot play it; which it was."""
        claim = self.claim(machine)
        self.store.fail(claim, Failure(reason=f"{machine} has no book", **more))
        return claim.seq

    def plays(self, machine):
        claim = self.claim(machine)
        assert self.store.report(claim, result_of(claim)) == "accepted"
        return claim.seq

    def leaves(self, machine):
        claim = self.claim(machine)
        self.sql.expire(claim.batch_id)
        return claim.seq


@pytest.fixture
def fleet(store, sql):
    made = Fleet(store, sql)
    yield made
    assert broken(sql) == []


def test_a_machine_set_aside_for_these_binaries_is_not_waited_for(fleet):
    for machine, sha256 in (("b", PLUS), ("c", "a" * 64)):
        fleet.here(machine)
        fleet.store.set_aside(machine, "broken", "me", sha256=sha256)
    assert [fleet.fails("a"), fleet.fails("a")] == [0, 1]
    assert fleet.claim("a") is None, "c may play them"
    fleet.store.set_aside("c", "broken", "me", sha256=MINUS)
    assert fleet.fails("a") == 0


def test_a_batch_that_another_one_plays_after_all_counts(fleet):
    fleet.here("b")
    fleet.fails("a", void_games=3, sha256=PLUS)
    fleet.plays("b")
    fleet.plays("b")
    (iteration,) = fleet.store.iterations(fleet.on.run.id)
    assert (iteration.is_played, iteration.void_games) == (True, 3)
    (failed,) = fleet.on.view().machine_failures
    assert (failed.machine, failed.batches, failed.sha256) == ("a", 1, PLUS)
    assert (failed.reason, failed.played, failed.played_by_others) == ("a has no book", 0, 2)


@pytest.mark.slow
@pytest.mark.parametrize("sha256", [None, PLUS, MINUS])
def test_a_machine_that_is_set_aside_is_given_nothing_until_it_is_released(fleet, sha256):
    held = fleet.claim("a")
    assert fleet.store.set_aside("a", "no such book", "me", sha256=sha256) is True
    assert fleet.store.set_aside("a", "again", "me", sha256=sha256) is False
    assert fleet.claim("a") is None
    assert fleet.store.renew(fleet.here("a"), [held.claim_id], LEASE) == {held.claim_id}
    assert fleet.store.report(held, result_of(held)) == "accepted"
    told = fleet.store.touch_worker(fleet.here("a"), Measured())
    assert told == ("no such book" if sha256 is None else None)
    (aside,) = fleet.store.machines_set_aside()
    assert (aside.machine, aside.sha256) == ("a", sha256)
    assert (aside.reason, aside.actor) == ("no such book", "me")
    assert fleet.store.release_machine("a-1", "me") is True
    assert fleet.store.release_machine("a", "me") is False
    assert fleet.store.machines_set_aside() == []
    assert fleet.claim("a").seq == 1


def test_only_workers_that_are_gone_and_never_had_a_batch_are_forgotten(store, sql):
    on = stage(store)
    on.open()
    on.claim("held")
    store.register_worker(new_worker("machine-2"))
    sql("UPDATE spsa_worker SET last_seen_at = :then", then=LONG_AGO)
    store.register_worker(new_worker("machine-3"))
    names = [row.name for row in sql("SELECT name FROM spsa_worker ORDER BY name")]
    assert names == ["machine-1", "machine-3"]


def test_a_released_machine_has_a_clean_record(fleet):
    fleet.here("b")
    fleet.fails("a")
    assert fleet.store.failed_batches() == {"a": 1}
    fleet.store.release_machine("a", "me")
    assert fleet.store.failed_batches() == {}
    assert fleet.on.view().machine_failures == []
    assert fleet.claim("a").seq == 0


def test_a_machine_that_is_not_there_cannot_be_set_aside(fleet):
    fleet.here("a")
    for call in (
        lambda: fleet.store.set_aside("z", "why", "me"),
        lambda: fleet.store.release_machine("z", "me"),
        lambda: fleet.store.machine_named("z"),
    ):
        with pytest.raises(NothingToDo, match=r"named 'z'; machines: a, machine"):
            call()


def test_machines_of_one_name_are_told_apart_by_their_secrets(store):
    one = store.register_worker(new_worker("w1", host="machine", secret="one"))
    two = store.register_worker(new_worker("w2", host="machine", secret="two"))
    assert one.machine == "machine"
    assert two.machine.startswith("machine-") and len(two.machine) == len("machine-12345678")
    assert store.register_worker(new_worker("w2", host="renamed", secret="two")) == two


def test_a_workers_name_belongs_to_its_machine(store):
    mine = store.register_worker(new_worker("w1", host="mine"))
    with pytest.raises(NameTaken, match=r"another machine has a worker named 'w1'"):
        store.register_worker(new_worker("w1", host="theirs", cores=1))
    (row,) = store.workers()
    assert (row.host, row.cores) == ("mine", 8)
    assert store.register_worker(new_worker("w1", host="mine", cores=2)) == mine
    with pytest.raises(NameTaken, match="there is a machine named 'mine'"):
        store.register_worker(new_worker("mine", host="theirs"))


def hashed(token):
    return hashlib.sha256(token.encode()).hexdigest()


@pytest.fixture
def far(fleet):
    """A machine that was invited, with a worker."""
    fleet.token = fleet.store.invite_machine("far", MachineRole.WORKER, "me")
    fleet.workers["far"] = fleet.store.register_worker(new_worker("far-1", host="lies"), "far")
    return fleet


def test_an_invited_machine_is_known_by_its_token_alone(far, sql):
    assert (far.token[:5], len(far.token)) == ("spsa_", 48)
    machine, owner = far.store.machine_of_token(hashed(far.token), far.here("far").id)
    assert (machine.name, machine.role, machine.invited_by) == ("far", MachineRole.WORKER, "me")
    assert (machine.revoked_at, machine.may_build, owner) == (None, False, "far")
    other = far.here("near")
    assert far.store.machine_of_token(hashed(far.token), other.id) == (machine, "near")
    assert far.store.machine_of_token(hashed(far.token)) == (machine, None)
    far.store.register_worker(new_worker("b-1", host="b", secret=""))
    for guessed in ("spsa_guessed", "of near", ""):  # the secret of a direct machine is no token
        assert far.store.machine_of_token(hashed(guessed)) is None
    assert far.claim("far").run_name == "first"
    (row,) = sql("SELECT * FROM spsa_machine WHERE name = 'far'")
    assert far.token not in str(row) and hashed(far.token) in str(row)


@pytest.mark.parametrize("name", ["far", "near", "near-1"])
def test_a_name_that_is_taken_is_not_given_to_another_machine(far, name):
    far.here("near")
    with pytest.raises(NameTaken, match=name):
        far.store.invite_machine(name, MachineRole.WORKER, "me")


@pytest.mark.parametrize("name", ["", "x" * 201, "a\x1b[31m"])
def test_a_machine_is_invited_by_a_printable_name(store, name):
    with pytest.raises(OutOfRange, match="the machine's name has"):
        store.invite_machine(name, MachineRole.WORKER, "me")


def test_a_machine_that_is_revoked_holds_nothing_and_gets_nothing(far):
    held = far.claim("far")
    assert far.store.revoke_machine("far-1", "me") == 1
    with pytest.raises(LeaseLost):
        far.store.report(held, result_of(held))
    assert far.claim("far") is None
    machine, owner = far.store.machine_of_token(hashed(far.token), far.here("far").id)
    assert (machine.revoked_at is not None, owner) == (True, "far")
    assert far.store.revoke_machine("far", "me") == 0
    (event,) = far.store.events(far.on.run.id, kinds=["revoke"])
    assert (event.actor, event.detail) == ("me", {"machine": "far", "batches": 1})
    with pytest.raises(NothingToDo):
        far.store.revoke_machine("nowhere", "me")


def test_a_machine_that_is_invited_again_has_another_token(far):
    far.store.revoke_machine("far", "me")
    again = far.store.invite_machine("far", MachineRole.BUILDER, "you")
    assert far.store.machine_of_token(hashed(far.token)) is None
    machine, owner = far.store.machine_of_token(hashed(again), far.here("far").id)
    assert (machine.revoked_at, machine.may_build, machine.invited_by) == (None, True, "you")
    assert owner == "far" and far.claim("far") is not None


def test_a_direct_machine_that_is_revoked_does_not_register_again(fleet):
    fleet.here("a")
    fleet.store.revoke_machine("a", "me")
    with pytest.raises(NotPermitted, match="'a' was revoked"):
        fleet.store.register_worker(new_worker("a-2", host="a"))


def test_a_machine_has_so_many_workers_at_a_time(fleet):
    def register(name):
        return fleet.store.register_worker(new_worker(name, host="a")).machine

    for number in range(MAX_WORKERS):
        register(f"a-{number}")
    with pytest.raises(TooManyRequests, match=f"{MAX_WORKERS} workers of the machine 'a'"):
        register("one too many")
    assert register("a-1") == "a"
    fleet.sql("UPDATE spsa_worker SET last_seen_at = :then", then=LONG_AGO)
    assert register("one too many") == "a"


BOOK, NET = hashlib.sha256(b"book").hexdigest(), hashlib.sha256(b"net").hexdigest()


def test_a_machine_is_given_the_files_of_its_own_claims_alone(store):
    """Of plus and minus, also for other kinds and of one side, of the book and the side files."""
    on = stage(store)
    settings = replace(
        TERMS,
        book=Book(name="/books/a.epd", sha256=BOOK),
        engine_files={"EvalFile": EngineFile(path="/nets/a.nnue", sha256=NET)},
    )
    third, fourth, own, other = (new_engine(name) for name in ("third", "fourth", "own", "other"))
    files = {"plus_files": {"EvalFile": own}, "minus_files": {"EvalFile": other}}
    on.open(game_settings=settings, variants={"x86-64-v3": (third, fourth)}, **files)
    names = {PLUS, MINUS, BOOK, NET, *(one.sha256 for one in (third, fourth, own, other))}

    def given(machine):
        asked = (*names, "", "0" * 64)
        return {name for name in asked if store.place_of(machine, name) is not None}

    assert given("machine") == set()
    claim = on.claim("c")
    assert given("machine") == names
    assert given("another") == set()
    store.release(claim)
    assert given("machine") == set()
    on.claim("d")
    store.stop("first", "me", "enough")
    assert given("machine") == set(), "its iteration is abandoned"


def test_a_machine_that_builds_is_given_the_source(store):
    archive = hashlib.sha256(b"archive").hexdigest()
    store.keep_files({archive: b"archive"})
    store.order_build("k", ("builds",), archive, {"a": 1}, max_attempts=2)
    worker = store.register_worker(new_worker(host="a", provides=("builds",)))
    assert store.place_of("a", archive) is None
    build = store.claim_build("c", worker, LEASE)
    assert store.place_of("a", archive) == ""
    assert store.place_of("b", archive) is None
    store.fail_build(build, None)
    assert store.place_of("a", archive) is None
