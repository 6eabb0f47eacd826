"""A match of a run: what its two sides are, how many games they play, and by which settings."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from spsa.config.document import refused
from spsa.config.settings import Config
from spsa.core.game_settings import GameSettings, MinusSettings
from spsa.core.params import PlayedValues, Space
from spsa.core.scoring import Sprt, Tally, sprt
from spsa.db import Store
from spsa.db.master_queries import NewIteration, Sides
from spsa.db.tables import Compared, Iteration, Run
from spsa.errors import NothingToDo
from spsa.lifecycle import Purpose
from spsa.master.delivery import Delivery, OpenedDelivery
from spsa.master.match_engines import MatchDelivery, NamedEngine, foreign_engine
from spsa.master.session import RunSettings
from spsa.master.start import settings_from
from spsa.planning.games_needed import evenly

MAX_GAMES = 1_000_000  # of a match; a sequential test takes no more


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationMatch:
    """A match of two thetas, or of engines that a person named, in batches as `settings` has them.

    `games` are its games; of a sequential test the most that it may take. A side with an engine
    has no values. Plus is a theta that holds the results through `k`; None: all that are applied.
    """

    sides: PlayedValues
    settings: RunSettings
    game_settings: GameSettings
    asked: Compared = field(default_factory=Compared)
    games: int = 0
    k: int | None = None
    plus: NamedEngine | None = None
    minus: NamedEngine | None = None

    @property
    def compared(self) -> Compared:
        """What is compared, with the time control if it is another one than the run's."""
        here = self.game_settings
        same = here.plays_as(self.settings.game_settings)
        return replace(self.asked, time_control=None if same else here.limits)

    def engines_by(self, delivery: Delivery) -> Delivery:
        """What makes the engines of both sides; those of thetas by this delivery."""
        return delivery if self.minus is None else MatchDelivery(plus=delivery, minus=self.minus)

    def is_decided(self, rounds: Sequence[Iteration]) -> bool:
        """Whether these complete rounds are enough."""
        test = sprt_of(self.compared, sum((one.tally for one in rounds), Tally()))
        accepted = test is not None and test.accepted is not None
        return accepted or sum(one.target_games for one in rounds) >= self.games

    def is_of(self, row: Iteration) -> bool:
        """Whether an iteration is a round of this match, or of the same one asked before."""
        sides, its = self.sides, (row.plus_parameters, row.minus_parameters)
        is_alike = (row.compared, row.game_settings) == (self.compared, self.game_settings)
        return is_alike and its == (sides.plus, sides.minus)

    def next_games(self, rounds: Sequence[Iteration], slots: int) -> int:
        """The games of the next round; 0 if these have all games of the match."""
        left = max(0, self.games - sum(one.target_games for one in rounds))
        at_once = self.settings.batch_size * max(1, slots)
        return left if self.asked.sprt is None else min(left, at_once)

    def new_round(self, run: Run, sides: Sides, games: int, number: int | None) -> NewIteration:
        """A round; `number` is that of the match, None for its first round."""
        row = Iteration(
            purpose=Purpose.VALIDATE,
            opened_on=run.applied if self.k is None else self.k,
            opened_purges=run.purges,
            in_flight=1,
            game_settings=self.game_settings,
            target_games=games,
            base_parameters=run.theta,
            plus_parameters=self.sides.plus,
            minus_parameters=self.sides.minus,
            match_number=number,
            compared=self.compared,
        )
        batches = evenly(games, min(self.settings.batch_size, games))
        attempts = self.settings.max_attempts
        return NewIteration(row=row, sides=sides, batches=batches, max_attempts=attempts)


def sprt_of(compared: Compared, tally: Tally) -> Sprt | None:
    """The state of a validation's sequential test; None if it has a fixed length."""
    return None if compared.sprt is None else sprt(tally, *compared.sprt)


def measurement(config: Config, run: Run) -> ValidationMatch:
    """The tuned values against what [validation] says: the start, or another engine."""
    space, wanted = Space.from_json(run.space), config.validation
    minus, engine, asked = space.playable(run.start_theta), None, Compared()
    if wanted.against is not None:
        here = partial(refused, config.path, ("validation", "against"))
        engine = foreign_engine(config, settings_of_match(config, run), wanted.against, here)
        minus, asked = {}, Compared(against=engine.name)
    sides, handicap = PlayedValues(space.playable(run.theta), minus), wanted.handicap
    return match_of(
        config, run, sides, asked, wanted.games, handicap if engine else 1.0, minus=engine
    )


def match_of(
    config: Config,
    run: Run,
    sides: PlayedValues,
    asked: Compared,
    games: int,
    handicap: float = 1.0,
    *,
    k: int | None = None,
    plus: NamedEngine | None = None,
    minus: NamedEngine | None = None,
) -> ValidationMatch:
    """A match of a run; the batches are cut by config.toml where the run tunes nothing.

    Minus gets less by the `handicap`; if it alone is an engine, other games than those of the run
    measure nothing of it, so its settings are marked as foreign.
    """
    if run.tunes:
        settings = RunSettings.of(run)
    else:
        settings = replace(settings_from(config), game_settings=run.game_settings)
    played, foreign = settings_of_match(config, run), minus is not None and plus is None
    if foreign or handicap != 1.0:
        played = replace(played, minus=MinusSettings(handicap=handicap, foreign=foreign))
    return ValidationMatch(
        sides=sides,
        settings=settings,
        game_settings=played,
        asked=asked,
        games=games,
        k=k,
        plus=plus,
        minus=minus,
    )


def settings_of_match(config: Config, run: Run) -> GameSettings:
    """How both sides play: as the run does, under the time control that [validation] may name."""
    own = config.validation.time_control
    usual = run.game_settings if run.tunes else config.game_settings
    return usual if own is None else usual.under(own.limits)


def left_match(config: Config, store: Store, run: Run) -> ValidationMatch:
    """The match of two engines that was left, with the binaries that it was opened with."""
    left = next((one for one in reversed(store.matches(run.id)) if one.is_open), None)
    if left is None or left.compared is None:
        raise NothingToDo(f"run {run.name} has no parameters: name engines, --plus and --minus")
    asked = left.compared
    games = left.target_games if asked.sprt is None else MAX_GAMES
    opened = OpenedDelivery(sides=store.sides_of(left))
    plus = NamedEngine(name=asked.theta, sha256=left.plus_sha256, delivery=opened)
    match = match_of(config, run, PlayedValues({}, {}), asked, games, plus=plus)
    return replace(match, game_settings=left.game_settings)
