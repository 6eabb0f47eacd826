"""A tuning run with a server, two machines that were invited, and raw requests of either."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import urllib3
from asking import RemoteStore, Store
from builders import LEASE, Stage, new_worker, result_of
from invariants import broken

from spsa.core.json_values import to_json
from spsa.lifecycle import MachineRole, RunStatus
from spsa.protocol import BatchReport, Claim, HeldClaim

GAMES = 32
Sql = Callable[..., Any]


@dataclass(frozen=True)
class Answer:
    status: int
    json: Any
    headers: Mapping[str, str]
    content: bytes

    @property
    def refusal(self) -> tuple[int, str]:
        return self.status, self.json["kind"]


@dataclass
class Sender:
    """Sends what it is told to, and keeps the status of every response."""

    url: str
    token: str | None = None
    statuses: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._pool = urllib3.PoolManager(maxsize=16, retries=False, timeout=30)

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Send bytes as they are, anything else as JSON."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token is not None:
            named.setdefault("Authorization", f"Bearer {self.token}")
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        got = self._pool.request(method, self.url + path, body=data, headers=named)
        self.statuses.append(got.status)
        is_json = got.headers.get("Content-Type", "").startswith("application/json")
        found = json.loads(got.data) if is_json else None
        return Answer(got.status, found, got.headers, got.data)

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        return self.send("POST", path, body, **headers)

    def get(self, path: str, **headers: str) -> Answer:
        return self.send("GET", path, **headers)

    def close(self) -> None:
        self._pool.clear()


class Machine(Sender):
    """A machine that was invited, with one worker."""

    def __init__(self, store: Store, url: str, name: str, role: MachineRole) -> None:
        super().__init__(url, store.invite_machine(name, role, "owner"))
        self.name = name
        self.api = RemoteStore(url, str(self.token))
        words = {"provides": ("linux", "x86-64", "builds")}
        self.worker = self.api.register_worker(new_worker(f"{name}-1", **words))
        self._claims = 0

    @property
    def id(self) -> int:
        return self.worker.id

    def claim(self) -> Claim | None:
        self._claims += 1
        return self.api.claim(f"{self.name}-{self._claims}", self.worker, LEASE)

    def claimed(self) -> Claim:
        claim = self.claim()
        assert claim is not None
        return claim

    def report(self, claim: Claim, **over: Any) -> Answer:
        """Report the right result of a claim, with other values where `over` names them."""
        return self.post("/worker/report", report_of(claim, **over))

    def close(self) -> None:
        super().close()
        self.api.close()


def held(claim: Claim, **over: Any) -> dict[str, Any]:
    return {**to_json(HeldClaim.of(claim)), **over}


def report_of(claim: Claim, **over: Any) -> dict[str, Any]:
    report = to_json(BatchReport(held=HeldClaim.of(claim), result=result_of(claim)))
    report["result"] |= over
    found: dict[str, Any] = report
    return found


@dataclass
class Scene:
    """A run with an open iteration of batches of four games; `good` and `bad` are machines."""

    stage: Stage
    url: str
    good: Machine
    bad: Machine
    sql: Sql

    @property
    def store(self) -> Store:
        return self.stage.store

    def counts(self) -> Any:
        """Everything that counts."""
        return self.sql(
            "SELECT id, games_played, plus_wins, minus_wins, draws, ptnml_0, ptnml_1, ptnml_2,"
            " ptnml_3, ptnml_4, void_games FROM spsa_iteration ORDER BY id DESC"
        )

    def batch(self, claim: Claim) -> Any:
        (row,) = self.sql(
            "SELECT status, claim_id, worker_id, attempt FROM spsa_batch WHERE id = :id",
            id=claim.batch_id,
        )
        return tuple(row)

    @contextmanager
    def unchanged(self, claim: Claim | None = None) -> Iterator[None]:
        """Nothing counts more or less after this, and the batch of a claim is as it was."""
        before = self.counts(), claim and self.batch(claim)
        yield
        assert (self.counts(), claim and self.batch(claim)) == before

    def go_on(self) -> None:
        """Nothing is wrong, and the honest machine and the master finish the iteration."""
        assert broken(self.sql) == []
        for machine in (self.good, self.bad):
            self.store.withdraw_batches(machine.name, "owner")
        view = self.stage.view()
        assert view.run.status is RunStatus.RUNNING
        while (claim := self.good.claim()) is not None:
            assert self.good.report(claim).json == {"reply": "accepted"}
        self.stage.apply()
        assert broken(self.sql) == []


_numbers = count(1)


@contextmanager
def scene(staged: Stage, url: str, sql: Sql) -> Iterator[Scene]:
    """What there is before an attack. Afterwards, no response was the server's own failure."""
    number = next(_numbers)
    staged.open(target_games=GAMES)
    good = Machine(staged.store, url, f"good{number}", MachineRole.BUILDER)
    bad = Machine(staged.store, url, f"bad{number}", MachineRole.WORKER)
    try:
        yield Scene(staged, url, good, bad, sql)
    finally:
        good.close()
        bad.close()
    assert [status for status in good.statuses + bad.statuses if status >= 500] == []
