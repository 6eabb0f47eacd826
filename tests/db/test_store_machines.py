"""Which machine is given which batch, and when a batch, or a machine, has failed often enough."""

import pytest
from builders import (
    LEASE,
    new_engine,
    new_iteration,
    new_validation,
    new_worker,
    result_of,
    stage,
)
from invariants import broken

from spsa.core.limits import MACHINES_A_DAY, WORKERS_A_DAY
from spsa.db.store import Failure, RegisteredWorker
from spsa.errors import IllegalTransition, LeaseLost, NameTaken, NothingToDo, TuningError
from spsa.lifecycle import BatchStatus, RunStatus
from spsa.master.machines import machines_to_set_aside

PLUS, MINUS = new_engine("plus").sha256, new_engine("minus").sha256


class Fleet:
    """A run with an open iteration of two batches, and machines that are named by letters."""

    def __init__(self, store) -> None:
        self.store, self.on = store, stage(store)
        self.on.open()
        self.workers, self.asked = {}, 0

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
        self.store.fail(claim, f"{machine} has no book", **more)
        return claim.seq

    def plays(self, machine):
        claim = self.claim(machine)
        self.store.report(claim, result_of(claim))

    def tick(self):
        return self.store.tick(self.on.master, LEASE)

    def batches(self):
        return self.store.batches(self.on.run.id)


@pytest.fixture
def fleet(store, sql):
    """The worker of `stage` has left: only the machines that a test names are there."""
    made = Fleet(store)
    sql("DELETE FROM spsa_worker")
    yield made
    assert broken(sql) == []


@pytest.fixture
def leave(sql):
    """A machine has not been heard of for longer than counts as present."""
    return lambda machine: sql(
        "UPDATE spsa_worker SET last_seen_at = :then WHERE host = :machine",
        then="2020-01-01 00:00:00.000",
        machine=machine,
    )


def test_what_a_machine_failed_goes_to_another_one(fleet):
    fleet.here("b")
    assert fleet.fails("a") == 0
    row = fleet.batches()[0]
    assert (row.status, row.attempt, row.last_error) == (BatchStatus.READY, 1, "a has no book")
    assert fleet.claim("a").seq == 1
    assert fleet.claim("a") is None
    assert fleet.claim("b").seq == 0


def test_a_machine_alone_tries_again_as_often_as_the_batch_allows(fleet):
    assert [fleet.fails("a") for _ in range(3)] == [0, 0, 0]
    assert fleet.claim("a").seq == 1
    view = fleet.tick()
    assert view.run.status is RunStatus.PAUSED
    assert view.run.reason == "iteration 1 batch 0: a has no book (tried by 1 machine)"
    row = fleet.batches()[0]
    assert (row.status, row.attempt) == (BatchStatus.FAILED, 3)
    assert view.failures == [
        Failure(iteration_id=row.iteration_id, seq=0, error="a has no book"),
    ]


def test_a_machine_that_comes_later_tries_what_another_one_could_not_play(fleet):
    assert [fleet.fails("a") for _ in range(3)] == [0, 0, 0]
    fleet.here("b")
    assert fleet.tick().run.status is RunStatus.RUNNING
    assert fleet.claim("b").seq == 0


def test_a_machine_that_lost_a_lease_may_try_what_another_one_failed(fleet, expire):
    expire(fleet.claim("a").batch_id)
    fleet.here("c")
    assert fleet.fails("b") == 0
    assert fleet.claim("a").seq == 0


def test_a_machine_is_alone_when_the_others_have_left(fleet, leave):
    fleet.here("b")
    fleet.fails("a")
    fleet.plays("a")
    assert fleet.claim("a") is None
    leave("b")
    assert fleet.claim("a").seq == 0


@pytest.mark.slow
@pytest.mark.parametrize("sha256", [None, PLUS, MINUS])
def test_a_machine_is_alone_when_the_others_are_not_given_such_batches(fleet, sha256):
    fleet.here("b")
    fleet.store.set_aside("b", "broken", "me", sha256=sha256)
    assert [fleet.fails("a") for _ in range(3)] == [0, 0, 0]
    assert fleet.claim("b") is None
    view = fleet.tick()
    assert view.run.reason == "iteration 1 batch 0: a has no book (tried by 1 machine)"


