"""A worker against a real store, with real engines, and a database that comes and goes.

Its times follow the speed of its machine, and its slots the threads of engines.
"""

import hashlib
import json
import logging
import os
import re
import signal
import time
from contextlib import contextmanager
from dataclasses import replace
from math import inf
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from unittest.mock import MagicMock, Mock

import pytest
from builders import (
    LEASE,
    NODES,
    TERMS,
    digest,
    new_engine,
    new_worker,
    published,
    result_of,
    stage,
    tally_of_seed,
)
from cutting import CutStore
from engines.faulty import PATIENT, children, engine, start_book, wait_until
from golden import compare_cases
from trials import open_scripted

from spsa import errors
from spsa.builds.artifacts import ArtifactStore
from spsa.core.game_settings import (
    Book,
    GameSettings,
    HashedFile,
    MinusSettings,
    Scale,
    TimeControl,
    TimeKind,
)
from spsa.core.json_values import stored, to_json
from spsa.core.scoring import Tally
from spsa.lifecycle import BatchStatus, RunStatus
from spsa.openings.book import Opening, drawn_time, load
from spsa.protocol import BatchReport, BatchResult, ClaimedEngine, HeldClaim, Measured
from worker.batches import jobs as scaling
from worker.batches.database_client import Backoff, DatabaseClient
from worker.batches.jobs import JobMaker
from worker.batches.loop import Worker
from worker.runner.loop import ActiveJob, Interrupts, JobList
from worker.runner.pool import JobEnded, Pool
from worker.runner.position import Position
from worker.settings import Settings

QUICK = Backoff(first=0.01, growth=1.0, cap=0.01, jitter=0.0)
ENDLESS = {"settings": {"time_control": TimeControl(low=60.0, high=60.0)}}
HANGS = {"fault": "hang", "at_ply": 1}
STATUS_AND_FAILURES = """
    SELECT b.status, count(f.machine) FROM spsa_batch b
      LEFT JOIN spsa_failure f ON f.batch_id = b.id GROUP BY b.id, b.status ORDER BY b.id"""
PLUS_WINS_ALL = Tally(8, 0, 0, (0, 0, 0, 0, 4))


@contextmanager
def hired(queries, folder, size=2, show=lambda _: None, limits=None, **options):
    interrupts, quick = Interrupts(), {"poll": QUICK, "after_failure": QUICK}
    with Pool(size, limits or PATIENT) as pool:
        client = DatabaseClient(queries, new_worker("me"), options.pop("lease", LEASE), QUICK)
        cache = JobMaker(folder / "cache", queries.file)
        settings = Settings(**options)
        yield Worker(client, pool, cache, settings, interrupts, show, **quick), interrupts


def work(queries, folder, **options):
    with hired(queries, folder, **options) as (worker, _):
        return worker.run()


def played(staged):
    """The counts of the open iteration."""
    (iteration,) = staged.store.tick(staged.master, LEASE).open
    return iteration.games_played, iteration.tally, iteration.void_games


def batches(sql):
    return sql("SELECT status, attempt, void_games, last_error FROM spsa_batch ORDER BY seq")


def test_an_iteration_is_played_counted_and_logged_in_a_line_a_batch_and_a_void_pair_again(
    staged, offer, tmp_path, sql, caplog
):
    offer(minus={"fault": "crash", "at_ply": 3, "only_once": tmp_path / "marker"})
    logging.getLogger("worker").propagate = True
    with caplog.at_level("INFO", "worker"):
        assert work(staged.store, tmp_path, size=1, max_batches=2) == 0
    assert played(staged) == (8, PLUS_WINS_ALL, 1)
    sums = sql("SELECT sum(moves), sum(plus_nodes), max(seconds) < 600 FROM spsa_batch")
    assert sums == [(4 * (7 + 4), 4 * (4 + 2) * NODES.low, True)]
    assert "first it 1 batch 0: claimed, 2 pairs" in caplog.messages
    assert "first it 1 batch 1: +4 -0 =0 [0 0 0 0 2]" in caplog.messages
    assert any(re.fullmatch(r"slot 0: \d+ nodes a second", m) for m in caplog.messages)
    ((voids,),) = sql("SELECT voids FROM spsa_batch WHERE seq = 0")
    assert "crash" in voids


