"""Whatever is typed behind `compete`: a sentence, or it can be played."""

import logging
import os
import re
import shlex
import stat
import sys
from functools import reduce
from math import inf
from pathlib import Path
from unittest.mock import Mock

import click
import pytest
from console import OWN
from console import compete as run_compete
from engines.faulty import engine
from golden import compare_cases

from spsa.core.game_settings import GameSettings, TimeControl
from spsa.core.json_values import to_json
from spsa.errors import InvalidInput, report_defect
from worker import cli
from worker.batches.service import server_of
from worker.direct import machine_secret, private_url
from worker.match import PlainMatch, match_of
from worker.replay import place_of
from worker.settings import Settings

EPD = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq -"
PGN = '[Event "?"]\n\n1. e4 e5 2. Nf3 (2. f4 exf4) 2... Nc6 {a remark} 3. Bb5 a6 *\n\n'
LONG_PATH = "/" + "x" * 5000


@pytest.fixture(scope="module", autouse=True)
def places(tmp_path_factory):
    """A folder with one of each kind of file; it is the present one."""
    folder = tmp_path_factory.mktemp("places")
    engine(folder, "engine", moves="e2e4")
    (folder / "book.epd").write_text(EPD + "\n")
    (folder / "book.pgn").write_text(PGN)
    for name, text in (("url", "sqlite:///spsa.db"), ("token", "t"), ("words", "two words")):
        (folder / name).write_text(f"{text}\n")
        (folder / name).chmod(0o644 if name == "url" else 0o600)
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


def ready(typed):
    """As far as `compete` goes before it starts a process."""
    given = dict(cli.compete.make_context("compete", list(typed)).params)
    engines, settings = given.pop("engines"), Settings(**given)
    cli.check(engines, settings)
    limits = settings.engine_limits()
    assert 0 <= (limits.memory or 0) < 2**63 and 0 <= limits.file_size < 2**63
    assert 1 <= settings.concurrency <= 4096
    return settings if settings.is_worker or settings.replay else match_of(*engines, settings)


def match_shown(found):
    """Who plays, between which bounds, and what is set otherwise than by default."""
    plus, minus, settings = found.template.plus, found.template.minus, found.template.settings
    usual = to_json(GameSettings(time_control=TimeControl(low=1.0, high=1.0)))
    unusual = {name: value for name, value in to_json(settings).items() if value != usual[name]}
    return f"{plus.name} {dict(plus.options)}, {minus.name}, {found.settings.sprt}: {unusual}"


def played(settings):
    """Where a worker plays and with which token; where a replay finds its batch, and which."""
    if isinstance(settings, PlainMatch):
        return match_shown(settings)
    batch = place_of(settings.replay) if settings.replay else None
    served = server_of(settings, os.environ)
    url = private_url(settings.database_url, settings.database_url_file) if not served else ""
    where = url or "{}, {}".format(*served)
    until = f", until {settings.idle_limit:g} s without work" if settings.idle_limit < inf else ""
    if settings.labels:
        until += f", as {settings.labels}: {settings.only_runs}, not {settings.not_runs}"
    return f"{where}, {batch}" if batch else where + until


NAMED = {"{long}": LONG_PATH, "{many}": "1" * 20_000, "{newline}": "\r\n"}
MASKED = (
    (r"x{99,}", "{long}"),
    (r"(?<= on )\d+(?= cores)|(?<=give )\d+", "{cores}"),
    (r"\S*/places\d+", "{here}"),
)


def test_a_command_line_is_refused_in_a_sentence_or_says_where_to_play(capsys):
    def shown(files):
        typed = shlex.split(files.pop("typed"))
        for name, text in NAMED.items():
            typed = [word.replace(name, text) for word in typed]
        with pytest.MonkeyPatch.context() as patch:
            for name, value in files.items():
                if name.endswith(".toml"):
                    Path(name).write_text(value + "\n")
                else:
                    patch.setenv(name, value)
            try:
                text = played(ready(typed))
                assert not {"DATABASE_URL", "SPSA_TOKEN"} & os.environ.keys()
            except (click.ClickException, InvalidInput) as error:
                assert error.exit_code == 2
                told = isinstance(error, click.ClickException)
                text = error.format_message() if told else str(error)
        Path("config.toml").unlink(missing_ok=True)
        for line in (text + "\n" + capsys.readouterr().err).strip("\n").split("\n"):
            assert line.isprintable() and len(line) <= 1_600
            assert "secret" not in line or "warning" in text
            yield reduce(lambda said, mask: re.sub(*mask, said), MASKED, line)

    compare_cases(Path(__file__).with_name("arguments.txt"), shown)


def test_a_defect_is_a_sentence_unless_its_traceback_is_asked_for(monkeypatch):
    for name, done in (("exit_code", 3), ("write_any_text", None)):
        monkeypatch.setattr(cli, name, Mock(return_value=done))
    for debug, hook in (("", report_defect), ("1", None)):
        monkeypatch.setenv("SPSA_DEBUG", debug)
        monkeypatch.setattr(sys, "excepthook", None)
        with pytest.raises(SystemExit, match="3"):
            cli.main()
        assert sys.excepthook is hook


def test_a_cache_that_cannot_be_is_refused_before_a_claim(places, sqlite_url):
    done = run_compete("--spsa", "--once", DATABASE_URL=sqlite_url, XDG_CACHE_HOME=LONG_PATH)
    assert (done.returncode, done.stdout) == (2, ""), done
    assert "File name too long" in done.stderr and "Traceback" not in done.stderr


def test_a_machine_keeps_its_secret_where_nobody_else_reads_it(tmp_path):
    folder, nowhere = tmp_path / "new" / "cache", Path("/dev/null/none")
    secret, *others = map(machine_secret, (folder, folder, nowhere, nowhere))
    assert others[0] == secret and len({*others}) == 3 and {*map(len, others)} == {64}
    kept = [folder, *folder.iterdir()]
    assert [stat.S_IMODE(path.stat().st_mode) for path in kept] == [0o700, 0o600]