def test_a_machine_that_may_play_another_iteration_only_is_none_to_wait_for(fleet):
    fleet.here("b")
    fleet.store.set_aside("b", "broken", "me", sha256=PLUS)
    other = new_iteration(k=2, in_flight=2, plus=new_engine("third"))
    fleet.store.open_iteration(fleet.on.master, other)
    assert [fleet.fails("a") for _ in range(2)] == [0, 0]


def test_a_machine_that_handed_a_batch_back_has_not_tried_it(fleet):
    for machine in "abcd":
        fleet.here(machine)
    assert [fleet.fails(machine) for machine in "ab"] == [0, 0]
    fleet.store.release(fleet.claim("c"))
    assert fleet.claim("d").seq == 0


@pytest.mark.slow
def test_a_machine_that_lacks_another_binary_may_still_play_this_one(fleet):
    fleet.here("b")
    fleet.store.set_aside("b", "broken", "me", sha256=new_engine("another").sha256)
    fleet.fails("a")
    assert fleet.tick().run.status is RunStatus.RUNNING
    assert fleet.claim("b").seq == 0


@pytest.mark.slow
def test_what_every_machine_has_failed_pauses_the_run_with_their_number(fleet):
    fleet.here("b")
    fleet.fails("a", void_games=1)
    assert fleet.tick().run.status is RunStatus.RUNNING
    fleet.fails("b", void_games=2)
    view = fleet.tick()
    assert (view.run.status, view.run.reason) == (
        RunStatus.PAUSED,
        "iteration 1 batch 0: b has no book (tried by 2 machines)",
    )
    row = fleet.batches()[0]
    assert (row.status, row.void_games) == (BatchStatus.FAILED, 3)
    assert fleet.claim("c") is None
    told = [event.detail for event in fleet.store.events(view.run.id) if event.kind == "paused"]
    assert told == [{"reason": view.run.reason}]


@pytest.mark.slow
def test_as_many_machines_as_a_batch_allows_are_enough(fleet):
    for machine in "abcd":
        fleet.here(machine)
    assert [fleet.fails(machine) for machine in "abc"] == [0, 0, 0]
    assert fleet.claim("d").seq == 1
    view = fleet.tick()
    assert "(tried by 3 machines)" in view.run.reason
    assert fleet.batches()[0].status is BatchStatus.FAILED


def test_a_lost_lease_is_a_try_and_nothing_against_the_machine(fleet, expire):
    for machine in "abc":
        lost = fleet.claim(machine)
        assert lost.seq == 0
        expire(lost.batch_id)
    assert fleet.claim("d").seq == 1
    view = fleet.tick()
    assert view.run.status is RunStatus.PAUSED
    assert "every worker that claimed it disappeared without a report" in view.run.reason
    assert view.machine_failures == []
    fleet.store.release(lost)
    fleet.store.fail(lost, "I am back")
    with pytest.raises(LeaseLost):
        fleet.store.report(lost, result_of(lost))
    assert fleet.batches()[0].status is BatchStatus.FAILED


def test_resuming_lets_all_machines_try_again_from_the_first_attempt(fleet):
    fleet.here("b")
    fleet.fails("a")
    fleet.fails("b")
    fleet.tick()
    fleet.store.resume("first", "me")
    now = fleet.store.run("first")
    assert (now.status, now.reason) == (RunStatus.RUNNING, None)
    again = fleet.claim("a")
    assert (again.seq, again.attempt) == (0, 1)


def test_a_batch_that_another_one_plays_after_all_counts(fleet):
    fleet.here("b")
    fleet.fails("a", void_games=3, sha256=PLUS)
    fleet.plays("b")
    fleet.plays("b")
    (iteration,) = fleet.store.iterations(fleet.on.run.id)
    assert (iteration.is_played, iteration.void_games) == (True, 3)
    (failed,) = fleet.tick().machine_failures
    assert (failed.machine, failed.batches, failed.sha256, failed.reason) == (
        *("a", 1, PLUS),
        "a has no book",
    )
    assert (failed.played, failed.played_by_others) == (0, 2)