@pytest.mark.slow
def test_an_engine_that_never_plays_pauses_the_run_with_its_reason(staged, offer, tmp_path, sql):
    offer(minus={"fault": "illegal", "at_ply": 1}, batch_games=8)
    with pytest.raises(errors.TuningError, match="minus: illegal move: e1e8"):
        work(staged.store, tmp_path, size=1, max_batches=3)
    run = staged.view().run
    assert run.status is RunStatus.PAUSED
    assert "illegal move" in str(run.reason)
    failed = batches(sql)[0]
    assert (failed.status, failed.attempt, failed.void_games) == (BatchStatus.FAILED, 3, 3 * 4)
    assert "minus: illegal move: e1e8" in failed.last_error
    ((blamed, failures),) = sql("SELECT sha256, failures FROM spsa_failure")
    assert (blamed, failures) == (digest(tmp_path / "minus"), 3)


class Watched:
    """A store that tells what was asked, by paths of requests, and answers some otherwise."""

    def __init__(self, store, **instead):
        self._store, self.instead, self.calls = store, instead, []

    def ask(self, request):
        answer = self.instead.get(request.path, self._store.ask)(request)
        if request.path != "claim" or answer is not None:
            self.calls.append(request.path)
        return answer

    def file(self, sha256):
        return self.instead.get("file", self._store.file)(sha256)


def test_a_lost_lease_ends_the_games_and_nothing_is_reported(staged, offer, tmp_path):
    offer(minus=HANGS, **ENDLESS)
    queries = Watched(staged.store, renew=lambda *_: frozenset())
    assert work(queries, tmp_path, lease=10.0, max_batches=1) == 0
    assert "report" not in queries.calls
    assert not children()


@contextmanager
def at_work(worker):
    codes: list[int] = []
    thread = Thread(target=lambda: codes.append(worker.run()))
    thread.start()
    yield codes
    thread.join(120)
    assert not thread.is_alive()


def test_the_first_interrupt_lets_batches_end(staged, offer, tmp_path, sqlite_store, sql):
    log, gate = tmp_path / "log", tmp_path / "gate"
    depth = TimeControl(kind=TimeKind.DEPTH, low=1, high=1)
    offer(minus={"gate": gate, "log": log}, settings={"time_control": depth})
    with (
        hired(Watched(sqlite_store), tmp_path, size=1) as (worker, interrupts),
        at_work(worker) as codes,
    ):
        wait_until(log.exists)
        interrupts.note(signal.SIGINT)
        wait_until(lambda: worker._drain_ends_at < inf)
        gate.touch()
    assert codes == [130]
    assert [row.status for row in batches(sql)] == [BatchStatus.DONE, BatchStatus.READY]


@pytest.mark.parametrize(("times", "drain"), [(1, 0.1), (2, 60.0)])
def test_what_does_not_end_in_time_is_handed_back_unplayed(
    staged, offer, tmp_path, sqlite_store, sql, times, drain
):
    offer(minus=HANGS, **ENDLESS)
    queries = Watched(sqlite_store)
    with hired(queries, tmp_path, drain=drain) as (worker, interrupts), at_work(worker) as codes:
        wait_until(lambda: "claim" in queries.calls)
        for _ in range(times):
            interrupts.note(signal.SIGINT)
    assert codes == [130]
    assert [(row.status, row.attempt) for row in batches(sql)] == [(BatchStatus.READY, 0)] * 2
    assert not children()


@pytest.mark.parametrize("changed", ["minus", "net"])
def test_an_engine_or_a_file_with_other_bytes_is_never_run(changed, staged, offer, tmp_path):
    net, log = tmp_path / "net", tmp_path / "log"
    net.write_bytes(b"weights")
    file = HashedFile(path=str(net), sha256=digest(net))
    offer(minus={"log": log}, settings={"engine_files": {"EvalFile": file}})
    with (tmp_path / changed).open("ab") as written:
        written.write(b"# more")
    with pytest.raises(errors.TuningError, match="hashes to"):
        work(staged.store, tmp_path, max_batches=1)
    assert not log.exists()


