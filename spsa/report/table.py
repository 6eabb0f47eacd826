"""How values and tables are written: for people, as JSON, as CSV; pages take the same columns.

A table is one list of columns. Adding a column is adding one line to a `View`. Names and reasons
may be of anybody: each renderer makes them safe for its own format.
"""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import datetime
from functools import reduce
from io import StringIO
from math import isfinite
from operator import methodcaller
from typing import Any, Literal

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from spsa.core.scoring import Estimate, Tally, elo
from spsa.text import LINE_LENGTH, NAME_LENGTH, printable, without_passwords

count = "{:,}".format
"""`12,345`"""

percent = "{:.0%}".format
"""`12%`"""

spaced = methodcaller("replace", "_", " ")
"""`in progress` of `in_progress`."""


def unless_zero(value: int) -> str:
    """A count for a cell, which is empty where there is none."""
    return count(value) if value else ""


def thousands(value: float) -> str:
    """`12` of 12,300: as knps are written."""
    return f"{value / 1000:,.0f}"


def number(value: float) -> str:
    """A value with the digits that matter; a large one with all of its whole digits."""
    return f"{value:.0f}" if 999_999.5 <= abs(value) < 1e15 else f"{value:.6g}"


def duration(seconds: float) -> str:
    """`2d 3h`, `1h 20m`, `4m 10s`, `0.4s`: two units are enough."""
    if 0.0 < seconds < 9.95:
        return f"{seconds:.1g}s" if seconds < 0.95 else f"{seconds:.1f}s".replace(".0s", "s")
    whole = round(seconds)
    for size, name, part, part_name in ((86400, "d", 3600, "h"), (3600, "h", 60, "m")):
        if whole >= size:
            return f"{whole // size}{name} {whole % size // part}{part_name}"
    return f"{whole // 60}m {whole % 60}s" if whole >= 60 else f"{whole}s"


def joined(text: str) -> str:
    """The lines of a text as one, as what a compiler has said: `a; b`."""
    return "; ".join(text.splitlines())


def ago(seconds: float) -> str:
    """`4m 10s ago`."""
    return f"{duration(float(round(seconds)))} ago"


def estimate(tally: Tally) -> Estimate | None:
    """Elo of plus over minus with its error; None before the first pair."""
    return elo(tally) if tally.pairs else None


def elo_text(tally: Tally) -> str:
    """`+14.5 ± 31.0`, the 95% interval; a dash before the first pair."""
    found = estimate(tally)
    return "-" if found is None else plus_minus(found.value, found.error)


def plus_minus(value: float, error: float) -> str:
    """`+14.5 ± 31.0`; no more decimals than the error has a use for."""
    decimals = 1 if error < 99.95 else 0
    return f"{value:+.{decimals}f} ± {error:.{decimals}f}"


def results(tally: Tally) -> str:
    """Wins, losses and draws of plus: `8-7-9`."""
    return f"{tally.wins}-{tally.losses}-{tally.draws}"


def pentanomial(tally: Tally) -> str:
    """Pairs by the points of plus, 0 to 2."""
    return " ".join(map(str, tally.pentanomial))


def score(tally: Tally) -> str:
    """`240: +80 -70 =90  [10 30 50 20 10]  Elo +14.5 ± 31.0`, from plus's side."""
    counts = f"+{tally.wins} -{tally.losses} ={tally.draws}  [{pentanomial(tally)}]"
    text = f"{tally.games:,}: {counts}"
    return text + ("" if not tally.pairs else f"  Elo {elo_text(tally)}")