@pytest.mark.slow
@pytest.mark.parametrize("sha256", [None, PLUS, MINUS])
def test_a_machine_that_is_set_aside_is_given_nothing_until_it_is_released(fleet, sha256):
    held = fleet.claim("a")
    assert fleet.store.set_aside("a", "no such book", "me", sha256=sha256) is True
    assert fleet.store.set_aside("a", "again", "me", sha256=sha256) is False
    assert fleet.claim("a") is None
    assert fleet.store.renew([held.claim_id], LEASE) == {held.claim_id}
    assert fleet.store.report(held, result_of(held)) == "accepted"
    told = fleet.store.touch_worker(fleet.here("a"))
    assert told == ("no such book" if sha256 is None else None)
    (aside,) = fleet.store.machines_set_aside()
    assert (aside.machine, aside.sha256, aside.reason, aside.actor) == (
        *("a", sha256, "no such book"),
        "me",
    )
    assert fleet.store.release_machine("a-1", "me") is True
    assert fleet.store.release_machine("a", "me") is False
    assert fleet.store.machines_set_aside() == []
    assert fleet.claim("a").seq == 1


def test_a_machine_set_aside_for_one_binary_plays_the_others(fleet):
    fleet.here("a")
    fleet.store.set_aside("a", "no such book", "me", sha256=PLUS)
    other = new_iteration(k=2, in_flight=2, plus=new_engine("third"))
    fleet.store.open_iteration(fleet.on.master, other)
    assert fleet.claim("a").iteration_number == 2


def test_what_a_machine_holds_is_withdrawn_for_others(fleet):
    held = fleet.claim("a")
    assert fleet.store.withdraw_batches("a", "me") == 1
    assert fleet.claim("b").batch_id == held.batch_id
    assert fleet.store.renew([held.claim_id], LEASE) == frozenset()


def test_a_batch_of_the_validation_of_a_run_that_has_ended_is_withdrawn_too(store):
    on = stage(store, max_iterations=1)
    on.whole_iteration()
    store.finish(on.master)
    store.open_iteration(on.master, new_validation(opened_on=1))
    assert on.claim("held") is not None
    assert store.withdraw_batches("machine", "me") == 1
    assert [event.actor for event in store.events(on.run.id, kinds=["withdraw"])] == ["me"]


def test_the_failures_of_a_machine_name_the_binaries_that_it_alone_is_set_aside_for(fleet):
    fleet.here("b")
    fleet.fails("a", sha256=PLUS)
    fleet.fails("b", sha256=MINUS)
    fleet.store.set_aside("a", "no such book", "me", sha256=PLUS)
    found = {one.machine: one.binaries_set_aside for one in fleet.tick().machine_failures}
    assert found == {"a": frozenset({PLUS}), "b": frozenset()}


def test_a_released_machine_has_a_clean_record(fleet):
    fleet.here("b")
    fleet.fails("a")
    assert fleet.store.failed_batches() == {"a": 1}
    fleet.store.release_machine("a", "me")
    assert fleet.store.failed_batches() == {}
    assert fleet.tick().machine_failures == []
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


@pytest.mark.slow
def test_one_bad_machine_among_good_ones_is_set_aside_and_the_run_goes_on(store, sql):
    """What a master decides from its tick, until the bad machine is given nothing more."""
    on = stage(store)
    on.open(target_games=40)
    workers = {name: store.register_worker(new_worker(name, host=name)) for name in ("bad", "good")}
    asked = 0
    while on.now().status is RunStatus.RUNNING:
        claims = {name: store.claim(f"{name} {asked}", w, LEASE) for name, w in workers.items()}
        asked += 1
        if claims["bad"] is not None:
            store.fail(claims["bad"], "no such book", sha256=PLUS)
        if claims["good"] is not None:
            store.report(claims["good"], result_of(claims["good"]))
        for bad in machines_to_set_aside(store.tick(on.master, LEASE)):
            store.set_aside(bad.machine, bad.reason, "master", sha256=bad.sha256)
        if claims == {"bad": None, "good": None}:
            break
    (aside,) = store.machines_set_aside()
    assert (aside.machine, aside.sha256) == ("bad", PLUS)
    assert "no such book" in aside.reason
    (iteration,) = store.iterations(on.run.id)
    assert (on.now().status, iteration.is_played, broken(sql)) == (RunStatus.RUNNING, True, [])


