"""The run of an owner: ten questions that one screen answers, and all that reports show of it."""

import os
import re
from io import StringIO
from pathlib import Path

import pytest
from asking import Store
from golden import compare
from owned import owned
from rich.console import Console
from screen import Screen, console_of

from spsa.report.alarms import look
from spsa.report.html import page
from spsa.report.report import REPORT, csv_files, report
from spsa.report.screen import rendered, screen
from spsa.report.table import record

HEADINGS = r'<(h1|h2|th scope="col"|figcaption)\b[^>]*>(.*?)</(?:h1|h2|th|figcaption)>'
GUIDE = Path(__file__).parents[2] / "docs" / "page.md"
BLOCK = re.compile(r"```\n(run rook.*?)\n```", re.DOTALL)
GOLDEN = Path(__file__).with_name("golden.txt")


@pytest.fixture(scope="module")
def staged(tmp_path_factory, sqlite_template):
    file = tmp_path_factory.mktemp("owned") / "spsa.db"
    file.write_bytes(sqlite_template.read_bytes())
    with Store(f"sqlite:///{file}", durable=False) as store:
        yield owned(store)


@pytest.fixture(scope="module")
def shown(staged):
    """What `status` shows on a terminal of 80 columns and 24 lines."""
    terminal = Screen(80, 24)
    console = console_of(terminal)
    console.print(screen(look(staged.store, staged.now()), console))
    return "\n".join(line.rstrip() for line in terminal.everything.rstrip().splitlines())


def test_a_screen_answers_the_questions_of_the_guide(shown):
    questions = re.findall(r"^\| ([^|]*\?) \| ([^|]*) \|", GUIDE.read_text("utf-8"), re.MULTILINE)
    assert len(questions) == 10
    for question, told in questions:
        answers = re.findall("`([^`]*)`", told)
        assert answers and all(answer in shown for answer in answers), question


def test_the_guide_shows_this_screen(shown):
    """`GOLDEN=write` writes it anew."""
    text = GUIDE.read_text(encoding="utf-8")
    if os.environ.get("GOLDEN") == "write":
        GUIDE.write_text(BLOCK.sub(lambda _: f"```\n{shown}\n```", text), encoding="utf-8")
    found = BLOCK.search(text)
    assert found is not None and masked(found[1]) == masked(shown)
    assert shown.count("\n") <= 22


def masked(text):
    """Without what the clock decides, and without the widths that follow from it."""
    text = re.sub(r"left: .* an hour|(\d+[hms] )+ago", "-", text)
    return [" ".join(line.split()) for line in text.splitlines()]


def test_each_rendering_is_the_golden_one(staged):
    compare(GOLDEN, "".join(f"{line}\n" for line in renderings(staged)))


def renderings(staged):
    """The text of `status`, the keys of JSON, the heads of CSV, the headings of HTML."""
    found = report(staged.store, staged.now())
    console = Console(file=StringIO(), width=160)
    console.print(rendered(found.status))
    yield from masked(console.file.getvalue())
    told = record(REPORT, found)
    for part in ("status", "history", "workers", "machines", "events", "void_games"):
        yield from dict.fromkeys(keys(told[part], part))
    for name, content in csv_files(staged.store, staged.now()).items():
        head, *lines = content.decode().splitlines()
        yield f"{name}, {len(lines)} rows: {head}"
    for tag, text in re.findall(HEADINGS, page(found)):
        yield f"{tag} {re.sub('<[^>]*>', '', text)}"


def keys(value, path=""):
    """`status.parameters[].name`: the place of each single value."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from keys(inner, f"{path}.{name}".lstrip("."))
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner, f"{path}[]")
    else:
        yield path
