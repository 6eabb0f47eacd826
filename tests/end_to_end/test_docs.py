"""What the README and the docs name is there: commands, files, columns, lifecycles, queries."""

import importlib.util
import re
from functools import reduce
from importlib import import_module
from pathlib import Path

import click
import pytest
from builders import stage

from benches.papers.__main__ import papers
from spsa.algorithms import RULES
from spsa.cli import COMMANDS, cli
from spsa.db.base import named_texts
from spsa.db.migrate import metadata
from spsa.lifecycle import BATCH, ITERATION, RUN
from worker.cli import compete

ROOT = Path(__file__).parents[2]
RESULTS = sorted((ROOT / "benches").rglob("RESULTS.md"))
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
DOCS = {
    path.name if path.parent.name in ("docs", ROOT.name) else str(path.relative_to(ROOT)): path
    for path in (*map(ROOT.joinpath, PAGES), *(ROOT / "docs").glob("*.md"), *RESULTS)
}
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def options(command):
    """All options of a command and of its subcommands."""
    found = {option for parameter in command.params for option in parameter.opts}
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found |= options(command.get_command(context, name) or command)
    return found | {"--help"}


def headings(path):
    """The anchors of a page, as GitHub makes them."""
    return {
        re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"(?m)^#+ (.*)$", path.read_text(encoding="utf-8"))
    }


def not_there(doc):
    """What a page names and is not there: commands and options, files, anchors, columns."""
    text, context = doc.read_text(encoding="utf-8"), click.Context(cli)
    for name, rest in re.findall(r"spsa-master ([a-z]+)([^\n`#&|]*)", text):
        command = cli.get_command(context, name)
        known = {name} if command is None else options(command)
        yield from ({name} - COMMANDS.keys()) | set(re.findall(r"--[a-z][a-z-]*", rest)) - known
    for rest in re.findall(r"(?m)(?:^|`)compete ([^\n`#&|]*)", text):
        yield from set(re.findall(r"--[a-z][a-z0-9-]*", rest)) - options(compete)
    papers_named = re.findall(r"python -m benches.papers ([a-z0-9]+)", text)
    yield from set(papers_named) - papers.commands.keys()
    yield from set(re.findall(r"`make ([a-z-]+)", text)) - TARGETS
    modules = re.findall(r"python -m ([a-z_.]+)", text)
    yield from (one for one in modules if importlib.util.find_spec(one.rstrip(".")) is None)
    links = re.findall(r"\]\(([^)#]+)", text)
    yield from (one for one in links if not (one[:8] == "https://" or (doc.parent / one).exists()))
    files = re.findall(r"`((?:spsa|worker|tests|benches|engine|docs)/[\w/.]+\.\w+)`", text)
    yield from (one for one in files if "NAME" not in one and not (ROOT / one).exists())
    for link, anchor in re.findall(r"\]\(([\w./-]*)#([^)]+)\)", text):
        yield from {anchor} - headings(doc.parent / link if link else doc)
    for table, column in re.findall(r"`(spsa_\w+)\.(\w+)`", text):
        yield from {column} - set(metadata.tables[table].columns.keys())


@pytest.mark.parametrize("name", DOCS)
def test_what_a_page_names_is_there(name):
    assert list(not_there(DOCS[name])) == []


def test_what_is_not_there_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A b\n`spsa-master fly`, `spsa-master run --fly`, `compete --fly2`, `make fly`,\n"
        "`python -m benches.papers fly`, `python -m flies`, [x](fly.md), `docs/fly.md`, [y](#a-b)\n"
        "[z](#a-c), `spsa_run.fly`\n"
    )
    found = ["fly", "--fly", "--fly2", "fly", "fly", "flies", "fly.md", "docs/fly.md", "a-c", "fly"]
    assert list(not_there(page)) == found


ARCHITECTURE = DOCS["architecture.md"].read_text(encoding="utf-8")
NAMES = r"`((?:spsa|worker)(?:\.\w+)+)`"
WALKS = {  # as many forms, of the delivery with most, and modules
    "From the result of a game to theta": (11, 18),
    "From a claim to a move": (9, 15),
    "From a value of params.toml": (14, 23),
}


@pytest.mark.parametrize("walk", WALKS)
def test_a_walk_has_few_forms_and_modules(walk):
    section = ARCHITECTURE.partition(f"## {walk}")[2].partition("\n## ")[0]
    rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| ")][1:]
    modules = {found(name).__module__ for name in re.findall(NAMES, section)}
    forms: dict[str, set[str]] = {}
    for step, _, result in rows:
        ways = re.findall(r"`(\w+)`", (re.match(r"\| (?:`\w+`,? ?)+: ", step) or [""])[0])
        for way in ways or ("build", "uci", "command", "worker"):
            forms.setdefault(way, set()).update(result.strip(" |").split(", then "))
    assert (max(len(one - {""}) for one in forms.values()), len(modules)) == WALKS[walk], forms


def found(name):
    """The object behind module.function or module.Class.method; fails where there is none."""
    parts = name.split(".")
    for end in range(len(parts) - 1, 0, -1):
        try:
            module = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        return reduce(getattr, parts[end:], module)
    raise AssertionError(name)


def test_every_function_and_statement_of_the_walks_exists():
    names = set(re.findall(NAMES, ARCHITECTURE))
    assert len(names) > 40
    for name in names:
        assert callable(found(name)), name
    listed = " ".join(re.findall(r"statements ((?:`[\w.]+`(?:,| and)? )+)", ARCHITECTURE))
    statements = {("name", name) for name in re.findall(r"`([\w.]+)`", listed)}
    known = [named_texts(f"{file}.sql").keys() for file in ("protocol", "builds", "master")]
    assert len(statements) >= 4 and statements <= set().union(*known)


TABLES = {"run": RUN, "iteration": ITERATION, "batch": BATCH}


def blocks(name, language):
    """The fenced blocks of a language; a fence that closes one block opens no other."""
    text = DOCS[name].read_text(encoding="utf-8")
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [block for found, block in fenced if found == language]


def diagram():
    """The lifecycles of the page: table -> state -> states it may become."""
    (text,) = [block for block in blocks("architecture.md", "") if block.startswith("run        ")]
    found: dict[str, dict[str, set[str]]] = {}
    table = ""
    for line in text.splitlines():
        head, _, targets = line.partition(" -> ")
        table = head.split()[0] if len(head.split()) == 2 else table
        found.setdefault(table, {})[head.split()[-1]] = set(targets.split(" | "))
    return found


@pytest.mark.parametrize("name", TABLES)
def test_the_lifecycles_are_those_of_the_code(name):
    assert diagram()[name] == {str(a): {str(b) for b in to} for a, to in TABLES[name].items() if to}


def test_every_query_runs(store, sql):
    stage(store).whole_iteration()
    queries = [q.strip() for block in blocks("operations.md", "sql") for q in block.split(";")]
    results = [sql(query.replace("'demo'", "'first'")) for query in queries if query]
    assert len(results) >= 4
    assert results[0], "spsa_progress has the iteration that was played"


def test_the_guide_to_methods_is_short_and_the_readme_one_page_with_the_commands_of_a_run():
    methods, readme = (DOCS[name].read_text("utf-8") for name in ("methods.md", "README.md"))
    assert all(f"`{rule}`" in methods for rule in RULES)
    assert len(methods.splitlines()) <= 250
    usual = {"init", "plan", "run", "status", "validate", "params"}
    assert usual <= set(re.findall(r"spsa-master ([a-z]+)", readme))
    assert len(readme.splitlines()) <= 90
