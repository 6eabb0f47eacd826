"""What the master signs, and what a worker that trusts its key runs of a hostile database."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import LEASE, Stage, new_engine, new_iteration, new_worker, stage
from console import call, master, worker, write_project
from engines.faulty import LOSER, PATIENT, WINNER, engine, start_book
from hypothesis import given
from hypothesis import strategies as st

from spsa.builds.subprocesses import Commands
from spsa.core.game_settings import Adjudication, Book, GameSettings, TimeControl, TimeKind
from spsa.db.signed_orders import order_of
from spsa.db.store import NewEngine, Store
from spsa.errors import InvalidInput, NotSigned, TuningError
from spsa.lifecycle import Purpose
from spsa.security.keys import SigningKey, TrustKey, public_file
from spsa.security.signing import FIRST_LINE, SignedOrder, SignedSide
from worker.batches.database_client import BackoffTimes, DatabaseClient
from worker.batches.engine_cache import EngineCache
from worker.batches.loop import Worker, WorkerOptions
from worker.runner.interrupts import Interrupts
from worker.runner.pool import Pool

KEY = SigningKey.new()
QUICK = BackoffTimes(first=0.01, growth=1.0, cap=0.01, jitter=0.0)
NODES = TimeControl(kind=TimeKind.NODES, low=1, high=1)


def an_order(**over: Any) -> SignedOrder:
    facts = {
        "run": "first",
        "run_seed": 42,
        "iteration": 1,
        "purpose": Purpose.TUNE,
        "plus": SignedSide(sha256="a" * 64, options={"Margin": "220", "Depth": "4"}),
        "minus": SignedSide(sha256="b" * 64, options={"Margin": "180"}),
        "game_settings": GameSettings(time_control=TimeControl(low=0.1 + 0.2, high=1)),
    }
    return SignedOrder(**facts | over)


OTHERS = {
    "run": an_order(run="second"),
    "seed": an_order(run_seed=43),
    "iteration": an_order(iteration=2),
    "purpose": an_order(purpose=Purpose.VALIDATE),
    "hash": an_order(plus=SignedSide(sha256="c" * 64, options={"Margin": "220", "Depth": "4"})),
    "sides": an_order(plus=an_order().minus, minus=an_order().plus),
    "option": an_order(minus=SignedSide(sha256="b" * 64, options={"Margin": "181"})),
    "no option": an_order(minus=SignedSide(sha256="b" * 64)),
    "book": an_order(
        game_settings=GameSettings(
            time_control=an_order().game_settings.time_control, book=Book(name="/x")
        )
    ),
    "another level": an_order(variants={"x86-64-v3": ("c" * 64, "d" * 64)}),
    "time": an_order(game_settings=GameSettings(time_control=TimeControl(low=0.3, high=1))),
    "common option": an_order(
        game_settings=GameSettings(
            time_control=an_order().game_settings.time_control, engine_options={"Log": "/x"}
        )
    ),
    "draws": an_order(
        game_settings=GameSettings(
            time_control=an_order().game_settings.time_control, adjudication=Adjudication(draw=None)
        )
    ),
}


def test_what_was_signed_is_accepted() -> None:
    KEY.public.check(an_order(), KEY.sign(an_order()))


@pytest.mark.parametrize("changed", OTHERS)
def test_whatever_is_changed_is_refused(changed: str) -> None:
    with pytest.raises(NotSigned, match="so it is not played"):
        KEY.public.check(OTHERS[changed], KEY.sign(an_order()))


@pytest.mark.parametrize("signature", [None, "", "x", "ä", "AAAA", "A" * 88, "A" * 10_000])
def test_what_is_no_signature_is_refused(signature: str | None) -> None:
    with pytest.raises(NotSigned):
        KEY.public.check(an_order(), signature)


def test_another_masters_signature_is_refused() -> None:
    with pytest.raises(NotSigned):
        KEY.public.check(an_order(), SigningKey.new().sign(an_order()))


def test_the_bytes_that_are_signed_are_these() -> None:
    """Spelled out: another program may have to check them."""
    order = an_order(
        game_settings=GameSettings(time_control=NODES), minus=SignedSide(sha256="b" * 64)
    )
    head, _, text = order.to_bytes().partition(b"\n")
    assert head + b"\n" == FIRST_LINE == b"spsa-tuner order 1\n"
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":")).encode()
    assert list(json.loads(text)) == [
        "iteration",
        "minus",
        "plus",
        "purpose",
        "run",
        "run_seed",
        "terms",
        "variants",
    ]
    assert b'"plus":{"options":{"Depth":"4","Margin":"220"},"sha256":"aaaa' in text


numbers = st.integers(0, 2**53) | st.floats(0, 1e300)
texts = st.dictionaries(st.text(), st.text())


@pytest.mark.slow
@given(low=numbers, high=numbers, options=texts, common=texts, run=st.text())
def test_a_trip_through_json_changes_no_byte(
    low: float, high: float, options: dict[str, str], common: dict[str, str], run: str
) -> None:
    game_settings = GameSettings(
        time_control=TimeControl(low=low, high=high), engine_options=common
    )
    order = an_order(
        run=run, game_settings=game_settings, plus=SignedSide(sha256="a" * 64, options=options)
    )
    told = GameSettings.from_json(json.loads(json.dumps(game_settings.to_json())))
    back = an_order(
        run=run,
        game_settings=told,
        plus=SignedSide(sha256="a" * 64, options=json.loads(json.dumps(options))),
    )
    assert back.to_bytes() == order.to_bytes()


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    KEY.write(tmp_path / "master.key")
    return tmp_path / "master.key"


def test_a_key_is_kept_in_two_files(key_file: Path) -> None:
    assert oct(key_file.stat().st_mode)[-3:] == "600"
    signature = SigningKey.read(key_file).sign(an_order())
    for said in (str(public_file(key_file)), str(KEY.public)):
        TrustKey.of(said).check(an_order(), signature)


def test_openssl_knows_the_private_key(key_file: Path) -> None:
    read = ["openssl", "pkey", "-in", str(key_file), "-noout", "-text"]
    assert "ED25519" in subprocess.run(read, check=True, capture_output=True, text=True).stdout


def test_no_key_is_overwritten(key_file: Path) -> None:
    before = key_file.read_bytes()
    with pytest.raises(InvalidInput, match="exists already"):
        SigningKey.new().write(key_file)
    assert key_file.read_bytes() == before
    key_file.unlink()
    with pytest.raises(InvalidInput, match=r"\.pub: .*exists already"):
        SigningKey.new().write(key_file)
    assert not key_file.exists()


def test_a_key_that_others_can_read_is_refused(key_file: Path) -> None:
    key_file.chmod(0o640)
    with pytest.raises(InvalidInput, match="chmod 600"):
        SigningKey.read(key_file)


@pytest.mark.parametrize("content", [b"", b"x", b"A" * 43 + b"=", b"\xff" * 40])
def test_what_is_no_key_is_refused_unquoted(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(InvalidInput) as refusal:
        SigningKey.read(path)
    assert str(path) in str(refusal.value)


def test_a_key_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    make = ["openssl", "genpkey", "-algorithm", "X25519", "-out", str(path)]
    subprocess.run(make, check=True, capture_output=True)
    path.chmod(0o600)
    with pytest.raises(InvalidInput, match="another kind"):
        SigningKey.read(path)


@pytest.mark.parametrize("said", ["", "/nowhere/key.pub", "AAAA", "A" * 43, "master.key"])
def test_what_is_no_public_key_is_refused(
    said: str, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(key_file.parent)
    with pytest.raises(InvalidInput, match="key new"):
        TrustKey.of(said)


def test_without_the_library_a_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr("spsa.security.ed25519", raising=False)
    monkeypatch.delitem(sys.modules, "spsa.security.ed25519", raising=False)
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric.ed25519", None)
    with pytest.raises(TuningError, match=r"pip install 'spsa-tuner\[trust\]'"):
        SigningKey.new()


@pytest.fixture
def staged(store: Store) -> Stage:
    return stage(store)


def test_a_claim_carries_what_its_master_signed(staged: Stage) -> None:
    staged.store.open_iteration(staged.master, new_iteration(), KEY.sign)
    claim = staged.claim("a")
    KEY.public.check(order_of(claim), claim.signature)


def test_without_a_key_nothing_is_signed(staged: Stage) -> None:
    staged.open()
    assert staged.claim("a").signature is None


@pytest.fixture
def played(tmp_path: Path) -> Path:
    """A file that is there as soon as any engine of this test was started."""
    return tmp_path / "started"


@pytest.fixture
def offer(staged: Stage, tmp_path: Path, played: Path) -> Callable[..., None]:
    """Opens a signed iteration between two real engines."""

    def open_signed(sign: Any = KEY.sign) -> None:
        sides = {
            name: published(engine(tmp_path, name, moves=moves, log=played))
            for name, moves in (("plus", WINNER), ("minus", LOSER))
        }
        game_settings = GameSettings(time_control=NODES, book=Book(name=str(start_book(tmp_path))))
        new = new_iteration(**sides, plus_options={}, minus_options={}, game_settings=game_settings)
        staged.store.open_iteration(staged.master, new, sign)

    return open_signed


def published(path: Path) -> NewEngine:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return new_engine(path.name, sha256=digest, path=str(path))


def work(store: Store, folder: Path, key: TrustKey | None, batches: int = 1) -> int:
    with Pool(1, PATIENT) as pool:
        cache = EngineCache(folder / "cache", store.engine_bytes, key)
        client = DatabaseClient(store, new_worker("me"), LEASE, QUICK)
        options = WorkerOptions(poll=QUICK, max_batches=batches)
        return Worker(client, pool, cache, options, Interrupts()).run()


@pytest.mark.slow
def test_what_is_signed_is_played(
    staged: Stage, offer: Callable[..., None], played: Path, tmp_path: Path
) -> None:
    offer()
    assert work(staged.store, tmp_path, KEY.public, batches=2) == 0
    assert played.exists()
    assert staged.store.totals(staged.run.id).tally.games == 8


HOSTILE = {
    "no signature": "UPDATE spsa_iteration SET signature = NULL",
    "another program": "UPDATE spsa_iteration SET plus_sha256 = minus_sha256",
    "another level's program": """UPDATE spsa_iteration SET variants =
        '{"x86-64"\\: {"plus"\\: {"sha256"\\: "a", "path"\\: "/bin/sh"},
                       "minus"\\: {"sha256"\\: "a", "path"\\: "/bin/sh"}}}'""",
    "an option": """UPDATE spsa_iteration SET minus_options = '{"Debug Log File": "x.log"}'""",
    "its terms": "UPDATE spsa_iteration SET terms = '{terms}'",
    "its number": "UPDATE spsa_iteration SET iteration_number = 7",
    "its run": "UPDATE spsa_run SET name = 'other'",
    "its openings": "UPDATE spsa_run SET seed = 43",
}


