"""Text for people: numbers, tables that fit, and a display that costs no run."""

import io
import json

import pytest
from rich.console import Console

from spsa.core.scoring import Tally
from spsa.live_display import Rate
from spsa.report.progress import Progress
from spsa.report.runs import duration
from spsa.report.status import plain
from spsa.report.table import Column, FittedTable
from spsa.report.text import elo_text, number, plural, score

WIDE = Tally.of_pair(2, 1) + Tally.of_pair(1, 1) + Tally.of_pair(2, 0)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0s"), (59.6, "1m 0s"), (250, "4m 10s"), (4800, "1h 20m"), (183_600, "2d 3h")],
)
def test_a_duration_has_two_units(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_numbers_as_people_read_them() -> None:
    assert (number(0.30000000000000004), number(560.0)) == ("0.3", "560")
    assert (number(1234567.8), number(-999999.9)) == ("1234568", "-1000000")
    assert (plural(1, "worker"), plural(0, "worker")) == ("1 worker", "0 workers")


def test_a_score_without_games_has_no_elo() -> None:
    assert elo_text(Tally()) == "-"
    assert "Elo" not in score(Tally()) and "Elo" in score(WIDE)


def drawn(width: int, *, long: str = "x" * 20) -> str:
    table = FittedTable(
        "things",
        (
            Column("name", is_number=False),
            Column("first"),
            Column("second", 1),
            Column("third", 2),
            Column("empty", 1),
        ),
    )
    table.add(long, "1", "2", "3", "")
    console = Console(file=io.StringIO(), width=width)
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_table_gives_up_the_least_important_columns_first() -> None:
    assert "third" in drawn(80) and "empty" not in drawn(80)
    assert "third" not in drawn(38) and "second" in drawn(38)
    assert "second" not in drawn(30) and "first" in drawn(30)
    for width in (80, 38, 30):
        assert "x" * 20 in drawn(width)
    assert drawn(15).count("x") == 20, "folded, never cut"


def test_json_has_no_word_for_infinity_and_no_password() -> None:
    found = plain(
        {
            "a": float("inf"),
            "b": [float("nan"), 1.5],
            "c": (True, None, "inf", "no postgresql://me:secret@host/db"),
        }
    )
    assert json.loads(json.dumps(found, allow_nan=False)) == {
        "a": None,
        "b": [None, 1.5],
        "c": [True, None, "inf", "no postgresql://me:***@host/db"],
    }


class Broken(io.StringIO):
    """A terminal that is gone."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error
        self.writes = 0

    def write(self, text: str) -> int:
        self.writes += 1
        raise self.error

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    "error", [BrokenPipeError(), OSError(5, "gone"), ValueError("closed"), KeyError("x")]
)
@pytest.mark.parametrize("live", [True, False])
def test_a_display_that_fails_is_switched_off(error: BaseException, live: bool) -> None:
    broken = Broken(error)
    console = Console(file=broken, force_terminal=live)
    with Progress(console, Tally(), {"margin": 20.0}) as progress:
        progress.opened(1, Gains())
        writes = broken.writes
        progress.opened(2, Gains())
    assert broken.writes == writes


class Gains:
    c_k = 1.0
    a_k = 0.5


def test_an_interrupt_is_no_fault_of_the_display() -> None:
    console = Console(file=Broken(KeyboardInterrupt()), force_terminal=False)
    with pytest.raises(KeyboardInterrupt), Progress(console, Tally(), {}) as progress:
        progress.opened(1, Gains())


def test_the_pace_is_that_of_the_last_two_minutes() -> None:
    games = Rate(120.0)
    games.saw(0.0, 0)
    assert games.per_second is None
    games.saw(60.0, 30)
    assert games.per_second == 0.5
    games.saw(170.0, 140)
    assert games.per_second == 1.0
