"""Files of any content: what is accepted makes sense, what is not is refused with its faults.

`fuzzing` says how many are tried, and how a search is repeated.
"""

import json
from math import isfinite
from pathlib import Path

import numpy as np
import pytest
from configuration_page import rows
from fuzzing import NASTY, fuzz, made
from hypothesis import given

from spsa.algorithms import settings_faults
from spsa.builds.sources.rewriting import render
from spsa.config import load_config
from spsa.config.source import check_against_source
from spsa.config.space import load_space
from spsa.config.starter import starter_params
from spsa.config.suggestions import select
from spsa.core.game_settings import GameSettings
from spsa.core.json_values import from_json, to_json
from spsa.core.params import Space
from spsa.db.url import parsed
from spsa.errors import InvalidInput

FULL = Path(__file__).parents[1] / "fixtures" / "full"
CONFIG, PARAMS, SOURCE = (
    (FULL / name).read_text(encoding="utf-8")
    for name in ("config.toml", "params.toml", "constants.rs")
)


def words(text):
    return text.split(" ")


KEYS = {
    **{f"[{table}]": [*keys] for table, keys in rows().items() if table != "parameter"},
    "[spsa]": words("algorithm max_iterations a c A alpha gamma r noise_walk"),
    "[margin]": [*rows()["parameter"]],
    "[engine.options]": ["Hash", '"Clear Hash"', '"a\\nb"', '"a\x1bb"'],
    "[adjudication]": ["max_moves", "draw", "resign", "syzygy"],
    "[[margin]]": ["constraints", "x"],
    "[a.b]": ["a.b.c", '""', "'a b'"],
}
TEXTS = (
    words("a A MARGIN margin DEPTHS[2] DEPTHS[99] PAIR.1 m::X NAMES RATE SMALL DERIVED x.rs::A")
    + words("int float base per_index amplitude bias movetime clock nodes depth build uci auto")
    + words("spsa mixture sqlite:///x.db sqlite:///:memory: postgresql://u:p@h/d mysql://h/d")
    + words("nps none builtin ../x /dev/zero /dev/null . ~ ~nobody/x a/../b path database class")
    + ["margin < depth", "depth <= margin", "depth < depth", "b > margin", "x" * 300, "x" * 5000]
)
OTHERS = ["true", "false", "1979-05-27", "07:32:00", "'''\n'''", "[[", "{", "", "#", "{ a = 1 }"]


def value(chance):
    """Something that may stand behind a =, and much that may not."""
    match chance.randrange(8):
        case 0 | 1:
            return str(chance.choice((0, 1, 2, 5, 10, 100, 0.5, 1.5)) * chance.choice((1, 2, 10)))
        case 2 | 3:
            return chance.number()
        case 4 | 5:
            return json.dumps(chance.choice(TEXTS))
        case 6:
            return json.dumps(chance.text(3))
        case _:
            inner = ", ".join(chance.many(lambda: json.dumps(chance.choice(TEXTS)), 3))
            return chance.choice((f"[{inner}]", *OTHERS))


def line(chance):
    section, names = chance.choice([*KEYS.items()])
    return section if chance.random() < 0.2 else f"{chance.choice(names)} = {value(chance)}"


def edited(chance, text, *, rust):
    """A text after a few slips of a person: in a value, a line or a character."""
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        lines = text.split("\n")
        at = chance.randrange(len(lines))
        name, equals, _ = lines[at].partition(" = ")
        match chance.randrange(10):
            case 0:
                del lines[at : at + chance.randrange(1, 4)]
            case 1:
                lines.insert(at, chance.choice(lines) if rust else line(chance))
            case 2:
                lines.insert(at, chance.choice(lines))
            case 3:
                where = chance.randrange(len(lines[at]) + 1)
                new = chance.choice(("", "=", "[", '"', ".", "é", "0", *NASTY))
                lines[at] = lines[at][:where] + new + lines[at][where + chance.randrange(3) :]
            case _ if equals:
                lines[at] = f"{name} = {chance.number() + ';' if rust else value(chance)}"
        text = "\n".join(lines)
    return text