def test_machines_of_one_name_are_told_apart_by_their_secrets(store):
    one = store.register_worker(new_worker("w1", host="machine", secret="one"))
    two = store.register_worker(new_worker("w2", host="machine", secret="two"))
    assert one.machine == "machine"
    assert two.machine.startswith("machine-") and len(two.machine) == len("machine-12345678")
    assert store.register_worker(new_worker("w2", host="renamed", secret="two")) == two


def test_a_workers_name_belongs_to_its_machine(store):
    mine = store.register_worker(new_worker("w1", host="mine"))
    with pytest.raises(NameTaken, match=r"'w1' belongs to the machine 'mine'"):
        store.register_worker(new_worker("w1", host="theirs", cores=1))
    (row,) = store.workers()
    assert (row.host, row.cores) == ("mine", 8)
    assert store.register_worker(new_worker("w1", host="mine", cores=2)) == mine


def test_a_wrong_secret_is_no_right_to_claim_or_to_touch(store):
    on = stage(store)
    on.open()
    thief = RegisteredWorker(id=on.worker.id, machine="machine", secret="guessed")
    with pytest.raises(IllegalTransition, match="not registered by this machine"):
        store.claim("a", thief, LEASE)
    store.touch_worker(thief, 1e6)
    assert store.workers()[0].nps is None
    assert "of machine" not in repr(on.worker)


MANY = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :most) "
OWN_LOGIN = "(SELECT login FROM spsa_machine WHERE name = 'machine')"


@pytest.mark.parametrize(
    ("registered", "most"),
    [
        (
            f"INSERT INTO spsa_machine (name, login, secret_sha256) {MANY}"  # noqa: S608
            f"SELECT 'm' || i, {OWN_LOGIN}, i || '-' FROM n",
            MACHINES_A_DAY,
        ),
        (
            "INSERT INTO spsa_worker (name, host, platform, cores, concurrency, version) "  # noqa: S608
            f"{MANY} SELECT 'w' || i, 'machine', '', 1, 1, '' FROM n",
            WORKERS_A_DAY,
        ),
    ],
    ids=["machines", "workers"],
)
def test_a_day_has_so_many_new_machines_and_workers(store, sql, registered, most):
    run = stage(store)  # which has registered one
    sql(registered, most=most - 2)
    other = store.register_worker(new_worker("other", host="other"))
    with pytest.raises(TuningError, match=r"within a day.* when a day has passed"):
        store.register_worker(new_worker("one too many", host="third"))
    assert store.register_worker(new_worker("other", host="other")) == other
    assert run.store.register_worker(new_worker()) == run.worker
    sql("UPDATE spsa_machine SET created_at = '2020-01-01 00:00:00.000'")
    sql("UPDATE spsa_worker SET first_seen_at = '2020-01-01 00:00:00.000'")
    assert store.register_worker(new_worker("one too many", host="third")).machine == "third"


def test_a_worker_is_not_named_like_the_machine_of_another(fleet):
    """`workers exclude b` means the machine b."""
    fleet.here("b")
    namesake = new_worker("b", host="a")
    with pytest.raises(NameTaken):
        fleet.store.register_worker(namesake)


HOSTILE_LOGS = ("[1]", "[null]", "{}", '"x"', "[" + "1" * 5000 + "]", "[" * 9000 + "]" * 9000)


@pytest.mark.parametrize("log", HOSTILE_LOGS, ids=lambda log: log[:6])
def test_what_a_machine_sends_as_void_games_is_read_or_left_out(fleet, sql, log):
    claim = fleet.claim("a")
    fleet.store.report(claim, result_of(claim, voids={"crash": 2}))
    sql(f"UPDATE spsa_batch SET void_log = '{log}' WHERE status = 'done'")  # noqa: S608
    assert fleet.store.void_games(fleet.on.run.id, 100) == []
    assert fleet.store.batches(fleet.on.run.id)


def test_binaries_are_found_by_the_first_characters_of_their_hash(store):
    Fleet(store)
    assert store.binaries_starting("") == sorted((PLUS, MINUS))
    assert store.binaries_starting(PLUS[:7]) == [PLUS]
    assert store.binaries_starting(PLUS[1:7]) == []
