"""Formats for people, tables that fit, one description for all renderings; a display that fails."""

import csv
import io
import json
from ast import literal_eval
from dataclasses import dataclass, fields, replace
from pathlib import Path

import pytest
from builders import stage
from golden import compare_cases
from rich.console import Console
from served import space

from spsa.core.scoring import Tally
from spsa.report import table
from spsa.report.parameters import ParameterStatus, sparkline
from spsa.report.screen import Progress
from spsa.text import plural

WIDE = Tally.of_pair(2, 1) + Tally.of_pair(1, 1) + Tally.of_pair(2, 0)


def test_values_as_people_read_them():
    told = {"plural": plural, "sparkline": sparkline}

    def shown(files):
        for name, text in files.items():
            format = told.get(name) or getattr(table, name)
            yield from (repr(format(*literal_eval(f"{line},"))) for line in text.split("\n"))

    compare_cases(Path(__file__).with_name("values.txt"), shown)


def test_a_score_without_games_has_no_elo():
    assert table.elo_text(Tally()) == "-"
    assert "Elo" not in table.score(Tally()) and "Elo" in table.score(WIDE)


def test_a_supported_theta_is_shown_where_it_is_another_one():
    margin = space(1).parameters[0]
    known = {one.name: getattr(margin, one.name) for one in fields(margin)}
    known["better_step"] = None
    for supported, shown in ((None, None), (200.00001, None), (199.9, 199.9)):
        status = ParameterStatus(**known, start=150.0, played=200, supported=supported)
        assert status.other_supported == shown
    values = ((59.0, 150.0), (61.0, 150.0), (989.0, 150.0), (991.0, 150.0), (59.0, 52.0))
    bounds = [replace(status, minimum=50.0, value=v, start=s).bound for v, s in values]
    assert bounds == ["min", "", "", "max", ""], "the last moves away from its bound"


def drawn(width):
    columns = table.headed("name", "first", "second", "third", "empty")
    ranks = (0, -1, 1, 2, -1)
    ranked = tuple(replace(c, rank=rank) for c, rank in zip(columns, ranks, strict=True))
    things = table.View("things", ranked)
    return printed(width, table.TextTable(things, [("x" * 20, "1", "2", "3", "")]))


def printed(width, table):
    file = io.StringIO()
    Console(file=file, width=width).print(table)
    return file.getvalue()


def test_a_table_gives_up_the_least_important_columns_first():
    assert "third" in drawn(80) and "empty" not in drawn(80)
    assert "third" not in drawn(38) and "second" in drawn(38)
    assert "second" not in drawn(30) and "first" in drawn(30)
    for width in (80, 38, 30):
        assert "x" * 20 in drawn(width)
    assert drawn(15).count("x") == 20, "folded, never cut"
    for length, kept in ((60, False), (61, True)):
        columns = (table.Column("", "text", lambda row: row[0], kind="text"), *table.headed("no"))
        view = table.View("", (columns[0], replace(columns[1], get=lambda row: row[1], rank=1)))
        assert ("no" in printed(40, table.TextTable(view, [("x" * length, "1")]))) == kept


@dataclass(frozen=True)
class Thing:
    name: str
    rate: float | None
    tally: Tally
    inner: "Thing | None" = None


THINGS = table.View(
    "things",
    (
        table.Column("name", "name", kind="name"),
        table.Column("rate", "games/h", show="{:.1f}".format),
        table.Column("", "Elo", "tally", table.elo_text),
        table.Column("inner_name", "", "inner.name"),
        *table.values("tally"),
    ),
)
ROWS = [Thing("=cmd()", 1.25, WIDE, Thing('a"b\nc', None, Tally())), Thing("t2", None, Tally())]


def test_one_description_makes_text_json_and_csv():
    title, *lines = printed(99, table.TextTable(THINGS, ROWS)).splitlines()
    assert lines[0] == "name    games/h        Elo" and title.rstrip() == "things"
    assert lines[1:] == ["=cmd()      1.2  +58 ± 152", "t2                       -"]
    first, second = table.records(THINGS, ROWS)
    assert list(first) == ["name", "rate", "inner_name", "tally"]
    assert (first["inner_name"], second["inner_name"]) == ('a"b\nc', None)
    assert first["tally"]["wins"] == WIDE.wins and second["tally"]["elo"] is None
    text = table.csv_of(THINGS, ROWS[:1]).decode()
    (row,) = csv.DictReader(io.StringIO(text))
    assert "\r" not in text and table.csv_of(THINGS, ()) == b"name,rate,inner_name,tally\n"
    assert (row["name"], row["rate"], row["inner_name"]) == ("'=cmd()", "1.25", 'a"b\\nc')
    assert [int(row[f"pentanomial_{i}"]) for i in range(5)] == list(WIDE.pentanomial)


def test_json_has_no_word_for_infinity_and_no_password():
    told = (True, None, "inf", "no postgresql://me:secret@host/db")
    found = table.plain({"a": float("inf"), "b": [float("nan"), 1.5], "c": told})
    shown = [True, None, "inf", "no postgresql://me:***@host/db"]
    assert json.loads(json.dumps(found, allow_nan=False)) == {
        "a": None,
        "b": [None, 1.5],
        "c": shown,
    }
    assert table.sentence("a\nb\x1b").plain == "a\\nb\\x1b"


class Broken(io.StringIO):
    """A terminal that is gone."""

    def __init__(self, error):
        super().__init__()
        self.error = error
        self.writes = 0

    def write(self, text):
        self.writes += 1
        raise self.error

    def isatty(self):
        return True


class Gains:
    c_k = 1.0
    a_k = 0.5
    k = 1


def test_a_terminal_gets_names_and_numbers_as_they_are(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    table.terminal().print("12 [b]x[/b] :warning: 'y'")
    assert capsys.readouterr().out == "12 [b]x[/b] :warning: 'y'\n"


@pytest.mark.parametrize(
    ("error", "live"),
    [(BrokenPipeError(), True), (OSError(5, "gone"), False), (KeyError("x"), True)],
)
def test_a_display_that_fails_is_switched_off(error, live, sqlite_store):
    broken = Broken(error)
    run = stage(sqlite_store, space(), 0).run
    with Progress(Console(file=broken, force_terminal=live), sqlite_store, run) as progress:
        progress.opened(1, Gains())
        writes = broken.writes
        progress.opened(2, Gains())
    assert broken.writes == writes > 0
