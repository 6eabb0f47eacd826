"""Who gets a batch that machines have failed or left, and when the run pauses for it.

A story has one step a comma: what a machine does with the batch that it claims (`-`: there is none
for it), or what the master sees. Machines are letters; each has one worker.
"""

import pytest
from builders import LEASE, new_engine, new_worker, result_of, stage
from invariants import broken

from spsa.lifecycle import BatchStatus, RunStatus
from spsa.protocol import Failure, Measured

PLUS, MINUS = new_engine("plus").sha256, new_engine("minus").sha256
BINARIES = {"all": None, "plus": PLUS, "minus": MINUS, "another": "a" * 64}
LONG_AGO = "2000-01-01 00:00:00.000"


class Fleet:
    """A run with an open iteration; only the machines of a story are there."""

    def __init__(self, store, sql, batches=1, **over) -> None:
        self.store, self.sql, self.asked, self.workers = store, sql, 0, {}
        self.run = stage(store)
        self.run.open(target_games=4 * batches, **over)
        sql("DELETE FROM spsa_worker")

    def there(self, machine):
        if machine not in self.workers:
            info = new_worker(f"{machine}-1", host=machine)
            self.workers[machine] = self.store.register_worker(info)
        return self.workers[machine]

    def claim(self, machine):
        self.asked += 1
        return self.store.claim(f"claim {self.asked}", self.there(machine), LEASE)

    def does(self, machine, verb, seq="0"):
        claim = self.claim(machine)
        assert ("-" if claim is None else str(claim.seq)) == seq
        match verb:
            case "fails":
                self.store.fail(claim, Failure(reason=f"{machine} has no book"))
            case "leaves":
                self.sql.expire(claim.batch_id)
            case "plays":
                assert self.store.report(claim, result_of(claim)) == "accepted"
            case "returns":
                self.store.release(claim)
            case "holds":
                pass

    def step(self, *words):
        match words:
            case ("there", *machines):
                for machine in machines:
                    self.there(machine)
            case ("silent", machine):
                silent = "UPDATE spsa_worker SET last_seen_at = :then WHERE host = :machine"
                self.sql(silent, then=LONG_AGO, machine=machine)
            case ("touched", machine):
                self.store.touch_worker(self.there(machine), Measured())
            case ("registered", machine):
                self.store.register_worker(new_worker(f"{machine}-1", host=machine))
            case ("aside", machine, binary):
                self.there(machine)
                self.store.set_aside(machine, "broken", "me", sha256=BINARIES[binary])
            case ("resumed",):
                self.store.resume("first", "me")
            case ("running",):
                assert self.run.view().run.status is RunStatus.RUNNING
            case ("paused", machine, tried):
                run = self.run.view().run
                assert run.status is RunStatus.PAUSED
                tried += " machine" if tried == "1" else " machines"
                assert run.reason == f"iteration 1 batch 0: {self.why(machine)} (tried by {tried})"
            case _:
                self.does(*words)

    @staticmethod
    def why(machine):
        if machine == "-":
            return "every worker that claimed it disappeared without a report"
        return f"{machine} has no book"

    def batches(self):
        return self.store.batches(self.run.run.id)


# the attempts and the batches of the iteration, and the story
STORIES = {
    "what a machine failed goes to another one": (
        *(3, 2),
        "there b, a fails, a returns 1, b plays 0",
    ),
    "a machine alone tries as often as the batch allows": (
        *(3, 1),
        "a fails, running, a fails, running, a fails, a holds -, paused a 1",
    ),
    "one that comes later tries what another could not play": (
        *(3, 1),
        "a fails, a fails, a fails, there b, running, b plays, running",
    ),
    "one that comes after two failures gets the batch": (
        *(3, 1),
        "a fails, a fails, running, b holds, running",
    ),
    "one that left a batch may try what another failed": (
        *(3, 1),
        "a leaves, there c, b fails, a plays",
    ),
    "one that a batch was lost to for good plays no more of it": (
        *(3, 1),
        "there o, a leaves, running, a leaves, running, a leaves, running, a holds -, o plays,"
        " running",
    ),
    "a lone machine that leaves every time": (2, 1, "a leaves, running, a leaves, paused - 1"),
    "three machines that leave": (3, 1, "a leaves, b leaves, c leaves, d holds -, paused - 3"),
    "all that are there have failed": (5, 1, "there b, a fails, running, b fails, paused b 2"),
    "a third is asked while fewer have failed than may": (
        *(3, 1),
        "there b c, a fails, b fails, running, c fails, paused c 3",
    ),
    "as many as may are enough": (
        *(3, 2),
        "there b c d, a fails, b fails, c fails, d returns 1, paused c 3",
    ),
    "where one may fail, another still tries": (
        *(1, 1),
        "there b, a fails, running, b fails, paused b 2",
    ),
    "one that was left by its only machine": (1, 1, "a leaves, a holds -, paused - 1"),
    "the machine that is left decides": (
        *(3, 1),
        "there b, a fails, a holds -, silent b, running, a fails, a fails, paused a 1",
    ),
    "others are waited for until all are silent": (
        *(9, 1),
        "there b c, a fails, a holds -, silent b, a holds -, silent c, a fails",
    ),
    "one that is back is waited for": (
        *(9, 1),
        "there b, silent b, a fails, touched b, a holds -",
    ),
    "one that registers again is waited for": (
        *(9, 1),
        "there b, silent b, a fails, registered b, a holds -",
    ),
    "a batch waits while no machine is there": (1, 1, "a fails, silent a, running"),
    "failures of other batches do not count": (
        *(2, 2),
        "a fails 0, b holds 0, c fails 1, running",
    ),
    "one set aside is not waited for": (
        *(9, 1),
        "there b c, a fails, aside b all, a holds -, aside c all, a fails",
    ),
    "one set aside for these binaries is not waited for": (
        *(9, 1),
        "there b c, aside b plus, aside c another, a fails, a holds -, aside c minus, a fails",
    ),
    "one set aside for another binary plays this one": (
        *(3, 1),
        "aside b another, a fails, running, b plays",
    ),
    "one that returned a batch has not tried it": (
        *(3, 1),
        "there b c d, a fails, b fails, c returns, d plays",
    ),
    "a run that is resumed begins to count again": (
        *(1, 1),
        "a fails, paused a 1, resumed, running, a plays, running",
    ),
}
STORIES |= {
    f"alone, as the other is set aside for {binary}": (
        *(3, 1),
        f"there b, aside b {binary}, a fails, a fails, a fails, b holds -, paused a 1",
    )
    for binary in ("all", "plus", "minus")
}


@pytest.mark.parametrize("name", STORIES)
def test_a_batch_is_tried_by_other_machines_until_the_run_pauses(store, sql, name):
    attempts, batches, story = STORIES[name]
    fleet = Fleet(store, sql, batches, max_attempts=attempts)
    for step in story.split(", "):
        fleet.step(*step.split())
    paused = fleet.run.now().status is RunStatus.PAUSED
    failed = [row.seq for row in fleet.batches() if row.status is BatchStatus.FAILED]
    assert failed == [0] * paused
    assert broken(sql) == []