@pytest.mark.parametrize("where", ["at their paths", "beside the engines", "in the database"])
def test_arguments_a_book_and_a_side_file_reach_the_engines(where, sqlite_store, tmp_path):
    """Unless they are at their paths, these are those of another machine."""
    log, book, net = tmp_path / "log", start_book(tmp_path), tmp_path / "a net"
    net.write_bytes(b"weights")
    contents = {digest(path): path.read_bytes() for path in (book, net)}
    staged = stage(sqlite_store, files=contents if where == "in the database" else {})
    if where == "beside the engines":
        for path in (book, net):
            ArtifactStore(tmp_path).put(path)
    place = "{}" if where == "at their paths" else "/gone{}"
    settings = {
        "book": Book(name=place.format(book), sha256=digest(book)),
        "engine_files": {"EvalFile": HashedFile(path=place.format(net), sha256=digest(net))},
        "engine_arguments": (f"--log={log}", "--option=EvalFile type string default <empty>"),
    }
    open_scripted(staged, tmp_path, settings=settings)
    assert work(staged.store, tmp_path, size=1, max_batches=2) == 0
    assert played(staged) == (8, PLUS_WINS_ALL, 0)
    copy = tmp_path / "cache" / digest(net)
    assert f"setoption name EvalFile value {copy}\n" in log.read_text()
    assert copy.read_bytes() == b"weights"


@pytest.mark.parametrize(
    ("provides", "taken"), [((), "any"), (("x86-64-v2",), "v2"), (("x86-64-v2", "x86-64-v3"), "v3")]
)
def test_a_machine_plays_the_highest_level_that_it_has(provides, taken, staged, tmp_path):
    def sides(level):
        paths = [engine(tmp_path, f"{side}-{level}", pid=f"{side}-{level}") for side in "+-"]
        return [published(path) for path in paths]

    plus, minus = sides("any")
    variants = {"x86-64-v3": sides("v3"), "x86-64-v2": sides("v2")}
    staged.open(plus=plus, minus=minus, variants=variants)
    cache = JobMaker(tmp_path / "cache", staged.store.file, provides=provides)
    specs = cache.specs(staged.claim("one"))
    assert [Path(spec.path).name for spec in specs] == [side.sha256 for side in sides(taken)]


def test_how_many_jobs_are_wanted_and_which_have_room():
    """Of jobs `PLAYED/PAIRSxTHREADS`, with a `?` while they wait; an interrupt withdraws those."""

    def shown(files):
        pool = MagicMock(__len__=lambda _: int(files["slots"]))
        loop = JobList(iter(()), pool, Interrupts(), Mock())
        for key, text in enumerate(files.get("jobs", "").split()):
            played, pairs, threads = map(int, re.findall(r"\d", text))
            job = SimpleNamespace(key=key, pairings=range(pairs), slots=threads)
            result = BatchResult(tally=Tally(0, 0, 2 * played, (0, 0, played, 0, 0)))
            loop.active[key] = ActiveJob(job, 0.0, 0 if "?" in text else threads, result)
        rooms = [n for n in range(1, 6) if loop._has_room(SimpleNamespace(slots=n))]
        yield f"{loop.wanted} wanted, room for one of {rooms} slots"
        loop._interrupts.note(signal.SIGTERM)
        loop.withdraw()
        loop._submit()
        ended = [call.args[0] for call in pool.events.put.call_args_list]
        assert ended == [JobEnded(one.key, was_stopped=True) for one in ended]
        assert loop.wanted == 0 and not pool.submit.called
        yield f"withdrawn: {[one.key for one in ended]}"

    compare_cases(Path(__file__).with_name("loops.txt"), shown)


def test_a_job_follows_from_the_claim_alone(staged, tmp_path, monkeypatch):
    monkeypatch.setattr(JobMaker, "path", lambda _, engine: f"/{engine.sha256}")
    staged.open()
    staged.claim("first")
    claim = staged.claim("second")
    assert claim is not None and claim.first_pair == 2
    monkeypatch.setattr(scaling, "open_tables", lambda *of: of)
    job, book = JobMaker(tmp_path, lambda _: None, (), (tmp_path,)).job(claim), load(Book())
    assert job.tables == (claim.game_settings.adjudication.syzygy, (tmp_path,))
    for spec, side, margin in ((job.plus, claim.plus, "220"), (job.minus, claim.minus, "180")):
        assert (spec.path, spec.options) == (f"/{side.sha256}", {"Margin": margin})
    assert (job.key, job.plus.name, job.minus.name) == ("second", "plus", "minus")
    control = claim.game_settings.time_control
    assert [(one.number, one.opening, one.time) for one in job.pairings] == [
        (2 + index, book.opening(claim.run_seed, 2 + index), drawn_time(control, claim.seed, index))
        for index in range(2)
    ]
    assert job.settings.time_control == control
    assert job.label == "first it 1 batch 1"
    assert job.scaled(2.0).settings.time_control == control.scaled(2.0)


