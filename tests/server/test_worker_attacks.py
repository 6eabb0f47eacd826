"""What a machine that was invited, or was not, can do to the others over HTTP: nothing."""

import hashlib
import json
import logging
import select
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from io import BytesIO
from itertools import count, product
from types import SimpleNamespace
from unittest.mock import Mock
from urllib.parse import urlsplit
from zipfile import ZipFile

import pytest
import urllib3
from asking import RemoteStore
from builders import LEASE, build_result, built, new_worker, result_of, stage
from served import serving
from shell import Shell, broken

from spsa.core.json_values import to_json
from spsa.lifecycle import MachineRole, RunStatus
from spsa.protocol import ENGINE_BYTES, MAX_WORKERS, REQUESTS, BatchReport, HeldClaim, Measured
from spsa.server.people import MAX_WRONG
from spsa.server.worker_files import SentFiles, packed

GAMES = 32


class Answer(SimpleNamespace):
    @property
    def refusal(self):
        return self.status, self.json["kind"]


class Sender:
    """Sends what it is told to, and keeps the status of every response."""

    def __init__(self, url, token=None):
        self.url, self.token, self.statuses = url, token, []
        self._pool = urllib3.PoolManager(maxsize=16, retries=False, timeout=30)

    def send(self, method, path, body=None, **headers):
        """Send bytes as they are, anything else as JSON."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token is not None:
            named.setdefault("Authorization", f"Bearer {self.token}")
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        got = self._pool.request(method, self.url + path, body=data, headers=named)
        self.statuses.append(got.status)
        is_json = got.headers.get("Content-Type", "").startswith("application/json")
        found = json.loads(got.data) if is_json else None
        return Answer(status=got.status, json=found, headers=got.headers, content=got.data)

    def post(self, path, body, **headers):
        return self.send("POST", path, body, **headers)

    def get(self, path, **headers):
        return self.send("GET", path, **headers)

    def close(self):
        self._pool.clear()


class Machine(Sender):
    """A machine that was invited, with one worker."""

    def __init__(self, store, url, name, role):
        super().__init__(url, store.invite_machine(name, role, "owner"))
        self.name = name
        self.api = RemoteStore(url, self.token)
        words = {"provides": ("linux", "x86-64", "builds")}
        self.worker = self.api.register_worker(new_worker(f"{name}-1", **words))
        self.id, self._numbers = self.worker.id, count(1)

    def claim(self):
        return self.api.claim(f"{self.name}-{next(self._numbers)}", self.worker, LEASE)

    def claim_build(self, claim_id="build-1"):
        return self.api.claim_build(claim_id, self.worker, LEASE)

    def report(self, claim, **over):
        """Report the right result of a claim, with other values where `over` names them."""
        return self.post("/worker/report", report_of(claim, **over))

    def close(self):
        super().close()
        self.api.close()


def held(claim, **over):
    return {**to_json(HeldClaim.of(claim)), **over}


def report_of(claim, **over):
    report = to_json(BatchReport(held=HeldClaim.of(claim), result=result_of(claim)))
    return {**report, "result": {**report["result"], **over}}


class Scene:
    """A run with an open iteration of batches of four games; `good` and `bad` are machines."""

    def __init__(self, staged, url, sql):
        self.stage, self.store, self.url, self.sql = staged, staged.store, url, sql
        number = staged.open(target_games=GAMES)
        self.good = Machine(self.store, url, f"good{number}", MachineRole.BUILDER)
        self.bad = Machine(self.store, url, f"bad{number}", MachineRole.WORKER)

    def counts(self):
        """Everything that counts."""
        return self.sql(
            "SELECT id, games_played, plus_wins, minus_wins, draws, ptnml_0, ptnml_1, ptnml_2,"
            " ptnml_3, ptnml_4, void_games FROM spsa_iteration ORDER BY id DESC"
        )

    @contextmanager
    def unchanged(self, claim=None):
        """Nothing counts more or less after this, and the batch of a claim is as it was."""
        batch = "SELECT status, claim_id, worker_id, attempt FROM spsa_batch WHERE id = :id"

        def now():
            return self.counts(), claim and self.sql(batch, id=claim.batch_id)

        before = now()
        yield
        assert now() == before

    def go_on(self):
        """Nothing is wrong, and the honest machine and the master finish the iteration."""
        assert broken(self.sql) == []
        for machine in (self.good, self.bad):
            self.store.withdraw_batches(machine.name, "owner")
        assert self.stage.view().run.status is RunStatus.RUNNING
        while (claim := self.good.claim()) is not None:
            assert self.good.report(claim).json == {"reply": "accepted"}
        self.stage.apply()
        assert broken(self.sql) == []


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
    """A scene; what the attack left is looked at, no response was a failure, the run goes on."""
    found = Scene(*server, shell)
    yield found
    found.go_on()
    for machine in (found.good, found.bad):
        machine.close()
        assert [status for status in machine.statuses if status >= 500] == []


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
    claim = run.good.claim()
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
    claim, senders = run.good.claim(), 8
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

    claim = run.bad.claim()
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
        claim = run.bad.claim()
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
    claim = run.bad.claim()
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
    claim, file = run.good.claim(), tmp_path / "engine"
    row = {"path": str(file), "run": claim.run_id}
    run.sql("UPDATE spsa_iteration SET plus_engine_path = :path WHERE run_id = :run", **row)
    run.store.keep_files({HASH: b"the source of another"})
    path = f"/worker/files/{claim.plus.sha256}"
    assert run.good.get(path).refusal == (404, "unknown_file")
    file.write_bytes(b"another binary")
    assert run.good.get(path).refusal == (404, "unknown_file")
    file.write_bytes(b"plus")
    assert run.bad.get(path).refusal == (403, "not_permitted")
    for _ in range(2):
        answer = run.good.get(path)
        kind = answer.headers["Content-Type"]
        assert (answer.status, answer.content, kind) == (200, b"plus", "application/octet-stream")
    assert run.good.get(f"/worker/files/{claim.minus.sha256}").refusal == (404, "unknown_file")
    assert run.good.get(f"/worker/files/{HASH}").refusal == (403, "not_permitted")
    assert run.bad.get(path).refusal == (403, "not_permitted"), "also where it was sent before"
    assert Sender(run.url).get(path).status == 401
    run.good.report(claim)
    assert run.good.get(path).refusal == (403, "not_permitted"), "no longer held"
    for name in ("..%2f..%2fetc%2fpasswd", "../../etc/passwd", "A" * 64, "a" * 65, "%00" * 64):
        with connected(run.url) as connection:
            connection.sendall(head(run.bad, f"/worker/files/{name}", method="GET"))
            assert status_of(connection) in (404, 422), "it is no hash"


def test_the_files_that_were_sent_last_are_kept(monkeypatch):
    monkeypatch.setattr("spsa.server.worker_files.KEPT_BYTES", 25)
    read = Mock(side_effect=lambda name: bytes(30 if name == "L" else 10))
    files = SentFiles(read)
    for name in "abacbcLLc":
        assert files.find(name, "").exists()
        time.sleep(0.02)  # the clock of a file system is a coarse one
    assert "".join(call.args[0] for call in read.mock_calls) == "abcbLc"
    with ZipFile(BytesIO(packed())) as pyz:
        assert {one.external_attr >> 16 for one in pyz.infolist()} == {0o644}, "once it is unpacked"


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


ARCHIVE = b"the archive of a source"
PLUS, MINUS = b"plus" * 100_000, b"minus" * 100_000


class Orders:
    """One order, a server, two machines that may build and one that may not."""

    def __init__(self, store, url, sql):
        self.store, self.url, self.sql = store, url, sql
        self.archive = hashlib.sha256(ARCHIVE).hexdigest()
        store.keep_files({self.archive: ARCHIVE})
        recipe, words = {"binary": "tern"}, ("builds", "linux")
        store.order_build("k" * 64, words, self.archive, recipe, max_attempts=2)
        self.one = Machine(store, url, "one", MachineRole.BUILDER)
        self.two = Machine(store, url, "two", MachineRole.BUILDER)
        self.player = Machine(store, url, "player", MachineRole.WORKER)

    @property
    def uploads(self):
        """The engines that were sent and are not published: side and size."""
        sent = "SELECT '{0}', length({0}_bytes) FROM spsa_build WHERE {0}_bytes IS NOT NULL"
        return [row for side in ("plus", "minus") for row in self.sql(sent.format(side))]

    @property
    def engines(self):
        (state,) = self.store.ordered_builds(["k" * 64])
        return state.engines


@pytest.fixture
def orders(store, sql):
    with serving(store) as url:
        found = Orders(store, url, sql)
        machines = (found.one, found.two, found.player)
        yield found
        assert [s for machine in machines for s in machine.statuses if s >= 500] == []
        for machine in machines:
            machine.close()


def built_result(build, plus=PLUS, minus=MINUS, **over):
    return build_result(build, plus=built(plus, 1234), minus=built(minus, 1234), **over)


def path_of(build, side="plus"):
    return f"/worker/builds/{build.build_id}/{build.claim_id}/{side}"


def test_a_remote_worker_builds_for_others(orders):
    one = orders.one
    build = one.claim_build()
    assert (build.recipe, build.archive_sha256) == ({"binary": "tern"}, orders.archive)
    assert one.api.file(orders.archive) == ARCHIVE
    assert one.api.renew_build(build, LEASE)
    assert one.api.publish_build(built_result(build), PLUS, MINUS) == "accepted"
    assert one.api.publish_build(built_result(build), PLUS, MINUS) == "already"
    assert not one.api.renew_build(build, LEASE)
    assert [orders.store.file(engine.sha256) for engine in orders.engines] == [PLUS, MINUS]
    assert [engine.bench for engine in orders.engines] == [1234, 1234]
    assert orders.uploads == [], "they are engines now"


def test_what_is_sent_again_takes_the_place_of_the_first(orders):
    build = orders.one.claim_build()
    for i in range(4):
        answer = orders.one.send("PUT", path_of(build), b"x" * (i + 1))
        digest = hashlib.sha256(b"x" * (i + 1)).hexdigest()
        assert answer.json == {"sha256": digest, "size": i + 1}
    assert orders.uploads == [("plus", 4)]
    orders.one.api.fail_build(build, None)
    assert orders.uploads == [], "they would never be published"
    again = orders.two.claim_build("build-2")
    assert orders.one.send("PUT", path_of(build), PLUS).refusal == (409, "lease_lost")
    assert orders.one.send("PUT", path_of(again), PLUS).refusal == (409, "lease_lost")
    assert orders.two.api.publish_build(built_result(again), PLUS, MINUS) == "accepted"


def test_nobody_but_the_holder_sends_or_publishes(orders):
    build = orders.one.claim_build()
    for machine in (orders.two, orders.player):
        other = to_json(built_result(build, worker_id=machine.id))
        refused = machine.send("PUT", path_of(build), PLUS)
        assert refused.status == (409 if machine is orders.two else 403)
        assert machine.post("/worker/builds/publish", other).json == {"reply": "lost"}
        held = {"worker_id": machine.id, "build_id": build.build_id, "claim_id": build.claim_id}
        assert machine.post("/worker/builds/fail", held).json == {"reply": None}
        assert machine.post("/worker/builds/renew", {**held, "lease_seconds": 60}).json == {
            "reply": False
        }
    asked = {"worker_id": orders.player.id, "claim_id": "x", "lease_seconds": 60}
    assert orders.player.post("/worker/builds/claim", asked).refusal == (403, "not_permitted")
    assert orders.player.get(f"/worker/files/{orders.archive}").status == 403
    assert orders.uploads == [] and orders.engines is None
    orders.store.revoke_machine("one", "owner")
    assert orders.one.send("PUT", path_of(build), PLUS).refusal == (403, "revoked")


def test_a_published_engine_is_the_one_that_was_sent(orders):
    build = orders.one.claim_build()
    publish = "/worker/builds/publish"
    right = to_json(built_result(build))
    missing = orders.one.post(publish, right)
    assert missing.refusal == (422, "out_of_range") and missing.json["field"] == "BuildResult.plus"
    orders.one.send("PUT", path_of(build), PLUS)
    assert orders.one.post(publish, right).json["field"] == "BuildResult.minus"
    orders.one.send("PUT", path_of(build, "minus"), MINUS)
    other = to_json(built_result(build, plus=MINUS, minus=PLUS))
    assert orders.one.post(publish, other).refusal == (422, "out_of_range")
    assert orders.sql("SELECT count(*) FROM spsa_engine") == [(0,)]
    assert orders.one.post(publish, right).json == {"reply": "accepted"}


def test_an_engine_has_a_byte_at_least_and_256_megabytes_at_most(orders):
    build = orders.one.claim_build()
    assert orders.one.send("PUT", path_of(build), b"").refusal == (422, "out_of_range")
    with connected(orders.url) as connection:
        length = f"Content-Length: {ENGINE_BYTES + 1}"
        connection.sendall(head(orders.one, path_of(build), length, method="PUT"))
        assert status_of(connection) == 413
    for path in (path_of(build, "other"), "/worker/builds/1/x/y/plus", "/worker/builds/../x/plus"):
        assert orders.one.send("PUT", path, PLUS).status == 404, path
    for place in (f"{2**64}/{build.claim_id}", f"x/{build.claim_id}", "-1/x", f"1/{'x' * 65}"):
        refused = orders.one.send("PUT", f"/worker/builds/{place}/plus", PLUS)
        assert refused.refusal == (422, "out_of_range"), place
    assert orders.uploads == []


def test_two_engines_of_a_machine_are_on_their_way_at_a_time(orders):
    build = orders.one.claim_build()
    start = head(orders.one, path_of(build), "Content-Length: 100", method="PUT")
    slow = [connected(orders.url) for _ in range(3)]
    for connection in slow:
        connection.sendall(start + b"x")
    (refused,), _, _ = select.select(slow, [], [], 20)  # the first two that were looked up are kept
    assert status_of(refused) == 429
    again = orders.one.send("PUT", path_of(build), PLUS)
    assert (again.refusal, again.headers["Retry-After"]) == ((429, "too_many"), "5")
    for connection in slow:
        connection.close()
    for _ in range(100):
        if orders.one.send("PUT", path_of(build), PLUS).status == 200:
            break
    assert orders.uploads == [("plus", len(PLUS))]