@pytest.mark.slow
@pytest.mark.parametrize("change", HOSTILE)
def test_nothing_runs_that_somebody_changed_in_the_database(
    change: str,
    staged: Stage,
    offer: Callable[..., None],
    played: Path,
    tmp_path: Path,
    sql: Callable[..., list[Any]],
) -> None:
    offer()
    game_settings = GameSettings(time_control=NODES, engine_options={"Debug Log File": "x.log"})
    text = HOSTILE[change].replace(
        "{terms}", json.dumps(game_settings.to_json()).replace(":", "\\:")
    )
    sql(text)
    with pytest.raises(NotSigned):
        work(staged.store, tmp_path, KEY.public)
    assert not played.exists()
    assert not (tmp_path / "cache").exists()
    ((attempt, error),) = sql("SELECT attempt, last_error FROM spsa_batch WHERE seq = 0")
    assert (attempt, "so it is not played" in error) == (1, True)


def test_nothing_runs_that_another_master_signed(
    staged: Stage, offer: Callable[..., None], played: Path, tmp_path: Path
) -> None:
    offer(SigningKey.new().sign)
    with pytest.raises(NotSigned, match=str(KEY.public).replace("+", r"\+")):
        work(staged.store, tmp_path, KEY.public)
    assert not played.exists()


