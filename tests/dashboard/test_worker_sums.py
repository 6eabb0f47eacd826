"""What workers have played of a run of any length, summed span by span."""

import pytest
from builders import new_worker, result_of
from dashboards import space
from tuned import iterate, tuned

from spsa.core.scoring import Tally
from spsa.dashboard import worker_sums
from spsa.dashboard.worker_sums import WorkerSummer
from spsa.db.store import Selection, Store
from spsa.history.purge import carry_out, plan
from spsa.master.session import tuning_of


@pytest.fixture(autouse=True)
def short_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_sums, "SPAN", 2)
    monkeypatch.setattr(worker_sums, "BUDGET_SECONDS", 60.0)


def test_all_iterations_are_summed(store: Store) -> None:
    staged = tuned(store, space(), 7, planned=9)
    staged.open()
    other = store.register_worker(new_worker("machine-2"))
    claim = store.claim("of-another", other, 1000.0)
    assert claim is not None
    store.report(claim, result_of(claim))
    found = WorkerSummer(store).sums(staged.now())
    assert found.first_k == 1
    assert list(found.shares) == store.worker_shares(staged.run.id)
    assert [share.tally.games for share in found.shares] == [56, 4]


def test_a_long_run_is_read_span_by_span_and_only_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = tuned(store, space(), 7, planned=9)
    monkeypatch.setattr(worker_sums, "BUDGET_SECONDS", -1.0)
    summer, run = WorkerSummer(store), staged.now()
    assert (summer.sums(run).first_k, _games(summer.sums(run))) == (7, 8)
    monkeypatch.setattr(worker_sums, "BUDGET_SECONDS", 60.0)
    assert (summer.sums(run).first_k, _games(summer.sums(run))) == (1, 56)
    read = []
    shares = store.worker_shares
    monkeypatch.setattr(store, "worker_shares", lambda *a: read.append(a[1:]) or shares(*a))
    iterate(staged)
    assert _games(summer.sums(staged.now())) == 64
    assert read == [(8,), (6, 8)]


def test_a_purge_is_seen(store: Store) -> None:
    staged = tuned(store, space(), 5)
    summer = WorkerSummer(store)
    assert _games(summer.sums(staged.now())) == 40
    run, tuning = staged.now(), tuning_of(staged.run)
    planned = plan(store, run, tuning, Selection(iterations=(1,)))
    carry_out(store, tuning, planned, "me", "bad memory")
    assert _games(summer.sums(staged.now())) == 32


def _games(sums: worker_sums.WorkerSums) -> int:
    return sum((share.tally for share in sums.shares), Tally()).games
