"""A worker that plays for a server: when it waits, when it ends, and what it says."""

import json
import shutil
import signal
from contextlib import closing, nullcontext
from hashlib import sha256
from math import inf

import pytest
from asking import RemoteStore
from builders import new_run, new_worker, result_of
from console import Running, compete, worker
from engines.faulty import running_with, wait_until
from served import certify
from starlette.responses import Response
from worker_server import MACHINE, refusal, worker_server

from spsa import errors
from worker.batches.loop import NOTHING_TO_DO
from worker.batches.service import server_of
from worker.remote import ServerVersion
from worker.settings import Settings

REVOKED = refusal(403, "it was revoked", "revoked")


@pytest.fixture
def start(server, tmp_path):
    """Starts a worker of the server."""

    def start_worker(*words):
        command = worker("--server", server.url, "-c", "1", "--lease", "10", *words)
        return Running(command, SPSA_TOKEN=server.token, XDG_CACHE_HOME=str(tmp_path))

    return start_worker


@pytest.mark.parametrize("response", [refusal(401, "this token is unknown"), REVOKED])
def test_a_machine_that_is_not_permitted_is_told_so_and_ends(server, tmp_path, response):
    """OpenBench 56: a worker with a wrong password waited in silence."""
    server.replaced["/worker/register"] = lambda _: response
    variables = {"SPSA_TOKEN": server.token, "XDG_CACHE_HOME": str(tmp_path)}
    done = compete("--server", server.url, "-c", 1, **variables)
    assert done.returncode == 2
    assert json.loads(response.body)["error"] in done.stderr
    assert server.token not in done.stderr


def test_a_machine_that_is_revoked_ends_at_once_and_its_engines_too(start, server, play, tmp_path):
    """The command that follows still follows."""
    pid, over = tmp_path / "pid", tmp_path / "over"
    play(1, gate=tmp_path / "never", pid=pid)
    running = start("--then", f"touch {over}")
    running.until(lambda: pid.exists() and pid.read_text())
    server.staged.store.revoke_machine(MACHINE, "me")
    assert running.ended() == 2
    assert "revoked" in running.log and over.exists()
    wait_until(lambda: not running_with(f"--pid={pid}"))


def test_a_command_follows_when_a_worker_has_ended_by_itself(start, server, play, tmp_path):
    """With what the worker's own environment has, but its token."""
    over = tmp_path / "over"
    play(1)
    running = start("--max-batches", "1", "--then", f"env > {over}; false")
    assert running.ended() == 0
    assert len(server.reports()) == 1
    assert "SPSA_" not in over.read_text() and server.token not in over.read_text()
    assert running.log.splitlines()[-1].endswith("false` ended with 1")
    over.unlink()
    assert start("--idle-timeout", "1", "--then", f"touch {over}").ended() == NOTHING_TO_DO
    assert over.exists()


@pytest.mark.parametrize("comes_back", [True, False])
def test_reports_wait_while_the_server_is_away(start, server, play, tmp_path, comes_back):
    """fishtest 539: the result of a finished task was lost when the server did not respond."""
    gate, over = tmp_path / "gate", tmp_path / "over"
    play(1, gate=gate)
    ending = ("--max-batches", "1") if comes_back else ("--idle-timeout", "2")
    running = start(*ending, "--then", f"touch {over}")
    running.until(lambda: "claimed" in running.log)
    server.is_away = True
    gate.touch()
    if comes_back:
        running.until(lambda: "first it 1 batch 0: +" in running.log)
        running.until(lambda: running.log.count("does not respond") > 1)
        assert server.reports() == []
        server.is_away = False
        assert running.ended() == 0 and over.exists()
        ((report),) = server.reports()
        assert report["result"]["tally"]["pentanomial"].count(1) == 1
    else:
        assert running.ended() == errors.DatabaseUnreachable.exit_code
        assert "1 batch could not be reported" in running.log
        over.unlink()
        running = start("--idle-timeout", "1", "--then", f"touch {over}")
        assert running.ended() == errors.DatabaseUnreachable.exit_code
        assert over.exists(), "also if it was never there"


