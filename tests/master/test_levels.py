"""Binaries for a level of x86-64: which are refused, and which a machine builds."""

import pytest
from builders import stage
from console import CONFIG, write_project
from masters import SPACE

from spsa.config import load_config
from spsa.errors import InvalidInput
from spsa.master import delivery_setup

SOURCE = "pub const margin: i32 = 50;\npub const ratio: f64 = 0.3;\npub const still: i32 = 50;\n"


def test_the_event_of_a_refused_level_is_written_once(store):
    staged = stage(store)
    for _ in range(2):
        staged.whole_iteration(refused={"x86-64-v3": "another bench", "x86-64-v4": "too"})
    told = [e.detail for e in staged.store.events(staged.run.id) if e.kind == "level_refused"]
    assert told == [
        {"level": "x86-64-v3", "reason": "another bench"},
        {"level": "x86-64-v4", "reason": "too"},
    ]


WHERE = "[build]\nwhere = 'worker'"


@pytest.mark.parametrize("where", ["[build]", WHERE])
def test_this_machine_needs_one_of_the_levels(where, tmp_path, monkeypatch):
    write_project(tmp_path, CONFIG.replace("[build]", f"{where}\nlevels = ['x86-64-v3']"))
    config = load_config(tmp_path / "config.toml", {})
    wanted = delivery_setup.delivery_settings(config)
    monkeypatch.setattr(delivery_setup, "provided", lambda: ("linux", "x86-64", "x86-64-v2"))
    with pytest.raises(InvalidInput, match=r":\d+: \[build\] .* only linux, x86-64, x86-64-v2"):
        delivery_setup.delivery_of(config, SPACE, wanted, None)
    assert not (tmp_path / ".tuning").exists()


def test_where_workers_build_a_probe_builds_the_highest_level_of_this_machine(
    tmp_path, monkeypatch
):
    levels = "levels = ['x86-64', 'x86-64-v2', 'x86-64-v3']"
    write_project(tmp_path, CONFIG.replace("[build]", f"{WHERE}\n{levels}"))
    (tmp_path / "engine/src/engine_constants.rs").write_text(SOURCE)
    config = load_config(tmp_path / "config.toml", {})
    monkeypatch.setattr(delivery_setup, "provided", lambda: ("linux", "x86-64", "x86-64-v2"))
    made = []
    monkeypatch.setattr(delivery_setup, "Builder", lambda _, recipe, *__: made.append(recipe))
    with delivery_setup.temporary_delivery(config, SPACE):
        assert [recipe.level for recipe in made] == ["x86-64-v2"]


@pytest.mark.parametrize(("cores", "builds"), [(1, 1), (11, 2), (999, 8)])
def test_builds_share_the_cores(cores, builds, monkeypatch):
    monkeypatch.setattr(delivery_setup.system, "logical_cores", lambda: set(range(cores)))
    assert delivery_setup.usual_builds() == builds
