"""All output to terminals and logs, as printable lines; numbers of command lines.

Names, reasons and engines' lines come from machines that need not be trusted. `ruff` forbids
`click.echo` everywhere else, so that no text bypasses this module.
"""

import json
import logging
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from io import StringIO, TextIOWrapper
from pathlib import Path
from typing import Any

import click

from spsa.errors import InvalidInput, TuningError, file_failure
from spsa.text import ELLIPSIS, LINE_LENGTH, printable

_USAGE_LENGTH = 1_000


def echo(*lines: str, err: bool = False) -> None:
    """Write each text as one line, to stdout or to stderr.

    The stream is named, because click itself would write past a live view that takes its place.
    """
    for line in lines:
        click.echo(printable(line, LINE_LENGTH), file=sys.stderr if err else sys.stdout)


def echo_json(value: Any, *, indent: int | None = None) -> None:
    """Write JSON, in which all text is escaped to ASCII."""
    click.echo(json.dumps(value, allow_nan=False, indent=indent))


def echo_raw(text: str | bytes) -> None:
    """Write text of this program to stdout unchanged, such as a patch or SQL."""
    click.echo(text, nl=False)


def _as_typed(line: str) -> str:
    """A line that begins with a file, as from the current folder where the file is below that."""
    with suppress(OSError):  # of a folder that is removed
        return line.removeprefix(f"{Path.cwd()}{os.sep}")
    return line


def exit_code(program: str, command: Callable[[], object]) -> int:
    """The exit code of a command; each failure is told on stderr, never with a traceback."""
    try:
        result = command()
    except InvalidInput as error:
        count = len(error.faults)
        counted = f"{count} fault{'s' if count > 1 else ''}; nothing was done"
        echo(*map(_as_typed, error.lines), counted, err=True)
        return error.exit_code
    except TuningError as error:
        first, *rest = error.lines
        echo(f"{program}: {first}", *rest, err=True)
        return error.exit_code
    except click.Abort:
        return 130
    except click.ClickException as error:
        _echo_usage_error(error)
        return error.exit_code
    except OSError as error:
        sentence, code = file_failure(error)
        echo(f"{program}: {sentence}", err=True)
        return code
    return result if isinstance(result, int) else 0


class Within(click.FloatRange):
    """A number of this range on a command line, and not nan, which click's own range accepts."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        return number if number == number else self.fail("nan is not a finite number.", param, ctx)


def _echo_usage_error(error: click.ClickException) -> None:
    """Write what is wrong with a command line, in printable lines of bounded length."""
    text = StringIO()
    error.show(text)
    lines = text.getvalue().expandtabs(2).rstrip("\n").split("\n")
    echo(*(_shortened(line) for line in lines), err=True)


def _shortened(line: str) -> str:
    """Cut the middle out of a long line, because the reason is at its end."""
    half = _USAGE_LENGTH // 2
    return line if len(line) <= _USAGE_LENGTH else f"{line[:half]}{ELLIPSIS}{line[-half:]}"


def write_any_text() -> None:
    """Replace characters such as ± or … that a terminal's encoding lacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


class StderrLines(logging.Handler):
    """Writes records to what sys.stderr is at that time: a live view takes its place."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            sys.stderr.write(self.format(record) + "\n")
        except Exception:  # noqa: BLE001 - as every handler of logging does
            self.handleError(record)


class PrintableLines(logging.Formatter):
    """A record as one printable line; the lines of a traceback are indented below it."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the base class's name
        return printable(super().formatMessage(record), LINE_LENGTH)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the base class's name
        lines = super().formatException(ei).split("\n")
        return "\n".join(f"  {printable(line, LINE_LENGTH)}" for line in lines)
