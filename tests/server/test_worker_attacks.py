"""What a machine that was invited, or was not, can do to the others over HTTP: nothing."""

import json
import logging
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import product
from urllib.parse import urlsplit

import pytest
from attacks import Sender, held, report_of, scene
from builders import new_worker, result_of, stage
from invariants import broken
from served import serving
from shell import Shell

from spsa.core.json_values import to_json
from spsa.lifecycle import RunStatus
from spsa.protocol import MAX_WORKERS, REQUESTS, Measured
from spsa.server.people import MAX_WRONG

HASH = "a" * 64
OLD = "2020-01-01 00:00:00.000"
PATHS = [
    *(("POST", f"/worker/{kind.path}") for kind in REQUESTS),
    ("GET", f"/worker/files/{HASH}"),
    ("PUT", "/worker/builds/1/claim/plus"),
]


@pytest.fixture(scope="module")
def server(shared_store):
    """A run with enough iterations for all attacks, and the address of its server."""
    staged = stage(shared_store, max_iterations=1_000)
    with serving(shared_store) as url:
        yield staged, url


@pytest.fixture(scope="module")
def shell(shared_database_url):
    found = Shell(shared_database_url)
    yield found
    found.close()


@pytest.fixture
def run(server, shell):
    """A scene; what the attack left is looked at, and the run goes on."""
    with scene(*server, shell) as found:
        yield found
        found.go_on()


def test_no_request_is_carried_out_without_the_token_of_an_invited_machine(run, monkeypatch):
    monkeypatch.setattr("spsa.server.people.MAX_WRONG", 10_000)
    run.store.register_worker(new_worker("direct", host="direct", secret="s" * 40))
    bearers = (f"{run.bad.token}x", "", "x" * 5_000, chr(233), "s" * 40)
    wrong = [f"Bearer {one}" for one in bearers] + ["Basic YTpi", f"Token {run.bad.token}", "x"]
    with run.unchanged():
        with serving(run.store) as url:
            tokenless = Sender(url)
            for method, path in PATHS:
                assert tokenless.send(method, path, b"{}").refusal == (401, "no_token")
                for text in wrong:
                    assert tokenless.send(method, path, b"{}", Authorization=text).status == 401, (
                        text
                    )
        run.store.revoke_machine(run.bad.name, "owner")
        for method, path in PATHS:
            assert run.bad.send(method, path, b"{}").refusal == (403, "revoked"), path


def test_who_guesses_has_to_wait_and_machines_at_the_same_address_do_not(run):
    with serving(run.store) as url:
        known, guessing = Sender(url, run.good.token), Sender(url, "spsa_guess")
        assert known.post("/worker/work", {}).status == 200
        for _ in range(MAX_WRONG):
            assert guessing.post("/worker/work", {}).refusal == (401, "unknown_token")
        refused = guessing.post("/worker/work", {})
        assert refused.refusal == (429, "guessing")
        assert 0 < int(refused.headers["Retry-After"]) <= 60
        assert known.post("/worker/work", {}).status == 200
        guessing.token = run.bad.token
        assert guessing.post("/worker/work", {}).status == 429, "or a right guess would show"


def test_no_token_is_logged(run, caplog, capfd):
    secret = "spsa_very-secret-" + "x" * 30
    with caplog.at_level(logging.DEBUG), serving(run.store) as url:
        guessing, bad = Sender(url, secret), Sender(url, run.bad.token)
        for method, path in PATHS:
            guessing.send(method, path, b"{")
            bad.send(method, path, b"{")
        run.sql("ALTER TABLE spsa_machine RENAME TO gone")
        assert bad.post("/worker/work", {}).refusal == (503, "unreachable")
        run.sql("ALTER TABLE gone RENAME TO spsa_machine")
    said = caplog.text + "".join(capfd.readouterr())
    assert "spsa_machine" in said, "the failure is logged"
    assert secret not in said and str(run.bad.token) not in said


