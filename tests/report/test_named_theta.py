"""The theta that a word names, as values that engines can be given."""

import pytest
from asking import Store
from builders import Stage
from tuned import space_from, tuned

from spsa.errors import InvalidInput, NothingToDo
from spsa.report.matches import named_theta

SPACE = "[margin]\nvalue = 50\nmin = 0\nmax = 100\nstep = 8\n"


@pytest.fixture
def staged(sqlite_url: str):
    with Store(sqlite_url, durable=False) as store:
        yield tuned(store, space_from(SPACE), 3)


def values(staged: Stage, word: str):
    return named_theta(staged.store, staged.now(), word).values


def test_words_and_numbers_name_the_thetas_of_the_run(staged):
    steps = staged.store.steps(staged.run.id)
    assert values(staged, "start") == values(staged, "0") == {"margin": 50}
    assert values(staged, "final") == values(staged, "3")
    assert values(staged, "2") == {"margin": round(steps[1].theta_after["margin"])}
    assert named_theta(staged.store, staged.now(), "2").k == 2
    with pytest.raises(NothingToDo, match="3 results, so no theta of k=4"):
        values(staged, "4")


@pytest.mark.parametrize("word", ["best", "9" * 5000, "-1"])
def test_any_other_word_is_refused(staged, word):
    with pytest.raises(InvalidInput, match="write start, final, averaged, supported or"):
        values(staged, word)
