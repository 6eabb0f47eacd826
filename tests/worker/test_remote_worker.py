"""A worker that plays for a server: when it waits, when it ends, and what it says."""

import json
import signal
from collections.abc import Callable
from math import inf
from pathlib import Path

import pytest
from console import Running, compete, worker
from engines.faulty import engine, running_with, wait_until
from worker_server import PART, TOKEN, WorkerServer, claim_of, refusal

from spsa.errors import DatabaseUnreachable, InvalidInput
from worker.batches.loop import NOTHING_TO_DO
from worker.batches.service import server_of
from worker.settings import Settings


@pytest.fixture
def start(server: WorkerServer, tmp_path: Path) -> Callable[..., Running]:
    """Starts a worker of the server."""

    def start_worker(*words: str) -> Running:
        command = worker("--server", server.url, "-c", "1", "--lease", "10", *words)
        return Running(command, SPSA_TOKEN=TOKEN, XDG_CACHE_HOME=str(tmp_path))

    return start_worker


def test_reports_wait_while_the_server_is_away(start, server, play, tmp_path):
    """fishtest 539: the result of a finished task was lost when the server did not respond."""
    gate = tmp_path / "gate"
    play(1, gate=gate)
    running = start("--max-batches", "1")
    running.until(lambda: "claimed" in running.log)
    server.is_away = True
    gate.touch()
    running.until(lambda: "first it 1 batch 0: +" in running.log)
    running.until(lambda: running.log.count("does not respond") > 1)
    assert server.reports() == []
    server.is_away = False
    assert running.ended() == 0
    ((report),) = server.reports()
    assert report["result"]["tally"]["pentanomial"].count(1) == 1


@pytest.mark.parametrize(
    "response", [refusal(401, "this token is unknown"), refusal(403, "it was revoked", "revoked")]
)
def test_a_machine_that_is_not_permitted_is_told_so_and_ends(server, tmp_path, response):
    """OpenBench 56: a worker with a wrong password waited in silence."""
    server.replaced["/worker/register"] = lambda _: response
    variables = {"SPSA_TOKEN": TOKEN, "XDG_CACHE_HOME": str(tmp_path)}
    done = compete("--server", server.url, "-c", 1, **variables)
    assert done.returncode == 2
    assert json.loads(response[2])["error"] in done.stderr
    assert TOKEN not in done.stderr


def test_a_machine_that_is_revoked_ends_at_once_and_its_engines_too(start, server, play, tmp_path):
    """The command that follows still follows."""
    pid, over = tmp_path / "pid", tmp_path / "over"
    play(1, gate=tmp_path / "never", pid=pid)
    running = start("--then", f"touch {over}")
    running.until(lambda: pid.exists() and pid.read_text())
    for name in ("touch", "claim", "renew", "report", "release", "work"):
        server.replaced[f"/worker/{name}"] = lambda _: refusal(403, "it was revoked", "revoked")
    assert running.ended() == 2
    assert "it was revoked" in running.log and over.exists()
    wait_until(lambda: not running_with(f"--pid={pid}"))


def test_a_command_follows_when_a_worker_has_ended_by_itself(start, server, play, tmp_path):
    """With what the worker's own environment has, but its token."""
    over = tmp_path / "over"
    play(1)
    running = start("--max-batches", "1", "--then", f"env > {over}; false")
    assert running.ended() == 0
    assert len(server.reports()) == 1
    assert "SPSA_" not in over.read_text() and TOKEN not in over.read_text()
    assert running.log.splitlines()[-1].endswith("false` ended with 1")
    over.unlink()
    assert start("--idle-timeout", "1", "--then", f"touch {over}").ended() == NOTHING_TO_DO
    assert over.exists()


def test_a_command_follows_when_the_server_is_away(start, server, play, tmp_path):
    gate, over = tmp_path / "gate", tmp_path / "over"
    play(1, gate=gate)
    running = start("--idle-timeout", "2", "--then", f"touch {over}")
    running.until(lambda: "claimed" in running.log)
    server.is_away = True
    gate.touch()
    assert running.ended() == DatabaseUnreachable.exit_code
    assert "1 batch could not be reported" in running.log
    over.unlink()
    running = start("--idle-timeout", "1", "--then", f"touch {over}")
    assert running.ended() == DatabaseUnreachable.exit_code
    assert over.exists(), "also if it was never there"