def test_nothing_runs_whose_bytes_somebody_changed(
    staged: Stage, offer: Callable[..., None], played: Path, tmp_path: Path, sql: Any
) -> None:
    """The row is as it was signed, but the path, or the bytes in the database, lead elsewhere."""
    offer()
    evil = engine(tmp_path, "evil", moves=WINNER, log=played, sleep=0.001)
    sql("UPDATE spsa_iteration SET plus_engine_path = :path", path=str(evil))
    sql("UPDATE spsa_engine SET bytes = :content, path = '/nowhere'", content=evil.read_bytes())
    with pytest.raises(TuningError, match="hashes to"):
        work(staged.store, tmp_path, KEY.public)
    assert not played.exists()


def test_a_build_is_not_told_how_to_open_the_database() -> None:
    secrets = dict.fromkeys(("DATABASE_URL", "DATABASE_URL_FILE", "PGPASSWORD", "PGPASSFILE"), "x")
    assert Commands({"PATH": "/bin", **secrets}).environment == {"PATH": "/bin"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_project(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_a_key_is_made_and_shown_on_the_command_line(project: Path) -> None:
    made = call(master("key", "new", "master.key"), project)
    assert made.returncode == 0, made.stderr
    assert call(master("key", "public", "master.key"), project).stdout == made.stdout
    again = call(master("key", "new", "master.key"), project)
    assert (again.returncode, again.stdout) == (2, "")
    assert "exists already" in again.stderr


@pytest.mark.slow
def test_the_command_of_a_worker_refuses_what_is_not_signed(
    staged: Stage, database_url: str, offer: Callable[..., None], played: Path, project: Path
) -> None:
    offer(None)
    flags = ("--spsa", "-c", "1", "--max-batches", "1", "--engines-cache", "cache", "--trust-key")
    done = call(worker(*flags, str(KEY.public)), project, DATABASE_URL=database_url)
    assert done.returncode == 1, done.stderr
    assert "iteration 1 of run first is not signed, so it is not played" in done.stderr
    assert not played.exists()


def test_the_command_of_a_worker_refuses_a_key_that_is_none(project: Path) -> None:
    done = call(worker("--spsa", "--trust-key", "nonsense"), project, DATABASE_URL="sqlite:///x")
    assert done.returncode == 2
    assert "[key]" in done.stderr


@pytest.mark.slow
def test_a_master_without_its_key_starts_nothing(project: Path) -> None:
    config = project / "config.toml"
    config.write_text(config.read_text() + '[trust]\nsigning_key = "master.key"\n')
    done = call(master("run"), project)
    assert done.returncode == 2
    assert "trust.signing_key" in done.stderr
    assert "key new FILE" in done.stderr
    assert not (project / "spsa.db").exists()
