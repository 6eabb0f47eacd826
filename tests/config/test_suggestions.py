"""What `init` suggests for an engine's constants, and that it can be started from as it stands."""

import re
import tempfile
from pathlib import Path

import pytest
from golden import compare, compare_cases

from spsa.builds.sources.reading import parse
from spsa.builds.sources.rewriting import element, render
from spsa.config import load_config
from spsa.config.source import check_against_source, other_values
from spsa.config.space import load_space
from spsa.config.starter import read_source, setup_of_source, starter_config, starter_params
from spsa.config.suggestions import select
from spsa.config.suggestions.objections import rank_of_file
from spsa.config.suggestions.ranges import free_name
from spsa.core.parameter import Location
from spsa.planning.plan_inputs import Shape

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "rust"
SOURCES = (
    FIXTURES / "shapes.rs",
    FIXTURES / "hostile.rs",
    ROOT / "engine" / "src" / "engine_constants.rs",
)
UNCOMMENTED = re.compile(r"(?m)^# (\[\w+\]|(?:value|min|max|step|constant|group) = )")


@pytest.fixture
def proposed(tmp_path):
    """What params.toml would have of some sources; it fits them, also with its comments."""

    def proposed(texts):
        chosen = select(texts)
        every = [one for each in chosen.suggestions.values() for one in each]
        ordered = {chosen.constants_file: texts[chosen.constants_file], **texts}
        starter = starter_params(chosen.suggestions, chosen.functions)
        hold(tmp_path / "params.toml", starter, [p for p in every if not p.reason], ordered)
        shown = [p for p in every if not p.left_out]
        if all(p.minimum < p.maximum for p in shown):
            hold(tmp_path / "params.toml", UNCOMMENTED.sub(r"\1", starter), shown, ordered)
        yield from map(line_of, every)
        for file, lines in chosen.functions.items():
            for line in lines:
                place, number = line.partition(" in line ")[0].split(" = ")
                location = Location.parse(place)
                assert location.file in (None, file)
                assert element(parse(texts[file], file), location).text == number
                assert f"\n# {line}\n" in starter
                yield f"{file}: {line}"

    return proposed


def hold(path, starter, wanted, texts):
    """A params.toml has these parameters with the values of the sources, digit by digit."""
    path.write_text(starter, encoding="utf-8")
    if wanted:
        space = load_space(path)
        assert [p.name for p in space.parameters] == [p.name for p in wanted]
        assert check_against_source(space, texts) == ()
        assert other_values(space, texts) == {}
        values = space.rounded(space.steps({p.name: p.value for p in space.parameters}))
        assert render(space, values, texts) == texts


def line_of(p):
    if p.left_out:
        return f"- {p.name}: {p.reason}"
    numbers = f"{p.value!r}, {p.minimum:.6g} to {p.maximum:.6g} by {p.step:.6g}"
    keys = "".join(f", {value}" for value in p.keys.values())
    reason = f": {p.reason}" if p.reason else ""
    return f"{'# ' if reason else ''}{p.name} = {numbers}{keys} [{p.group}]{reason}"


def test_what_is_suggested_and_why_all_else_is_not(proposed):
    compare_cases(Path(__file__).with_name("suggestions.txt"), proposed)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_what_is_suggested_of_a_whole_file(source, proposed):
    lines = proposed({"src/eval.rs": source.read_text(encoding="utf-8")})
    golden = Path(__file__).with_name(f"suggestions_{source.stem}.txt")
    compare(golden, "".join(f"{line}\n" for line in lines))


def test_a_name_that_is_taken_gets_those_around_it_and_then_a_number():
    taken: set[str] = set()
    for name in ("b", "y_b", "x_y_b", "b_2", "b_3"):
        assert free_name("b", ("x", "", "Y"), taken) == name
        taken.add(name)


def test_files_of_evaluation_and_search_go_before_others():
    paths = ("src/eval.rs", "src/lib.rs", "search/lib.rs", "nnue/eval.rs")
    assert [rank_of_file(path) for path in paths] == [1, 0, 1, -1]


def test_the_starter_config_is_right_as_it_stands(tmp_path):
    path = tmp_path / "config.toml"
    shape = Shape(iterations=250, games=8, batch_games=2, in_flight=2, adapts=True)
    setup = setup_of_source('../my "engine" \N{ROBOT FACE}', "src/consts.rs", {})
    path.write_text(starter_config(setup, shape), encoding="utf-8")
    build = load_config(path, {}).build
    assert build.source_path == tmp_path.parent / 'my "engine" \N{ROBOT FACE}'
    assert build.constants_file == "src/consts.rs"


def test_files_of_an_engine_its_program_and_what_turns_options_for_tuning_on(tmp_path):
    def read(files):
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(f"{text}\n")
        source = read_source(folder)
        yield f"read: {' '.join(source.texts)}"
        yield f"build: {dict(source.build)}"
        yield f"switches: {source.switches}"

    compare_cases(Path(__file__).with_name("engine_files.txt"), read)
