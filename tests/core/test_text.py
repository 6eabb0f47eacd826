"""Text of others on a terminal, in a log, in HTML and in a report: one printable line."""

import errno
import html
import io
import json
import logging
import math
import sys
import unicodedata
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from unittest.mock import Mock

import click
import pytest
from fuzzing import NASTY, Chance, fuzz, made
from golden import compare_cases
from hypothesis import example, given
from hypothesis import strategies as st

from spsa import errors
from spsa.core import game_settings
from spsa.core.game_settings import TimeControl
from spsa.core.parameter import Constraint, Location
from spsa.core.scoring import chi_square_tail
from spsa.core.uci_options import Declarations
from spsa.errors import BuildFailed, EngineFault, Fault, InvalidInput, TuningError, report_defect
from spsa.output import PrintableLines, echo, echo_json, exit_code, write_any_text
from spsa.text import (
    ELLIPSIS,
    FAILURE_LENGTH,
    html_with_commands,
    is_printable,
    plural,
    printable,
    suggestion,
    without_passwords,
    words_of,
)

FORGED = "box\x1b[2J\x1b]0;title\x07\r\nrun first: finished\u202e\u2028\x9b31m\0\ud800"
SHOWN = r"box\x1b[2J\x1b]0;title\x07\r\nrun first: finished\u202e\u2028\x9b31m\x00\ud800"
DANGEROUS = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def is_one_line(text):
    return not any(unicodedata.category(c) in DANGEROUS for c in text)


@given(text=made(Chance.text), limit=st.integers(1, 300))
@example(text="\ud800" * 300, limit=1)
@fuzz()
def test_any_text_is_one_bounded_line(text, limit):
    shown = printable(text, limit)
    assert is_one_line(shown) and len(shown) <= limit
    shown.encode()
    assert printable(shown, limit) == shown
    assert is_printable(text, limit) == (shown == text != "")
    if text.isprintable() and len(text) <= limit:
        assert shown == text


@given(text=made(Chance.text))
@example(text='"><script>alert(1)</script>')
@example(text="' onclick='x")
@example(text="&amp;")
@fuzz()
def test_text_in_html_is_text(text):
    text = text.replace("`", "'")
    escaped = html_with_commands(text, 200)
    seen: list[str] = []
    reader = HTMLParser(convert_charrefs=True)
    reader.handle_starttag = lambda tag, attributes: seen.extend(
        [tag, *(value or "" for _, value in attributes)]
    )
    reader.handle_data = seen.append
    reader.feed(f'<p title="{escaped}">{escaped}')
    reader.close()
    wanted = printable(text, 200)
    assert seen == ["p", wanted, *([wanted] if wanted else [])]
    assert html.unescape(escaped) == wanted


@pytest.mark.parametrize("stream", ["out", "err"])
def test_a_line_of_output_stays_one_line(stream, capsys):
    echo(FORGED, "second", err=stream == "err")
    assert getattr(capsys.readouterr(), stream) == f"{SHOWN}\nsecond\n"


def test_json_is_printable_and_whole(capsys):
    value = {"name": FORGED + "\x7f", "long": "x" * 50_000}
    echo_json(value)
    said = capsys.readouterr().out
    assert said.isascii() and said.rstrip("\n").isprintable()
    assert json.loads(said) == value
    echo_json([1], indent=2)
    assert capsys.readouterr().out == "[\n  1\n]\n"
    with pytest.raises(ValueError, match="not JSON compliant"):
        echo_json(math.nan)


def test_what_an_encoding_lacks_is_replaced(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw := io.BytesIO(), encoding="ascii"))
    write_any_text()
    echo("± 柳")
    sys.stdout.flush()
    assert raw.getvalue() == b"? ?\n"


def test_errors_are_a_line_each_and_a_compilers_words_are_more(capsys):
    fault = Fault(file="x" * 9000, line=7, name=FORGED, found="y" * 9000, remedy="mend it")
    for error in (
        TuningError(f"paused: {FORGED}"),
        InvalidInput([fault, replace(fault, line=8), fault]),
        BuildFailed("cargo ended\n\x1b[31merror\x1b[0m: no"),
    ):
        assert exit_code("spsa-master", Mock(side_effect=error)) == error.exit_code
    for failed, code in (
        (click.UsageError("\t" + "x" * 1_500), 2),
        (OSError(errno.EROFS, "why", "x"), 1),
        (click.Abort(), 130),
    ):
        assert exit_code("spsa-master", Mock(side_effect=failed)) == code
    *lines, usage, file = capsys.readouterr().err.splitlines()
    assert file.startswith("spsa-master: x: why; change its permissions")
    assert (usage[:9], usage[499:502], len(usage)) == ("Error:  x", f"x{ELLIPSIS}x", 1_001)
    assert lines[0] == f"spsa-master: paused: {SHOWN}"
    assert lines[1].startswith("xxx") and f"{ELLIPSIS}:8: [box" in lines[2]
    assert all(len(line) < 1_600 for line in lines[1:3])
    assert lines[3] == "2 faults; nothing was done"
    assert lines[4:] == ["spsa-master: cargo ended", r"\x1b[31merror\x1b[0m: no"]