def test_a_foreign_engine_gets_the_options_of_its_row_alone(staged, tmp_path, monkeypatch):
    monkeypatch.setattr(JobMaker, "path", lambda _, engine, *__: Path(f"/{engine.sha256}"))
    net = HashedFile(path="/net", sha256="0" * 64)
    own = {"engine_options": {"Hash": "9"}, "engine_files": {"Net": net}}
    scaled = {"time_control": MOVETIME, "scale": Scale(target_nps=1000)}
    foreign = {"minus": MinusSettings(handicap=4, foreign=True)}
    settings = replace(TERMS, **own, **scaled, **foreign, engine_arguments=("-x",))
    staged.open(game_settings=settings)
    claim = staged.claim("one")
    assert claim is not None
    job = JobMaker(tmp_path, lambda _: None).job(claim)
    assert dict(job.plus.options) == {"Hash": "9", "Net": f"/{net.sha256}", "Margin": "220"}
    assert (job.plus.arguments, job.minus.arguments) == (("-x",), ())
    assert (dict(job.minus.options), job.settings.handicap) == ({"Margin": "180"}, 4)
    monkeypatch.setattr(scaling, "_measured_nps", lambda _, of: 500.0 * (of.minus == of.plus))
    assert scaling.scale_of(claim, job, None, {}) == 2.0, "its speed says nothing"
    for refused in (0.5, 1001, float("nan")):
        told = to_json(settings) | {"minus": {"handicap": refused, "foreign": False}}
        with pytest.raises(errors.UnusableState, match="handicap"):
            stored(GameSettings, told, "game_settings")


@pytest.mark.parametrize("limits", [{"_KEPT": 2}, {"_LEAST": 1, "_KEPT_BYTES": 2}])
def test_a_cache_forgets_the_oldest_engines(tmp_path, monkeypatch, limits):
    for name, most in limits.items():
        monkeypatch.setattr(f"worker.batches.jobs.{name}", most)
    stored = {hashlib.sha256(text).hexdigest(): text for text in (b"b", b"a", b"c")}
    cache = JobMaker(tmp_path / "cache", stored.get)
    for age, sha256 in enumerate(stored):
        fetched = cache.path(ClaimedEngine(sha256=sha256, path="/nowhere"))
        os.utime(fetched, (age, age))  # what is fetched within one tick of a clock has one time
    assert {path.name for path in (tmp_path / "cache").iterdir()} == set(list(stored)[1:])
    fetched.unlink()
    assert cache.path(ClaimedEngine(sha256=sha256, path="/nowhere")).read_bytes() == b"c"


def test_one_batch_that_cannot_be_played_leaves_the_others(staged, offer, tmp_path, sql):
    """The row of one iteration names a binary that nobody has; the worker plays the next one."""
    offer()
    sides = {"plus": new_engine("missing", path="/none"), "minus": published(tmp_path / "minus")}
    staged.open(k=2, opened_on=0, in_flight=2, target_games=2, batch_games=2, **sides)
    sql("UPDATE spsa_iteration SET status = 'pending' WHERE k = 2")
    assert work(staged.store, tmp_path, max_batches=5) == 0
    assert sql(STATUS_AND_FAILURES) == [("done", 0), ("done", 0), ("ready", 1)]


@pytest.mark.parametrize(
    "error", [errors.OutOfRange("spsa_batch.moves is -5"), errors.LeaseLost("gone")]
)
def test_a_result_that_is_refused_for_good_never_ends_a_worker(staged, offer, tmp_path, error, sql):
    offer()
    refusing = Watched(staged.store, report=Mock(side_effect=error))
    assert work(refusing, tmp_path, size=1, max_batches=2) == 0
    # others play them when the leases expire
    assert sql(STATUS_AND_FAILURES) == [("leased", 0)] * 2


