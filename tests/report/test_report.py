"""Formats for people, tables that fit, one description for all renderings; a display that fails."""

import csv
import io
import json
from dataclasses import dataclass, fields, replace
from math import nextafter

import pytest
from builders import stage
from rich.console import Console
from served import space

from spsa.core.scoring import Tally
from spsa.report import table
from spsa.report.parameters import ParameterStatus, sparkline
from spsa.report.screen import Progress
from spsa.text import plural

WIDE = Tally.of_pair(2, 1) + Tally.of_pair(1, 1) + Tally.of_pair(2, 0)


def test_a_duration_has_two_units():
    seconds = (0, 0.42, 4.0, 4.24, 59.6, 250, 4800, 183_600, None)
    said = ["0s", "0.4s", "4s", "4.2s", "1m 0s", "4m 10s", "1h 20m", "2d 3h", ""]
    assert [*map(table.duration, seconds)] == said


def test_numbers_as_people_read_them():
    assert (table.number(0.30000000000000004), table.number(560.0), table.number(None)) == (
        "0.3",
        "560",
        "",
    )
    assert (table.number(1234567.8), table.number(-999999.9)) == ("1234568", "-1000000")
    assert (plural(1, "worker"), plural(0, "worker")) == ("1 worker", "0 workers")
    assert plural(4000, "game") == "4,000 games"
    assert (table.ago(12.3), table.by("{:.0f}", 1e-3)(12_300.0), table.by("{}")(None)) == (
        "12s ago",
        "12",
        "",
    )
    assert (table.plus_minus(14.53, 31.0), table.plus_minus(100.4, 254.0)) == (
        "+14.5 ± 31.0",
        "+100 ± 254",
    )


def test_a_score_without_games_has_no_elo():
    assert (table.elo_text(Tally()), table.elo_text(None)) == ("-", "")
    assert "Elo" not in table.score(Tally()) and "Elo" in table.score(WIDE)


def test_a_sparkline_has_a_character_a_point():
    assert (sparkline([1.0]), sparkline([2.0, 2.0]), sparkline([-1e300, 1e300])) == ("", "▁▁", "▁█")
    assert sparkline([float(i) for i in range(8)]) == "▁▂▃▄▅▆▇█"


def test_a_supported_theta_is_shown_where_it_is_another_one():
    margin = space(1).parameters[0]
    known = {one.name: getattr(margin, one.name) for one in fields(margin)}
    known |= dict.fromkeys(("averaged", "averaged_sd", "supported_sd", "better_step"))
    for supported, shown in ((None, None), (nextafter(200.0, 0.0), None), (199.9, 199.9)):
        status = ParameterStatus(**known, start=150.0, played=200, supported=supported)
        assert status.other_supported == shown


def drawn(width):
    columns = table.headed("name", "first", "second", "third", "empty")
    ranks = (0, 0, 1, 2, 1)
    ranked = tuple(replace(c, rank=rank) for c, rank in zip(columns, ranks, strict=True))
    return printed(
        width, table.TextTable(table.View("things", ranked), [("x" * 20, "1", "2", "3", "")])
    )


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
        table.Column("rate", "games/h", show=table.by("{:.1f}")),
        table.Column("", "Elo", "tally", table.elo_text),
        table.Column("inner_name", "", "inner.name"),
        *table.values("tally"),
    ),
)
ROWS = [Thing("=cmd()", 1.25, WIDE, Thing('a"b\nc', None, Tally())), Thing("t2", None, Tally())]


def test_one_description_makes_text_json_and_csv():
    lines = [line.split() for line in printed(99, table.TextTable(THINGS, ROWS)).splitlines()]
    assert lines[:2] == [["things"], ["name", "games/h", "Elo"]]
    assert lines[2][:2] == ["=cmd()", "1.2"] and lines[3] == ["t2", "-"]
    first, second = table.records(THINGS, ROWS)
    assert list(first) == ["name", "rate", "inner_name", "tally"]
    assert (first["inner_name"], second["inner_name"]) == ('a"b\nc', None)
    assert first["tally"]["wins"] == WIDE.wins and second["tally"]["elo"] is None
    row, _ = csv.DictReader(io.StringIO(table.csv_of(THINGS, ROWS).decode()))
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
