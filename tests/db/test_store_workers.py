"""A worker's verbs, what is kept of a batch, which machine is given which, and who a machine is.

`test_protocol_model` has what may be claimed, what counts and how often a batch is tried.
"""

import hashlib
import json
from dataclasses import replace

import pytest
from builders import (
    LEASE,
    TERMS,
    new_engine,
    new_iteration,
    new_validation,
    new_worker,
    result_of,
    stage,
)
from invariants import broken

from spsa.core.game_settings import Book, EngineFile
from spsa.errors import (
    LeaseLost,
    NameTaken,
    NothingToDo,
    NotPermitted,
    OutOfRange,
    ReportConflict,
    TooManyRequests,
)
from spsa.lifecycle import IterationStatus, MachineRole, RunStatus
from spsa.master.decide import upkeep
from spsa.protocol import MAX_WORKERS, BatchResult, Failure, KeptVoid, Measured

COSTS = {
    "plus_nodes": 11,
    "minus_nodes": 12,
    "moves": 13,
    "plus_time_losses": 1,
    "minus_time_losses": 2,
    "seconds": 1.5,
    "think_seconds": 1.25,
    "slot": 3,
}


@pytest.fixture
def run(store):
    """A run whose first iteration, of two batches, is open."""
    started = stage(store)
    started.open()
    return started


@pytest.fixture
def short(store):
    """A run whose only batch may be tried nine times."""
    started = stage(store)
    started.open(target_games=4, max_attempts=9)
    return started


def iteration(run):
    return run.store.iterations(run.run.id)[-1]


def test_a_claim_says_all_that_has_to_be_played(run):
    assert iteration(run).status is IterationStatus.PENDING
    claim, second, new = run.claim("a"), run.claim("b"), new_iteration()
    assert iteration(run).status is IterationStatus.IN_PROGRESS
    assert [(c.seq, c.attempt, c.first_pair, c.pairs) for c in (claim, second)] == [
        (0, 1, 0, 2),
        (1, 1, 2, 2),
    ]
    assert (claim.run_name, claim.run_seed, claim.iteration_number) == ("first", 42, 1)
    plus, minus = new.sides.plus, new.sides.minus
    assert (claim.plus.sha256, claim.plus.path) == (plus.engine.sha256, plus.engine.path)
    assert (claim.plus.options, claim.minus.options) == (plus.options, minus.options)
    assert claim.game_settings == new.row.game_settings
    assert claim.lease_seconds == LEASE


def test_a_refusal_says_why(run):
    claim, other = run.claim("a"), run.claim("b")
    right = result_of(claim)
    run.store.report(claim, right)
    with pytest.raises(LeaseLost, match="was already reported"):
        run.claim("a")
    with pytest.raises(ReportConflict, match="already reported with other counts"):
        run.store.report(claim, BatchResult(tally=right.tally + -right.tally))
    run.store.stop("first", "me", "enough")
    assert iteration(run).status is IterationStatus.ABANDONED
    with pytest.raises(LeaseLost, match="the match is decided"):
        run.store.report(other, result_of(other))
    assert not run.store.work_left()


def test_a_worker_holds_no_more_than_it_plays_soon_and_nothing_of_what_is_over(store):
    run, most = stage(store), 2 * new_worker().concurrency + 2
    for match in range(2):
        store.open_iteration(run.master, new_validation(target_games=100, batch_games=2))
        assert None not in [run.claim(f"{match}-{n}") for n in range(most)]
        with pytest.raises(TooManyRequests, match=f"holds {most} batches already"):
            run.claim(f"{match}-more")
        store.abandon_validation(run.master, store.matches(run.run.id)[-1].id)


def test_a_lease_is_renewed_for_a_week_and_no_longer(run, sql):
    claim = run.claim("a")
    assert run.store.renew(run.worker, ["a"], LEASE) == {"a"}
    sql("UPDATE spsa_batch SET leased_at = '2020-01-01 00:00:00.000'")
    assert run.store.renew(run.worker, ["a"], LEASE) == set()
    assert run.store.report(claim, result_of(claim)) == "accepted"


def test_a_batch_keeps_what_its_games_have_cost(short, sql):
    claim = short.claim("a")
    short.store.report(claim, result_of(claim, voids={"crash": 2, "hang": 1}, **COSTS))
    (row,) = sql("SELECT * FROM spsa_batch")
    kept = row._mapping
    assert {name: kept[name] for name in COSTS} == COSTS
    voids = kept["voids"]
    assert (json.loads(voids) if isinstance(voids, str) else voids) == {"crash": 2, "hang": 1}
    assert (kept["void_games"], kept["worker_id"]) == (3, short.worker.id)
    assert kept["claim_id"] == claim.claim_id
    assert kept["leased_at"] <= kept["reported_at"] <= kept["lease_expires_at"]


