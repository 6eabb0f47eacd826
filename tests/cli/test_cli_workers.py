"""`spsa-master workers`: who has played, which machines are set aside, and how that ends."""

import hashlib
import re

import pytest
from asking import Store
from builders import LEASE, new_engine, new_worker, result_of, stage

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


def listed(ask):
    return {worker["name"]: worker for worker in ask("workers", "list", "--json").json["workers"]}


def test_all_workers_are_listed_with_their_machines_and_faults(staged, ask, monkeypatch):
    found = listed(ask)
    assert set(found) == {"machine-1", "bad-1"}
    assert (found["bad-1"]["machine"], found["bad-1"]["failed_batches"]) == ("bad", 1)
    assert (found["machine-1"]["games"], found["machine-1"]["failed_batches"]) == (8, 0)
    assert found["bad-1"]["set_aside"] == []
    monkeypatch.setenv("COLUMNS", "240")
    out = ask("workers", "list").out
    lines = [line.split() for line in out.splitlines()]
    assert any(line[:2] == ["bad-1", "bad"] for line in lines)
    assert any(line[:2] == ["machine-1", "machine"] and "8" in line for line in lines)
    assert "set aside" not in out


def test_a_machine_is_excluded_and_released(staged, ask, monkeypatch):
    assert (
        ask("workers", "exclude", "bad-1", "--reason", "bad memory").out
        == "bad is given no more batches\n"
    )
    assert ask("workers", "exclude", "bad").out == "bad was set aside already\n"
    monkeypatch.setenv("COLUMNS", "140")
    assert "set aside: bad memory" in ask("workers", "list").out
    (aside,) = listed(ask)["bad-1"]["set_aside"]
    assert (aside["machine"], aside["sha256"], aside["reason"]) == ("bad", None, "bad memory")
    assert "@" in aside["actor"]
    assert (
        ask("workers", "release", "bad-1").out
        == "bad is given batches again; its failures are forgotten\n"
    )
    assert (
        ask("workers", "release", "bad").out
        == "bad was not set aside; its failures are forgotten\n"
    )
    again = listed(ask)["bad-1"]
    assert (again["set_aside"], again["failed_batches"]) == ([], 0)


def test_a_machine_may_be_excluded_from_one_binary(staged, ask, monkeypatch):
    staged.store.set_aside("bad", "by its owner", "me", sha256=PLUS)
    monkeypatch.setenv("COLUMNS", "160")
    told = ask("workers", "list").out
    assert f"set aside for the binary {PLUS[:12]}: by its owner" in told


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["exclude", "nobody"], 3, "named 'nobody'; machines: bad, machine"),
        (["exclude", "bad", "--reason", "a\x1b[2J"], 2, "the reason has unprintable"),
        (["invite", "bad"], 2, "there is a machine named 'bad'"),
        (["invite", "bad-1"], 2, "a worker of the machine 'bad' is named 'bad-1'"),
        (["invite", "a\x1b[2J"], 2, "the name has unprintable characters"),
        (["invite", "far", "--url", "tuner.org"], 2, "'tuner.org' is no address"),
    ],
)
def test_what_cannot_be_excluded_or_released_is_said(staged, ask, arguments, code, words):
    heard = ask("workers", *arguments)
    assert heard.code == code and words in heard.err
    assert staged.store.machines_set_aside() == []
    assert [one.name for one in staged.store.machines()] == ["bad", "machine"]


def test_what_an_excluded_machine_holds_can_be_withdrawn(staged, ask):
    staged.apply()
    staged.open()
    held = staged.claim("held")
    assert held is not None
    said = ask("workers", "exclude", "machine", "--withdraw").out
    assert said.splitlines()[-1] == "1 batch of machine can be claimed by others"
    assert staged.store.renew(staged.worker, ["held"], 60) == set()
    with pytest.raises(LeaseLost):
        staged.store.report(held, result_of(held))
    told = [(one.kind, one.detail["machine"]) for one in staged.store.events(staged.run.id, 2)]
    assert told == [("set_aside", "machine"), ("withdraw", "machine")]


TOKEN = r"spsa_[\w-]{43}"


def test_the_line_for_an_invited_machine_is_all_that_stdout_has(staged, ask):
    heard = ask("workers", "invite", "far", "--url", "https://tuner.org/spsa/")
    server = "https://tuner.org/spsa"
    line = f"curl -fO {server}/worker.pyz && SPSA_TOKEN=({TOKEN}) python3 worker.pyz"
    found = re.fullmatch(f"{line} --server {server}\n", heard.out)
    assert heard.code == 0 and found is not None, heard.out
    assert heard.err == "paste this on far; its token is not shown again:\n"
    known = staged.store.machine_of_token(hashlib.sha256(found[1].encode()).hexdigest())
    assert known is not None and known[0].name == "far"
    assert known[0].role is MachineRole.WORKER and "@" in str(known[0].invited_by)


@pytest.mark.parametrize(
    ("options", "ends"),
    [
        (["--url", "http://10.0.0.2:8765", "--may-build"], "10.0.0.2:8765 --build --plain-http\n"),
        (["--url", "http://localhost:8765"], " http://localhost:8765\n"),
        ([], " --server https://YOUR-SERVER\n"),
    ],
)
def test_the_line_says_what_the_address_and_the_role_need(staged, ask, options, ends):
    heard = ask("workers", "invite", "far", *options)
    assert heard.out.endswith(ends) and ("put the address" in heard.err) == (not options)
    machine = next(one for one in staged.store.machines() if one.name == "far")
    assert machine.may_build == ("--may-build" in options)


def test_machines_that_have_not_come_or_were_revoked_are_listed(staged, ask):
    ask("workers", "invite", "far")
    assert (
        ask("workers", "revoke", "bad-1").out
        == "bad may no longer play; 0 batches can be claimed again\n"
    )
    out = ask("workers", "list").out
    assert re.search(r"^bad was revoked \d{4}-\d\d-\d\d \d\d:\d\d UTC$", out, re.MULTILINE)
    assert re.search(r"^far was invited .* UTC: no worker yet$", out, re.MULTILINE)
    assert "machine was" not in out
    machines = ask("workers", "list", "--json").json["machines"]
    found = {one["name"]: one for one in machines}
    assert (found["far"]["role"], found["far"]["revoked_at"]) == ("worker", None)
    assert (found["bad"]["invited_by"], found["bad"]["revoked_at"] is None) == (None, False)
    assert "sha256" not in str(found)
