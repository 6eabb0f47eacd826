"""From a claim to a job: verified copies of its files, its openings and times, and their scale.

A file runs only if it hashes to the SHA-256 of its row.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from itertools import accumulate
from math import inf
from pathlib import Path

from spsa.builds.artifacts import VerifiedFile, fetch
from spsa.builds.requirements import lacking
from spsa.core.game_settings import Book, HashedFile, TimeControl, TimeKind
from spsa.errors import EngineFault, TuningError
from spsa.openings import BUILTIN_BOOKS
from spsa.openings.book import Opening, OpeningBook, drawn_time, load
from spsa.protocol import Claim, ClaimedEngine, words_of
from spsa.uci.engine import SearchReply
from spsa.uci.spawning import EngineSpec
from worker.runner.adjudication import GameClock, open_tables
from worker.runner.engine_pair import EnginePair
from worker.runner.game import Pairing
from worker.runner.pool import Job, Pool
from worker.runner.position import Position

log = logging.getLogger(__name__)

_KEPT, _KEPT_BYTES = 128, 2**32  # the latest files stay in the cache; each iteration brings two
_LEAST = 16  # of large files: those that are played now

KEPT_SECONDS = 7_200.0
"""A speed is measured again after so long: a machine gets hot, or gets other work."""

_POSITIONS = 6
_SECONDS = {TimeKind.MOVETIME: 0.25, TimeKind.CLOCK: 8.0}
"""Of a measured search, or of its clock, of which engines use a thirtieth or so."""

Speeds = dict[int, tuple[float, float]]
"""This machine's speed in each run that scales times: nodes a second, and until when to keep it."""


class OutsideScale(TuningError):
    """This machine is too slow or too fast for a run: others play it."""


@dataclass(slots=True)
class JobMaker:
    """Makes the jobs of one worker, with verified copies of their files in `folder`.

    It tries the path of the row first, and the database or the server (`stored`) when that path has
    no usable file. Of binaries for several levels or kinds of machines it takes the first one that
    a machine with the words `provides` runs. Each book is read once. This machine's tables are in
    the folders `syzygy`.
    """

    folder: Path
    stored: Callable[[str], bytes | None]
    provides: Collection[str] = ()
    syzygy: tuple[Path, ...] = ()
    _copies: dict[str, VerifiedFile] = field(init=False, default_factory=dict)
    _books: dict[Book, OpeningBook] = field(init=False, default_factory=dict)

    def job(self, claim: Claim) -> Job:
        """What a slot plays; it follows from the claim alone, on every machine.

        TuningError where this machine lacks an engine, the book or tables of the batch.
        """
        settings, book = claim.game_settings, self._book(claim)
        plus, minus = self.specs(claim)
        return Job(
            key=claim.claim_id,
            label=label_of(claim),
            plus=plus,
            minus=minus,
            pairings=tuple(
                Pairing(
                    number=claim.first_pair + index,
                    opening=book.opening(claim.run_seed, claim.first_pair + index),
                    time=drawn_time(settings.time_control, claim.seed, index),
                )
                for index in range(claim.pairs)
            ),
            settings=settings,
            tables=open_tables(settings.adjudication.syzygy, self.syzygy),
        )

    def specs(self, claim: Claim) -> tuple[EngineSpec, EngineSpec]:
        """Plus and minus of a claim, with the paths of this machine."""
        settings = claim.game_settings
        common = {**settings.engine_options, **self._paths(settings.engine_files, claim)}

        def spec(
            name: str, file: HashedFile, side: ClaimedEngine, *, foreign: bool = False
        ) -> EngineSpec:
            own = {**side.options, **self._paths(side.files, claim)}
            return EngineSpec(
                name=name,
                path=str(self.path(file)),
                options=own if foreign else {**common, **own},
                arguments=() if foreign else settings.engine_arguments,
            )

        plus, minus = self._suited(claim)
        first = spec("plus", plus, claim.plus)
        return first, spec("minus", minus, claim.minus, foreign=settings.has_foreign)

    def _suited(self, claim: Claim) -> tuple[HashedFile, HashedFile]:
        """The first of its binaries that this machine runs."""
        suited = (
            sides
            for words, sides in claim.variants.items()
            if not lacking(words_of(words), self.provides)
        )
        return next(suited, (claim.plus, claim.minus))

    def _book(self, claim: Claim) -> OpeningBook:
        book = claim.game_settings.book
        if book not in self._books:
            place = None
            # a built-in book has no file, and one without a hash may be any file
            if book.name not in BUILTIN_BOOKS and book.sha256:
                place = self._file(HashedFile(path=book.name, sha256=book.sha256), claim)
            # its master has looked at every line of a book with this hash
            self._books[book] = load(book, place, check=place is None)
        return self._books[book]

    def _paths(self, files: Mapping[str, HashedFile], claim: Claim) -> dict[str, str]:
        return {option: str(self._file(file, claim)) for option, file in files.items()}

    def _file(self, file: HashedFile, claim: Claim) -> Path:
        """A verified copy of a book or a side file, which may be beside the claim's binaries."""
        return self.path(file, Path(claim.plus.path).with_name(file.sha256))

    def path(self, file: HashedFile, *others: Path) -> Path:
        """A verified copy of a file, which may be at its own path, at another, or stored.

        TuningError when this machine finds no file with that hash. A copy that has changed on
        disk since it was verified is verified again.
        """
        copy = self._copies.get(file.sha256)
        if copy is None or not copy.untouched:
            copy = self._fetched(file.sha256, (Path(file.path), *others))
            self._copies[file.sha256] = copy
            self._remove_oldest()
        return copy.path

    def _fetched(self, sha256: str, places: Sequence[Path]) -> VerifiedFile:
        faults = []
        for place in places:
            try:
                return fetch(place, sha256, self.folder)
            except TuningError as error:
                faults.append(error)
        if (data := self.stored(sha256)) is None:
            raise TuningError(f"{faults[0]}; {sha256} is not stored either")
        return fetch(data, sha256, self.folder)

    def _remove_oldest(self) -> None:
        # Another worker that runs one of these keeps the file open until its engine ends.
        with suppress(FileNotFoundError):  # another worker has just removed one, too
            copies = [path for path in self.folder.iterdir() if len(path.name) == 64]
            copies.sort(key=lambda path: -path.stat().st_mtime)
            sums = accumulate(path.stat().st_size for path in copies)
            fits = sum(total <= _KEPT_BYTES for total in sums)
            for path in copies[min(_KEPT, max(_LEAST, fits)) :]:
                path.unlink()


