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


def test_a_file_has_the_parameters_of_the_run_within_its_bounds(staged, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(SPACE.replace("50", "71"))
    found = named_theta(staged.store, staged.now(), str(path))
    assert (found.name, found.values, found.k) == ("mine.toml", {"margin": 71}, None)
    path.write_text(SPACE.replace("margin", "reach").replace("100", "200"))
    with pytest.raises(InvalidInput) as refused:
        values(staged, str(path))
    assert "[margin] is missing" in str(refused.value)
    assert f"{path}:1: [reach] run first has no such parameter" in str(refused.value)
    path.write_text(SPACE.replace("50", "170").replace("100", "200"))
    with pytest.raises(InvalidInput, match="value 170 is outside the bounds of run first; use 0"):
        values(staged, str(path))


@pytest.mark.parametrize("word", ["best", "9" * 5000, "x" * 5000, "-1", "."])
def test_any_other_word_is_a_file_that_is_not_there(staged, word):
    with pytest.raises(InvalidInput):
        values(staged, word)
