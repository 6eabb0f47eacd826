"""The ten questions of an owner, answered by `status` on one screen of 80 columns and 24 lines."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from asking import Store
from builders import Stage
from owned import owned
from page_pictures import BLOCK, PAGE, screen_of


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Iterator[Stage]:
    file = tmp_path_factory.mktemp("owned") / "spsa.db"
    file.write_bytes(sqlite_template.read_bytes())
    with Store(f"sqlite:///{file}", durable=False) as store:
        yield owned(store)


@pytest.fixture(scope="module")
def shown(staged: Stage) -> str:
    return screen_of(staged.store, staged.now())


QUESTIONS = {
    "is it working?": ["run rook: running, 40 of 60 iterations", "workers on 26 slots"],
    "how much Elo, how sure?": ["measured: +111.", " ± 9.9 Elo over the start (95%)"],
    "how long still?": ["left: "],
    "which parameters moved?": ["those that moved most", "razor_margin", "+8."],
    "which machine is bad?": ["verdict: look; attic-1: 32 void games beside 1,600 that count"],
    "what failed?": ["at its min -320"],
    "should I stop?": ["verdict: "],
    "how do I take the result?": ["`spsa-master params diff --run rook`"],
    "what did the last run do?": ["earlier: run draft: stopped, 12 of 20 iterations, +"],
}


def test_a_screen_answers(shown: str) -> None:
    for question, answers in QUESTIONS.items():
        assert [answer for answer in answers if answer not in shown] == [], question


def test_the_guide_shows_this_screen(shown: str) -> None:
    found = BLOCK.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None and masked(found[1]) == masked(shown)
    assert shown.count("\n") <= 22


def masked(text: str) -> list[str]:
    """Without what the clock decides, and without the widths that follow from it."""
    text = re.sub(r"left: .* an hour|\d+s ago", "-", text)
    return [" ".join(line.split()) for line in text.splitlines()]
