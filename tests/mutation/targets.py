"""What is mutated: the code that claims, reports, counts, purges, replays and applies.

Every file has a stride: of all its possible mutants, in the order of its lines, every so manieth is
tried. What counts games is tried more densely than what only shows them.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from spsa.db import build_queries, sql_files, worker_queries

from . import code_operators, sql_operators

STATEMENTS = "worker_statements.sql"
FUNCTIONS = "worker_functions.sql"

SQL_STRIDES: Mapping[str, int] = {
    STATEMENTS: 7,
    FUNCTIONS: 12,
    "counting.sqlite.sql": 6,
    "counting.postgresql.sql": 6,
}
CODE_STRIDES: Mapping[str, int] = {
    "spsa.db.worker_queries": 6,
    "spsa.db.worker_functions": 3,
    "spsa.db.exhausted_batches": 13,
    "spsa.db.machine_queries": 9,
    "spsa.db.purge_queries": 9,
    "spsa.db.purge_records": 12,
    "spsa.db.master_queries": 9,
    "spsa.db.master_lease": 6,
    "spsa.db.iteration_rows": 13,
    "spsa.db.run_queries": 15,
    "spsa.db.run_status": 8,
    "spsa.db.run_view": 12,
    "spsa.db.totals": 12,
    "spsa.history.replay": 6,
    "spsa.history.purge": 7,
    "spsa.algorithms.tuning": 9,
    "worker.batches.database_client": 5,
    "worker.runner.count": 6,
    "worker.batches.active_batch": 5,
}

_BIND = re.compile(r"(?<![:\w\\]):(\w+)(?!:)")  # as SQLAlchemy finds them

_CALLERS = {  # the functions of a server that no worker calls, and who calls them
    "spsa_own_machine": ("spsa_register_worker",),
    "spsa_machine_of": ("spsa_claim", "spsa_touch_worker"),
    "spsa_check_registrations": ("spsa_register_worker",),
    "spsa_lease_batch": ("spsa_claim",),
    "spsa_next_run": ("spsa_claim",),
    "spsa_may_retry": ("spsa_claim",),
    "spsa_note_failure": ("spsa_fail", "spsa_claim"),
    "spsa_check_range": ("spsa_claim", "spsa_renew", "spsa_report", "spsa_fail"),
    "spsa_check_text": ("spsa_register_worker", "spsa_fail"),
    "spsa_check_voids": ("spsa_report",),
}


_EQUIVALENT = (  # a pattern of names, and why no test can tell these from the product
    (
        r"spsa_next_run: .*LIMIT 2",
        "a function that returns one value returns that of the first row",
    ),
    (
        r"spsa_lease_batch: .*LIMIT 2 FOR UPDATE",
        "SELECT INTO takes one row and asks for no other, so no other is locked",
    ),
    (
        r"(lease_batch\.begin|spsa_lease_batch): AND status = 'pending' -> \(nothing\)",
        "only batches of iterations that are pending or in progress are claimed",
    ),
    (
        r"spsa_check_voids: \(p_void_games <> 0 OR p_voids::TEXT <> '\{\}'\) AND -> \(nothing\)",
        "no reasons add up to no void games; the condition only saves time",
    ),
    (
        r"touch_worker.*: .*min\(reason\).* -> .*max\(reason\)",
        "one row sets a machine aside for all binaries",
    ),
    (
        r"next_run: .*'pending', 'in_progress'.* -> .*'in_progress', 'in_progress'",
        "a leased batch begins its iteration, which is never pending again",
    ),
    (r"run_queries\.py:\d+ _opened: 0 -> 1", "a run's length is at least 1"),
    (r"Tuning\._signs: True -> False", "there are as many signs as active parameters"),
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One defect.

    `reached` are the places of which a test has to execute one to notice it, as `judge` names them;
    `script` is what a database of the dialect has to execute to have it.
    """

    file: str
    line: int
    place: str
    before: str
    after: str
    reached: tuple[str, ...]
    make: Callable[[], None] = lambda: None
    dialect: str | None = None
    script: str | None = None

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line} {self.place}: {self.before} -> {self.after}"


