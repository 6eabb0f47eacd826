"""What crosses between a worker and the database or the server: values and their limits.

A direct worker hands its requests to `spsa.db.worker_queries`, a remote one sends them as JSON to
`spsa-master serve`, which hands them to the same queries. Both compare them with the types and
limits here before any statement is run, and raise OutOfRange. `spsa/db/protocol.sql` has the
statements.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Annotated, Any, ClassVar, Generic, Literal, Protocol, TypeVar, get_args

from spsa.core.game_settings import (
    MAX_MOVES,
    MAX_NODES_OF_BATCH,
    MAX_NPS,
    MAX_SCALE,
    GameSettings,
    HashedFile,
)
from spsa.core.json_values import HASH, Items, Range, Text
from spsa.core.scoring import Tally
from spsa.errors import IllegalTransition, LeaseLost, NameTaken, ReportConflict, TuningError
from spsa.text import FAILURE_LENGTH, NAME_LENGTH, VOID_REASON_LENGTH, VOID_REASONS

PROTOCOL = 1  # version of the values and requests; a worker with another one fetches the server's
MAX_WORKERS = 64  # of one machine that may be active at a time
MAX_SLOTS = 4_096  # of one worker, and of all active workers of an invited machine
SLOTS_PER_CORE = 8  # of an invited machine, as it declares its cores: two batches a slot are held
LEASE_SECONDS = (10.0, 3_600.0)  # the least and the most
DEFAULT_LEASE_SECONDS = 60.0
RENEWALS = 4  # of a lease in its length
LONGEST_BATCH, LONGEST_BUILD = 604_800, 86_400  # seconds from the claim to the last renewal
ACTIVE_SECONDS = 120  # a worker that was last seen longer ago does not count as active
ENGINE_BYTES = 2**28  # of an engine that a worker has built
MAX_KEPT_VOIDS = 3  # void games of one attempt at a batch that are kept with an engine's output
KEPT_VOIDS_LENGTH = 30_000  # characters of their JSON
MAX_GAMES = 1_000_000  # of one batch
MAX_VOID_GAMES = 10_000  # of one attempt at a batch

CONFLICTS: Mapping[str, type[TuningError]] = {
    "lease_lost": LeaseLost,
    "conflict": ReportConflict,
    "name_taken": NameTaken,
    "not_registered": IllegalTransition,
}
"""What a response 409 says, by its `kind`."""

Name = Annotated[str, Text(1, NAME_LENGTH)]
Word = Annotated[str, Text(0, NAME_LENGTH)]
Reason = Annotated[str, Text(1, FAILURE_LENGTH)]
ClaimId = Annotated[str, Text(1, 64)]
Lease = Annotated[float, Range(*LEASE_SECONDS)]
RowId = Annotated[int, Range(0, 2**62)]
Sha256 = Annotated[str, HASH]
Speed = Annotated[float, Range(0, MAX_NPS, measured=True)]
Scale = Annotated[float, Range(0, MAX_SCALE, measured=True)]
Nodes = Annotated[int, Range(0, MAX_NODES_OF_BATCH)]
Games = Annotated[int, Range(0, MAX_GAMES)]
Played = Annotated[float, Range(0, 10**9, measured=True)]
VoidGames = Annotated[int, Range(0, MAX_VOID_GAMES)]
Bench = Annotated[int, Range(0, 10**18)]
Cores = Annotated[int, Range(1, 100_000)]
Slots = Annotated[int, Range(1, MAX_SLOTS)]
Slot = Annotated[int, Range(0, MAX_SLOTS)]
SHORT = Items(100)
Words = Annotated[tuple[Word, ...], SHORT]
Runs = Annotated[tuple[Name, ...], SHORT]
VOIDS = Items(VOID_REASONS + 1)

ReportOutcome = Literal["accepted", "already", "conflict", "lost"]
"""What became of a report.