def test_the_last_void_games_are_kept_with_the_machine_that_had_them(short):
    store = short.store
    other, third = (
        store.register_worker(new_worker(name, host=name)) for name in ("other", "third")
    )

    def report(name, worker, **over):
        claim = store.claim(name, worker, LEASE)
        store.report(claim, result_of(claim, **over))

    def kept(pair):
        where = {"white": "plus", "position": "position startpos", "output": ""}
        return [KeptVoid(pair=pair, culprit="minus", detail="crash", **where)]

    def known():
        return [(void.machine, void.kept.pair) for void in store.void_games(short.run.id, 9)]

    store.fail(short.claim("a"), Failure(reason="it broke", void_games=1, kept_voids=kept(1)))
    assert known() == [("machine", 1)]
    store.fail(store.claim("b", other, LEASE), Failure(reason="no book"))
    assert known() == [("machine", 1)]
    report("c", third, voids={"crash": 1}, kept_voids=kept(2))
    assert known() == [("third", 2)]
    short.open(k=2, in_flight=2, target_games=4)
    store.fail(short.claim("d"), Failure(reason="it broke", void_games=1, kept_voids=kept(3)))
    report("e", other)
    assert known() == [("third", 2), ("machine", 3)]


def test_lost_leases_and_failures_are_told_apart_and_a_failure_dated_by_its_latest_time(short, sql):
    def failure():
        return sql("SELECT machine, failures, lost_leases, sha256, reason FROM spsa_failure")

    for name in ("a", "b"):
        sql.expire(short.claim(name).batch_id)
    claim = short.claim("c")
    assert failure() == [("machine", 0, 2, None, None)]
    short.store.fail(claim, Failure(reason="no engine", sha256="a" * 64))
    assert failure() == [("machine", 1, 2, "a" * 64, "no engine")]
    sql.expire(short.claim("d").batch_id)
    claim = short.claim("e")
    assert failure() == [("machine", 1, 3, "a" * 64, "no engine")]
    short.store.fail(claim, Failure(reason="no book", sha256="b" * 64))
    assert failure() == [("machine", 2, 3, "b" * 64, "no book")]
    assert [row.last_error for row in sql("SELECT last_error FROM spsa_batch")] == ["no book"]
    sql("UPDATE spsa_failure SET at = :then", then=LONG_AGO)
    assert short.store.tick(short.master, LEASE).machine_failures == [], "it is too long ago"
    short.store.fail(short.claim("f"), Failure(reason="no engine"))
    view = short.store.tick(short.master, LEASE)
    assert [(f.machine, f.batches) for f in view.machine_failures] == [("machine", 1)]


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


def test_a_batch_that_another_one_plays_after_all_counts_and_a_release_cleans_the_record(fleet):
    fleet.here("b")
    fleet.fails("a", void_games=3, sha256=PLUS)
    fleet.plays("b")
    fleet.plays("b")
    (iteration,) = fleet.store.iterations(fleet.on.run.id)
    assert (iteration.is_played, iteration.void_games) == (True, 3)
    (failed,) = fleet.on.view().machine_failures
    assert (failed.machine, failed.batches, failed.sha256) == ("a", 1, PLUS)
    assert (failed.reason, failed.played, failed.played_by_others) == ("a has no book", 0, 2)
    assert fleet.store.failed_batches() == {"a": 1}
    fleet.store.release_machine("a", "me")
    assert fleet.store.failed_batches() == {}
    assert fleet.on.view().machine_failures == []


def test_a_run_of_which_machines_only_fail_batches_is_paused_with_the_reason(store, sql):
    fleet = Fleet(store, sql, batches=3)
    for claim in [fleet.claim("a") for _ in range(3)]:
        store.fail(claim, Failure(reason="no book", void_games=8))
    (obstacle,) = store.tick(fleet.on.master, LEASE).obstacles
    assert len(obstacle.batch_ids) == 3
    run = fleet.on.view().run
    assert run.status is RunStatus.PAUSED
    assert run.reason.startswith("no game counts: 1 machine failed 3 batches and played none; ")
    assert run.reason.endswith("no book") and "[time_control]" in run.reason
    store.resume(run.name, "someone")
    assert upkeep(fleet.on.view()) is None


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


