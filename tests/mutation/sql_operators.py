"""Defects of a statement's text: one condition, assignment, comparison or word changed at a time.

The text is cut into words; of the grammar only so much is known as these changes need: clauses,
brackets, and what AND, OR and commas separate. `{fragment}` is one word.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

_WORD = re.compile(
    r"(?P<skip>\s+)|(?P<text>'(?:[^']|'')*')|(?P<name>\{[^}]*\}|:?[A-Za-z_][\w.]*)"
    r"|(?P<number>\d+)|(?P<sign><>|<=|>=|[^\s\w])"
)
_BEGINS_TERMS = {"WHERE", "ON", "WHEN", "SELECT", "BY", "SET"}
_ENDS_TERMS = {
    *("WHERE", "GROUP", "ORDER", "LIMIT", "RETURNING", "UNION", "FROM", "FOR", "THEN", "CASE"),
    *("INTO", "END", "AS", "SET", "JOIN", "LEFT", "ON", "ELSE", "WHEN", "VALUES", "DO", "SELECT"),
}
_AFTER_SET = {"WHERE", "RETURNING", "FROM"}
_COMPARISONS = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_SIGNS = {"+": "-", "-": "+"}
_WORDS = {
    "'ready'": "'leased'",
    "'leased'": "'ready'",
    "'done'": "'leased'",
    "'purged'": "'done'",
    "'failed'": "'ready'",
    "'in_progress'": "'pending'",
    "'pending'": "'in_progress'",
    "'running'": "'paused'",
    "'finished'": "'stopped'",
    "'stopped'": "'finished'",
    "'validate'": "'tune'",
    "'already'": "'conflict'",
    "'conflict'": "'already'",
    "DESC": "ASC",
}
_FUNCTIONS = {"min": "max", "max": "min", "count": "max", "sum": "max"}


@dataclass(frozen=True, slots=True)
class Change:
    """Text from `start` to `end` becomes `text`."""

    start: int
    end: int
    text: str

    def applied(self, to: str) -> str:
        return to[: self.start] + self.text + to[self.end :]


@dataclass(frozen=True, slots=True)
class _Word:
    kind: str
    text: str
    start: int
    end: int

    @property
    def upper(self) -> str:
        return self.text.upper() if self.kind == "name" else self.text


def changes(sql: str) -> list[Change]:
    """Every change of a text, in the order of their places."""
    words = list(_words(sql))
    found = {
        *_replaced(words),
        *_without_not(words),
        *_without_terms(words),
        *_without_assignments(sql, words),
        *_without_order(words),
    }
    return sorted(found, key=lambda change: (change.start, change.end, change.text))


def _words(sql: str) -> Iterator[_Word]:
    for match in _WORD.finditer(sql):
        if match.lastgroup != "skip":
            yield _Word(str(match.lastgroup), match.group(), *match.span())
    yield _Word("sign", ";", len(sql), len(sql))


def _replaced(words: list[_Word]) -> Iterator[Change]:
    """Comparisons, signs, statuses, functions and small numbers."""
    assigned = {start for items in _set_lists(words) for start, _ in items}
    for before, word, *after in zip(
        [words[0], *words], words, words[1:], [*words[2:], words[-1]], strict=False
    ):
        new = _WORDS.get(word.text)
        if word.kind == "sign":
            new = _SIGNS.get(word.text)
            if before.start not in assigned:
                new = _COMPARISONS.get(word.text, new)
        elif word.text in _FUNCTIONS and after[0].text == "(" and after[1].text != "*":
            new = _FUNCTIONS[word.text]
        elif word.kind == "number" and len(word.text) == 1 and before.text not in ("SELECT", "("):
            new = str(int(word.text) + 1)
        if new is not None:
            yield Change(word.start, word.end, new)


def _without_not(words: list[_Word]) -> Iterator[Change]:
    """NOT left out, and IS NOT NULL for IS NULL."""
    for word, after in pairwise(words):
        if word.upper == "NOT":
            yield Change(word.start, after.start, "")
        elif word.upper == "IS" and after.upper == "NULL":
            yield Change(word.end, word.end, " NOT")


def _without_terms(words: list[_Word]) -> Iterator[Change]:
    """One condition of an AND or OR less."""
    for terms in _lists_of_terms(words):
        for joint in ("AND", "OR"):
            parts = _between(terms, joint)
            for i, (start, end) in enumerate(parts):
                yield Change(parts[i - 1][1], end, "") if i else Change(start, parts[1][0], "")


def _lists_of_terms(words: list[_Word]) -> Iterator[list[_Word]]:
    """Words of one clause at one depth; what is in brackets inside stands there as one word."""
    stack: list[list[_Word]] = [[]]
    brackets: list[_Word] = []
    for word in words:
        if word.text == "(":
            stack.append([])
            brackets.append(word)
        elif word.text == ")":
            yield stack.pop()
            stack[-1].append(_Word("group", "()", brackets.pop().start, word.end))
        elif word.text in (",", ";") or word.upper in _BEGINS_TERMS | _ENDS_TERMS:
            yield stack[-1]
            stack[-1] = []
        else:
            stack[-1].append(word)


def _between(terms: list[_Word], joint: str) -> list[tuple[int, int]]:
    """Where the parts begin and end that `joint` separates, if these are two or more.

    ANDs of which some are inside an OR are left alone.
    """
    parts: list[list[_Word]] = [[]]
    for word in terms:
        if word.upper == joint:
            parts.append([])
        else:
            parts[-1].append(word)
    mixed = joint == "AND" and any(word.upper == "OR" for word in terms)
    if len(parts) < 2 or not all(parts) or mixed:
        return []
    return [(part[0].start, part[-1].end) for part in parts]


def _without_assignments(sql: str, words: list[_Word]) -> Iterator[Change]:
    """One assignment less; `c = c + x` as `c = x`."""
    for items in _set_lists(words):
        for i, (start, end) in enumerate(items):
            if i:
                yield Change(items[i - 1][1], end, "")
            elif len(items) > 1:
                yield Change(start, items[1][0], "")
            grown = re.match(r"(\w+ = )(?:\w+\.)?(\w+) \+ (.*)", sql[start:end], re.DOTALL)
            if grown and grown[1] == f"{grown[2]} = ":
                yield Change(start, end, grown[1] + grown[3])


def _set_lists(words: list[_Word]) -> Iterator[list[tuple[int, int]]]:
    """Where the assignments of each SET begin and end."""
    for i, word in enumerate(words):
        if word.upper == "SET":
            yield list(_assignments(words[i + 1 :]))


def _assignments(words: list[_Word]) -> Iterator[tuple[int, int]]:
    depth, start, last = 0, words[0].start, words[0]
    for word, following in pairwise([*words, words[-1]]):
        ends = word.text == ";" or word.upper in _AFTER_SET
        if depth == 0 and (ends or word.text == ","):
            yield start, last.end
            start = following.start
            if ends:
                return
        depth += (word.text == "(") - (word.text == ")")
        last = word


def _without_order(words: list[_Word]) -> Iterator[Change]:
    """ORDER BY and SKIP LOCKED left out."""
    for i, word in enumerate(words):
        if word.upper == "SKIP":
            yield Change(word.start, words[i + 1].end, "")
        elif word.upper == "ORDER":
            ends = next(w for w in words[i:] if w.text in (")", ";") or w.upper in _AFTER_ORDER)
            yield Change(word.start, ends.start, "")


_AFTER_ORDER = {"LIMIT", "FOR"}
