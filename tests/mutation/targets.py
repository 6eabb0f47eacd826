"""What is mutated: the code that claims, reports, counts, purges, replays and applies.

Every file has a stride: of all its possible mutants, in the order of its lines, every so manieth is
tried. What counts games is tried more densely than what only shows them.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from spsa.db import base
from spsa.db.database import create_engine, parse_url

from . import code_operators, sql_operators

PROTOCOL = "spsa/db/protocol.sql"
SQL_STRIDE = 5
CODE_STRIDES: Mapping[str, int] = {
    "spsa.db.worker_queries": 6,
    "spsa.db.machine_queries": 10,
    "spsa.db.purge_queries": 10,
    "spsa.db.master_queries": 9,
    "spsa.db.run_queries": 15,
    "spsa.db.run_view": 12,
    "spsa.db.build_queries": 12,
    "spsa.history.replay": 6,
    "spsa.history.purge": 8,
    "spsa.algorithms.tuning": 9,
    "spsa.server.workers": 12,
    "spsa.server.worker_api": 12,
    "worker.batches.database_client": 7,
    "worker.batches.active_batch": 6,
    "worker.remote": 8,
    "worker.runner.count": 6,
}

_EQUIVALENT = (  # a pattern of names, and why no test can tell these from the product
    (r"fragment suited|touch: .*min\(a\.reason\)", "one row sets a machine aside for all binaries"),
    (r"run_queries\.py:\d+ _opened: 0 -> 1", "a run's length is at least 1"),
    (r"Tuning\._signs: True -> False", "there are as many signs as active parameters"),
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One defect.

    `reached` are the functions (`module:name`) and statements of which a test has to execute one to
    notice it; `statements` are those whose text it changes.
    """

    file: str
    line: int
    place: str
    before: str
    after: str
    reached: tuple[str, ...]
    make: Callable[[], None]
    statements: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line} {self.place}: {self.before} -> {self.after}"


def sample() -> list[Mutant]:
    """The mutants that are tried."""
    chosen = sql_mutants()[SQL_STRIDE // 2 :: SQL_STRIDE]
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
    )


def sql_mutants() -> list[Mutant]:
    """Every mutant of the statements and fragments of protocol.sql."""
    return [
        _of_sql(kind, name, text, change)
        for (kind, name), text in base.named_texts("protocol.sql").items()
        for change in sql_operators.changes(text)
    ]


def _of_sql(kind: str, name: str, text: str, change: sql_operators.Change) -> Mutant:
    before, after = _shown(text, change)
    changed = _with(name) if kind == "fragment" else (name,)
    return Mutant(
        file=PROTOCOL,
        line=_line(kind, name, text) + text.count("\n", 0, change.start),
        place=name,
        before=before,
        after=after,
        reached=changed,
        make=lambda: _use(kind, name, change.applied(text)),
        statements=changed,
    )


def _line(kind: str, name: str, text: str) -> int:
    """Where the text of a statement or fragment begins."""
    path = Path(base.__file__).with_name("protocol.sql")
    whole = base._COMMENT.sub("", path.read_text(encoding="utf-8"))
    start = whole.index(text, whole.index(f"-- {kind}: {name}\n"))
    return whole.count("\n", 0, start) + 1


def _with(fragment: str) -> tuple[str, ...]:
    """The statements that have a fragment, also inside another one."""
    found: list[str] = []
    for (kind, name), text in base._texts().items():
        if any(place[1] == fragment for place in base._PLACE.finditer(text)):
            found += _with(name) if kind == "fragment" else [name]
    return tuple(dict.fromkeys(found))


def _use(kind: str, name: str, text: str) -> None:
    """Give this process another text."""
    base._texts()[kind, name] = text
    base._statement.cache_clear()


def refusal(mutant: Mutant, path: Path) -> str | None:
    """What SQLite says against a statement of a mutant that was made, None if it takes all."""
    engine = create_engine(parse_url(f"sqlite:///{path}"), durable=False)
    try:
        with engine.connect() as connection:
            for name in mutant.statements:
                _explain(connection, base._statement(name, "sqlite"))
    except sa.exc.DatabaseError as error:
        return str(error.orig)
    finally:
        engine.dispose()
    return None


def _explain(connection: sa.Connection, made: sa.TextClause) -> None:
    parameters = made._bindparams
    explained = sa.text(f"EXPLAIN {made.text}").bindparams(*parameters.values())
    connection.execute(explained, {n: [0] if p.expanding else 0 for n, p in parameters.items()})


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


def watch() -> set[str]:
    """From now on what this process executes; `Mutant.reached` names it so."""
    reached: set[str] = set()
    for module in CODE_STRIDES:
        code_operators.watch(module, reached)
    known = base._statement

    def noted(name: str, dialect: str) -> sa.TextClause:
        reached.add(name)
        return known(name, dialect)

    vars(base)["_statement"] = noted
    return reached


def picked(file: str, place: str, before: str, after: str) -> Mutant:
    """The one mutant of a file that is in this place, from a text with `before` to `after`."""
    module = file.removesuffix(".py").replace("/", ".")
    possible = sql_mutants() if file == PROTOCOL else code_mutants(module)
    found = [m for m in possible if m.place == place and before in m.before and after in m.after]
    if len(found) != 1:
        raise LookupError(f"{len(found)} mutants of {file} {place} with {before!r} -> {after!r}")
    return found[0]
