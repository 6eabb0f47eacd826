"""A table that gives up its less important columns before it breaks a name in two."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.table import Table

from spsa.text import printable

CELL_LENGTH = 500
_TABLE_HEAD = 2  # lines of its title and its headings


@dataclass(frozen=True, slots=True)
class Column:
    """A heading; `rank` 0 is never given up, of the others the highest goes first."""

    heading: str
    rank: int = 0
    is_number: bool = True


@dataclass(slots=True)
class FittedTable:
    """Rows of texts under columns, drawn as wide as the console allows; a rich renderable."""

    title: str
    columns: Sequence[Column]
    rows: list[tuple[str, ...]] = field(default_factory=list)

    def add(self, *cells: str) -> None:
        """A row; names and reasons in it may be of anybody, and become printable here."""
        self.rows.append(tuple(printable(cell, CELL_LENGTH) for cell in cells))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Table]:
        for most in sorted({column.rank for column in self.columns}, reverse=True):
            table = self._table(most)
            if (
                console.measure(table, options=options.update(width=9999)).maximum
                <= options.max_width
            ):
                break
        yield table

    def _table(self, most: int) -> Table:
        """The columns of rank `most` and below, without those in which nothing stands."""
        table = Table(title=self.title, title_justify="left", box=None, pad_edge=False)
        shown = [i for i, one in enumerate(self.columns) if one.rank <= most and self._says(i)]
        for i in shown:
            one = self.columns[i]
            table.add_column(
                one.heading, justify="right" if one.is_number else "left", overflow="fold"
            )
        for row in self.rows:
            table.add_row(*(row[i] for i in shown))
        return table

    def told(self) -> tuple[tuple[Column, ...], tuple[tuple[str, ...], ...]]:
        """The columns in which something stands, whatever the width, and the rows under them."""
        shown = [i for i in range(len(self.columns)) if self._says(i)]
        rows = tuple(tuple(row[i] for i in shown) for row in self.rows)
        return tuple(self.columns[i] for i in shown), rows

    def _says(self, i: int) -> bool:
        return self.columns[i].rank == 0 or any(row[i] for row in self.rows)


@dataclass(frozen=True, slots=True)
class FittedScreen:
    """Parts of a view, and between them a table of as many rows as a terminal has lines left."""

    above: Sequence[RenderableType]
    table: Callable[[int], RenderableType]
    below: Sequence[RenderableType] = ()

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        others = console.render_lines(Group(*self.above, *self.below), options, pad=False)
        rows = console.height - 1 - len(others) - _TABLE_HEAD
        yield from self.above
        if rows > 0:
            yield self.table(rows)
        yield from self.below