def label_of(claim: Claim) -> str:
    """What a log calls a batch."""
    return f"{claim.run_name} it {claim.iteration_number} batch {claim.seq}"


def scale_of(
    claim: Claim, job: Job, pool: Pool, speeds: Speeds, *, is_quiet: bool = True
) -> float | None:
    """By what the times of a batch are multiplied here; 1 where its run does not scale them.

    Every machine then searches as many nodes as the target machine of the run. A worker has the two
    engines of a batch, but not the one with the unperturbed theta. So each slot lets both search
    the same positions in turn, in all slots at once. As far as speed is linear in the parameters,
    the mean of the two is the speed at theta, whichever iteration they are of. The speed of a
    foreign engine says nothing. None while the speed has to be measured and slots play, so that it
    is not `is_quiet`. Raises EngineFault: an engine does not search, or does not count its nodes.
    OutsideScale: this machine is too slow or too fast for the run.
    """
    settings, (nps, until) = claim.game_settings, speeds.get(claim.run_id, (0.0, -inf))
    if (wanted := settings.scale) is None or settings.time_control.reproducible:
        return 1.0
    if is_due := time.monotonic() > until:
        if not is_quiet:
            return None
        nps = _measured_nps(pool, replace(job, minus=job.plus) if settings.has_foreign else job)
        speeds[claim.run_id] = nps, time.monotonic() + KEPT_SECONDS
    scale = wanted.target_nps / nps
    found = f"an engine searches {nps:,.0f} nodes a second here"
    if not wanted.least <= scale <= wanted.most:
        allowed = f"the run allows {wanted.least:g} to {wanted.most:g}"
        raise OutsideScale(f"{found}, so the scale is {scale:.3g}; {allowed}")
    if is_due:
        log.info("%s: %s, so times are multiplied by %.3g", claim.run_name, found, scale)
    return scale


def _measured_nps(pool: Pool, job: Job) -> float:
    """Nodes a second of the engines of this job while as many search as in games.

    It takes some seconds in which no slot may play. EngineFault where an engine does not search, or
    does not count its nodes.
    """
    games = len(pool) // job.slots
    with ThreadPoolExecutor(games) as threads:
        parts = threads.map(lambda _: list(_searches(pool, job)), range(games))
        replies = [reply for part in parts for reply in part]
    nodes, seconds = (sum(r.nodes for r in replies), sum(r.seconds for r in replies))
    if not nodes:
        raise EngineFault("no nodes", "it does not say how many nodes it searches")
    return nodes / seconds


def _searches(pool: Pool, job: Job) -> Iterator[SearchReply]:
    """What both engines find in each position, one after the other as in a game.

    The positions are the same on every machine, from all over the built-in book.
    """
    book, kind = load(Book()).openings, job.settings.time_control.kind
    control = TimeControl(kind=kind, low=_SECONDS[kind], high=_SECONDS[kind])
    chess960 = job.pairings[0].opening.chess960
    with closing(EnginePair(pool.limits)) as pair:
        engines = pair.engines(job.plus, job.minus)
        for place in range(_POSITIONS):
            opening = book[place * (len(book) // _POSITIONS)]
            position = Position(Opening.of(replace(opening, chess960=chess960).board()))
            for engine in engines:
                engine.prepare()
                engine.await_ready()
                clock = GameClock(control, control.low, pool.limits)
                yield engine.search(position.command, clock.limit(position.turn))
