"""From values to the sources of an engine: several files, an array at once."""

import pytest

from spsa.builds.sources.constant import ConstantRefused
from spsa.builds.sources.rewriting import render, sources_of
from spsa.config.space import load_space
from spsa.core.params import Space

CONSTANTS = """\
pub const MARGIN: i32 = 200; // kept
pub const LMR_X1000: u32 = 750;
pub const MARGINS: [i32; 4] = [1, 2, 3, 4];
"""
SEARCH = "fn search() {\r\n    const RADIUS: [i32; 2] = [25, 50]; // naïve\r\n}\r\n"

ARRAY = 'array = "MARGINS", knob ='
PARAMS = {
    "margin": "value = 210, min = 50, max = 400, step = 20",
    "lmr_base": 'constant = "LMR_X1000", scale = 1000, value = 0.8, min = 0, max = 2, step = 0.1',
    "base": f'{ARRAY} "base", value = 100, min = 50, max = 200, step = 10',
    "slope": f'{ARRAY} "per_index", value = 50, min = 20, max = 90, step = 5',
    "radius": 'constant = "src/search.rs::RADIUS[0]", value = 30, min = 10, max = 60, step = 4',
}


@pytest.fixture
def space(tmp_path) -> Space:
    path = tmp_path / "params.toml"
    path.write_text("\n".join(f"{k} = {{ {v} }}" for k, v in PARAMS.items()), encoding="utf-8")
    return load_space(path)


def test_every_value_arrives_in_its_file(space):
    names = sources_of(space, "src/constants.rs")
    assert names == ("src/constants.rs", "src/search.rs")
    texts = dict(zip(names, (CONSTANTS, SEARCH), strict=True))
    written = render(space, space.rounded(space.start()), texts)
    assert written["src/constants.rs"] == (
        CONSTANTS.replace("200", "210")
        .replace("750", "800")
        .replace("[1, 2, 3, 4]", "[100, 150, 200, 250]")
    )
    assert written["src/search.rs"] == SEARCH.replace("25,", "30,")


def test_a_source_that_lacks_a_constant_is_refused(space):
    texts = {"src/constants.rs": CONSTANTS, "src/search.rs": SEARCH.replace("RADIUS", "OTHER")}
    with pytest.raises(ConstantRefused, match=r"there is no constant src/search\.rs::RADIUS"):
        render(space, space.rounded(space.start()), texts)
