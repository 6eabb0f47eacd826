"""A run pauses when every machine there fails several batches and none has played any."""

import pytest
from asking import Store
from builders import LEASE, Stage, result_of, stage

from spsa.lifecycle import RunStatus
from spsa.master.decide import upkeep
from spsa.protocol import Failure

VOID = Failure(reason="its pair was void 4 times: no bestmove", void_games=8)


def failing(store: Store, batches: int, played: int = 0) -> Stage:
    """A machine that has played some batches and failed others."""
    staged = stage(store)
    staged.open(target_games=12, batch_games=2)
    claims = [staged.claim(f"c{n}") for n in range(batches + played)]
    for n, claim in enumerate(claims):
        assert claim is not None
        if n < played:
            store.report(claim, result_of(claim))
        else:
            store.fail(claim, VOID)
    return staged


def test_it_pauses_with_the_reason_and_a_resume_tries_again(store):
    staged = failing(store, 3)
    (obstacle,) = store.tick(staged.master, LEASE).obstacles
    assert len(obstacle.batch_ids) == 3
    run = staged.view().run
    assert run.status is RunStatus.PAUSED
    assert run.reason.startswith("no game counts: 1 machine failed 3 batches and played none; ")
    assert run.reason.endswith("no bestmove") and "[time_control]" in run.reason
    assert store.tick(staged.master, LEASE).obstacles == []
    store.resume(run.name, "someone")
    assert upkeep(staged.view()) is None
    assert len(staged.play()) == 6


@pytest.mark.parametrize(("batches", "played"), [(2, 0), (3, 1)])
def test_it_goes_on_where_a_machine_may_play(store, batches, played):
    staged = failing(store, batches, played)
    assert staged.view().obstacles == []
