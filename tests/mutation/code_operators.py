"""Defects of Python functions: one node of a function's syntax tree changed at a time.

A function gets the code that was compiled from the changed tree, in its place, so every module that
has imported it has the defect too.
"""

import ast
import copy
import importlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "and_": "or_", "or_": "and_"}
_STATUSES = {
    "BatchStatus": {"READY": "LEASED", "LEASED": "READY", "DONE": "LEASED", "PURGED": "DONE"},
    "IterationStatus": {"IN_PROGRESS": "PENDING", "COMPLETE": "ABANDONED", "ABANDONED": "COMPLETE"},
    "RunStatus": {"RUNNING": "PAUSED", "PAUSED": "RUNNING", "FINISHED": "STOPPED"},
    "Purpose": {"TUNE": "VALIDATE", "VALIDATE": "TUNE"},
}
_MADE_LESS = ("where", "values", "and_", "or_", "join")
_LEFT_OUT = ("order_by", "with_for_update", "distinct", "limit", "group_by")


@dataclass(frozen=True, slots=True)
class CodeChange:
    """Node number `node` of a function, in the order of `ast.walk`, becomes variant `variant`."""

    module: str
    function: str  # its qualified name
    node: int
    variant: int
    line: int
    before: str
    after: str


def changes(module: str, functions: tuple[str, ...] = ()) -> list[CodeChange]:
    """Every change of the functions of a module, or of those that are named, in order of lines."""
    found = []
    for name, function in _functions(_tree(module)):
        if functions and name not in functions:
            continue
        yields = sum(isinstance(node, ast.Yield) for node in ast.walk(function))
        for number, node in enumerate(_nodes(function)):
            for variant, new in enumerate(_variants(node, yields)):
                place = (module, name, number, variant, getattr(node, "lineno", function.lineno))
                told = getattr(new, "told", None)
                before = _short(node.func) if told and isinstance(node, ast.Call) else _short(node)
                found.append(CodeChange(*place, before, told or _short(new)))
    return sorted(found, key=lambda change: (change.line, change.node, change.variant))


def apply(change: CodeChange) -> None:
    """Give the function of this process the defect."""
    tree = copy.deepcopy(_tree(change.module))
    function = dict(_functions(tree))[change.function]
    yields = sum(isinstance(node, ast.Yield) for node in ast.walk(function))
    node = _nodes(function)[change.node]
    _replace(tree, node, _variants(node, yields)[change.variant])
    code = compile(ast.fix_missing_locations(tree), _file(change.module), "exec")
    function_of(change.module, change.function).__code__ = _code_of(code, change.function)


def watch(module: str, reached: set[str]) -> None:
    """Have every function of a module say when it is called, in this process."""
    tree = copy.deepcopy(_tree(module))
    for name, function in _functions(tree):
        function.body[:0] = ast.parse(f"__reached__.add({f'{module}:{name}'!r})").body
    code = compile(ast.fix_missing_locations(tree), _file(module), "exec")
    vars(importlib.import_module(module))["__reached__"] = reached
    for name in functions_of(module):
        function_of(module, name).__code__ = _code_of(code, name)


def function_of(module: str, name: str) -> FunctionType:
    """The function itself, without what wraps it."""
    *outer, last = name.split(".")
    holder: Any = importlib.import_module(module)
    for part in outer:
        holder = getattr(holder, part)
    found = inspect.getattr_static(holder, last)
    if isinstance(found, property):
        found = found.fget
    elif isinstance(found, cached_property):
        found = found.func
    elif isinstance(found, (staticmethod, classmethod)):
        found = found.__func__
    function = inspect.unwrap(found)
    assert isinstance(function, FunctionType), name
    return function


def functions_of(module: str) -> list[str]:
    """The qualified names of all functions and methods of a module."""
    return [name for name, _ in _functions(_tree(module))]


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(Path(_file(module)).read_text(encoding="utf-8"))


def _file(module: str) -> str:
    return str(importlib.import_module(module).__file__)


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef) and not any(_is(b, "Protocol") for b in node.bases):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield f"{node.name}.{inner.name}", inner


def _nodes(function: ast.FunctionDef) -> list[ast.AST]:
    """What may be changed: the body without annotations, and what is said in messages."""
    unwanted = set()
    for node in ast.walk(function):
        hidden: list[ast.AST | None] = []
        if isinstance(node, ast.FunctionDef):
            hidden = [node.args, node.returns, *node.decorator_list]
        elif isinstance(node, ast.AnnAssign):
            hidden = [node.annotation]
        elif isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Raise) and node.exc):
            hidden = list(ast.iter_child_nodes(node))
        elif isinstance(node, ast.Expr) and _is_said(node.value):
            hidden = [node]
        for part in hidden:
            if part is not None:
                unwanted.update(map(id, ast.walk(part)))
    return [node for node in ast.walk(function) if id(node) not in unwanted]


