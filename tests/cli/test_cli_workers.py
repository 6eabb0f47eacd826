"""`spsa-master workers`: who has played, which machines are set aside, and how that ends."""

import hashlib
import re

import pytest
from asking import Store
from builders import LEASE, new_engine, new_worker, play, result_of, stage

from spsa.errors import LeaseLost
from spsa.lifecycle import MachineRole
from spsa.protocol import Failure

PLUS = new_engine("plus").sha256


@pytest.fixture
def staged(database_url, project, monkeypatch):
    """Two machines: "machine" has reported a batch, "bad" has failed one."""
    monkeypatch.setenv("DATABASE_URL", database_url)
    with Store(database_url, durable=False) as store:
        on = stage(store)
        on.open()
        bad = store.register_worker(new_worker("bad-1", host="bad", provides=("big", "linux")))
        claim = store.claim("of bad", bad, LEASE)
        assert claim is not None
        store.fail(claim, Failure(reason="no such book", void_games=2))
        on.play()
        yield on


def test_machines_are_listed_excluded_and_released(staged, transcript):
    transcript("workers are listed with their machines and faults")
    transcript("a machine is excluded and released")
    staged.store.set_aside("bad", "by its owner", "me", sha256=PLUS)
    transcript("a machine may be excluded from one binary")
    staged.store.release_machine("bad", "me")
    staged.apply()
    for name in ("bad", "machine"):
        staged.open()
        worker = new_worker(f"{name}-1", host=name, provides=("big", "linux"))
        play(staged.store, staged.store.register_worker(worker), 0.0)
        staged.apply()
    transcript("machines are compared")


def test_what_cannot_be_meant_is_refused(staged, transcript):
    transcript.refused("what cannot be meant is refused", unprintable="a\x1b[2J")
    assert staged.store.machines_set_aside() == []
    assert [one.name for one in staged.store.machines()] == ["bad", "machine"]


def test_what_an_excluded_machine_holds_can_be_withdrawn(staged, transcript):
    staged.apply()
    staged.open()
    held = staged.claim("held")
    assert held is not None
    transcript("what an excluded machine holds can be withdrawn")
    assert staged.store.renew(staged.worker, ["held"], 60) == set()
    with pytest.raises(LeaseLost):
        staged.store.report(held, result_of(held))


def test_a_machine_is_invited_by_one_line_and_revoked(staged, transcript):
    staged.store.invite_machine("come", MachineRole.WORKER, "owner")
    staged.store.register_worker(new_worker("come-1", host="come"), "come")
    said = transcript("the line says what the address and the role need")
    tokens = [re.findall(r"SPSA_TOKEN=(spsa_[\w-]{43}) ", one.out) for one in said[:4]]
    hashes = [hashlib.sha256(token.encode()).hexdigest() for (token,) in tokens]
    machines = [staged.store.machine_of_token(found)[0] for found in hashes]
    assert [one.name for one in machines] == ["far", "builds", "near", "unknown"]
    assert {one.name for one in machines if one.role is MachineRole.BUILDER} == {"builds"}