def test_what_is_not_there_cannot_be_set_aside_released_or_revoked(fleet):
    fleet.here("a")
    for call in (
        lambda: fleet.store.set_aside("z", "why", "me"),
        lambda: fleet.store.release_machine("z", "me"),
        lambda: fleet.store.revoke_machine("z", "me"),
        lambda: fleet.store.machine_named("z"),
    ):
        with pytest.raises(NothingToDo, match=r"named 'z'; machines: a, machine"):
            call()


def test_registering_again_is_the_same_worker_and_those_that_are_gone_are_forgotten(store, sql):
    first = store.register_worker(new_worker())
    sql("UPDATE spsa_worker SET last_seen_at = :then", then=LONG_AGO)
    changed = {"platform": "BSD", "cores": 3, "concurrency": 2, "version": "9", "sandbox": "x"}
    assert store.register_worker(new_worker(**changed)) == first
    for told in (Measured(nps=1.0), Measured(nps=1.5e6, scale=1.25), Measured()):
        store.touch_worker(first, told)
    (stored,) = sql("SELECT * FROM spsa_worker")
    assert {name: stored._mapping[name] for name in changed} == changed
    (row,) = store.workers()
    assert (row.nps, row.scale) == (1.5e6, 1.25)
    assert 0 <= row.seconds_since_seen < 60
    # only workers that are gone and never had a batch are forgotten
    on = stage(store)
    on.open()
    on.claim("held")
    assert store.register_worker(new_worker("machine-2")) != first
    sql("UPDATE spsa_worker SET last_seen_at = :then", then=LONG_AGO)
    store.register_worker(new_worker("machine-3"))
    names = [row.name for row in sql("SELECT name FROM spsa_worker ORDER BY name")]
    assert names == ["machine-1", "machine-3"]


def test_machines_are_told_apart_by_their_secrets_and_a_name_belongs_to_one(store):
    one = store.register_worker(new_worker("w1", host="machine", secret="one"))
    two = store.register_worker(new_worker("w2", host="machine", secret="two"))
    assert one.machine == "machine"
    assert two.machine.startswith("machine-") and len(two.machine) == len("machine-12345678")
    assert store.register_worker(new_worker("w2", host="renamed", secret="two")) == two
    with pytest.raises(NameTaken, match=r"another machine has a worker named 'w1'"):
        store.register_worker(new_worker("w1", host="theirs", cores=1))
    known = {row.host: row.cores for row in store.workers()}
    assert known == {one.machine: 8, two.machine: 8}
    assert store.register_worker(new_worker("w1", secret="one", cores=2)) == one
    with pytest.raises(NameTaken, match="there is a machine named 'machine'"):
        store.register_worker(new_worker("machine", host="theirs"))


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


def test_a_machine_is_invited_by_a_printable_name_of_its_own(far):
    far.here("near")
    for name, error, said in (
        *((taken, NameTaken, taken) for taken in ("far", "near", "near-1")),
        *((name, OutOfRange, "the machine's name has") for name in ("", "x" * 201, "a\x1b[31m")),
    ):
        with pytest.raises(error, match=said):
            far.store.invite_machine(name, MachineRole.WORKER, "me")


def test_a_machine_that_is_revoked_has_nothing_until_it_is_invited_again(far):
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
    again = far.store.invite_machine("far", MachineRole.BUILDER, "you")
    assert far.store.machine_of_token(hashed(far.token)) is None
    machine, owner = far.store.machine_of_token(hashed(again), far.here("far").id)
    assert (machine.revoked_at, machine.may_build, machine.invited_by) == (None, True, "you")
    assert owner == "far" and far.claim("far") is not None


def test_a_direct_machine_has_so_many_workers_at_a_time_and_none_once_it_is_revoked(fleet):
    def register(name):
        return fleet.store.register_worker(new_worker(name, host="a")).machine

    for number in range(MAX_WORKERS):
        register(f"a-{number}")
    with pytest.raises(TooManyRequests, match=f"{MAX_WORKERS} workers of the machine 'a'"):
        register("one too many")
    assert register("a-1") == "a"
    fleet.sql("UPDATE spsa_worker SET last_seen_at = :then", then=LONG_AGO)
    assert register("one too many") == "a"
    fleet.store.revoke_machine("a", "me")
    with pytest.raises(NotPermitted, match="'a' was revoked; `spsa-master workers invite a`"):
        register("a-2")


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