def _is_said(node: ast.AST) -> bool:
    """A call of the log, or a docstring."""
    if isinstance(node, ast.Constant):
        return True
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Attribute) and _is(called.value, "log")


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _variants(node: ast.AST, yields: int) -> list[ast.AST]:
    """What stands in place of a node, each with one defect."""
    found: list[ast.AST] = []
    for make in _OPERATORS:
        found.extend(make(node))
    if isinstance(node, ast.FunctionDef | ast.While | ast.With | ast.If):
        found.extend(_swapped(node))
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield) and yields > 1:
        found.append(ast.Pass())
    return [ast.fix_missing_locations(ast.copy_location(new, node)) for new in found]


def _swapped(node: Any) -> Iterator[ast.AST]:
    """Two calls in the opposite order."""
    for i, (one, other) in enumerate(pairwise(node.body)):
        calls = [s.value for s in (one, other) if isinstance(s, ast.Expr)]
        checks = any("limits.check" in ast.unparse(call) for call in calls)
        if len(calls) == 2 and all(isinstance(c, ast.Call) for c in calls) and not checks:
            new = copy.copy(node)
            new.body = [*node.body[:i], other, one, *node.body[i + 2 :]]
            new.told = f"{_short(other)} before {_short(one)}"
            yield new


def _compared(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Compare):
        new = copy.deepcopy(node)
        new.ops[0] = _COMPARISONS[type(node.ops[0])]()
        yield new


def _joined(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.BoolOp):
        opposite = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield ast.BoolOp(opposite, node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert):
        yield node.operand


def _added(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        opposite = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
        yield ast.BinOp(node.left, opposite, node.right)
    elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        yield ast.AugAssign(node.target, ast.Sub(), node.value)
        yield ast.Assign([node.target], node.value)


def _numbers(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield ast.Constant(node.value + 1)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Return) and not isinstance(node.value, ast.Constant | None):
        yield ast.Return(ast.Constant(None))
    elif (
        isinstance(node, ast.Raise)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
        or (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute))
    ):
        yield ast.Pass()
    elif isinstance(node, ast.If | ast.IfExp) and isinstance(
        node.test, ast.Name | ast.Attribute | ast.Call | ast.NamedExpr
    ):
        new = copy.deepcopy(node)
        new.test = ast.UnaryOp(ast.Not(), new.test)
        yield new


def _called(node: ast.AST) -> Iterator[ast.AST]:
    """Other functions, a condition or a value less, an ORDER BY less."""
    if isinstance(node, ast.Tuple) and all(isinstance(e, ast.Compare) for e in node.elts):
        yield from _shortened(node)
    if not isinstance(node, ast.Call):
        return
    function = node.func
    name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
    if name in _NAMES:
        new = copy.deepcopy(node)
        setattr(new.func, "id" if isinstance(function, ast.Name) else "attr", _NAMES[name])
        yield new
    if name in _LEFT_OUT and isinstance(function, ast.Attribute):
        yield function.value
    if name in _MADE_LESS and name != "join":
        yield from _made_less(node)


def _made_less(node: ast.Call) -> Iterator[ast.AST]:
    if len(node.args) + len(node.keywords) < 2:
        return
    for i, dropped in enumerate(node.args):
        yield _told(ast.Call(node.func, node.args[:i] + node.args[i + 1 :], node.keywords), dropped)
    for i, dropped in enumerate(node.keywords):
        yield _told(
            ast.Call(node.func, node.args, node.keywords[:i] + node.keywords[i + 1 :]), dropped
        )


def _shortened(node: ast.Tuple) -> Iterator[ast.AST]:
    """Conditions that are passed to a query together: one less."""
    for i, dropped in enumerate(node.elts):
        yield _told(ast.Tuple(node.elts[:i] + node.elts[i + 1 :], node.ctx), dropped)


def _told(new: ast.AST, dropped: ast.AST) -> ast.AST:
    new.told = f"without {_short(dropped)}"  # type: ignore[attr-defined]
    return new


def _words(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        other = _STATUSES.get(node.value.id, {}).get(node.attr)
        if other is not None:
            yield ast.Attribute(node.value, other, node.ctx)


_OPERATORS: tuple[Callable[[ast.AST], Iterator[ast.AST]], ...] = (
    *(_compared, _joined, _added, _numbers, _statements, _called, _words),
)


def _replace(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
                return
            if isinstance(value, list) and any(part is old for part in value):
                value[:] = [new if part is old else part for part in value]
                return
    raise LookupError(ast.dump(old))


def _code_of(code: CodeType, name: str) -> CodeType:
    """The code object of a function inside a module's."""
    found = code
    for part in name.split("."):
        found = next(c for c in found.co_consts if isinstance(c, CodeType) and c.co_name == part)
    return found


def _short(node: ast.AST) -> str:
    if isinstance(node, ast.FunctionDef | ast.While | ast.With):
        return "the order of calls"
    if isinstance(node, ast.If | ast.IfExp):
        return f"if {_short(node.test)}"
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 70 else f"{text[:34]} ... {text[-30:]}"
