"""Options of a command as fields of a frozen dataclass: name, type, default and help, once each."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import field, fields
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any

import click

from spsa.builds.requirements import MACHINE_WORDS, WORD
from spsa.core.game_settings import MAX_OPTION_LENGTH, MAX_SECONDS, TimeControl, TimeKind
from spsa.text import NAME_LENGTH, is_printable, printable


def field_of(
    text: str,
    kind: Any = None,
    default: Any = None,
    *,
    flags: tuple[str, ...] = (),
    computed: Callable[[], Any] | None = None,
    **more: Any,
) -> Any:
    """A field that is an option of this type, `--its-name` unless `flags` say otherwise.

    `text` is its help. One with the default False is a flag, one with () may be repeated; every
    other default is shown, but for one that is `computed` on the command line. `more` is what
    click.Option takes beside these.
    """
    more |= {"help": text, "type": kind, "default": computed or default}
    more["is_flag"], more["multiple"] = default is False, default == ()
    more["show_default"] = bool(default) and computed is None
    return field(default=default, metadata={"flags": flags, "click": more})


def _once_each(_context: Any, _option: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(values))


FilePath = partial(click.Path, path_type=Path)
flag = partial(field_of, default=False)
repeated = partial(field_of, default=(), callback=_once_each)
"""Of equal values the first is kept."""


def click_options(settings: type) -> list[click.Parameter]:
    """The options that the fields of a dataclass describe, in their order."""
    return [
        click.Option(
            [*(each.metadata["flags"] or [f"--{each.name.replace('_', '-')}"]), each.name],
            **each.metadata["click"],
        )
        for each in fields(settings)
    ]


class FiniteRange(click.FloatRange):
    """A range without inf and nan, which click's own accepts."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = float(super().convert(value, param, ctx))
        if not isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


def _refused(text: str, why: str) -> click.BadParameter:
    return click.BadParameter(f"'{printable(text, 80)}' {why}")


def printable_name(text: str) -> str:
    """A name that fits a column of the database and a line of a report."""
    if not is_printable(text, NAME_LENGTH):
        raise _refused(text, f"is not a text of 1 to {NAME_LENGTH} printable characters")
    return text


def label(text: str) -> str:
    """A word that a run may require, and that does not claim what the machine may lack."""
    if not WORD.fullmatch(text):
        raise _refused(text, "is not a word of at most 40 small letters, digits, `.` and `-`")
    if text in MACHINE_WORDS:
        raise _refused(text, "says what a machine is; the worker knows that by itself")
    return text


def engine_option(text: str) -> tuple[str, str]:
    """NAME=VALUE on one line, as an option of UCI has to be: it can quote no line break."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not (equals and name):
        raise _refused(text, "is not NAME=VALUE")
    for what in (name, value):
        if what and not is_printable(what, MAX_OPTION_LENGTH):
            most = f"at most {MAX_OPTION_LENGTH} printable characters on one line"
            raise _refused(what, f"is not a text of {most}")
    return name, value


def clock(text: str) -> TimeControl:
    """A clock in its usual form; `TimeControl.parse` reads other limits, too."""
    with suppress(ValueError):
        if (control := TimeControl.parse(text)).kind is TimeKind.CLOCK:
            return control
    raise _refused(
        text,
        "is not [MOVES/]BASE[+INC] in seconds, as in 10+0.1 or 40/60, with at least 0.001 and at "
        f"most {MAX_SECONDS:g} seconds",
    )


MAX_COUNT = 10**9
COUNT = click.IntRange(1, MAX_COUNT)
SECONDS = FiniteRange(min=0, min_open=True, max=MAX_SECONDS)
FILE = FilePath(exists=True, dir_okay=False)
NEW_FILE = FilePath(dir_okay=False)