def sample() -> list[Mutant]:
    """The mutants that are tried."""
    chosen = [m for file, n in SQL_STRIDES.items() for m in sql_mutants(file)[n // 2 :: n]]
    for module, stride in CODE_STRIDES.items():
        chosen += code_mutants(module)[stride // 2 :: stride]
    return chosen


def why_equivalent(mutant: Mutant) -> str | None:
    """Why a mutant behaves as the product does, where it is known to."""
    return next((why for pattern, why in _EQUIVALENT if re.search(pattern, mutant.name)), None)


def code_mutants(module: str) -> list[Mutant]:
    """Every mutant of a module's functions."""
    return [_of_code(change) for change in code_operators.changes(module)]


def _of_code(change: code_operators.CodeChange) -> Mutant:
    return Mutant(
        file=f"{change.module.replace('.', '/')}.py",
        line=change.line,
        place=change.function,
        before=change.before,
        after=change.after,
        reached=(f"{change.module}:{change.function}",),
        make=lambda: code_operators.apply(change),
        dialect="postgresql" if change.module == "spsa.db.worker_functions" else None,
    )


def sql_mutants(file: str) -> list[Mutant]:
    """Every mutant of one of the SQL files."""
    text = sql_files.text_of(file)
    return [_of_sql(file, text, change) for change in sql_operators.changes(text)]


def _of_sql(file: str, text: str, change: sql_operators.Change) -> Mutant:
    changed = change.applied(text)
    place = _place(text, change.start)
    dialect = "sqlite" if file in (STATEMENTS, "counting.sqlite.sql") else "postgresql"
    before, after = _shown(text, change)
    return Mutant(
        file=f"spsa/db/sql/{file}",
        line=text.count("\n", 0, change.start) + 1,
        place=place,
        before=before,
        after=after,
        reached=_reached(file, place),
        make=(lambda: _use_statements(changed)) if file == STATEMENTS else (lambda: None),
        dialect=dialect,
        script=None if file == STATEMENTS else changed,
    )


def _place(text: str, offset: int) -> str:
    """The statement, function or trigger that a place of a file is in."""
    marks = ("-- name: ", "CREATE OR REPLACE FUNCTION ", "TRIGGER ", "REVOKE ")
    starts = [(text.rfind(mark, 0, offset + len(mark)), mark) for mark in marks]
    start, mark = max(starts)
    return text[start + len(mark) :].split("(")[0].split()[0] if start >= 0 else "?"


def _reached(file: str, place: str) -> tuple[str, ...]:
    if file == STATEMENTS:
        return (f"sqlite:{place}",)
    if file == FUNCTIONS:
        return tuple(f"postgresql:{name}" for name in _CALLERS.get(place, (place,)))
    if file == "counting.sqlite.sql":
        return ("sqlite:report", "sqlite:fail")
    return ("postgresql:spsa_report", "postgresql:spsa_fail")


def _shown(text: str, change: sql_operators.Change) -> tuple[str, str]:
    """The change as a person reads it; a single sign with the words around it."""
    start, end = change.start, change.end
    if len(text[start:end].split()) < 2:
        start = max(text.rfind("\n", 0, start) + 1, start - 25)
        end = min((text + "\n").find("\n", end), end + 25)
    after = text[start : change.start] + change.text + text[change.end : end]
    return _short(text[start:end]), _short(after) or "(nothing)"


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 90 else f"{words[:50]} ... {words[-35:]}"


def _use_statements(changed: str) -> None:
    """Make the changed statements those of the modules that have asked for them."""
    known = sql_files.named_statements(STATEMENTS)
    before = dict(known)
    for name, text in _named(changed).items():
        if text != before[name]:
            known[name] = text
            for module in (worker_queries, build_queries):
                for variable, made in list(vars(module).items()):
                    if _text_of(made) == before[name]:
                        setattr(module, variable, _made_again(name, made))


def _named(changed: str) -> Mapping[str, str]:
    original = sql_files.text_of
    try:
        sql_files.text_of = lambda file: changed
        return sql_files.named_statements.__wrapped__(STATEMENTS)
    finally:
        sql_files.text_of = original


def _text_of(made: Any) -> str | None:
    if isinstance(made, sa.TextualSelect):
        made = made.element
    return made.text if isinstance(made, sa.TextClause) else None


def _made_again(name: str, made: Any) -> Any:
    typed = made.column_args if isinstance(made, sa.TextualSelect) else ()
    return worker_queries.statement(name, **{column.name: column.type for column in typed})


def watch() -> set[str]:
    """From now on the places that this process has executed; `Mutant.reached` names them so."""
    reached: set[str] = set()
    for module in CODE_STRIDES:
        code_operators.watch(module, reached)
    statements = {
        _BIND.sub("?", text): f"sqlite:{name}"
        for name, text in sql_files.named_statements(STATEMENTS).items()
    }

    def asked(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        if statement in statements:
            reached.add(statements[statement])
        reached.update(f"postgresql:{name}" for name in re.findall(r"(spsa_\w+)\(", statement))

    sa.event.listen(sa.Engine, "before_cursor_execute", asked)
    return reached


def picked(file: str, place: str, before: str, after: str) -> Mutant:
    """The one mutant of a file that is in this place, from a text with `before` to `after`."""
    if file.endswith(".sql"):
        possible = sql_mutants(file)
    else:
        possible = code_mutants(file.removesuffix(".py").replace("/", "."))
    found = [m for m in possible if m.place == place and before in m.before and after in m.after]
    if len(found) != 1:
        raise LookupError(f"{len(found)} mutants of {file} {place} with {before!r} -> {after!r}")
    return found[0]