def test_no_command_follows_an_interrupt_or_a_failed_start(start, server, tmp_path):
    over = tmp_path / "over"
    running = start("--then", f"touch {over}")
    running.until(lambda: server.asked("/worker/claim"))
    running.send_signal(signal.SIGTERM)
    assert running.ended() == 0
    server.staged.store.revoke_machine(MACHINE, "me")
    assert start("--then", f"touch {over}").ended() == 2
    assert start("--then", f"touch {over}", "--lease", "no").ended() == 2
    assert not over.exists()


def test_a_worker_without_work_says_why_in_one_line_each(start, server):
    store, run = server.staged.store, server.staged.run
    store.pause("first", "me", "why")
    running = start("--label", "fast", "--not", "second")
    running.until(lambda: "no run needs games" in running.log)
    store.resume("first", "me")
    server.staged.open(requires=("big-memory",))
    running.until(lambda: "requires big-memory, and this worker has only" in running.log)
    store.pause("first", "me", "why")
    other = store.create_run(new_run(name="second"))
    assert other.id != run.id
    running.until(lambda: "this worker leaves out the run second" in running.log)
    store.set_aside(MACHINE, "4 of its last batches failed", "me")
    running.until(lambda: "set aside and gets no batches: 4 of its last" in running.log)
    assert f"`spsa-master workers release {MACHINE}` ends that" in running.log
    asked = len(server.asked("/worker/touch"))
    running.until(lambda: len(server.asked("/worker/touch")) > asked + 1)
    for reason in ("no run needs games", "big-memory", "leaves out", "set aside"):
        assert running.log.count(reason) == 1, running.log
    assert all(line[len("hh:mm:ss ") :] for line in running.log.splitlines())
    assert len(server.asked("/worker/version")) == 1


@pytest.mark.slow
def test_leases_are_renewed_while_a_file_is_fetched(start, server, play):
    play(1, stored=True, size=2**22)
    server.pause = 0.1  # after each 2^16 bytes
    assert start("--max-batches", "1").ended() == 0
    file = next(i for i, r in enumerate(server.requests) if r.path.startswith("/worker/files/"))
    end = next(i for i, r in enumerate(server.requests) if r.path == "/worker/report")
    during = [r.json["claim_ids"] for r in server.requests[file:end] if r.path == "/worker/renew"]
    assert len(during) >= 2
    assert all(len(claim_ids) == 1 for claim_ids in during)
    assert len(server.reports()) == 1


def test_an_interrupt_ends_a_long_download_and_hands_the_batch_back(start, server, play):
    play(1, stored=True, size=2**23)
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
def test_where_a_worker_plays_and_until_when(given, variables, url, token):
    found = server_of(Settings(**given), variables)
    assert found == (None if url is None else (url, token))
    assert "SPSA_TOKEN" not in variables
    for then, idle, limit in (("", None, inf), ("poweroff", None, 600), ("poweroff", 5.0, 5)):
        assert Settings(**given, then=then or None, idle_timeout=idle).idle_limit == limit


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
    with pytest.raises(errors.InvalidInput):
        server_of(given, {})


@pytest.fixture
def store(server):
    with closing(RemoteStore(server.url, server.token)) as opened:
        yield opened


@pytest.fixture
def held(server, store, play):
    """The claim of a batch whose engines are in the database alone; plus has a megabyte."""
    play(1, stored=True, size=1_024_000)
    worker = store.register_worker(new_worker("far-1", provides=("linux",)))
    claim = store.claim("mine", worker, 60.0)
    server.requests.clear()
    return worker, claim


def test_a_worker_registers_with_its_token_and_asks_the_version_without_it(store, server):
    """The answer may have more fields."""
    assert store.register_worker(new_worker("far-1", provides=("linux",))).machine == MACHINE
    (request,) = server.requests
    assert request.json["provides"] == ["linux"]
    assert request.headers["authorization"] == f"Bearer {server.token}"
    assert request.headers["x-spsa-protocol"] == "1"
    assert request.headers["user-agent"].startswith("spsa-worker/")
    server.offer(b"not packed", version="9.9")
    found = server.version["sha256"]
    server.version |= {"more": ["of", "later"]}
    assert store.server_version() == ServerVersion(version="9.9", protocol=1, sha256=found)
    assert store.worker_file() == b"not packed"
    for request in server.requests[1:]:
        assert server.token not in str(request.headers)
        assert "x-spsa-protocol" not in request.headers


