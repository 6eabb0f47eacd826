"""Makes text of engines, workers and users safe to show and to store: one printable line.

An escape sequence could repaint a terminal, a line break could forge a line of a log or a report,
and a bidirectional override could change the order that is displayed.
"""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from html import escape

NAME_LENGTH = 200  # characters of a worker's name, host, platform, version and sandbox
VOID_REASON_LENGTH = 200  # characters of the reason of a void game
VOID_REASONS = 20  # different ones in a batch; more are counted as `OTHER_REASONS`
OTHER_REASONS = "other reasons"
FAILURE_LENGTH = 2_000  # characters of the reason why a batch failed, of an event's and a purge's
LINE_LENGTH = 10_000  # characters of one line on a terminal or in a log
ELLIPSIS = "…"

_WORD_ENDS = re.compile(r"(?<=[_.])(?=\w)|(?<=[a-z])(?=[A-Z])")

# rather too much than too little: a password may hold a slash or an @
_PASSWORD = re.compile(r"(://[^\s/@:]*:)\S+(?=@)|(\bpassword=)[^\s&]+", re.IGNORECASE)


def printable(text: str, limit: int) -> str:
    """`text` on one line of at most `limit` characters, with an ellipsis where it was longer.

    A character that Python does not call printable becomes its escape, as `\\x1b`: control
    characters, line breaks, NUL, bidirectional and invisible marks, lone surrogates.
    """
    if len(text) <= limit and text.isprintable():
        return text
    # only the start is converted, because the text may be very long
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 1] + ELLIPSIS


def html_with_commands(sentence: str, limit: int) -> str:
    """A `printable` sentence as HTML, in which what stands between backticks is `<code>`.

    `limit` is before escaping; without backticks it may be an attribute's value, too.
    """
    parts = escape(printable(sentence, limit)).split("`")
    if len(parts) % 2 == 0:  # one backtick belongs to a name
        return "`".join(parts)
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))


def words_of(name: str, limit: int) -> list[str]:
    """A `printable` name, cut where a line may break: `king_`, `safety`; `King`, `Safety`."""
    return _WORD_ENDS.split(printable(name, limit))


def without_passwords(text: str) -> str:
    """The text with `***` for the password of every URL in it."""
    return _PASSWORD.sub(r"\1\2***", text)


def is_printable(text: str, limit: int) -> bool:
    """Whether the text is not empty and `printable` would not change it."""
    return printable(text, limit) == text != ""


def plural(count: int, word: str, ending: str = "s") -> str:
    """`1 worker`, `2 workers`; `2 batches` by the ending `es`."""
    return f"{count} {word}" if count == 1 else f"{count:,} {word}{ending}"


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was perhaps meant: with the same letters, else a similar one, if any."""
    cased = {one.lower(): one for one in known}
    letters = [one for one in cased if sorted(one) == sorted(word.lower())]
    close = letters or get_close_matches(word.lower(), cased)
    return cased[close[0]] if close else None


def suggestion(word: str, known: Iterable[str]) -> str:
    """A remedy for an unknown word: the closest known one, or all of them."""
    names = sorted(known)
    close = closest(word, names)
    return f'did you mean "{close}"?' if close else f"use one of {', '.join(names)}"