def shown(value: Any, between: str = ", ") -> str:
    """A value of any type as people read it, a time in UTC to the second.

    In a list the pair of an iteration and its batch, `[5, 1]`, is `5.1`.
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number(value)
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, list | tuple):
        return between.join(shown(part, ".") for part in value)
    return "" if value is None else str(value)


def plain(value: Any) -> Any:
    """The same of what JSON has: times in ISO 8601, null for infinite numbers, no passwords.

    A tally is its counts, and Elo with half of its 95% interval; a dataclass is its fields.
    """
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, str):
        return without_passwords(value)
    if isinstance(value, Tally):
        found = estimate(value)
        both = (None, None) if found is None else (plain(found.value), plain(found.error))
        counts = {"wins": value.wins, "losses": value.losses, "draws": value.draws}
        told = {"games": value.games, **counts, "pentanomial": list(value.pentanomial)}
        return told | dict(zip(("elo", "elo_error"), both, strict=True))
    if isinstance(value, Mapping):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | frozenset):
        return [plain(inner) for inner in value]
    if is_dataclass(value):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    return value.isoformat() if isinstance(value, datetime) else value


CELL_LENGTH = 500
_WIDE = 9_999  # columns: enough for any table
_FOLDED = 20  # columns that a long text is given before others are given up
LOG_WIDTH = 160
"""Columns of text in a file or a pipe, where no terminal sets them."""


@dataclass(frozen=True, slots=True)
class Column:
    """One value of a row.

    Args:
        key: its name in JSON and CSV; empty where only people read it.
        heading: on a terminal and a page; empty where only programs read it.
        get: the value of a row, or the path of an attribute, as `share.tally`, which is None where
            a part of it is; the attribute `key` unless given.
        show: the value as a text; not asked where it is None, which is an empty cell.
        rank: 0 is never given up, nor is -1; a narrow terminal goes without the highest first,
            and every table without those in which nothing stands, but for 0.
        note: what it is, if the heading does not say it: for a tooltip.
        link: the address of a page about the row.
        alarm: whether the value is one to look at.
        of: the table of a value that is a row or several of them, for JSON.
    """

    key: str
    heading: str = ""
    get: Callable[[Any], Any] | str = ""
    show: Callable[[Any], str] = shown
    kind: Literal["number", "name", "word", "text"] = "number"
    rank: int = 0
    note: str = ""
    link: Callable[[Any], str | None] | None = None
    alarm: Callable[[Any], bool] | None = None
    of: "View | None" = None

    def value(self, row: Any) -> Any:
        if callable(self.get):
            return self.get(row)
        names = (self.get or self.key).split(".")
        return reduce(lambda one, name: None if one is None else getattr(one, name), names, row)

    def text(self, row: Any) -> str:
        value = self.value(row)
        return "" if value is None else self.show(value)


@dataclass(frozen=True, slots=True)
class View:
    """A table: its columns, and on a page a note about them and what stands there without rows."""

    title: str
    columns: tuple[Column, ...]
    note: str = ""
    empty: str = "None."

    def linked(self, link: Callable[[Any], str | None]) -> "View":
        """The same with the addresses of pages about the rows in the first column."""
        return replace(self, columns=(replace(self.columns[0], link=link), *self.columns[1:]))

    def for_people(self, rows: Sequence[Any]) -> tuple[Column, ...]:
        """The columns in which something stands."""
        return tuple(
            one
            for one in self.columns
            if one.heading and (one.rank == 0 or any(one.text(row) for row in rows))
        )


def values(*keys: str, of: str = "") -> tuple[Column, ...]:
    """Columns of attributes, of the row or of one `of` its parts, that only programs read."""
    return tuple(Column(key, "", f"{of}.{key}".lstrip(".")) for key in keys)


def headed(*headings: str) -> tuple[Column, ...]:
    """Columns of rows that are tuples of texts; the first one is a name."""

    def column(i: int, heading: str) -> Column:
        return Column("", heading, lambda row: row[i], kind="number" if i else "name")

    return tuple(column(i, heading) for i, heading in enumerate(headings))


def record(view: View, row: Any) -> dict[str, Any]:
    """A row for JSON."""
    return {one.key: _json(one, one.value(row)) for one in view.columns if one.key}


def _json(column: Column, value: Any) -> Any:
    if column.of is None or value is None:
        return plain(value)
    return records(column.of, value) if isinstance(value, tuple) else record(column.of, value)


def records(view: View, rows: Sequence[Any]) -> list[dict[str, Any]]:
    """A table for JSON."""
    return [record(view, row) for row in rows]


_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_of(view: View, rows: Sequence[Any]) -> bytes:
    """The table of JSON for a spreadsheet: what is nested there has a column each."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    lines = [list(_flat(record(view, row))) for row in rows]
    heads = [name for name, _ in lines[0]] if lines else [c.key for c in view.columns if c.key]
    writer.writerow([_cell(name) for name in heads])
    writer.writerows([_cell(value) for _, value in line] for line in lines)
    return text.getvalue().encode()


def _flat(data: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from _flat(value)
        elif isinstance(value, list):
            yield from _flat({f"{name}_{i}": one for i, one in enumerate(value)})
        else:
            yield name, value


def _cell(value: Any) -> Any:
    """Text that a spreadsheet takes for text, and not for a formula."""
    if not isinstance(value, str):
        return value
    text = printable(value, NAME_LENGTH)
    return f"'{text}" if text.startswith(_FORMULA) else text


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table that folds texts, and gives up columns, before it breaks a name in two.

    A rich renderable, as wide as the console allows.
    """

    view: View
    rows: Sequence[Any]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns = self.view.for_people(self.rows)
        cells = [[printable(c.text(row), CELL_LENGTH) for row in self.rows] for c in columns]
        for most in sorted({max(0, column.rank) for column in columns}, reverse=True):
            chosen = [pair for pair in zip(columns, cells, strict=True) if pair[0].rank <= most]
            short = [(c, [_least(c, text) for text in texts]) for c, texts in chosen]
            least = console.measure(self._table(short), options=options.update(width=_WIDE)).maximum
            if fits := least <= options.max_width:
                break
        table = self._table(chosen, whole=fits)
        if console.is_terminal:
            yield table
            return
        for line in console.render_lines(table, options, pad=False):
            yield Text("".join(segment.text for segment in line).rstrip(), no_wrap=True)

    def _table(self, filled: list[tuple[Column, list[str]]], *, whole: bool = False) -> Table:
        """Of these columns and their texts; only texts are folded if the rest is `whole`."""
        table = Table(title=self.view.title, title_justify="left", box=None, pad_edge=False)
        for column, _ in filled:
            justify: Literal["right", "left"] = "right" if column.kind == "number" else "left"
            no_wrap = whole and column.kind != "text"
            table.add_column(column.heading, justify=justify, overflow="fold", no_wrap=no_wrap)
        for row in zip(*(texts for _, texts in filled), strict=True):
            table.add_row(*row)
        return table


def _least(column: Column, text: str) -> str:
    return text[:_FOLDED] if column.kind == "text" and len(text) > 3 * _FOLDED else text


def sentence(text: str) -> Text:
    """One line for a terminal, whatever names and reasons it quotes."""
    return Text(printable(text, LINE_LENGTH))


def terminal(*, stderr: bool = False) -> Console:
    """Where text goes: as wide as the terminal, or wide enough not to break names in a pipe.

    Names are shown as they are, whatever brackets and colons they have.
    """
    found = Console(highlight=False, markup=False, emoji=False, stderr=stderr)
    if not found.is_terminal:
        found.width = LOG_WIDTH
    return found
