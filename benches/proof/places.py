"""The folders of the proof: one with config.toml and params.toml for every run, one database."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import tomlkit

from spsa.builds.sources import element, parse
from spsa.config import Config, load_config, read_sources
from spsa.config.projection import project_theta
from spsa.core.params import Role, Space
from spsa.errors import Fault, InvalidInput
from spsa.master.delivery_setup import source_of
from spsa.master.start import checked_space

HERE = Path(__file__).resolve().parent
ENGINE = HERE.parents[1] / "engine"
RULES = ("spsa", "fishtest", "mixture")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is played; the same for every rule. `None` is what config.toml has."""

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
    """Where the run of one rule and seed has its files."""

    rule: str
    seed: int
    folder: Path

    @property
    def config(self) -> Path:
        return self.folder / "config.toml"


def places(plan: Plan, folder: Path) -> Iterator[Place]:
    """The runs in the order they are played, with their files written.

    A run that was begun keeps its files: params.toml holds its theta by now.

    Raises:
        InvalidInput: the folder was begun with another plan.
    """
    for seed, rule in product(plan.seeds, plan.rules):
        place = Place(rule, seed, folder / plan.name(rule, seed))
        if _write(place, _configured(plan, place)) and plan.untouched:
            config = load_config(place.config, {})
            project_theta(config.run.params, own_values(config, checked_space(config)))
        yield place


def _write(place: Place, text: str) -> bool:
    """Whether the run is a new one."""
    if not place.config.exists():
        place.folder.mkdir(parents=True, exist_ok=True)
        params = (HERE / "params.toml").read_text(encoding="utf-8")
        (place.folder / "params.toml").write_text(params, encoding="utf-8")
        place.config.write_text(text, encoding="utf-8")
        return True
    if place.config.read_text(encoding="utf-8") != text:
        raise InvalidInput([_another_plan(place)])
    return False


def _another_plan(place: Place) -> Fault:
    return Fault(
        file=str(place.config),
        line=None,
        name="--folder",
        found="was begun with another plan",
        remedy="repeat its options, or name another folder",
    )


def _configured(plan: Plan, place: Place) -> str:
    document: Any = tomlkit.parse((HERE / "config.toml").read_text(encoding="utf-8"))
    document["run"].update({"name": place.folder.name, "seed": place.seed})
    document["spsa"]["algorithm"] = place.rule
    document["build"]["source_path"] = str(ENGINE)
    for table, key, number in plan.settings():
        document[table][key] = number
    return tomlkit.dumps(document)


def own_values(config: Config, space: Space) -> dict[str, float]:
    """The values in the engine's source of the parameters that are single numbers."""
    constants = config.build.constants_file
    texts = read_sources(space, source_of(config), constants)
    files = {name: parse(text, name) for name, text in texts.items()}
    return {
        p.name: element(files[p.place.location.file or constants], p.place.location).number
        / (p.scale or 1)
        for p in space.parameters
        if p.place.role is Role.VALUE
    }