`accepted`: it counts now. `already`: this claim has reported the same counts before, and they count
once. `conflict`: this claim has reported other counts, and those count. `lost`: the batch is not
this claim's, or its iteration is over, and nothing counts.
"""

Reply = TypeVar("Reply")


class Request(Generic[Reply]):
    """What a worker asks; one whose reply was lost may be sent again.

    A remote worker sends it to `/worker/` and its `path`.
    """

    __slots__ = ()
    path: ClassVar[str]

    @classmethod
    def reply_type(cls) -> Any:
        return get_args(cls.__orig_bases__[-1])[0]  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredWorker:
    """A registered worker: the id of its row, and the name of its machine."""

    id: RowId
    machine: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInfo(Request[RegisteredWorker]):
    """Register a worker; `name` is unique per process, `sandbox` says what engines cannot reach.

    It gets iterations that require only words that it `provides`, of the runs `only_runs` (empty:
    of all) without `not_runs`. `secret` identifies the machine of a direct worker; a remote one is
    identified by its token.

    Raises NameTaken: a worker of another machine has this name. NotPermitted: the machine was
    revoked. TooManyRequests: `MAX_WORKERS` workers of the machine are active, or an invited machine
    has as many slots as its cores justify.
    """

    path = "register"
    name: Name
    host: Name
    platform: Word
    cores: Cores
    concurrency: Slots
    version: Word
    sandbox: Word | None = None
    provides: Words = ()
    only_runs: Runs = ()
    not_runs: Runs = ()
    secret: Annotated[str, Text(0, 200)] = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a worker has measured lately; None leaves what it told before.

    `nps` are nodes a second of one engine, `scale` multiplies its times. Each has a column of this
    name in spsa_worker.
    """

    nps: Speed | None = None
    scale: Scale | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch(Measured, Request[str | None]):
    """A worker is alive; the reply says why its machine gets no batches, None if it does.

    This and a claim raise IllegalTransition if the worker is not registered.
    """

    path = "touch"
    worker_id: RowId


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedEngine(HashedFile):
    """One side of a match: its binary, and the UCI options that are sent to it.

    `files` are its own, by the options that take their paths.
    """

    sha256: Sha256
    options: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, HashedFile] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A batch of whole pairs, leased to a worker; it says all that has to be known to play it.

    `variants` are plus and minus for other kinds of machines.
    """

    claim_id: ClaimId
    worker_id: RowId
    batch_id: RowId
    run_id: int
    run_name: str
    run_seed: int
    iteration_number: int
    seq: int
    attempt: int
    first_pair: int
    pairs: int
    seed: int
    plus: ClaimedEngine
    minus: ClaimedEngine
    variants: Mapping[str, tuple[HashedFile, HashedFile]] = field(default_factory=dict)
    game_settings: GameSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class NewClaim:
    """The worker chooses the id of a claim before it asks, so that it may ask again."""

    worker_id: RowId
    claim_id: ClaimId
    lease_seconds: Lease


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRequest(NewClaim, Request[Claim | None]):
    """Lease one free batch; None if there is none now. A claim that has a batch gets the same one.

    Raises LeaseLost: its batch was already reported. TooManyRequests: the worker holds as many
    batches as its slots need.
    """

    path = "claim"


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewRequest(Request[tuple[str, ...]]):
    """Let these leases last so many seconds from now; the reply names the claims still held.

    A claim that is missing is lost: its games have to be dropped.
    """

    path = "renew"
    worker_id: RowId
    claim_ids: Annotated[tuple[ClaimId, ...], Items(4 * MAX_SLOTS, 10**6)]
    lease_seconds: Lease


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldClaim(Request[None]):
    """A claim that its worker ends. By itself it hands the batch back; the attempt does not count.

    If the claim is lost, this changes nothing.
    """

    path = "release"
    worker_id: RowId
    batch_id: RowId
    claim_id: ClaimId

    @classmethod
    def of(cls, claim: Claim) -> "HeldClaim":
        return cls(worker_id=claim.worker_id, batch_id=claim.batch_id, claim_id=claim.claim_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptVoid:
    """A void game as its worker saw it; `pair` is its number in the run, `white` had White.

    `culprit` ("plus" or "minus") is the engine at fault, `output` what it wrote last. `position` is
    the UCI command for the game so far. It and `white` are empty if the game had not begun.
    """

    pair: Annotated[int, Range(0, 2**53)]
    culprit: Literal["plus", "minus", ""]
    white: Literal["plus", "minus", ""]
    detail: Annotated[str, Text(0, 1_000, quote=True)]
    position: Annotated[str, Text(0, KEPT_VOIDS_LENGTH, quote=True)]
    output: Annotated[str, Text(0, KEPT_VOIDS_LENGTH, quote=True)]


KeptVoids = Annotated[tuple[KeptVoid, ...], Items(MAX_KEPT_VOIDS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """The counts of one batch, and what the games cost; `voids` are void games by reason.

    `seconds` are wall time, `think_seconds` the thinking time of both engines; `slot` is the
    worker's slot, from 0; `scale` is by what times were multiplied.
    """

    tally: Tally
    voids: Annotated[Mapping[Annotated[str, Text(1, VOID_REASON_LENGTH)], VoidGames], VOIDS] = (
        field(default_factory=dict)
    )
    plus_nodes: Nodes = 0
    minus_nodes: Nodes = 0
    moves: Annotated[int, Range(0, 10**9)] = 0
    plus_time_losses: Games = 0
    minus_time_losses: Games = 0
    seconds: Played = 0.0
    think_seconds: Played = 0.0
    slot: Slot | None = None
    scale: Scale = 1.0
    kept_voids: KeptVoids = ()

    @property
    def inconsistency(self) -> str | None:
        """What cannot be true of the games of one batch; None if all of it can."""
        games = self.tally.games
        if not self.tally.consistent:
            return "has counts of games and pairs that do not agree"
        if games > MAX_GAMES:
            return f"has more than {MAX_GAMES:,} games"
        if self.plus_time_losses > games or self.minus_time_losses > games:
            return f"has more losses on time than its {games} games"
        if self.moves > games * 2 * MAX_MOVES:
            return f"has {self.moves:,} moves in {games:,} games"
        if sum(self.voids.values()) > MAX_VOID_GAMES:
            return f"has more than {MAX_VOID_GAMES:,} void games"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchReport(Request[ReportOutcome]):
    """The result of a batch: it counts in the batch and in the iteration, or in neither.

    Raises LeaseLost: another claim has the batch, or it is abandoned. ReportConflict: this claim
    has reported other counts.
    """

    path = "report"
    held: HeldClaim
    result: BatchResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a machine cannot play a batch; `sha256` is the binary that failed, where it is known."""

    reason: Reason
    void_games: VoidGames = 0
    sha256: Sha256 | None = None
    kept_voids: KeptVoids = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFailure(Request[None]):
    """A batch that its machine cannot play; others may. If the claim is lost, nothing changes."""

    path = "fail"
    held: HeldClaim
    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenWork:
    """A run that may still need games, and the words that it requires of a worker."""

    run: str
    requires: tuple[str, ...] = ()
    has_master: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkLeft(Request[tuple[OpenWork, ...]]):
    """Ask which runs may still need games, even if no batch is ready now.

    A run is there once for each list of words that its open iterations require.
    """

    path = "work"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBuild:
    """Two engines that a worker builds."""

    worker_id: RowId
    build_id: RowId
    claim_id: ClaimId


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasedBuild(HeldBuild):
    """What to do, and the hash of the archive of the source."""

    recipe: Mapping[str, Any]
    archive_sha256: Sha256


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildClaim(NewClaim, Request[LeasedBuild | None]):
    """Lease a build that this machine may carry out; None if there is none."""

    path = "builds/claim"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRenewal(HeldBuild, Request[bool]):
    """Renew a lease; False if it is lost, or no master wants the engines any more."""

    path = "builds/renew"
    lease_seconds: Lease


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildReturn(HeldBuild, Request[None]):
    """Return a build, with the reason if this machine cannot carry it out: it is not asked again.

    Without a reason the attempt does not count.
    """

    path = "builds/fail"
    reason: Reason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltFile:
    """A binary that was built: the hash of its bytes, their number, and its bench if it has one."""

    sha256: Sha256
    size: Annotated[int, Range(1, ENGINE_BYTES)]
    bench: Bench | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildResult(HeldBuild, Request[Literal["accepted", "already", "lost"]]):
    """Publish plus and minus, as they were uploaded; only the holder of the lease can.

    `requires` are the words that they require of a machine. Raises OutOfRange: a value is not true
    of the bytes.
    """

    path = "builds/publish"
    target: Annotated[str, Text(1, 100)]
    requires: Words
    plus: BuiltFile
    minus: BuiltFile


