"""`make mutants`: small defects put into the product, one at a time; the tests have to find each.

A mutant differs from the product in one expression, statement or condition. The sample is drawn at
random with a seed from all mutants of the files that are named. The quick tests and then the slow
ones run once under coverage, with the programs they start, which says which of them execute a line;
this is kept for other draws from the same tree. A mutant meets the quick tests of its line, the
quickest first, then all quick tests of its room, then the slow ones of its line, or of its room
where none is seen to execute it, as in a worker.pyz or a child of a fork. It is killed by the first
test that fails, and that passes again without the mutant.
"""

import argparse
import ast
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate, chain, repeat
from pathlib import Path
from random import Random
from textwrap import shorten

import click
import coverage
import pytest

ROOT = Path(__file__).resolve().parent.parent
CODE = ("spsa", "worker", "tests")
ROOMS = "spsa/builds,spsa/uci,spsa/master,spsa/history,worker"
SURVIVORS = 0.03
QUICK, SLOW = "not slow", "slow and not long"
JUDGED_SECONDS, LIMIT_SECONDS = 120.0, 400.0
REPORTS = "MUTANTS_REPORTS"  # without SPSA_, which tests of environments look for
KEPT = ROOT / ".mutants_cache"
TRACED = """[run]
source = spsa, worker
parallel = true
sigterm = true
context = ${PYTEST_CURRENT_TEST-}
"""
TRACING = """# A child between fork and exec is not traced, or it waits for coverage's lock.
import functools, os, sys
os.register_at_fork(after_in_child=functools.partial(sys.settrace, None))
if "PYTEST_CURRENT_TEST" in os.environ:
    import coverage
    coverage.process_startup()
"""
UNTRIED = ("strict", "encoding")  # arguments that change nothing where all is well, as here
UNCOPIED = shutil.ignore_patterns(".git", ".venv", ".tuning", "target", "__pycache__", ".*_cache")