def bodies(claim, worker_id):
    """A body that names a worker for each request that does."""
    named, mine = {"worker_id": worker_id}, held(claim, worker_id=worker_id)
    lease = {**named, "claim_id": "other", "lease_seconds": 60}
    build = {**named, "build_id": 1, "claim_id": "other"}
    built = {"sha256": HASH, "size": 5}
    sides = {"plus": built, "minus": built}
    return {
        "/worker/touch": named,
        "/worker/claim": lease,
        "/worker/renew": {**named, "claim_ids": [claim.claim_id], "lease_seconds": 3600},
        "/worker/report": {"held": mine, "result": to_json(result_of(claim))},
        "/worker/release": mine,
        "/worker/fail": {"held": mine, "failure": {"reason": "no"}},
        "/worker/builds/claim": lease,
        "/worker/builds/renew": {**build, "lease_seconds": 60},
        "/worker/builds/fail": build,
        "/worker/builds/publish": {**build, "target": "t", "requires": [], **sides},
    }


def test_a_machine_can_neither_speak_for_another_nor_use_its_claim(run):
    claim = run.good.claimed()
    mine, theirs = bodies(claim, run.good.id), bodies(claim, run.bad.id)
    asked = {f"/worker/{kind.path}" for kind in REQUESTS}
    assert mine.keys() == asked - {"/worker/register", "/worker/work"}
    again = {**theirs["/worker/claim"], "claim_id": claim.claim_id}
    with run.unchanged(claim):
        for path, body in mine.items():
            assert run.bad.post(path, body).refusal == (403, "not_permitted"), path
        for path, body in bodies(claim, 2**62).items():
            assert run.bad.post(path, body).refusal == (409, "not_registered"), path
        for name in (run.good.name, f"{run.good.name}-1"):
            taken = to_json(new_worker(name))
            assert run.bad.post("/worker/register", taken).refusal == (409, "name_taken")
        for path, body in (("report", theirs["/worker/report"]), ("claim", again)):
            assert run.bad.post(f"/worker/{path}", body).refusal == (409, "lease_lost")
        assert run.bad.post("/worker/renew", theirs["/worker/renew"]).json == {"reply": []}
        for path in ("/worker/release", "/worker/fail"):
            assert run.bad.post(path, theirs[path]).json == {"reply": None}
    assert run.good.report(claim).json == {"reply": "accepted"}
    with run.unchanged(claim):
        late = run.bad.post("/worker/report", theirs["/worker/report"])
        assert late.refusal == (409, "lease_lost")


def test_a_report_counts_once_however_often_and_at_once_it_comes(run):
    claim, senders = run.good.claimed(), 8
    with ThreadPoolExecutor(senders) as threads:
        answers = list(threads.map(lambda _: run.good.report(claim), range(3 * senders)))
    outcomes = sorted(answer.json["reply"] for answer in answers)
    assert outcomes == ["accepted"] + ["already"] * (3 * senders - 1)
    assert run.counts()[0].games_played == 4
    refused = run.good.report(claim, tally=tally(draws=4, ptnml=[0, 0, 2, 0, 0]))
    assert refused.refusal in ((409, "conflict"), (422, "out_of_range"))
    assert run.counts()[0].games_played == 4


def tally(wins=0, losses=0, draws=0, ptnml=(0, 0, 0, 0, 0)):
    return {"wins": wins, "losses": losses, "draws": draws, "pentanomial": list(ptnml)}


def test_text_of_a_void_game_is_kept_as_it_is_or_refused(run):
    def kept(text):
        game = dict.fromkeys(("detail", "position", "output"), text)
        return {"kept_voids": [{"pair": 0, "culprit": "plus", "white": "minus", **game}]}

    claim = run.bad.claimed()
    with run.unchanged(claim):
        for text in ("\ud800", "x" * 40_000):
            body = {"held": held(claim), "failure": {"reason": "no", **kept(text)}}
            assert run.bad.report(claim, **kept(text)).status == 422
            assert run.bad.post("/worker/fail", body).status == 422
    everything = "".join(map(chr, range(256))) + "\u2028\U0001f600'\";--{}%s:x"
    assert run.bad.report(claim, **kept(everything)).status == 200
    (line,) = [line for line in run.store.batches(run.stage.run.id) if line.void_log]
    assert line.void_log[0].output == everything