AWAY = errors.DatabaseUnreachable


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (refusal(401, "unknown"), errors.NotPermitted),
        (REVOKED, errors.NotPermitted),
        (refusal(409, "gone", "lease_lost"), errors.LeaseLost),
        (refusal(409, "other counts", "conflict"), errors.ReportConflict),
        (refusal(409, "of later", "a kind of later"), errors.TuningError),
        (refusal(422, "tally.wins is -1"), errors.OutOfRange),
        (refusal(426, "old", "outdated"), errors.SchemaMismatch),
        (refusal(429, Retry_After="7"), errors.TooManyRequests),
        (refusal(500), AWAY),
        (refusal(503, Retry_After="7"), AWAY),
        (Response("<html>a portal</html>"), AWAY),
        (Response("[" * 100_000), AWAY),
        (Response('{"reply": "of later"}'), AWAY),
        (Response("no gzip", headers={"Content-Encoding": "gzip"}), AWAY),
        (Response('{"reply": "accepted"}', headers={"Content-Length": "999"}), AWAY),
    ],
)
def test_a_response_is_the_error_that_the_database_raises(server, held, store, response, error):
    server.replaced["/worker/report"] = lambda _: response
    with pytest.raises(errors.TuningError) as raised:
        store.report(held[1], result_of(held[1]))
    assert type(raised.value) is error
    assert str(raised.value).startswith(server.url)
    assert server.token not in str(raised.value)
    if isinstance(raised.value, AWAY):
        assert raised.value.retry_after == (7.0 if "Retry-After" in response.headers else None)


def test_a_redirect_is_not_followed(store, server):
    there = {"Location": f"{server.url}/elsewhere"}
    server.replaced["/worker/work"] = lambda _: Response(status_code=307, headers=there)
    with pytest.raises(AWAY):
        store.work_left()
    assert [request.path for request in server.requests] == ["/worker/work"]


def test_a_file_is_fetched_in_parts_and_a_lease_renewed_between_them(held, store):
    worker, claim = held
    renewed: list[set[str]] = []
    store.meanwhile = lambda: renewed.append(store.renew(worker, ["mine"], 60.0))
    assert sha256(store.file(claim.plus.sha256)).hexdigest() == claim.plus.sha256
    assert renewed.count({"mine"}) == 4


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (refusal(404), None),
        (refusal(403, "of another machine", "not_permitted"), None),
        (REVOKED, errors.NotPermitted),
        (refusal(503), AWAY),
    ],
)
def test_a_file_that_this_machine_may_not_have_is_none(store, server, response, error):
    server.replaced[f"/worker/files/{'f' * 64}"] = lambda _: response
    with nullcontext() if error is None else pytest.raises(error):
        assert store.file("f" * 64) is None


def test_certificates_are_verified_and_SSL_CERT_FILE_is_obeyed(  # noqa: N802
    tmp_path, monkeypatch, staged
):
    """Of a server that no authority has signed a certificate for, but itself."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl here")
    certify(tmp_path, "own", "IP:127.0.0.1")
    files = {"ssl_certfile": tmp_path / "own.crt", "ssl_keyfile": tmp_path / "own.key"}
    refused = pytest.raises(AWAY, match="certificate")
    with worker_server(staged, **files) as server:
        with closing(RemoteStore(server.url, server.token)) as store, refused:
            store.work_left()
        assert server.requests == []
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "own.crt"))
        with closing(RemoteStore(server.url, server.token)) as store:
            assert len(store.work_left()) == 1
        other = server.url.replace("127.0.0.1", "localhost")
        with closing(RemoteStore(other, server.token)) as store, refused:
            store.work_left()