COMPARISONS = (
    {ast.Eq: "!=", ast.NotEq: "==", ast.Is: "is not", ast.IsNot: "is"}
    | {ast.Lt: ">=", ast.GtE: "<", ast.Gt: "<=", ast.LtE: ">"}
    | {ast.In: "not in", ast.NotIn: "in"}
)
OPERATORS = {ast.Add: "-", ast.Sub: "+", ast.Mult: "+"}
SQL = (  # a pattern, and what takes its place
    (r"\s+AND [^\n]+", ""),
    (r" < ", " >= "),
    (r" \+ ", " - "),
    (r" <> ", " = "),
    (r"\bIS NOT NULL\b", "IS NULL"),
    (r"\bNOT\b", ""),
    (r" ORDER BY [^\n)]+", " "),
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """The file with one defect: `text[start:end]` became `new`."""

    file: str
    text: str
    start: int
    end: int
    new: str

    @property
    def line(self) -> int:
        return self.text.count("\n", 0, self.start) + 1

    @property
    def name(self) -> str:
        old, new = (shorten(one, 80) for one in (self.text[self.start : self.end], self.new))
        return f"{self.file}:{self.line} `{old}` -> `{new}`"

    @property
    def mutated(self) -> str:
        return self.text[: self.start] + self.new + self.text[self.end :]


def _mutants_of(path: Path) -> Iterator[Mutant]:
    file, text = str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
    for start, end, new in _of_sql(text) if path.suffix == ".sql" else _of_python(text):
        yield Mutant(file, text, start, end, new)


def _of_sql(text: str) -> Iterator[tuple[int, int, str]]:
    code = re.sub(r"--[^\n]*", lambda comment: " " * len(comment[0]), text)
    for pattern, new in SQL:
        for found in re.finditer(pattern, code):
            yield *found.span(), new


def _of_python(text: str) -> Iterator[tuple[int, int, str]]:
    lines = text.encode().splitlines(keepends=True)

    def place(line: int, column: int) -> int:
        return len((b"".join(lines[: line - 1]) + lines[line - 1][:column]).decode())

    for node in _mutable(ast.parse(text)):
        start = place(node.lineno, node.col_offset)
        end = place(node.end_lineno, node.end_col_offset)
        for new in _variants(node):
            yield start, end, new


def _mutable(node: ast.AST) -> Iterator[ast.AST]:
    """The expressions and statements inside functions; no annotations, messages or docstrings."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            for statement in child.body:
                yield from _inside(statement)
        else:
            yield from _mutable(child)


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    said = isinstance(node, ast.Expr) and ast.unparse(node).startswith(("log.", "'", '"'))
    if said or isinstance(node, ast.JoinedStr) or getattr(node, "arg", "") in UNTRIED:
        return
    if hasattr(node, "lineno"):
        yield node
    for field, value in () if isinstance(node, ast.Raise) else ast.iter_fields(node):
        if field in ("annotation", "returns", "args" if isinstance(node, ast.FunctionDef) else ""):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _inside(child)


def _variants(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            yield f"{_code(left)} {COMPARISONS[type(operator)]} {_code(right)}"
        case ast.BoolOp(op=operator, values=[first, *rest]):
            word = " or " if isinstance(operator, ast.And) else " and "
            yield word.join(_code(value) for value in (first, *rest))
            yield _code(first)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield _code(operand)
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in OPERATORS:
            yield f"{_code(left)} {OPERATORS[type(operator)]} {_code(right)}"
        case ast.Constant(value=bool(value)):
            yield str(not value)
        case ast.Constant(value=int(value)):
            yield str(value + 1)
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield "return None"
        case ast.Call(args=args, keywords=[*most, last]) if last.arg not in UNTRIED:
            yield f"{_code(node.func)}({', '.join(map(ast.unparse, [*args, *most]))})"
        case ast.Raise() | ast.Expr(value=ast.Call()) | ast.Assign(targets=[ast.Attribute()]):
            yield "pass"


def _code(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"


def draw(rooms: Sequence[str], number: int, seed: int) -> list[Mutant]:
    """A sample of all mutants of these folders and files, in the order of the draw."""
    found = [mutant for room in rooms for path in _code_of(room) for mutant in _mutants_of(path)]
    return Random(seed).sample(found, min(number, len(found)))


def _code_of(room: str) -> list[Path]:
    """The files of Python or SQL of a folder, or this one file."""
    files = [ROOT / room] if (ROOT / room).is_file() else sorted((ROOT / room).rglob("*"))
    return [path for path in files if path.suffix in (".py", ".sql")]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """As a plugin of every run: write down which tests pass or fail, and their seconds."""
    if report.when == "call" or report.failed:
        with Path(os.environ[REPORTS]).open("a") as file:
            file.write(json.dumps([report.nodeid, report.outcome, report.duration]) + "\n")


class Tests:
    """The tests of one kind: which of them execute a line, and how long they take."""

    def __init__(self, tree: Path, kind: str, folders: Sequence[str]) -> None:
        self.kind = kind
        code = [path.read_bytes() for folder in CODE for path in _code_of(folder)]
        key = hashlib.sha256(b"".join([repr((kind, folders)).encode(), *code])).hexdigest()
        measured, reports = KEPT / key, KEPT / f"{key}.json"
        if not reports.exists():
            KEPT.mkdir(exist_ok=True)
            (settings := tree / ".coveragerc").write_text(TRACED)
            (tracing := tree / "sitecustomize.py").write_text(TRACING)
            options = ["--cov", "--cov-context=test", "--cov-report=", "-n", "2", *folders]
            files = {"COVERAGE_FILE": str(measured), "COVERAGE_PROCESS_START": str(settings)}
            _pytest(tree, kind, options, 7200, **files)
            tracing.unlink()
            shutil.copy(tree / "reports", reports)
        outcomes = map(json.loads, reports.read_text().splitlines())
        # With those that fail under coverage alone: a killer has to pass without the mutant.
        self.seconds = {name: seconds for name, how, seconds in outcomes if how != "skipped"}
        self._data = coverage.CoverageData(str(measured))
        self._data.read()

    def reaching(self, mutant: Mutant) -> list[str]:
        """The tests that execute the mutant's line, the quickest first, two minutes at most."""
        last = mutant.text.count("\n", 0, mutant.end) + 1
        files = [one for one in self._data.measured_files() if one.endswith(f"/{mutant.file}")]
        contexts = [self._data.contexts_by_lineno(one) for one in files]
        lines = (one.get(n, ()) for one in contexts for n in range(mutant.line, last + 1))
        found = {re.sub(r"(\|\w+| \(\w+\))$", "", one) for one in chain.from_iterable(lines)}
        ordered = sorted(found & self.seconds.keys(), key=self.seconds.__getitem__)
        totals = accumulate(map(self.seconds.__getitem__, ordered))
        return ordered[: sum(total <= JUDGED_SECONDS for total in totals)]


def _pytest(
    tree: Path, kind: str, arguments: Sequence[str], seconds: float, **variables: str
) -> str | None:
    """Run tests in a copy of the tree; the first that failed, or None if all passed."""
    listed, reports = tree / "arguments", tree / "reports"
    listed.write_text("\n".join(arguments))
    reports.write_text("")
    command = [sys.executable, "-m", "pytest", "-q", "-m", kind]
    command += ["-p", "no:cacheprovider", "-p", "tests.mutants", f"@{listed}"]
    env = os.environ | {"PYTHONPATH": str(tree), REPORTS: str(reports)} | variables
    try:
        ended = subprocess.run(command, cwd=tree, env=env, capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return "no end"
    if ended.returncode in (0, 5):
        return None
    found = map(json.loads, reports.read_text().splitlines())
    failed = (name for name, outcome, _ in found if outcome == "failed")
    return next(failed, f"pytest ended with {ended.returncode}")


def _killer(mutant: Mutant, tree: Path, quick: Tests, slow: Tests) -> str | None:
    """The test that finds the mutant; None if it survives."""
    file = tree / mutant.file
    room = re.sub(r"^spsa/", "", mutant.file).split("/")[0].replace("uci", "worker")
    of_room = [f"tests/{room}"] if (tree / "tests" / room).exists() else []
    late = slow.reaching(mutant) or of_room
    rounds = (quick, quick.reaching(mutant)), (quick, of_room), (slow, late)
    for tests, arguments in rounds:
        file.write_text(mutant.mutated)
        failed = arguments and _pytest(tree, tests.kind, ["-x", *arguments], LIMIT_SECONDS)
        file.write_text(mutant.text)
        alone = [failed] if failed and "::" in failed else arguments
        if failed and not _pytest(tree, tests.kind, alone, LIMIT_SECONDS):
            return failed
    return None


def _survivors(sample: Sequence[Mutant], tree: Path, quick: Tests, slow: Tests) -> list[str]:
    """The names of those that survive."""
    killers = {}
    for mutant in sample:
        killers[mutant.name] = _killer(mutant, tree, quick, slow)
        click.echo(f"{mutant.name}  {killers[mutant.name] or 'SURVIVED'}")
    return [name for name, killer in killers.items() if killer is None]


def main() -> int:
    """Draw, judge, and say what survived; 1 where more than 3% did."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--rooms", default=ROOMS, help="folders or files, with commas between")
    parser.add_argument("--tests", default="tests", help="folders of tests, with commas between")
    parser.add_argument("--number", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sample = draw(options.rooms.split(","), options.number, options.seed)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # tests start programs as another user
        trees = [Path(folder, str(n)) for n in range(2)]
        for tree in trees:
            shutil.copytree(ROOT, tree, ignore=UNCOPIED, symlinks=True)
        quick, slow = (Tests(trees[0], kind, options.tests.split(",")) for kind in (QUICK, SLOW))
        click.echo(f"{len(quick.seconds)} quick, {len(slow.seconds)} slow tests are measured")
        with ThreadPoolExecutor() as pool:  # each copy of the tree judges one at a time
            parts = (sample[n :: len(trees)] for n in range(len(trees)))
            survived = [*chain(*pool.map(_survivors, parts, trees, repeat(quick), repeat(slow)))]
    click.echo("\n".join(["", *survived, f"{len(survived)} of {len(sample)} survived"]))
    return int(len(survived) > SURVIVORS * len(sample))


if __name__ == "__main__":
    sys.exit(main())