JUNK = (
    *(b"", b"{", b"null", b"[]", b"{}{}", b"\xff\xfe", b'{"worker_id": 1e999}', b"[" * 100_000),
    b'{"worker_id": ' + b"9" * 5_000 + b"}",
    b'{"worker_id": ' + b"[" * 950 + b"]" * 950 + b"}",
    json.dumps({"name": "x" * 900_000}).encode(),
)


def test_what_is_no_value_of_the_protocol_is_refused(run):
    with run.unchanged():
        for path, body in product((kind.path for kind in REQUESTS), JUNK):
            answer = run.bad.post(f"/worker/{path}", body)
            assert answer.refusal == (422, "out_of_range"), (path, body[:80], answer)
            assert answer.json["field"] and len(answer.content) < 2_000
        claim = run.bad.claimed()
        untrue = run.bad.report(claim, tally=tally(wins=4, ptnml=[0, 0, 0, 0, 1]))
        assert untrue.refusal == (422, "out_of_range")
        assert untrue.json["field"] == "BatchReport.result"
    assert run.bad.report(claim).json == {"reply": "accepted"}


def test_another_version_of_the_protocol_is_told_apart(run):
    for version in ("0", "2", "x", ""):
        answer = run.good.post("/worker/work", {}, X_Spsa_Protocol=version)
        assert answer.refusal == (426, "outdated"), version
    tokenless = Sender(run.url)
    for path in ("/worker/version", "/worker.pyz"):
        assert tokenless.get(path, X_Spsa_Protocol="99").status == 200
    assert set(tokenless.get("/worker/version").json) == {"version", "protocol", "sha256"}


# Bodies


def connected(url):
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), timeout=20)


def head(machine, path, *more, method="POST"):
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *more]
    return "\r\n".join([*lines, f"Authorization: Bearer {machine.token}", "", ""]).encode()


def status_of(connection):
    with connection.makefile("rb") as answer:
        return int(answer.readline().split()[1])


def test_a_body_is_at_most_a_megabyte(run):
    with connected(run.url) as connection:
        connection.sendall(head(run.bad, "/worker/touch", "Content-Length: 1000001"))
        assert status_of(connection) == 413, "before any of it is sent"
    with connected(run.url) as connection:
        connection.sendall(head(run.bad, "/worker/touch", "Transfer-Encoding: chunked"))
        part = b"x" * 100_000
        for _ in range(11):
            connection.sendall(b"%x\r\n%b\r\n" % (len(part), part))
        assert status_of(connection) == 413, "before it ends"
    assert run.bad.post("/worker/touch", b"x" * 2_000_000).refusal == (413, "too_large")