CONFIGS = made(lambda chance: edited(chance, CONFIG, rust=False))
SPACES = made(lambda chance: edited(chance, PARAMS, rust=False))
SOURCES = made(lambda chance: edited(chance, SOURCE, rust=True).replace("\ud800", ""))


def written(folder, name, text):
    path = folder / name
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return path


def hold_refusal(refused):
    """Faults are few, short, printable and have a remedy."""
    assert refused.exit_code == 2 and 0 < len(refused.faults) <= 100
    for fault in refused.faults:
        line = str(fault)
        assert line.isprintable() and len(line) < 1700 and "; " in line


def leaves(value):
    """Every number and text in nested values."""
    if isinstance(value, dict | list):
        for inner in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from leaves(inner)
    else:
        yield value


def hold_config(path):
    config = load_config(path, {})
    for leaf in leaves(config.model_dump(mode="json")):
        if isinstance(leaf, int | float) and not isinstance(leaf, bool):
            assert isfinite(leaf) and abs(leaf) < 2**63, leaf
        if isinstance(leaf, str):
            assert leaf.isprintable() and len(leaf) <= 10_000, leaf
    games, control = config.games, config.game_settings.time_control
    assert 0 < games.batch_size <= games.games_per_iteration <= 1_000_000
    assert games.batch_size % 2 == games.games_per_iteration % 2 == config.validation.games % 2 == 0
    assert 0 < control.low <= control.high <= 10**12
    assert control.increment >= 0 <= control.margin
    assert 0 < config.spsa.max_iterations <= 10**7
    assert settings_faults(config.spsa.algorithm, config.spsa.settings) == []
    assert (
        from_json(GameSettings, json.loads(json.dumps(to_json(config.game_settings))))
        == config.game_settings
    )
    parsed(config.database.url)


def hold_parameter(p):
    assert all(isfinite(x) for x in (p.value, p.minimum, p.maximum, p.step))
    assert p.minimum <= p.value <= p.maximum and p.minimum < p.maximum
    assert 0 < p.step <= p.maximum - p.minimum
    for x in (p.value, p.minimum, p.maximum):
        assert x + p.step != x != x - p.step
    assert p.option.isprintable() and p.group.isprintable()
    assert p.scale is None or p.scale > 0


def hold_space(space):
    for p in space.parameters:
        hold_parameter(p)
    assert Space.from_json(json.loads(json.dumps(space.to_json(), allow_nan=False))) == space
    start = space.start()
    assert np.isfinite(start).all() and start.size == len(space.active) > 0
    offset = np.where(np.arange(start.size) % 2, -1.5, 1.5)
    played = space.realise(start, offset, np.full(start.size, 0.5))
    assert np.isfinite([space.steps(played.plus), space.steps(played.minus)]).all()
    for values in (space.rounded(start), played.plus, played.minus):
        for p in space.parameters:
            slack = 1e-9 * max(abs(p.minimum), abs(p.maximum))
            assert p.minimum - slack - p.unit <= values[p.name] <= p.maximum + slack + p.unit
        for constraint in space.constraints:
            assert constraint.holds(values), (constraint, values)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@fuzz()
@given(text=CONFIGS)
def test_a_config_is_sound_or_refused(folder, text):
    try:
        hold_config(written(folder, "config.toml", text))
    except InvalidInput as refused:
        hold_refusal(refused)


@fuzz()
@given(text=SPACES)
def test_a_space_is_sound_or_refused(folder, text):
    try:
        space = load_space(written(folder, "params.toml", text))
        hold_space(space)
    except InvalidInput as refused:
        hold_refusal(refused)
        return
    if not check_against_source(space, {"c.rs": SOURCE}):
        for values in (space.rounded(space.lower), space.rounded(space.upper)):
            render(space, values, {"c.rs": SOURCE})


@pytest.mark.slow
@fuzz()
@given(text=SOURCES)
def test_what_init_would_write_is_accepted_as_it_is(folder, text):
    suggestions = select({"eval.rs": text}).suggestions["eval.rs"]
    if any(not proposal.reason for proposal in suggestions):
        path = written(folder, "params.toml", starter_params({"eval.rs": suggestions}))
        assert not check_against_source(load_space(path), {"c.rs": text})
