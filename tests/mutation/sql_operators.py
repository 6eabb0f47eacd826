"""Defects of SQL text: one condition, assignment, comparison, word or statement changed at a time.

The text is cut into words; of the grammar only so much is known as these changes need: clauses,
brackets, and what AND, OR and commas separate.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_WORD = re.compile(
    r"(?P<skip>--[^\n]*|\s+|\$\$)|(?P<text>'(?:[^']|'')*')|(?P<name>(?<!:):?[A-Za-z_][\w.]*)"
    r"|(?P<number>\d+(?:\.\d+)?)|(?P<sign><>|<=|>=|:=|=>|::|\|\||[^\s\w])"
)
_BEGINS_TERMS = {"WHERE", "ON", "WHEN", "IF", "SELECT", "RETURN", "HAVING", "BY", "SET", "DECLARE"}
_ENDS_TERMS = {
    *("WHERE", "GROUP", "ORDER", "LIMIT", "RETURNING", "UNION", "FROM", "FOR", "THEN", "EXECUTE"),
    *("BEGIN", "INTO", "END", "LOOP", "AS", "SET", "JOIN", "ON", "ELSE", "WHEN", "VALUES", "DO"),
    *("RETURN", "SELECT", "LANGUAGE", "CASE"),
}
_COMPARISONS = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_SIGNS = {"+": "-", "-": "+"}
_STATUSES = {
    "'ready'": "'leased'",
    "'leased'": "'ready'",
    "'done'": "'leased'",
    "'purged'": "'done'",
    "'in_progress'": "'pending'",
    "'pending'": "'in_progress'",
    "'running'": "'paused'",
    "'finished'": "'stopped'",
    "'accepted'": "'already'",
    "'already'": "'accepted'",
    "'conflict'": "'already'",
    "'lost'": "'already'",
}
_FUNCTIONS = {"min": "max", "max": "min", "greatest": "least", "count": "max", "sum": "max"}
_STATEMENT = re.compile(
    r"^[ ]*(?:PERFORM(?! set_config)|UPDATE|INSERT INTO|RAISE|EXIT WHEN|RETURN QUERY|SELECT RAISE"
    r"|\w+ :=|CREATE TRIGGER|CREATE CONSTRAINT TRIGGER)[^;]*;",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Change:
    """Text from `start` to `end` becomes `text`; `kind` says what sort of defect that is."""

    start: int
    end: int
    text: str
    kind: str

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
        *_without_terms(sql, words),
        *_without_order(words),
        *_without_statements(sql),
    }
    return sorted(found, key=lambda change: (change.start, change.end, change.kind, change.text))


def _words(sql: str) -> Iterator[_Word]:
    for match in _WORD.finditer(sql):
        if match.lastgroup != "skip":
            yield _Word(str(match.lastgroup), match.group(), *match.span())


def _replaced(words: list[_Word]) -> Iterator[Change]:
    """Comparisons, signs, statuses, functions and small numbers."""
    assigned = _assignment_signs(words)
    for i, word in enumerate(words):
        following = words[i + 1].text if i + 1 < len(words) else ""
        new = kind = None
        if word.kind == "sign" and word.text in _COMPARISONS and word.start not in assigned:
            new, kind = _COMPARISONS[word.text], "comparison"
        elif word.kind == "sign" and word.text in _SIGNS:
            new, kind = _SIGNS[word.text], "sign"
        elif word.text in _STATUSES:
            new, kind = _STATUSES[word.text], "word"
        elif word.text in _FUNCTIONS and following == "(" and words[i + 2].text != "*":
            new, kind = _FUNCTIONS[word.text], "function"
        elif word.kind == "number" and len(word.text) == 1 and words[i - 1].upper != "SELECT":
            new, kind = str(int(word.text) + 1), "number"
        if new is not None and kind is not None:
            yield Change(word.start, word.end, new, kind)


def _assignment_signs(words: list[_Word]) -> set[int]:
    """Where `=` assigns: the first one of each item of a SET list."""
    found, depth, lists = set(), 0, {}
    for word in words:
        if word.text == "(":
            depth += 1
        elif word.text == ")":
            lists.pop(depth, None)
            depth -= 1
        elif word.upper in ("SET", "USING") or (word.text == "," and depth in lists):
            lists[depth] = True
        elif word.text == ";" or (word.upper in _ENDS_TERMS and depth in lists):
            lists.pop(depth, None)
        elif word.text == "=" and lists.get(depth):
            found.add(word.start)
            lists[depth] = False
    return found


def _without_not(words: list[_Word]) -> Iterator[Change]:
    """NOT left out, and IS NULL for IS NOT NULL; IF with the opposite condition."""
    for before, word, after in zip([words[0], *words], words, words[1:], strict=False):
        if word.upper == "NOT" and before.upper != "IF":
            yield Change(word.start, after.start, "", "not")
        elif word.upper == "IS" and after.upper in ("NULL", "DISTINCT"):
            yield Change(word.end, word.end, " NOT", "not")
        elif word.upper == "IF" and after.upper not in ("NOT", "EXISTS") and before.upper != "END":
            yield from _opposite(words, word)


def _opposite(words: list[_Word], begin: _Word) -> Iterator[Change]:
    then = next((w for w in words if w.start > begin.start and w.upper == "THEN"), None)
    semicolon = next((w for w in words if w.start > begin.start and w.text == ";"), None)
    if then is not None and (semicolon is None or then.start < semicolon.start):
        yield Change(begin.end, begin.end, " NOT", "if")


def _without_terms(sql: str, words: list[_Word]) -> Iterator[Change]:
    """One condition of an AND or OR less, one assignment less; `c = c + x` as `= x`."""
    for terms in _lists_of_terms(words):
        for kind, parts in (("and", _between(terms, {"AND"})), ("or", _between(terms, {"OR"}))):
            for i, (start, end) in enumerate(parts):
                if i:
                    yield Change(parts[i - 1][1], end, "", kind)
                elif len(parts) > 1:
                    yield Change(start, parts[1][0], "", kind)
    yield from _without_assignments(sql, words)


def _lists_of_terms(words: list[_Word]) -> Iterator[list[_Word]]:
    """Words of one clause at one depth; what is in brackets inside stands there as one word."""
    stack: list[list[_Word]] = [[]]
    between = 0
    for word in words:
        if word.text == "(":
            stack.append([word])
        elif word.text == ")":
            inner = stack.pop() if len(stack) > 1 else [word]
            opened, *terms = inner
            # a list that was ended inside has lost its bracket
            yield terms
            stack[-1].append(_Word("group", "()", opened.start, word.end))
        elif word.text in (",", ";") or word.upper in _BEGINS_TERMS | _ENDS_TERMS:
            kept = stack[-1][:1] if len(stack) > 1 else []
            yield stack[-1][len(kept) :]
            stack[-1] = kept
        elif word.upper == "BETWEEN":
            between += 1
            stack[-1].append(word)
        elif word.upper == "AND" and between:
            between -= 1
            stack[-1].append(_Word("sign", "..", word.start, word.end))
        else:
            stack[-1].append(word)
    yield from stack


def _between(terms: list[_Word], joints: set[str]) -> list[tuple[int, int]]:
    """Where the parts begin and end that `joints` separate; ANDs only inside one part of ORs."""
    if joints == {"AND"} and any(word.upper == "OR" for word in terms):
        return []
    parts: list[list[_Word]] = [[]]
    after = [*(word.upper for word in terms[1:]), ""]
    for word, following in zip(terms, after, strict=False):
        if word.upper in joints and following != "REPLACE":
            parts.append([])
        else:
            parts[-1].append(word)
    if len(parts) < 2 or not all(parts):
        return []
    return [(part[0].start, part[-1].end) for part in parts]


def _without_assignments(sql: str, words: list[_Word]) -> Iterator[Change]:
    for items in _set_lists(words):
        for i, (start, end) in enumerate(items):
            if len(items) > 1:
                where = (start, items[1][0]) if i == 0 else (items[i - 1][1], end)
                yield Change(*where, "", "assignment")
            text = sql[start:end]
            grown = re.match(r"(\w+)(\s*=\s*)(?:\w+\.)?\1\s*\+\s*", text)
            if grown:
                yield Change(start, end, f"{grown[1]} = {text[grown.end() :]}", "assigned")


def _set_lists(words: list[_Word]) -> Iterator[list[tuple[int, int]]]:
    """Where the assignments of each SET begin and end."""
    for i, word in enumerate(words):
        if word.upper != "SET" or i + 2 >= len(words) or words[i + 2].text != "=":
            continue
        depth, items, start = 0, [], words[i + 1].start
        last = words[i + 1]
        for here in words[i + 1 :]:
            closes = depth == 0 and here.text == ")"
            if depth == 0 and (closes or here.text in (",", ";") or here.upper in _AFTER_SET):
                items.append((start, last.end))
                start = here.end + 1
                if here.text != ",":
                    break
            depth += (here.text == "(") - (here.text == ")")
            last = here
        first, *others = items
        yield [first, *((_first_after(words, begin), end) for begin, end in others)]


_AFTER_SET = {"WHERE", "RETURNING", "ON"}


def _first_after(words: list[_Word], place: int) -> int:
    return next(word.start for word in words if word.start >= place - 1 and word.text != ",")


def _without_order(words: list[_Word]) -> Iterator[Change]:
    """ORDER BY, a part of it, LIMIT and SKIP LOCKED left out."""
    for i, word in enumerate(words):
        if word.upper == "SKIP":
            yield Change(word.start, words[i + 1].end, "", "skip locked")
        elif word.upper == "ORDER" and words[i + 1].upper == "BY":
            depth, ends = 0, word.end
            for here in words[i + 2 :]:
                if depth == 0 and (
                    here.text in (")", ";") or here.upper in ("LIMIT", "FOR", "LOOP")
                ):
                    break
                depth += (here.text == "(") - (here.text == ")")
                ends = here.end
            yield Change(word.start, ends, "", "order")


def _without_statements(sql: str) -> Iterator[Change]:
    """A statement less, of a function or of the whole."""
    plain = re.sub(r"--[^\n]*", lambda comment: " " * len(comment.group()), sql)
    for match in _STATEMENT.finditer(plain):
        trigger = "CREATE" in match.group()
        end = match.end()
        if trigger and "BEGIN" in match.group():  # SQLite's have semicolons inside
            end = plain.index("END;", match.start()) + len("END;")
        text = "" if trigger else "NULL;" if "$$" in sql else ""
        yield Change(match.start(), end, text, "statement")
    for match in re.finditer(r" SECURITY DEFINER", plain):
        yield Change(*match.span(), "", "rights")
