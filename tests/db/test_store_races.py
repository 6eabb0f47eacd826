"""Many at once: every batch is played once, every count is right, and nobody sees a locked file."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
import sqlalchemy as sa
from asking import Store
from builders import LEASE, new_iteration, new_run, new_worker, result_of, stage, tally_of_seed
from engines.faulty import wait_until
from shell import Shell

from spsa.core.scoring import Tally
from spsa.db.base import execute
from spsa.db.url import parse_url
from spsa.errors import MasterLeaseLost
from spsa.protocol import Failure
from worker.batches.database_client import RECONNECT, DatabaseClient

WORKERS = 8
BATCHES = 200


def play_all(store, name):
    """One worker from its registration until nothing is free; the batches it played."""
    worker = store.register_worker(new_worker(name))
    played = []
    while (claim := store.claim(f"{name}-{len(played)}", worker, LEASE)) is not None:
        store.renew(worker, [claim.claim_id], LEASE)
        assert store.report(claim, result_of(claim)) == "accepted"
        assert store.report(claim, result_of(claim)) == "already"
        played.append(claim.batch_id)
    return played


def in_parallel(jobs):
    """What the jobs give, all started together."""
    gate = threading.Barrier(len(jobs))
    with ThreadPoolExecutor(len(jobs)) as pool:
        futures = [pool.submit(lambda job=job: (gate.wait(120), job())[1]) for job in jobs]
    return [future.result() for future in futures]


@pytest.mark.slow
@pytest.mark.parametrize("shared", [True, False], ids=["one store", "a store each"])
def test_every_batch_is_played_once(database_url, shared):
    with Store(database_url, durable=False) as store:
        run = stage(store, max_iterations=9)
        for k in (1, 2):
            run.open(k=k, target_games=4 * BATCHES // 2, in_flight=2)
        stores = [store] * WORKERS
        if not shared:
            stores = [Store(database_url, durable=False) for _ in range(WORKERS)]
        jobs = [lambda s=s, n=n: play_all(s, f"machine-{n}") for n, s in enumerate(stores)]
        played = [batch for batches in in_parallel(jobs) for batch in batches]
        for other in stores:
            other.close()
        assert len(played) == len(set(played)) == BATCHES
        rows = store.batches(run.run.id)
        assert all(row.tally == tally_of_seed(row.seed, 2) for row in rows)
        assert store.totals(run.run.id).tally == sum((row.tally for row in rows), Tally())
        assert all(iteration.is_played for iteration in store.iterations(run.run.id))
        assert sum(row.batches for row in store.workers()) == BATCHES


@pytest.mark.parametrize("expired", [True, False], ids=["expired", "ready"])
def test_a_claim_that_is_not_committed_keeps_one_batch_from_the_others(postgresql_url, expired):
    engine = sa.create_engine(parse_url(postgresql_url), poolclass=sa.NullPool)
    with (
        closing(Shell(postgresql_url)) as shell,
        Store(postgresql_url, durable=False) as store,
        engine.connect() as connection,
    ):
        run = stage(store)
        run.open(target_games=16)
        leased = [run.claim("first"), run.claim("second")]  # they mark the iteration as begun
        if expired:
            for claim in leased:
                shell.expire(claim.batch_id)
        slow = store.register_worker(new_worker("slow"))
        values = {"worker_id": slow.id, "claim_id": "slow", "lease_seconds": LEASE}
        values["iteration_id"] = run.view().open[0].id
        statement = "claim.tried" if expired else "claim"
        batch = execute(connection, statement, **values).one().id
        claim = store.claim("quick", store.register_worker(new_worker("quick")), LEASE)
        assert claim is not None and claim.batch_id == batch + 1
        connection.commit()


def test_one_of_many_masters_gets_the_run(database_url):
    with Store(database_url, durable=False) as store:
        run = store.create_run(new_run())

        def acquire(name):
            try:
                return store.acquire_master_lease(run.id, name, LEASE).master_id
            except MasterLeaseLost:
                return None

        names = in_parallel([lambda n=n: acquire(f"m{n}") for n in range(6)])
        assert sum(name is not None for name in names) == 1
        assert store.run().epoch == 1


def test_one_of_many_identical_openings_is_written(store):
    run = stage(store)
    assert in_parallel([lambda: store.open_iteration(run.master, new_iteration())] * 6) == [1] * 6
    assert len(store.batches(run.run.id)) == 2


_WAITING = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE wait_event_type = 'Lock' AND datname = current_database()"
)


def test_a_claim_cut_off_on_its_way_and_asked_again_holds_one_batch(postgresql_url):
    """Its first call is still at work in the server when a worker asks again."""
    with Store(postgresql_url) as store, closing(Shell(postgresql_url)) as shell:
        run = stage(store)
        run.open()
        client = DatabaseClient(store, new_worker(), LEASE, RECONNECT)
        with store._engine.connect() as cut_off, ThreadPoolExecutor(1) as pool:
            taken = sa.text(
                "UPDATE spsa_batch SET status = 'leased', attempt = 1, claim_id = :claim,"
                " worker_id = :w, lease_expires_at = now() + interval '1 hour' WHERE seq = 0"
            )
            cut_off.execute(taken, {"claim": client._claim_id, "w": run.worker.id})
            again = pool.submit(client.claim)
            wait_until(lambda: shell(_WAITING) != [(0,)])
            cut_off.commit()
            assert again.result(120).seq == 0
        assert [batch.attempt for batch in store.batches(run.run.id)] == [1, 0]


@pytest.mark.slow
def test_workers_and_an_impatient_owner(database_url):
    """Pauses, resumes and failures in the middle of claims and reports deadlock nobody."""
    with Store(database_url, durable=False) as store:
        run = stage(store)
        run.open(target_games=60, max_attempts=10_000)
        enough = threading.Event()

        def wavering():
            while not enough.is_set():
                store.pause("first", "me", "hm")
                store.tick(run.master, LEASE)
                store.resume("first", "me")

        def clumsy(name):
            worker, count = store.register_worker(new_worker(name)), 0
            while not store.iterations(run.run.id)[0].is_played:
                count += 1
                claim = store.claim(f"{name}-{count}", worker, LEASE)
                if claim is None:
                    continue
                if count % 5 == 0:
                    store.fail(claim, Failure(reason="clumsy", void_games=1))
                elif count % 5 == 1:
                    store.release(claim)
                else:
                    store.report(claim, result_of(claim))

        def workers():
            in_parallel([lambda n=n: clumsy(f"machine-{n}") for n in range(3)])
            enough.set()

        in_parallel([wavering, workers])
        rows = store.batches(run.run.id)
        assert store.totals(run.run.id).tally == sum((row.tally for row in rows), Tally())
        assert store.totals(run.run.id).void_games == sum(row.void_games for row in rows)