def test_tables_that_become_those_of_another_version_end_a_worker(staged, tmp_path):
    changed = Watched(staged.store, claim=Mock(side_effect=errors.SchemaMismatch("changed")))
    with pytest.raises(errors.SchemaMismatch):
        work(changed, tmp_path)


def test_a_batch_is_not_lost_when_the_engine_cannot_be_asked_for(staged, offer, tmp_path, sql):
    """Claimed, but then the database falls silent before it has handed over the engine."""
    offer()
    minus = tmp_path / "minus"
    content, silences = minus.read_bytes(), iter((True, True))

    def stored(sha256):
        if next(silences, False):
            raise errors.DatabaseUnreachable("the line is dead")
        return content

    minus.unlink()
    queries = Watched(staged.store, file=stored)
    assert work(queries, tmp_path, max_batches=2) == 0
    assert queries.calls.count("release") == 2
    assert [row.status for row in batches(sql)] == [BatchStatus.DONE] * 2


def test_one_batch_is_claimed_while_a_slot_is_on_its_last_pair(
    staged, offer, tmp_path, sqlite_store, sql
):
    hangs = HANGS | {"only_once": tmp_path / "marker", "skip": 1}
    offer(minus=hangs, target_games=12, batch_games=4, **ENDLESS)
    queries, ready, leased = Watched(sqlite_store), BatchStatus.READY, BatchStatus.LEASED
    with hired(queries, tmp_path, size=1) as (worker, interrupts), at_work(worker) as codes:
        wait_until(lambda: queries.calls.count("claim") == 2)
        interrupts.note(signal.SIGTERM)
        wait_until(lambda: queries.calls.count("release") == 1)
        assert [row.status for row in batches(sql)] == [leased, ready, ready]
        interrupts.note(signal.SIGTERM)
    assert codes == [0] and queries.calls.count("claim") == 2
    assert [(row.status, row.attempt) for row in batches(sql)] == [(ready, 0)] * 3


PAUSE = 0.03
NPS = 77 / PAUSE
"""The scripted engine counts 77 nodes a move, and takes longer than it sleeps."""

MOVETIME = TimeControl(low=0.2, high=0.2)
ONE_NODE = TimeControl(kind=TimeKind.NODES, low=1, high=1)


class Watching:
    """A view that remembers how many slots played at a time; at `enough` it opens the gate."""

    most = 0
    measured = Measured()  # what the worker tells with its next sign of life

    def __init__(self, gate, enough):
        self._gate, self._enough = gate, enough
        self._note(0)

    def __call__(self, worker):
        self._note(sum(batch is not None for batch in worker.playing))

    def _note(self, playing):
        self.most = max(self.most, playing)
        if self.most >= self._enough:
            self._gate.touch()


@pytest.fixture
def gated(offer, tmp_path):
    """Opens an iteration of `count` batches of one pair between engines that wait at a gate."""

    def open_iteration(count=2, **settings):
        threads = "Threads type spin default 1 min 1 max 9"
        common = {"option": threads, "sleep": PAUSE, "gate": tmp_path / "gate"}
        plus = common | {"log": tmp_path / "log"}
        games = {"target_games": 2 * count, "batch_games": 2}
        return offer(plus=plus, minus=common, settings=settings, **games)

    return open_iteration


@pytest.fixture
def exact(monkeypatch):
    """Engines of exactly NPS, however long a busy machine takes for a move."""
    counted = scaling.SearchReply.nodes.fget
    nodes = property(lambda reply: round(counted(reply) * reply.seconds / PAUSE))
    monkeypatch.setattr(scaling.SearchReply, "nodes", nodes)


def watched_work(store, folder, slots, enough=0, **options):
    watching = Watching(folder / "gate", enough)
    with hired(store, folder, slots, watching, **options) as (worker, _):
        code = worker.run()
        watching.measured = worker._measured
        return code, watching


@pytest.fixture
def said(caplog):
    logging.getLogger("worker").propagate = True
    caplog.set_level(logging.INFO)
    yield lambda: caplog.text
    logging.getLogger("worker").propagate = False


