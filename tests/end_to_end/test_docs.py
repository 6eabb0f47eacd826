"""Every command, target, module and file that the README and the docs name is there."""

import importlib.util
import re
from pathlib import Path

import pytest

from spsa.algorithms import algorithms
from spsa.cli import COMMANDS
from spsa.cli.simulate import simulate

ROOT = Path(__file__).parents[2]
DOCS = {path.name: path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))}
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def named(pattern: str, path: Path) -> set[str]:
    return set(re.findall(pattern, path.read_text(encoding="utf-8")))


@pytest.fixture(params=DOCS)
def doc(request: pytest.FixtureRequest) -> Path:
    return DOCS[request.param]


def test_its_commands_exist(doc: Path) -> None:
    assert named(r"spsa-master ([a-z]+)", doc) <= set(COMMANDS)
    assert named(r"spsa-master simulate ([a-z0-9]+)", doc) <= set(simulate.list_commands(None))  # type: ignore[arg-type]


def test_its_targets_and_modules_exist(doc: Path) -> None:
    assert named(r"`make ([a-z-]+)", doc) <= TARGETS
    for module in named(r"python -m ([a-z_.]+)", doc):
        assert importlib.util.find_spec(module.rstrip(".")), module


def test_its_links_and_files_exist(doc: Path) -> None:
    for link in named(r"\]\(([^)#]+)", doc):
        assert link.startswith("https://") or (doc.parent / link).exists(), link
    for path in named(r"`((?:spsa|worker|tests|benches|engine|docs)/[\w/.]+\.\w+)`", doc):
        assert (ROOT / path).exists(), path


def test_its_anchors_exist(doc: Path) -> None:
    text = doc.read_text(encoding="utf-8")
    headings = {
        re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    }
    for anchor in named(r"\]\(#([^)]+)\)", doc):
        assert anchor in headings, anchor


def test_the_methods_name_every_rule_and_leave_nothing_to_be_filled_in() -> None:
    text = DOCS["methods.md"].read_text(encoding="utf-8")
    assert all(f"`{rule}`" in text for rule in algorithms())
    assert "@@" not in text
