"""A remote worker's requests: what is sent, what a response means, and what is never sent."""

import shutil
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import closing, nullcontext
from pathlib import Path

import pytest
from asking import RemoteStore
from builders import new_worker
from worker_server import TOKEN, WorkerServer, claim_of, refusal, worker_server

from spsa.core.scoring import Tally
from spsa.errors import (
    DatabaseUnreachable,
    LeaseLost,
    NotPermitted,
    OutOfRange,
    ReportConflict,
    SchemaMismatch,
    TooManyRequests,
    TuningError,
)
from spsa.protocol import BatchResult, Claim, RegisteredWorker
from worker.remote import ServerVersion

WORKER = RegisteredWorker(id=1, machine="machine")
RESULT = BatchResult(tally=Tally(2, 0, 0, (0, 0, 0, 0, 1)), slot=0)


@pytest.fixture
def store(server: WorkerServer) -> Iterator[RemoteStore]:
    with closing(RemoteStore(server.url, TOKEN)) as opened:
        yield opened


@pytest.fixture
def claim(tmp_path: Path) -> Claim:
    engine = tmp_path / "engine"
    engine.write_bytes(b"engine")
    return claim_of(engine, engine)


def test_the_version_is_asked_without_a_token_and_read_with_more_fields(store, server):
    server.version |= {"more": ["of", "later"], "version": "9.9"}
    assert store.server_version() == ServerVersion(
        version="9.9", protocol=1, sha256=server.version["sha256"]
    )
    assert store.worker_file() == b"not packed"
    for request in server.requests:
        assert TOKEN not in str(request.headers)
        assert "X-Spsa-Protocol" not in request.headers


def test_a_worker_registers_with_its_token(store, server):
    assert store.register_worker(new_worker(provides=("linux",))) == WORKER
    (request,) = server.requests
    assert request.json["provides"] == ["linux"]
    assert request.headers["Authorization"] == f"Bearer {TOKEN}"
    assert request.headers["X-Spsa-Protocol"] == "1"
    assert request.headers["User-Agent"].startswith("spsa-worker/")


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


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate that no authority signed, for 127.0.0.1, with its key in the same file."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl here")
    path = tmp_path / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=here", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(path), "-out", str(tmp_path / "alone.pem")),
        ],
        check=True,
        capture_output=True,
    )
    path.write_text(path.read_text() + (tmp_path / "alone.pem").read_text())
    return tmp_path / "alone.pem"


def test_certificates_are_verified_and_SSL_CERT_FILE_is_obeyed(certificate, monkeypatch):  # noqa: N802
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.with_name("certificate.pem"))
    with worker_server(context) as server:
        with (
            closing(RemoteStore(server.url, TOKEN)) as store,
            pytest.raises(DatabaseUnreachable, match="certificate"),
        ):
            store.work_left()
        assert server.requests == []
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        with closing(RemoteStore(server.url, TOKEN)) as store:
            assert store.work_left() == []
        with (
            closing(RemoteStore(server.url.replace("127.0.0.1", "localhost"), TOKEN)) as store,
            pytest.raises(DatabaseUnreachable, match="certificate"),
        ):
            store.work_left()