def test_a_defect_is_told_without_the_statement_that_met_it(capsys):
    error = ValueError("bigint out of range \x1b[2J\n\n[SQL: SELECT 'secret']\n[parameters: 1]")
    report_defect(ValueError, error, None)
    said = capsys.readouterr().err
    assert r"ValueError: bigint out of range \x1b[2J" in said
    assert "SQL" not in said and "secret" not in said and len(said.splitlines()) == 2


@pytest.mark.parametrize("nasty", [*NASTY, FORGED])
def test_a_record_of_a_log_is_one_line(nasty):
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(PrintableLines())
    log = logging.Logger("worker")
    log.addHandler(handler)
    log.warning("pair 1 void: %s", nasty)
    try:
        raise ValueError(f"{nasty}12:00:00 all is well")
    except ValueError:
        log.exception("a slot met a defect")
    first, second, *trace = stream.getvalue().removesuffix("\n").split("\n")
    assert is_one_line(first) and is_one_line(second)
    assert all(is_one_line(line) and line.startswith("  ") for line in trace if line)
    assert trace


def test_what_an_engine_said_is_bounded_where_it_becomes_a_fault():
    fault = EngineFault(FORGED * 100, FORGED * 1000)
    assert is_one_line(str(fault)) and len(str(fault)) == FAILURE_LENGTH
    assert is_one_line(fault.reason) and len(fault.reason) == 200


ERRORS = {f"{name} x": (number, "why", "x") for number, name in errno.errorcode.items()}
ERRORS["nowhere"] = (errno.ENOSPC, "why")


def divided(text):
    """These shares of the games of three batches, by one seed."""
    shares = [float(share) for share in text.split()]
    parts = game_settings.whole_parts(shares), game_settings.divided_by_shares(10, shares)
    batches = list(game_settings.assigned([4, 4, 2], shares, 7))
    return repr((*parts, game_settings.games_by_share(10, shares, 7), batches))


def option(text):
    """What the line before ` = ` declares, and what is sent for the value behind it."""
    line, _, value = text.partition(" = ")
    declared = Declarations()
    declared.read_line(line)
    for one in declared.by_name.values():
        sent = one.objection(value) or declared.command(one.name.upper(), value)
        return f"{one.default}, {one.low}..{one.high}, {one.choices}: {sent!r}"
    return "nothing"


def test_what_is_read_or_shown_of_short_texts():
    kinds = {
        "location": Location.parse,
        "limit": TimeControl.parse,
        "constraint": Constraint.parse,
        "passwords": without_passwords,
        "words": lambda text: words_of(text, 100),
        "html": lambda text: html_with_commands(text, 100),
        "clamped": lambda text: repr(
            (game_settings.clamped(text, 100), game_settings.counted(text, 100))
        ),
        "scaled": lambda text: f"{TimeControl.parse(text).scaled(2.5)}, {TimeControl.parse(text)}",
        "shares": divided,
        "tail": lambda text: f"{chi_square_tail(*map(int, text.split())):.9g}",
        "failure": lambda text: repr(errors.file_failure(OSError(*ERRORS[text]))),
        "option": option,
        "suggestion": lambda text: suggestion(text, ("king", "Knight", "queen", "queens")),
        "printable": lambda text: printable(text.encode().decode("unicode_escape"), 20),
        "count": lambda text: plural(int(text), "batch", "es"),
    }

    def shown(files):
        ((kind, text),) = files.items()
        try:
            found = kinds[kind](text)
        except ValueError as refused:
            return [f"refused: {refused}"]
        if kind == "location":
            assert str(found) == text
        return [found if isinstance(found, str) else repr(found)]

    compare_cases(Path(__file__).with_name("texts.txt"), shown)
    assert html_with_commands("`" + "x" * 50 + "`", 10) == "`xxxxxxxx…"
    assert words_of("a_\n", 100) == [r"a_\n"]