REQUESTS: tuple[type[Request[Any]], ...] = (
    *(ClaimRequest, BatchReport, RenewRequest, Touch, WorkerInfo, HeldClaim, BatchFailure),
    *(WorkLeft, BuildClaim, BuildRenewal, BuildReturn, BuildResult),
)
"""Those first that are sent most often."""


def provided_text(words: Collection[str]) -> str:
    """The column `provides` of a worker with these words: in order, each between two spaces."""
    return "".join(f" {word} " for word in sorted(set(words)))


def required_pattern(words: Collection[str]) -> str | None:
    """A pattern that `provides` is like if it has these words, as `% linux % x86-64 %`."""
    return "".join(f"% {word} " for word in sorted(set(words))) + "%" if words else None


def words_of(pattern: str | None) -> tuple[str, ...]:
    """The words of such a text or pattern."""
    return tuple(word for word in (pattern or "").split() if word != "%")


def is_loopback(host: str) -> bool:
    """Whether a name or an address can only be this machine, so that no network sees a token."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class WorkerStore(Protocol):
    """Where a worker asks: its database, or its server."""

    @property
    def where(self) -> str: ...

    def ask(self, request: Request[Reply]) -> Reply: ...

    def file(self, sha256: str) -> bytes | None: ...

    def upload_build(self, held: HeldBuild, side: str, content: bytes) -> BuiltFile: ...

    def close(self) -> None: ...