@pytest.mark.usefixtures("exact")
def test_a_slow_machine_gets_more_time_and_says_so(staged, gated, tmp_path, sql, said):
    scale, book = Scale(target_nps=round(3.3 * NPS)), str(start_book(tmp_path))
    gated(time_control=MOVETIME, scale=scale, book=Book(name=book, chess960=True))
    code, watching = watched_work(staged.store, tmp_path, slots=2, max_batches=2)
    assert code == 0
    scales = [scale for (scale,) in sql("SELECT scale FROM spsa_batch")]
    assert scales[0] == scales[1], "measured once for both"
    assert scales[0] == pytest.approx(3.3, rel=0.02)
    lines = (tmp_path / "log").read_text().splitlines()
    book = load(Book(chess960=True)).openings
    for opening in (book[place * (len(book) // 6)] for place in range(6)):
        position = Position(Opening.of(opening.board())).command.decode()
        assert lines.count(position) >= 2, "measured by each slot"
    assert lines.count("go movetime 250") == 2 * 6
    assert lines.count("ucinewgame") == 2 * 6 + 2 * 2, "of two slots, and of two pairs"
    searches = {line for line in lines if line.startswith("go")}
    assert searches == {"go movetime 250", f"go movetime {round(1000 * 0.2 * scales[0])}"}
    assert said().count("nodes a second here, so times are multiplied by 3.") == 1
    (share,) = staged.store.worker_shares(staged.run.id)
    assert (share.least_scale, share.most_scale) == (scales[0], scales[0])
    assert watching.measured.scale == scales[0]
    assert watching.measured.nps == pytest.approx(NPS, rel=0.02)


def test_a_machine_outside_the_limits_is_told_and_not_served_and_not_blamed(
    staged, gated, tmp_path, sql, said
):
    gated(count=5, time_control=MOVETIME, scale=Scale(target_nps=round(9 * NPS)))
    with pytest.raises(scaling.TuningError, match=r"the scale is \d+\S*; the run allows 0.25 to 4"):
        watched_work(staged.store, tmp_path, slots=2, once=True)
    assert said().count("this machine cannot play it") == 1
    rows = sql("SELECT DISTINCT status, attempt, last_error FROM spsa_batch")
    assert rows == [("ready", 0, None)]
    assert sql("SELECT * FROM spsa_failure") == []
    ((left_out,),) = sql("SELECT not_runs FROM spsa_worker WHERE name = 'me'")
    assert list(json.loads(left_out)) == ["first"]


def test_a_scale_needs_an_engine_that_counts_its_nodes(staged, gated, tmp_path, monkeypatch):
    monkeypatch.setattr(scaling.SearchReply, "nodes", 0)
    gated(time_control=MOVETIME, scale=Scale(target_nps=1))
    with pytest.raises(scaling.TuningError, match="does not say how many nodes"):
        watched_work(staged.store, tmp_path, slots=2, max_batches=1)


def test_games_at_fixed_nodes_need_no_scale_and_take_a_slot_for_each_thread(
    staged, gated, tmp_path, sql, said
):
    """As the rounds of a validation with a time control of its own may be."""
    threads = {"engine_options": {"Threads": "2"}}
    gated(count=3, time_control=ONE_NODE, scale=Scale(target_nps=1), **threads)
    code, watching = watched_work(staged.store, tmp_path, slots=5, enough=2, max_batches=3)
    assert (code, watching.most) == (0, 2)
    assert sql("SELECT DISTINCT status, scale FROM spsa_batch") == [("done", 1.0)]
    assert "nodes a second here" not in said()


WORKER = new_worker("machine-1")


@pytest.fixture
def store(sqlite_url):
    with CutStore(sqlite_url) as opened:
        yield opened


@pytest.fixture
def run(store):
    started = stage(store)
    started.open()
    return started


@pytest.fixture
def asked(store):
    return Watched(store)


@pytest.fixture
def client(asked, run):
    return DatabaseClient(asked, WORKER, LEASE, QUICK)


@pytest.fixture
def now(monkeypatch):
    """The monotonic clock, in a list."""
    clock = [time.monotonic() + 1]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    return clock


def test_waits_grow_up_to_a_cap_and_are_as_long_as_an_error_asks_for(monkeypatch):
    waits = Backoff(first=1.0, growth=2.0, cap=5.0, jitter=0.5)
    for bound, expected in ((max, [1.5, 3.0, 6.0, 7.5, 7.5]), (min, [0.5, 1.0, 2.0, 2.5, 2.5])):
        monkeypatch.setattr("random.uniform", lambda *range_, bound=bound: bound(range_))
        assert [waits.next() for _ in range(5)] == expected
        assert waits.next(errors.TooManyRequests("no", 60.0)) == 60.0
        waits.reset()


def test_a_client_backs_off_until_it_is_due_again(asked, now):
    client = DatabaseClient(asked, WORKER, LEASE, Backoff(first=1, growth=2, cap=9, jitter=0))
    fails, works = Mock(side_effect=errors.DatabaseUnreachable("gone")), Mock()
    for number in range(2):
        for wait in (1, 2, 4):
            client.attempt(fails)
            assert client.last_error is not None
            now[0] += wait - 0.01
            client.attempt(works)
            now[0] += 0.01
        client.attempt(lambda: client.enqueue(works()))
        assert (client.last_error, client.unreported, works.call_count) == (None, 1, number + 1)
        client.drop_reports()
        assert client.unreported == 0


def test_a_worker_claims_renews_and_ends_when_it_is_due(client, asked, run, now):
    pool, began = MagicMock(__len__=lambda _: 2), now[0]
    pool.check_room.side_effect = errors.TuningError("it needs more slots")
    growing = {"growth": 2.0, "cap": 60.0, "jitter": 0.0}
    waits = {"poll": Backoff(first=1.0, **growing), "after_failure": Backoff(first=8.0, **growing)}
    worker = Worker(client, pool, Mock(), Settings(idle_timeout=100.0), Interrupts(), **waits)
    for seconds, claims in ((0, 1), (7.9, 1), (0.2, 2), (15.9, 2), (0.2, 3)):
        now[0] += seconds
        worker.turn()
        assert asked.calls.count("claim") == claims
    run.store.pause("first", "me", "why")
    client.claim = Mock(return_value=None)
    now[0] = began + 98.5
    for number, wait in enumerate((1.0, 2.0, 4.0), start=1):
        for late in (0.0, wait - 0.01):
            now[0] += late
            worker.turn()
            assert client.claim.call_count == number
        assert worker.is_over == (wait > 1.0)
        now[0] += 0.01
    worker._start = Mock()
    client.claim = Mock(side_effect=[Mock(), None, None])
    for late in (0.0, 0.99, 0.01):  # a batch was claimed: the next wait is the first one again
        assert client.claim.call_count == 2 * (late > 0.0)
        now[0] += late
        worker.turn()
    assert client.claim.call_count == 3


def test_when_a_worker_without_a_batch_ends_and_how(now):
    """By its options, and what is the case."""

    def shown(files):
        case = files["case"].split()
        client, interrupts = MagicMock(claim=lambda: None), Interrupts()
        client.unreported, client.is_registered = case.count("unreported"), "registered" in case
        is_away, client.work_left.return_value = "away" in case, "left" in case
        client.attempt = lambda calls, at_once=False: calls() if at_once or not is_away else None
        client.last_error = errors.DatabaseUnreachable("gone") if is_away else None
        options = {"once": "--once" in case, "then": "x" if "--then" in case else None}
        settings = Settings(idle_timeout=5.0, max_batches=2, **options)
        worker = Worker(client, MagicMock(__len__=lambda _: 1), Mock(), settings, interrupts)
        worker.done = worker._claimed = case.count("batch")
        worker._last_failure = errors.TuningError("failed") if "failure" in case else None
        worker.active |= {"key": Mock(slots=1, on_last_pair=True)} if "playing" in case else {}
        for _ in range(case.count("interrupt")):
            interrupts.note(signal.SIGINT)
        now[0] += 5.0 * ("idle" in case)
        worker.turn()
        over = "is over" if worker.is_over else "goes on"
        yield f"{worker.state}, {client.deliver.call_count} deliveries, {over}"
        client.renew.reset_mock()
        worker.play = Mock()
        try:
            yield f"exit code {worker.run()}{', by itself' if worker.has_ended else ''}"
        except errors.TuningError as error:
            yield f"{error}{', by itself' if worker.has_ended else ''}"
        try:
            worker.keep_leases()
            yield "renews leases" if client.renew.called else "renews no leases"
        except errors.DatabaseUnreachable as error:
            yield str(error)

    compare_cases(Path(__file__).with_name("ends.txt"), shown)


@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_claim_and_a_report_whose_responses_are_lost_are_made_once(client, run, store, cut):
    client.work_left()
    client.renew([], Measured())
    store.cut_next(cut)
    with pytest.raises(errors.DatabaseUnreachable):
        client.claim()
    claim = client.claim()
    client.enqueue(BatchReport(held=HeldClaim.of(claim), result=result_of(claim)))
    store.cut_next(cut)
    with pytest.raises(errors.DatabaseUnreachable):
        client.deliver()
    assert client.unreported == 1
    client.deliver()
    assert client.unreported == 0
    assert (client.claim().seq, client.claim()) == (1, None)
    counted = tally_of_seed(claim.seed, claim.pairs)
    rows = [(row.status, row.attempt, row.tally) for row in store.batches(run.run.id)]
    assert rows == [("done", 1, counted), ("leased", 1, Tally())]
    (iteration,) = run.store.iterations(run.run.id)
    assert iteration.games_played == 4


def test_a_claim_id_that_was_used_up_is_given_up(client, run, store, monkeypatch):
    """Its response was lost, and another process that knew the id played its batch."""
    store.cut_next(None)
    monkeypatch.setattr(client, "_claim_id", "used up")
    claim = store.claim("used up", store.register_worker(WORKER), LEASE)
    store.report(claim, result_of(claim))
    assert client.claim() is None
    assert client.claim().seq == 1


def test_a_worker_whose_row_was_lost_registers_again(client, asked, store, sql):
    store.release(client.claim())
    sql("UPDATE spsa_batch SET worker_id = NULL")
    sql("DELETE FROM spsa_worker")
    assert client.claim().seq == 0
    assert asked.calls == ["register", "claim", "register", "claim"]


def test_leases_are_renewed_every_quarter_of_their_length(client, asked, store, now):
    claim = client.claim()
    asked.calls.clear()
    assert client.renew([claim.claim_id, "not mine"], Measured(nps=1e6)) == {"not mine"}
    assert asked.calls == ["touch", "renew"]
    now[0] += LEASE / 4 - 0.1
    assert client.renew([claim.claim_id, "not mine"], Measured(nps=1e6)) == frozenset()
    assert asked.calls == ["touch", "renew"]
    now[0] += 0.1
    client.renew([claim.claim_id], Measured(nps=1e6))
    assert asked.calls == ["touch", "renew"] * 2
    assert [row.nps for row in store.workers()] == [1e6]


@pytest.mark.parametrize(
    ("over", "left"),
    [
        ({}, True),
        ({"only_runs": ("first",)}, True),
        ({"only_runs": ("another",)}, False),
        ({"not_runs": ("another",)}, True),
        ({"not_runs": ("first",)}, False),
    ],
)
def test_work_is_left_where_a_run_goes_on_that_it_takes(over, left, run, store, caplog):
    client = DatabaseClient(store, new_worker("w", **over), LEASE, QUICK)
    client.renew([], Measured())
    assert client.work_left() is left
    assert ("this worker leaves out the run first" in caplog.text) is not left
    assert ("waiting for first: its games are claimed" in caplog.text) is left
    assert "no master" not in caplog.text
    run.store.release_master_lease(run.master)
    DatabaseClient(store, new_worker("w", **over), LEASE, QUICK).renew([], Measured())
    assert ("no master moves first: `spsa-master run`" in caplog.text) is left
    run.store.stop("first", "me", "why")
    assert client.work_left() is False


def test_a_worker_that_is_idle_says_so_again_when_it_has_had_a_batch(client, run, now, caplog):
    for times in (1, 2):
        run.store.pause("first", "me", "why")
        for _ in range(2):
            client.renew([], Measured())
            now[0] += LEASE
        assert caplog.text.count("`resume` if it is paused") == times
        run.store.resume("first", "me")
        assert client.claim() is not None


def test_a_claim_that_is_refused_for_now_waits_as_long_as_the_server_says(client, asked, now):
    client.renew([], Measured())
    asked.instead["claim"] = Mock(side_effect=errors.TooManyRequests("too many batches", 60.0))
    assert client.claim() is None
    asked.instead.clear()
    now[0] += 59
    assert client.claim() is None
    now[0] += 2
    assert client.claim() is not None
