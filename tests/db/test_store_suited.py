"""Which worker is given which run: by its names, its labels, and what its machine can run."""

import pytest
from builders import LEASE, looked, new_engine, new_iteration, new_run, new_worker, result_of

from spsa.errors import OutOfRange
from spsa.protocol import Failure


class Runs:
    """Runs with one iteration of one batch each, and the workers that ask for them."""

    def __init__(self, store):
        self.store, self.asked, self.leases = store, 0, {}

    def open(self, name, batches=1, **over):
        run = self.store.create_run(new_run(name=name))
        self.leases[name] = self.store.acquire_master_lease(run.id, f"m-{name}", LEASE)
        new = new_iteration(target_games=2 * batches, batch_games=2, **over)
        self.store.open_iteration(self.leases[name], new)

    def worker(self, name="w", **over):
        return self.store.register_worker(new_worker(name, host=name, **over))

    def claim(self, worker):
        self.asked += 1
        return self.store.claim(f"c{self.asked}", worker, LEASE)

    def served(self, worker):
        """The runs of all that this worker is given, in order."""
        names = []
        while (claim := self.claim(worker)) is not None:
            names.append(claim.run_name)
            self.store.release(claim) if len(names) > 9 else self.store.report(
                claim, result_of(claim)
            )
        return names

    def left(self):
        return sorted((one.run, one.requires) for one in self.store.work_left())


@pytest.fixture
def runs(store):
    return Runs(store)


def test_a_worker_takes_the_runs_that_it_names(runs):
    for name in ("a", "b", "c"):
        runs.open(name)
    assert runs.served(runs.worker("one", only_runs=("b", "not there"))) == ["b"]
    assert runs.served(runs.worker("two", not_runs=("a", "b"))) == ["c"]
    assert runs.served(runs.worker("three", only_runs=("a",), not_runs=("a",))) == []
    assert runs.served(runs.worker("four")) == ["a"]


@pytest.mark.parametrize("name", ["a.b", '"', "a'b", "$", "ä b", "[0]", "%"])
def test_the_name_of_a_run_is_no_pattern(runs, name):
    runs.open("axb")
    runs.open(name)
    assert runs.served(runs.worker(only_runs=(name,))) == [name]


def test_a_worker_gets_what_requires_nothing_that_it_lacks(runs):
    runs.open("any")
    runs.open("new", requires=("linux", "x86-64-v3"))
    runs.open("fast", requires=("linux", "fast"))
    old = runs.worker("old", provides=("linux", "x86-64", "x86-64-v2"))
    assert runs.served(old) == ["any"]
    assert runs.served(runs.worker("nothing")) == []
    new = runs.worker("new", provides=("linux", "x86-64", "x86-64-v2", "x86-64-v3", "slow"))
    assert runs.served(new) == ["new"]
    assert runs.served(runs.worker("labelled", provides=("fast", "linux"))) == ["fast"]


def test_a_worker_that_starts_again_with_other_options_is_asked_by_those(runs):
    runs.open("fast", requires=("fast",))
    assert runs.served(runs.worker()) == []
    assert runs.served(runs.worker(provides=("fast",))) == ["fast"]


def test_shares_are_drawn_among_the_runs_that_a_worker_may_play(runs):
    """The others would lengthen its turns, and it would be served the oldest run instead."""
    for name in ("a", "b"):
        runs.open(name, batches=20)
    runs.open("c", batches=40, requires=("fast",))
    runs.worker("fast", provides=("fast",))
    worker, served = runs.worker(concurrency=20), []
    for _ in range(20):
        claim = runs.claim(worker)
        served.append(claim.run_name)
    assert (served.count("a"), served.count("b")) == (10, 10)


def test_a_machine_tries_again_what_no_other_may_play(runs):
    runs.open("fast", requires=("fast",))
    worker = runs.worker("fast", provides=("fast",))
    runs.worker("slow")
    for _ in range(2):
        runs.store.fail(runs.claim(worker), Failure(reason="it broke"))
    assert runs.claim(worker).attempt == 3
    looked(runs.store, runs.leases["fast"])
    assert runs.store.run("fast").status == "running"


def test_a_machine_that_may_not_play_a_batch_does_not_keep_it_from_failing(runs):
    runs.open("fast", requires=("fast",))
    runs.worker("slow")
    for name in ("one", "two"):
        runs.store.fail(
            runs.claim(runs.worker(name, provides=("fast",))), Failure(reason="it broke")
        )
    looked(runs.store, runs.leases["fast"])
    assert runs.store.run("fast").status == "paused"


def test_the_slots_of_a_run_are_those_of_workers_that_may_play_it(runs):
    runs.worker("slow", concurrency=16)
    runs.worker("fast", concurrency=3, provides=("fast",))
    runs.open("fast", requires=("fast",))
    view = looked(runs.store, runs.leases["fast"])
    assert (view.active_workers, view.active_slots) == (1, 3)


def test_what_is_left_is_told_with_what_it_requires(runs):
    runs.open("a", requires=("linux", "x86-64-v4"))
    runs.open("b")
    runs.store.create_run(new_run(name="c"))
    runs.store.stop("b", "me", "enough")
    assert runs.left() == [("a", ("linux", "x86-64-v4")), ("c", ())]


def test_what_binaries_for_other_machines_require_is_told_while_they_are_played(runs):
    sides = (new_engine("plus for arm"), new_engine("minus for arm"))
    for name in ("a", "b"):
        runs.open(name, requires=("x86-64",), variants={"% aarch64 % linux %": sides})
    runs.store.pause("b", "me", "dinner")
    assert runs.left() == [("a", ("aarch64", "linux")), ("a", ("x86-64",))]


@pytest.mark.parametrize("column", ["provides", "only_runs", "not_runs"])
def test_lists_have_a_length_and_are_printable(runs, column):
    for words in (("x" * 100_000,), ("a\x1b[31m",), ("a\u202eb",)):
        with pytest.raises(OutOfRange, match=rf"WorkerInfo\.{column}\[0\] "):
            runs.worker(**{column: words})


def test_a_claim_has_the_binaries_of_all_kinds(runs):
    plus, minus = new_engine("plus for v3"), new_engine("minus for v3")
    runs.open("a", variants={"x86-64-v3": (plus, minus)})
    claim = runs.claim(runs.worker())
    ((kind, sides),) = claim.variants.items()
    assert kind == "x86-64-v3"
    assert [side.sha256 for side in sides] == [plus.sha256, minus.sha256]
    assert [side.path for side in sides] == [plus.path, minus.path]
    assert [side.options for side in sides] == [claim.plus.options, claim.minus.options]