def test_no_command_follows_an_interrupt_or_a_failed_start(start, server, tmp_path):
    over = tmp_path / "over"
    running = start("--then", f"touch {over}")
    running.until(lambda: server.asked("/worker/claim"))
    running.send_signal(signal.SIGTERM)
    assert running.ended() == 0
    server.replaced["/worker/register"] = lambda _: refusal(401, "this token is unknown")
    assert start("--then", f"touch {over}").ended() == 2
    assert start("--then", f"touch {over}", "--lease", "no").ended() == 2
    assert not over.exists()


def test_a_command_that_follows_does_so_after_ten_minutes_without_work():
    assert Settings().idle_limit == inf
    assert Settings(then="poweroff").idle_limit == 600
    assert Settings(then="poweroff", idle_timeout=5.0).idle_limit == 5


def test_a_worker_without_work_says_why_in_one_line_each(start, server):
    running = start("--label", "fast", "--not", "second")
    running.until(lambda: "no run needs games" in running.log)
    server.work = [{"run": "first", "requires": ["big-memory"]}]
    running.until(lambda: "requires big-memory, and this worker has only" in running.log)
    server.work = [{"run": "second", "requires": []}]
    running.until(lambda: "this worker leaves out the run second" in running.log)
    server.set_aside = "4 of its last batches failed"
    running.until(lambda: "set aside and gets no batches: 4 of its last" in running.log)
    assert "`spsa-master workers release machine` ends that" in running.log
    asked = len(server.asked("/worker/touch"))
    running.until(lambda: len(server.asked("/worker/touch")) > asked + 1)
    for reason in ("no run needs games", "big-memory", "leaves out", "set aside"):
        assert running.log.count(reason) == 1, running.log
    assert all(line[len("hh:mm:ss ") :] for line in running.log.splitlines())
    assert len(server.asked("/worker/version")) == 1


def big(path: Path, parts: int) -> Path:
    """An engine whose file takes so many parts to send."""
    path.write_bytes(path.read_bytes() + b"#" * PART * parts)
    return path


@pytest.mark.slow
def test_leases_are_renewed_while_a_file_is_fetched(start, server, tmp_path):
    plus = big(engine(tmp_path, "plus"), 12)
    server.claims.append(claim_of(plus, engine(tmp_path, "minus"), server, pairs=1))
    server.pause = 0.5
    assert start("--max-batches", "1").ended() == 0
    file = next(i for i, r in enumerate(server.requests) if r.path.startswith("/worker/files/"))
    end = next(i for i, r in enumerate(server.requests) if r.path == "/worker/report")
    during = [r.json["claim_ids"] for r in server.requests[file:end] if r.path == "/worker/renew"]
    assert len(during) >= 2
    assert all(len(claim_ids) == 1 for claim_ids in during)
    assert len(server.reports()) == 1


def test_an_interrupt_ends_a_long_download_and_hands_the_batch_back(start, server, tmp_path):
    plus = big(engine(tmp_path, "plus"), 1_000)
    server.claims.append(claim_of(plus, engine(tmp_path, "minus"), server, pairs=1))
    server.pause = 0.1
    running = start()
    running.until(lambda: any(r.path.startswith("/worker/files/") for r in server.requests))
    running.send_signal(signal.SIGINT)
    assert running.ended() == 130
    (released,) = server.asked("/worker/release")
    assert released.json["batch_id"] == 1


URL = "https://tuning.example.org"


@pytest.mark.parametrize(
    ("given", "variables", "url", "token"),
    [
        ({"server": URL}, {"SPSA_TOKEN": "t"}, URL, "t"),
        ({}, {"SPSA_SERVER": URL, "SPSA_TOKEN": "t"}, URL, "t"),
        ({"server": URL}, {"SPSA_SERVER": "other", "SPSA_TOKEN": "t"}, URL, "t"),
        ({"database_url": "sqlite:///x"}, {"SPSA_SERVER": URL, "SPSA_TOKEN": "t"}, None, None),
    ],
)
def test_where_a_worker_plays(given, variables, url, token):
    found = server_of(Settings(**given), variables)
    assert found == (None if url is None else (url, token))
    assert "SPSA_TOKEN" not in variables


def test_a_token_is_in_a_file_that_others_cannot_read(tmp_path, capsys):
    file = tmp_path / "token"
    file.write_text("t\n")
    file.chmod(0o644)
    given = Settings(server=URL, token_file=file)
    found = server_of(given, {"SPSA_TOKEN": "of the environment"})
    assert found == (URL, "t")
    assert "other users can read" in capsys.readouterr().err
    file.chmod(0o600)
    server_of(given, {})
    assert capsys.readouterr().err == ""
    file.write_text("two\nlines\n")
    with pytest.raises(InvalidInput):
        server_of(given, {})