def test_half_a_body_is_no_request(run):
    claim = run.bad.claimed()
    body = json.dumps(report_of(claim)).encode()
    start = head(run.bad, "/worker/report", f"Content-Length: {len(body)}")
    with run.unchanged(claim):
        for sent in (0, 1, len(body) // 2, len(body) - 1):
            with connected(run.url) as connection:
                connection.sendall(start + body[:sent])
        time.sleep(0.2)
    assert run.bad.report(claim).json == {"reply": "accepted"}


def test_a_slow_body_is_given_up(run, monkeypatch):
    monkeypatch.setattr("spsa.server.receiving.BODY_SECONDS", 0.4)
    slow = [connected(run.url) for _ in range(20)]
    for connection in slow:
        connection.sendall(head(run.bad, "/worker/touch", "Content-Length: 1000"))
    began = time.monotonic()
    assert run.good.post("/worker/work", {}).status == 200, "slow ones hold nobody up"
    assert time.monotonic() - began < 5
    for _ in range(3):
        for connection in slow[:2]:  # a byte now and then does not prolong it
            with suppress(BrokenPipeError, ConnectionResetError):  # given up already
                connection.sendall(b" ")
        time.sleep(0.1)
    for connection in slow:
        answer = connection.recv(4096).lower()
        assert b" 408 " in answer and b"connection: close" in answer
        connection.close()


# Files


def test_a_machine_gets_the_files_of_its_own_claims_and_no_other(run, tmp_path):
    """Here of the master's machine, which the server is on, if they are the right ones."""
    claim, file = run.good.claimed(), tmp_path / "engine"
    row = {"path": str(file), "id": claim.iteration_id}
    run.sql("UPDATE spsa_iteration SET plus_engine_path = :path WHERE id = :id", **row)
    run.store.keep_files({HASH: b"the source of another"})
    path = f"/worker/files/{claim.plus.sha256}"
    assert run.good.get(path).refusal == (404, "unknown_file")
    file.write_bytes(b"another binary")
    assert run.good.get(path).refusal == (404, "unknown_file")
    file.write_bytes(b"plus")
    assert run.bad.get(path).refusal == (403, "not_permitted")
    for _ in range(2):
        answer = run.good.get(path)
        assert (answer.status, answer.content) == (200, b"plus")
    assert run.good.get(f"/worker/files/{claim.minus.sha256}").refusal == (404, "unknown_file")
    assert run.good.get(f"/worker/files/{HASH}").refusal == (403, "not_permitted")
    assert run.bad.get(path).refusal == (403, "not_permitted"), "also where it was sent before"
    assert Sender(run.url).get(path).status == 401
    run.good.report(claim)
    assert run.good.get(path).refusal == (403, "not_permitted"), "no longer held"


NO_HASHES = ("..%2f..%2f..%2fetc%2fpasswd", "../../etc/passwd", "A" * 64, "a" * 65, "%00" * 64)


def test_what_is_no_hash_names_no_file(run):
    for name in NO_HASHES:
        with connected(run.url) as connection:
            connection.sendall(head(run.bad, f"/worker/files/{name}", method="GET"))
            assert status_of(connection) in (404, 422), name


# Too much


def test_at_most_64_workers_of_a_machine_are_active(run):
    def register(i):
        worker = to_json(new_worker(f"{run.bad.name}-more-{i}", cores=64))
        return run.bad.post("/worker/register", worker)

    with ThreadPoolExecutor(8) as threads:
        answers = [answer.status for answer in threads.map(register, range(100))]
    assert set(answers) == {200, 429} and answers.count(200) == MAX_WORKERS - 1
    refused = register(100)
    assert refused.refusal == (429, "too_many") and int(refused.headers["Retry-After"]) > 0


def test_a_machine_has_the_slots_that_its_cores_justify(run):
    """Or its workers could hold all batches for as long as they renew."""

    def register(name, **facts):
        info = to_json(new_worker(f"{run.bad.name}-{name}", **facts))
        return run.bad.post("/worker/register", info).status

    assert register("1", cores=2, concurrency=16) == 200
    assert register("1", cores=2, concurrency=17) == 429
    assert register("2", cores=2, concurrency=1) == 429, "the first has them all"
    assert register("2", cores=100_000, concurrency=4_096) == 429
    assert register("1", cores=2, concurrency=8) == 200
    assert register("2", cores=2, concurrency=8) == 200


@pytest.mark.parametrize("how", ["fails them", "loses their leases"])
def test_one_machine_never_pauses_a_run_that_others_play(run, how):
    said = {"reason": "my engine is broken", "void_games": 10_000}
    for _ in range(5 * 8):
        if (claim := run.bad.claim()) is None:
            break
        if how == "fails them":
            run.bad.post("/worker/fail", {"held": held(claim), "failure": said})
        run.sql("UPDATE spsa_batch SET lease_expires_at = :old WHERE status = 'leased'", old=OLD)
        run.good.api.touch_worker(run.good.worker, Measured())
        assert run.stage.view().run.status is RunStatus.RUNNING
    assert run.bad.claim() is None, "it has failed or lost each of them"
    assert broken(run.sql) == []
