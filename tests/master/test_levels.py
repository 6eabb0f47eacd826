"""Binaries for several levels of x86-64: which are used, which are refused, and when they go."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from asking import Store
from builders import Stage, new_engine, stage
from console import CONFIG, write_project
from masters import SPACE

from spsa.builds.artifacts import BuiltEngine
from spsa.config import load_config
from spsa.errors import InvalidInput
from spsa.master import delivery_setup
from spsa.master.delivery import BuildDelivery, EngineSource

LEVELS = ("x86-64-v3", "x86-64-v2")
SOURCE = "pub const margin: i32 = 50;\npub const ratio: f64 = 0.3;\npub const still: i32 = 50;\n"


@dataclass
class NamedEngines:
    """Builds engines that are only named."""

    folder: Path
    name: str
    bench: int | None = 4711
    built: int = 0

    def build(self, *rendered: object) -> tuple[BuiltEngine, BuiltEngine]:
        self.built += 1
        plus, minus = (self._engine(side) for side in ("plus", "minus"))
        return plus, minus

    def _engine(self, side: str) -> BuiltEngine:
        facts = new_engine(f"{side} for {self.name}")
        return BuiltEngine(
            build_key=facts.build_key,
            sha256=facts.sha256,
            size=1,
            path=self.folder / self.name,
            target="-",
            bench=self.bench,
            requires=("linux", self.name),
        )


@pytest.fixture
def builders(tmp_path: Path) -> dict[str, NamedEngines]:
    return {name: NamedEngines(tmp_path, name) for name in ("x86-64", *reversed(LEVELS))}


def delivery_of(builders: dict[str, NamedEngines]) -> BuildDelivery:
    constants = "src/constants.rs"
    source = EngineSource(SPACE, None, constants, {constants: SOURCE})  # type: ignore[arg-type]
    return BuildDelivery(source, builders, keep_bytes=False, require=("fast",))  # type: ignore[arg-type]


@pytest.fixture
def staged(store: Store) -> Stage:
    return stage(store)


VALUES = {"margin": 50.0, "ratio": 0.3, "still": 50.0}


def test_each_level_has_its_binaries_and_the_lowest_is_required(
    builders: dict[str, NamedEngines],
) -> None:
    sides = delivery_of(builders).prepare(VALUES, VALUES)
    assert sides.requires == ("linux", "x86-64", "fast")
    assert tuple(sides.variants) == LEVELS
    assert sides.variants["x86-64-v2"][1].sha256 == new_engine("minus for x86-64-v2").sha256
    assert sides.refused == {}


@pytest.mark.parametrize("bench", [4712, None])
def test_a_level_with_another_bench_is_refused(
    bench: int | None, builders: dict[str, NamedEngines], caplog: pytest.LogCaptureFixture
) -> None:
    builders["x86-64-v3"].bench = bench
    delivery = delivery_of(builders)
    for _ in range(2):
        sides = delivery.prepare(VALUES, VALUES)
        assert tuple(sides.variants) == ("x86-64-v2",)
        reason = f"bench gives {bench} and {bench} nodes, not 4711 and 4711"
        assert sides.refused == {"x86-64-v3": reason}
    assert (builders["x86-64-v3"].built, builders["x86-64-v2"].built) == (1, 2)
    assert caplog.messages == [f"no binaries for x86-64-v3 are used: {reason}"]


def test_the_event_of_a_refused_level_is_written_once(staged: Stage) -> None:
    for _ in range(2):
        staged.whole_iteration(refused={"x86-64-v3": "another bench", "x86-64-v4": "too"})
    told = [e.detail for e in staged.store.events(staged.run.id) if e.kind == "level_refused"]
    assert told == [
        {"level": "x86-64-v3", "reason": "another bench"},
        {"level": "x86-64-v4", "reason": "too"},
    ]


def test_binaries_of_a_level_are_retired_with_their_iteration(
    staged: Stage, builders: dict[str, NamedEngines]
) -> None:
    first, second, third = (new_engine(name, content=b"x") for name in ("one", "two", "three"))
    staged.whole_iteration(variants={"x86-64-v3": (first, second)})
    staged.open(variants={"x86-64-v3": (third, second)})
    # the plus and minus of all iterations of a stage are the same
    assert staged.store.retire_engines(staged.master, 1) == [first.sha256]
    left = [staged.store.file(engine.sha256) for engine in (first, second, third)]
    assert left == [None, b"x", b"x"]


def test_a_level_that_this_machine_cannot_test_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_project(tmp_path, CONFIG)
    config = load_config(tmp_path / "config.toml", {})
    levels = ["x86-64", "x86-64-v2", "x86-64-v3"]
    wanted = {**delivery_setup.delivery_settings(config), "levels": levels}
    monkeypatch.setattr(delivery_setup, "provided", lambda: ("linux", "x86-64", "x86-64-v2"))
    with pytest.raises(InvalidInput, match=r"build.levels\] .* only linux, x86-64, x86-64-v2"):
        delivery_setup.delivery_of(config, SPACE, wanted, None)


WHERE = "[build]\nwhere = 'worker'"


def test_where_workers_build_this_machine_needs_one_of_the_levels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_project(tmp_path, CONFIG.replace("[build]", f"{WHERE}\nlevels = ['x86-64-v3']"))
    config = load_config(tmp_path / "config.toml", {})
    wanted = delivery_setup.delivery_settings(config)
    monkeypatch.setattr(delivery_setup, "provided", lambda: ("linux", "x86-64", "x86-64-v2"))
    with pytest.raises(InvalidInput, match=r"build.levels\] .* only linux, x86-64, x86-64-v2"):
        delivery_setup.delivery_of(config, SPACE, wanted, None)
    assert not (tmp_path / ".tuning").exists()


def test_where_workers_build_a_probe_builds_the_highest_level_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels = "levels = ['x86-64', 'x86-64-v2', 'x86-64-v3']"
    write_project(tmp_path, CONFIG.replace("[build]", f"{WHERE}\n{levels}"))
    (tmp_path / "engine/src/engine_constants.rs").write_text(SOURCE)
    config = load_config(tmp_path / "config.toml", {})
    monkeypatch.setattr(delivery_setup, "provided", lambda: ("linux", "x86-64", "x86-64-v2"))
    made = []
    monkeypatch.setattr(delivery_setup, "Builder", lambda _, recipe, *__: made.append(recipe))
    with delivery_setup.temporary_delivery(config, SPACE):
        assert [recipe.level for recipe in made] == ["x86-64-v2"]
