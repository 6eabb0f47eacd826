"""A worker that plays for a server: when it waits, when it ends, and what it says."""

import json
import shutil
import signal
import ssl
from contextlib import closing, nullcontext
from math import inf

import pytest
from asking import RemoteStore
from builders import new_worker
from console import Running, compete, worker
from engines.faulty import engine, running_with, wait_until
from served import certify
from worker_server import PART, TOKEN, claim_of, refusal, worker_server

from spsa.core.scoring import Tally
from spsa.errors import (
    DatabaseUnreachable,
    InvalidInput,
    LeaseLost,
    NotPermitted,
    OutOfRange,
    ReportConflict,
    SchemaMismatch,
    TooManyRequests,
    TuningError,
)
from spsa.protocol import BatchResult, RegisteredWorker
from worker.batches.loop import NOTHING_TO_DO
from worker.batches.service import server_of
from worker.remote import ServerVersion
from worker.settings import Settings


@pytest.fixture
def start(server, tmp_path):
    """Starts a worker of the server."""

    def start_worker(*words):
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


def big(path, parts):
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


WORKER = RegisteredWorker(id=1, machine="machine")
RESULT = BatchResult(tally=Tally(2, 0, 0, (0, 0, 0, 0, 1)), slot=0)


@pytest.fixture
def store(server):
    with closing(RemoteStore(server.url, TOKEN)) as opened:
        yield opened


@pytest.fixture
def claim(tmp_path):
    engine = tmp_path / "engine"
    engine.write_bytes(b"engine")
    return claim_of(engine, engine)


def test_a_worker_registers_with_its_token_and_asks_the_version_without_it(store, server):
    """The answer may have more fields."""
    assert store.register_worker(new_worker(provides=("linux",))) == WORKER
    (request,) = server.requests
    assert request.json["provides"] == ["linux"]
    assert request.headers["Authorization"] == f"Bearer {TOKEN}"
    assert request.headers["X-Spsa-Protocol"] == "1"
    assert request.headers["User-Agent"].startswith("spsa-worker/")
    server.version |= {"more": ["of", "later"], "version": "9.9"}
    assert store.server_version() == ServerVersion(
        version="9.9", protocol=1, sha256=server.version["sha256"]
    )
    assert store.worker_file() == b"not packed"
    for request in server.requests[1:]:
        assert TOKEN not in str(request.headers)
        assert "X-Spsa-Protocol" not in request.headers


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (refusal(401, "unknown"), NotPermitted),
        (refusal(403, "revoked", "revoked"), NotPermitted),
        (refusal(409, "gone", "lease_lost"), LeaseLost),
        (refusal(409, "other counts", "conflict"), ReportConflict),
        (refusal(409, "of later", "a kind of later"), TuningError),
        (refusal(422, "tally.wins is -1"), OutOfRange),
        (refusal(426, "old", "outdated"), SchemaMismatch),
        (refusal(429, Retry_After="7"), TooManyRequests),
        (refusal(500), DatabaseUnreachable),
        (refusal(503, Retry_After="7"), DatabaseUnreachable),
        ((200, {}, b"<html>a portal</html>"), DatabaseUnreachable),
        ((200, {}, b"[" * 100_000), DatabaseUnreachable),
        ((200, {}, b'{"reply": "of later"}'), DatabaseUnreachable),
        ((200, {"Content-Encoding": "gzip"}, b"no gzip"), DatabaseUnreachable),
        ((200, {"Content-Length": "999"}, b'{"reply": "accepted"}'), DatabaseUnreachable),
    ],
)
def test_a_response_is_the_error_that_the_database_raises(store, server, claim, response, error):
    server.replaced["/worker/report"] = lambda _: response
    with pytest.raises(TuningError) as raised:
        store.report(claim, RESULT)
    assert type(raised.value) is error
    assert str(raised.value).startswith(server.url)
    assert TOKEN not in str(raised.value)
    if isinstance(raised.value, DatabaseUnreachable):
        assert raised.value.retry_after == (7.0 if "Retry-After" in response[1] else None)


def test_a_redirect_is_not_followed(store, server):
    with worker_server() as elsewhere:
        there = {"Location": f"{elsewhere.url}/worker/work"}
        server.replaced["/worker/work"] = lambda _: (307, there, b"")
        with pytest.raises(DatabaseUnreachable):
            store.work_left()
        assert elsewhere.requests == []


def test_a_file_is_fetched_in_parts_and_a_lease_renewed_between_them(store, server):
    data = bytes(range(256)) * 4_000
    server.files["f" * 64] = data
    held: list[set[str]] = []
    store.meanwhile = lambda: held.append(store.renew(WORKER, ["mine"], 60.0))
    assert store.file("f" * 64) == data
    assert held.count({"mine"}) == 4


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (refusal(404), None),
        (refusal(403, "of another machine", "not_permitted"), None),
        (refusal(403, "revoked", "revoked"), NotPermitted),
        (refusal(503), DatabaseUnreachable),
    ],
)
def test_a_file_that_this_machine_may_not_have_is_none(store, server, response, error):
    server.replaced[f"/worker/files/{'f' * 64}"] = lambda _: response
    with nullcontext() if error is None else pytest.raises(error):
        assert store.file("f" * 64) is None


def test_certificates_are_verified_and_SSL_CERT_FILE_is_obeyed(tmp_path, monkeypatch):  # noqa: N802
    """Of a server that no authority has signed a certificate for, but itself."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl here")
    certify(tmp_path, "own", "IP:127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "own.crt", tmp_path / "own.key")
    refused = pytest.raises(DatabaseUnreachable, match="certificate")
    with worker_server(context) as server:
        with closing(RemoteStore(server.url, TOKEN)) as store, refused:
            store.work_left()
        assert server.requests == []
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "own.crt"))
        with closing(RemoteStore(server.url, TOKEN)) as store:
            assert store.work_left() == []
        other = server.url.replace("127.0.0.1", "localhost")
        with closing(RemoteStore(other, TOKEN)) as store, refused:
            store.work_left()
