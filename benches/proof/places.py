"""The folders of the proof: one with config.toml and params.toml for every run, one database."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import tomlkit

from spsa.config import load_config
from spsa.config.settings import Config
from spsa.config.source import other_values, read_sources
from spsa.config.space import load_space, project_theta
from spsa.core.parameter import Knob
from spsa.errors import Fault, InvalidInput
from spsa.master.delivery_setup import source_of
from spsa.master.start import checked_space

HERE = Path(__file__).resolve().parent
ENGINE = HERE.parents[1] / "engine"
RULES = ("spsa", "fishtest", "mixture")
DETUNED_STEPS = 2.0  # how far from its own value a parameter of another engine starts at most


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is played; the same for every rule. `None` is what config.toml has.

    `tuning` has the config.toml and params.toml. The bundled ones start detuned; those of another
    engine have its own values, from which `detune`, a seed, moves every parameter.
    """

    tuning: Path = HERE
    detune: int = 1
    rules: Sequence[str] = RULES
    seeds: Sequence[int] = (1,)
    iterations: int | None = None
    games: int | None = None  # of an iteration
    match_games: int | None = None
    nodes: int | None = None  # a move
    untouched: bool = False  # starts at the engine's own values

    def name(self, rule: str, seed: int) -> str:
        """Of a run and its folder."""
        return f"untouched-{rule}-{seed}" if self.untouched else f"{rule}-{seed}"

    def settings(self) -> Iterator[tuple[str, str, int]]:
        """What it has of its own, as table, key and value of config.toml."""
        for table, key, number in (
            ("spsa", "max_iterations", self.iterations),
            ("games", "games_per_iteration", self.games),
            ("validation", "games", self.match_games),
            ("time_control", "low", self.nodes),
            ("time_control", "high", self.nodes),
        ):
            if number is not None:
                yield table, key, number


@dataclass(frozen=True, slots=True)
class Place:
    """Where the run of one rule and seed has its files, and the tuning that they are copies of."""

    rule: str
    seed: int
    folder: Path
    tuning: Path = HERE

    @property
    def file(self) -> Path:
        return self.folder / "config.toml"

    def config(self) -> Config:
        return load_config(self.file, {})

    def own(self) -> Mapping[str, float]:
        """The values of the untouched engine."""
        if self.tuning == HERE:
            return _values_in_the_source(self.config())
        parameters = load_space(self.tuning / "params.toml").parameters
        return {parameter.name: parameter.value for parameter in parameters}


def places(plan: Plan, folder: Path) -> Iterator[Place]:
    """The runs in the order they are played, with their files written.

    A run that was begun keeps its files: params.toml holds its theta by now.

    Raises:
        InvalidInput: the folder was begun with another plan.
    """
    for seed, rule in product(plan.seeds, plan.rules):
        place = Place(rule, seed, folder / plan.name(rule, seed), plan.tuning)
        if _write(place, _configured(plan, place)):
            start = _start(plan, place)
            project_theta(place.folder / "params.toml", start)
        yield place


def _start(plan: Plan, place: Place) -> Mapping[str, float]:
    """Where the run of a plan starts."""
    if plan.untouched:
        return place.own()
    space = load_space(place.folder / "params.toml")
    if plan.tuning == HERE:
        return space.natural(space.start())
    draw = np.random.default_rng(plan.detune).uniform(
        -DETUNED_STEPS, DETUNED_STEPS, len(space.active)
    )
    return space.playable(space.natural(space.clip(space.start() + draw)))


def _write(place: Place, text: str) -> bool:
    """Whether the run is a new one."""
    if not place.file.exists():
        place.folder.mkdir(parents=True, exist_ok=True)
        params = (place.tuning / "params.toml").read_text(encoding="utf-8")
        (place.folder / "params.toml").write_text(params, encoding="utf-8")
        place.file.write_text(text, encoding="utf-8")
        return True
    if place.file.read_text(encoding="utf-8") != text:
        raise InvalidInput([_another_plan(place)])
    return False


def _another_plan(place: Place) -> Fault:
    return Fault(
        file=str(place.file),
        line=None,
        name="--folder",
        found="was begun with another plan",
        remedy="repeat its options, or name another folder",
    )


def _configured(plan: Plan, place: Place) -> str:
    source = plan.tuning / "config.toml"
    document: Any = tomlkit.parse(source.read_text(encoding="utf-8"))
    document["run"] = {"name": place.folder.name, "seed": place.seed}
    document["spsa"] = {**_length(document), "algorithm": place.rule}
    document["database"] = {"url": "sqlite:///../proof.db"}
    for table, key, path in _paths(document):
        document[table][key] = str(ENGINE if plan.tuning == HERE else plan.tuning / path)
    for table, key, number in plan.settings():
        document.setdefault(table, tomlkit.table())[key] = number
    return tomlkit.dumps(document)


def _length(document: Any) -> dict[str, int]:
    """How long a run of these files is; no other setting belongs to every rule."""
    return {key: n for key, n in document["spsa"].items() if key == "max_iterations"}


def _paths(document: Any) -> Iterator[tuple[str, str, str]]:
    """The keys that name the engine by a path from the folder of their file."""
    for table, key in (("build", "source_path"), ("delivery", "engine")):
        if key in document.get(table, {}):
            yield table, key, document[table][key]


def _values_in_the_source(config: Config) -> dict[str, float]:
    """The values in the engine's source of the parameters that are single numbers."""
    space = checked_space(config)
    others = other_values(
        space,
        read_sources(space, source_of(config), config.build.constants_file, config.run.params),
    )
    return {
        p.name: others.get(p.name, (p.to_engine(p.value),))[0] / (p.scale or 1)
        for p in space.parameters
        if p.role is Knob.VALUE
    }
