"""Whatever is typed behind `compete`: a sentence, or it can be played."""

import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import pytest
from console import OWN
from console import compete as run_compete
from engines.faulty import engine

from spsa.core.game_settings import DrawRule, ResignRule, TimeControl, TimeKind
from spsa.errors import InvalidInput
from worker import cli
from worker.batches.service import server_of
from worker.direct import private_url
from worker.match.command import match_of
from worker.match.report import Match
from worker.replay import place_of
from worker.settings import Settings

EPD = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq -"
PGN = '[Event "?"]\n\n1. e4 e5 2. Nf3 (2. f4 exf4) 2... Nc6 {a remark} 3. Bb5 a6 *\n\n'
LONG_PATH = "/" + "x" * 5000
MATCH = ("engine", "engine", "--games", "4")


@pytest.fixture(scope="module", autouse=True)
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with one of each kind of file; it is the present one."""
    folder = tmp_path_factory.mktemp("places")
    engine(folder, "engine", moves="e2e4")
    (folder / "book.epd").write_text(EPD + "\n")
    (folder / "book.pgn").write_text(PGN)
    (folder / "url").write_text("sqlite:///spsa.db\n")
    os.mkfifo(folder / "pipe")
    before, logger = Path.cwd(), logging.getLogger("worker")
    handlers, level, propagate = logger.handlers, logger.level, logger.propagate
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", "/dev/null/none")
        for name in OWN:
            patch.delenv(name, raising=False)
        os.chdir(folder)
        yield folder
        os.chdir(before)
    logger.handlers, logger.level, logger.propagate = handlers, level, propagate


def ready(typed: Sequence[str]) -> Match | Settings | None:
    """As far as `compete` goes before it starts a process; None where it ends by itself."""
    try:
        given = dict(cli.compete.make_context("compete", list(typed)).params)
    except click.exceptions.Exit:  # --help, --version
        return None
    engines, settings = given.pop("engines"), Settings(**given)
    cli.check(engines, settings)
    limits = settings.engine_limits()
    assert 0 <= (limits.memory or 0) < 2**63 and 0 <= limits.file_size < 2**63
    assert 1 <= settings.concurrency <= 4096
    if settings.replay:
        place_of(settings.replay)
    if not (settings.is_worker or settings.replay):
        return match_of(*engines, settings)
    if server_of(settings, os.environ) is None:
        private_url(settings.database_url, settings.database_url_file)
    return settings


MATCH_REFUSED = [
    (("--sprt", "0", "1e308"), "-200"),
    (("--sprt", "nan", "5"), "finite"),
    (("--draw", "0", "0", "0"), "1<=x<=1000"),
    (("--option", "Hash=1\nquit"), r"'Hash=1\nquit' is not NAME=VALUE"),
    (("--option2", "Hash=" + "1" * 20_000), "10000 printable"),
    (("--tc", "999999999+1"), "at most 86400 seconds"),
    (("--book", "/dev/zero"), "268,435,456 bytes"),
    (("--book", LONG_PATH), "File name too long"),
    (("--games", "3"), "odd"),
    (("--chess960",), "--chess960 needs a --book"),
    (("--tc", "x"), "BASE[+INC]"),
    (("--tc", "nodes=5"), "BASE[+INC]"),
    (("--sprt", "5", "0"), "less than"),
    (("--nodes", "2", "--depth", "3"), "one of"),
    (("--option", "Hash"), "NAME=VALUE"),
    (("--book", "/nowhere.epd"), "/nowhere.epd"),
]
WORKER_REFUSED = [
    (("--name", "a\nb"), r"'a\nb' is not a text of 1 to 200 printable"),
    (("--label", "Fast_1"), "'Fast_1' is not a word of at most 40 small letters"),
    (("--label", "x86-64-v4"), "the worker knows that by itself"),
    (("--lease", "9.9"), "10.0<=x"),
    (("--database-url-file", "pipe"), "16,777,216 bytes"),
    (("--database-url", "sqlite:///x", "--database-url-file", "url"), "not both"),
    (("--database-url", f"sqlite://{LONG_PATH}"), "sqlite:///"),
    (("--server", "http://127.0.0.1:9", "--token-file", "/dev/zero"), "regular file"),
    (("--server", "ftp://h", "--token-file", "url"), "other parts than https"),
    (("engine",), "take those of a run"),
    (("-c", "4096"), "--force"),
    ((), "DATABASE_URL"),
    (("--database-url", "nonsense"), "--database-url: [database.url] is not the URL of"),
]
URL = "https://tuning.example.org"
TOKEN = {"SPSA_TOKEN": "t"}
URLS = [
    ("http://192.168.0.7:8000", "unencrypted"),
    ("http://127.0.0.1.example.org", "add --plain-http"),
    ("https://user:secret@example.org", "other parts than https"),
    ("https://example.org/?token=secret", "other parts"),
    ("example.org", "no URL"),
    ("https://example.org:port", "no URL"),
    ("https://example.org/\r\nX: y", "no URL"),
    ("https://[::1", "no URL"),
]
CONTRADICTIONS = [
    ((), {}, "two engines"),
    (("engine", "/nowhere/engine"), {}, "does not exist"),
    (("engine", "engine"), {}, "--games"),
    (("--server", URL), {}, "a server needs this machine's token: set SPSA_TOKEN"),
    (("--server", URL), {"SPSA_TOKEN": "two words"}, "has other characters than a token"),
    (("--server", URL, "--token-file", "none"), {}, "No such file"),
    (("--server", URL, "--database-url", "sqlite:///x"), {}, "not both"),
    (("--spsa",), {"SPSA_SERVER": URL, "DATABASE_URL": "sqlite:///x"}, "are both set"),
    (("--spsa", "--plain-http"), {"DATABASE_URL": "sqlite:///x"}, "go with --server"),
    (("--server", URL, "--replay", "1.1"), {}, "--replay reads the database"),
    (("--spsa",), {"SPSA_CONFIG": "/dev/zero"}, "cannot be read"),
]


@pytest.mark.parametrize(
    ("typed", "variables", "said"),
    [
        *(((*MATCH, *typed), {}, said) for typed, said in MATCH_REFUSED),
        *((("--spsa", *typed), {}, said) for typed, said in WORKER_REFUSED),
        *((("--server", url), TOKEN, said) for url, said in URLS),
        *CONTRADICTIONS,
    ],
)
def test_a_wrong_command_line_is_refused_in_a_sentence(typed, variables, said, monkeypatch):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises((click.ClickException, InvalidInput)) as caught:
        ready(typed)
    error = caught.value
    text = error.format_message() if isinstance(error, click.ClickException) else str(error)
    assert error.exit_code == 2
    assert said in text and "secret" not in text
    assert all(line.isprintable() and len(line) <= 1_600 for line in text.split("\n"))


def test_a_cache_that_cannot_be_is_refused_before_a_claim(places, sqlite_url):
    done = run_compete("--spsa", "--once", DATABASE_URL=sqlite_url, XDG_CACHE_HOME=LONG_PATH)
    assert (done.returncode, done.stdout) == (2, ""), done
    assert "File name too long" in done.stderr and "Traceback" not in done.stderr


def test_what_is_right_is_taken():
    found = ready([*MATCH, "--sprt", "-5", "5", "--draw", "7", "2", "9", "--resign", "4", "300"])
    assert isinstance(found, Match) and found.bounds == (-5, 5)
    assert (found.first.name, found.second.name) == ("engine (1)", "engine (2)")
    rules = found.settings.adjudication
    assert rules.draw == DrawRule(move_number=7, count=2, score=9)
    assert rules.resign == ResignRule(count=4, score=300)
    found = ready(
        [*MATCH, "--tc", "40/86400+86400", "--option", "Hash=ß \u265e", "--book", "book.pgn"]
    )
    assert isinstance(found, Match) and found.first.options == {"Hash": "ß \u265e"}
    assert found.settings.time_control == TimeControl(
        kind=TimeKind.CLOCK, low=86_400, high=86_400, increment=86_400, moves=40
    )
    typed = "--spsa --database-url sqlite:///s.db --run b --run a --label z --label a.1"
    served = ready([*typed.split(), "--not", "c d", "--name", "x" * 200])
    assert isinstance(served, Settings)
    assert (served.only_runs, served.not_runs) == (("b", "a"), ("c d",))
    assert served.labels == ("z", "a.1")
