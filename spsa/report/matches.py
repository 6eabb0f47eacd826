"""Iterations and matches: their tables, what a match says, and the thetas that it may compare."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from spsa.algorithms.time_controls import TimeControlSums
from spsa.core.params import Space, Values
from spsa.core.scoring import Estimate, Tally, elo, los, nelo, sprt, standard_error
from spsa.db import Store
from spsa.db.base import COUNTS
from spsa.db.tables import Compared, Iteration, Run
from spsa.errors import InvalidInput, NothingToDo, UnusableState
from spsa.history.replay import theta_at
from spsa.lifecycle import Purpose
from spsa.master.session import tuning_of
from spsa.planning.strength import StrengthCurve, strength_curve
from spsa.report.table import (
    Column,
    View,
    count,
    elo_text,
    estimate,
    pentanomial,
    percent,
    plain,
    plus_minus,
    results,
    spaced,
    unless_zero,
    values,
)
from spsa.text import plural

NOT_DECIDED = "not decided"
_TEST, _LLR = "the two hypotheses, in normalised Elo", "its bounds, and its answer"
_HYPOTHESES = "{0[0]:+g} {0[1]:+g}".format
_POINTS = "pairs in which plus made 0, ½, 1, 1½ and 2 points"
RESULT = (
    Column("", "Elo ± 95%", "tally", elo_text),
    Column("", "W-L-D", "tally", results, rank=3, note="wins, losses and draws of plus"),
    Column("", "pentanomial", "tally", pentanomial, rank=2, note=_POINTS),
    Column("tally"),
)
"""What games have brought, in every table that has a tally."""


def games_of(get: str, target: str) -> Column:
    """`6/8`: of the games that were to be played those that were."""

    def both(row: Any) -> tuple[int, int]:
        return Column(get).value(row).games, Column(target).value(row)

    return Column("", "games", both, lambda of: f"{of[0]:,}/{of[1]:,}")


def time_of(key: str, heading: str, rank: int) -> Column:
    """A column of times without the year: `11-28 06:24`."""
    return Column(key, heading, show="{:%m-%d %H:%M}".format, kind="word", rank=rank)


_GAIN = "{:.4g}".format
ITERATIONS = View(
    "iterations",
    (
        Column("iteration_number", "number", kind="name"),
        Column("status", "status", show=spaced, kind="word", rank=4),
        games_of("tally", "target_games"),
        *RESULT,
        Column("void_games", "void", show=unless_zero, rank=1),
        Column("purged_games", "purged", show=unless_zero, rank=5),
        Column("purpose", "purpose", kind="word", rank=6),
        Column("k", "iteration", rank=3),
        Column("a_k", "a_k", show=_GAIN, rank=9),
        Column("c_k", "c_k", show=_GAIN, rank=9),
        time_of("created_at", "opened", 8),
        time_of("completed_at", "completed", 8),
        *values("opened_on", "target_games"),
        Column("games_played", "", "tally.games"),
    ),
    "Plus against minus. Validations have numbers, too; an iteration (k) is one of the tuning.",
    "No iteration is open.",
)


class ThetaChoice(StrEnum):
    """The thetas that can be asked for; all of a run that goes on are those so far."""

    START = "start"
    FINAL = "final"
    SUPPORTED = "supported"


@dataclass(frozen=True, slots=True)
class Match:
    """A validation, and which of the run's present thetas it measured."""

    iteration: Iteration
    measured: tuple[str, ...] = ()

    @property
    def tally(self) -> Tally:
        return self.iteration.tally

    @property
    def theta(self) -> str:
        """What was asked for, as it was then: `theta after 8 results`, whatever followed."""
        told = self.iteration.asked.theta
        if told == ThetaChoice.START or told not in tuple(ThetaChoice):
            return told
        which = "theta" if told == ThetaChoice.FINAL else told
        return f"{which} after {plural(self.iteration.opened_on, 'result')}"

    @property
    def setting(self) -> str:
        """`start at 60+0.6`: against what, and under which time control."""
        control = self.iteration.asked.time_control
        return self.iteration.opponent + ("" if control is None else f" at {control}")

    @property
    def status(self) -> str:
        """That of its rounds; `not decided` where they have ended before its test was decided."""
        is_decided = self.test is None or self.test["accepted"] is not None
        return self.iteration.status if is_decided or self.iteration.is_open else NOT_DECIDED

    @property
    def test(self) -> dict[str, Any] | None:
        """Its sequential test: hypotheses, log-likelihood ratio and what it accepts."""
        if (elos := self.iteration.asked.sprt) is None:
            return None
        found = sprt(self.tally, *elos)
        n, told = found.accepted, {"elo0": elos[0], "elo1": elos[1], **plain(found)}
        accepted = (None, None) if n is None else (elos[n], f"H{n}")
        return told | dict(zip(("accepted", "hypothesis"), accepted, strict=True))

    def sentences(self) -> Iterator[str]:
        """What it measured: Elo, normalised Elo, the likelihood of superiority, its test."""
        tally, normalised = self.tally, nelo(self.tally)
        yield (
            f"{self.theta} against {self.setting}: {plural(tally.games, 'game')}, "
            f"Elo {elo_text(tally)}, normalised Elo {normalised.value:+.1f} "
            f"± {normalised.error:.1f}, likelihood of superiority {100 * los(tally):.1f}%"
        )
        if (test := self.test) is not None:
            hypotheses, accepted = f"{test['elo0']:+g} and {test['elo1']:+g}", test["accepted"]
            end = f", {NOT_DECIDED}" if accepted is None else f" accepted: {accepted:+g}"
            yield f"test of normalised Elo {hypotheses}: LLR {ratio(test)}{end}"


def _ratio(match: Match) -> str:
    """The LLR of a match, and whether it has ended without an answer; nothing without a test."""
    if (test := match.test) is None:
        return ""
    return f"{ratio(test)} {NOT_DECIDED}" if match.status == NOT_DECIDED else ratio(test)


def ratio(test: Mapping[str, Any]) -> str:
    """`+2.96 (-2.94, 2.94) H1`: the LLR of a sequential test, its bounds, what it accepts."""
    bounds = f"({test['lower']:.2f}, {test['upper']:.2f})"
    return f"{test['llr']:+.2f} {bounds} {test['hypothesis'] or ''}".strip()


MATCHES = View(
    "validations",
    (
        Column("iteration_number", "number", "iteration.iteration_number", kind="name"),
        Column("status", "status", show=spaced, kind="word", rank=4),
        games_of("tally", "iteration.target_games"),
        *RESULT,
        Column("void_games", "void", "iteration.void_games", unless_zero, rank=3),
        Column("", "plus", "theta", kind="text", rank=-1),
        Column("", "against", "iteration.opponent", kind="text", rank=-1),
        Column("", "time control", "iteration.asked.time_control", kind="text", rank=-1),
        Column("", "test", "iteration.asked.sprt", _HYPOTHESES, "text", rank=-1, note=_TEST),
        *values("opened_on", of="iteration"),
        Column("compared", "", "iteration.asked"),
        *values("measured"),
        *values("games_played", "target_games", of="iteration"),
        Column("nelo", "", lambda match: nelo(match.tally)),
        Column("los", "", lambda match: los(match.tally)),
        Column("sprt", "", "test"),
        Column("", "LLR", lambda match: match, _ratio, "text", rank=1, note=_LLR),
    ),
    empty="No validation has been played: `spsa-master validate` plays the tuned values against "
    "the start.",
)


def matches_of(run: Run, validations: Iterable[Iteration]) -> tuple[Match, ...]:
    """Each validation with the present thetas of the run that it measured."""
    space = Space.from_json(run.space)
    names = {ThetaChoice.FINAL: "present" if run.finished_at is None else "final"}
    played = {
        names.get(choice, str(choice)): dict(space.rounded(space.steps(theta)))
        for choice, theta in _thetas(run).items()
        if theta is not None and choice != ThetaChoice.START
    }

    def measured(values: Mapping[str, float]) -> tuple[str, ...]:
        return tuple(name for name in played if values and played[name] == dict(values))

    return tuple(Match(one, measured(one.plus_parameters)) for one in validations)


@dataclass(frozen=True, slots=True, kw_only=True)
class Strength:
    """How strong the matches of a run have found theta, against one opponent.

    `matches` are those against it, by the results that their thetas held. `curve` goes through all
    of them, where several thetas were measured. `last` is the last match that has games, with all
    games of the same sides.
    """

    opponent: str = ThetaChoice.START
    matches: tuple[Match, ...] = ()
    curve: StrengthCurve | None = None
    last: Match | None = None

    @property
    def elo(self) -> Estimate | None:
        """At the end of the curve, or by the last match; None before any."""
        if self.curve is not None:
            return Estimate(self.curve.elo[-1], self.curve.errors[-1])
        return None if self.last is None else estimate(self.last.tally)

    @property
    def over_start(self) -> bool:
        return self.opponent == ThetaChoice.START

    @property
    def over(self) -> str:
        """`over the start`, or `against stockfish (1a2b), handicap 4`."""
        return "over the start" if self.over_start else f"against {self.opponent}"

    def __str__(self) -> str:
        found = self.elo
        return "not measured" if found is None else f"{plus_minus(found.value, found.error)} Elo"


def opponent_of(matches: Sequence[Iteration]) -> str:
    """What theta is measured against: in the background, else the start, else the last engine."""
    played = [one for one in matches if one.games_played]
    told = (
        [one for one in matches if one.is_background]
        or [one for one in played if one.measures(ThetaChoice.START)]
        or [one for one in played if one.plus_parameters and not one.minus_parameters]
    )
    return told[-1].opponent if told else ThetaChoice.START


def measured_gain(matches: Sequence[Iteration]) -> StrengthCurve | None:
    """The curve through all matches of theta against this opponent under one time control.

    None if fewer than two thetas were measured: a match alone says what it measured itself.
    """
    opponent = opponent_of(matches)
    over_start = opponent == ThetaChoice.START
    told = [one for one in matches if one.games_played and one.measures(opponent)]
    told = [one for one in told if one.opened_on or not over_start]
    asked = [one.asked for one in told]
    control = _time_control(asked)
    told = [one for one, its in zip(told, asked, strict=True) if its.time_control == control]
    if len({match.opened_on for match in told}) < 2:
        return None
    return strength_curve(
        [match.opened_on for match in told],
        [elo(match.tally).value for match in told],
        [standard_error(match.tally) for match in told],
        over_start=over_start,
    )


def _time_control(asked: Sequence[Compared]) -> str | None:
    """That of background validations, else the tuning's, else the one that was used last."""
    background = [one.time_control for one in asked if one.background]
    own = not asked or any(one.time_control is None for one in asked)
    return background[-1] if background else None if own else asked[-1].time_control


def measured(run: Run, matches: Sequence[Iteration]) -> Strength:
    """What these matches of a run have measured.

    A sequential test ends where it is decided, so its games are not added to others.
    """
    opponent = opponent_of(matches)
    against = [one for one in matches if one.measures(opponent)]
    told = [one for one in against if one.games_played]
    like = [one for one in told if _sides(one) == _sides(told[-1])]
    counts = {name: sum(getattr(one, name) for one in like) for name in COUNTS}
    (last,) = matches_of(run, [replace(one, **counts) for one in told[-1:]]) or (None,)
    return Strength(
        opponent=opponent,
        matches=matches_of(run, sorted(against, key=lambda one: one.opened_on)),
        curve=measured_gain(matches),
        last=last,
    )


def _sides(match: Iteration) -> object:
    """What matches have in common whose games are one measurement."""
    test = match.asked.sprt and match.iteration_number
    return match.plus_parameters, match.minus_parameters, match.game_settings, test


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeControlStatus:
    """The games of one of several time controls: all of the tuning, or those of the matches.

    `weight` is what a pair counts for the rule, 1 in the mean; None in a match.
    """

    limits: str
    purpose: Purpose
    share: float
    tally: Tally
    seconds: float
    weight: float | None = None

    @property
    def draw_rate(self) -> float | None:
        return self.tally.draws / self.tally.games if self.tally.games else None

    @property
    def game_seconds(self) -> float | None:
        return self.seconds / self.tally.games if self.tally.games else None


TIME_CONTROLS = View(
    "time controls",
    (
        Column("time_control", "time control", "limits", kind="name"),
        Column("purpose", "games of", kind="word"),
        Column("share", "share", rank=4),
        Column("", "games", "tally.games", count),
        *RESULT,
        Column("draw_rate", "draws", show=percent),
        Column("game_seconds", "seconds a game", show="{:.3g}".format, rank=5),
        Column(
            "weight", "weight", show="{:.2f}".format, note="of a pair for the rule, 1 in the mean"
        ),
    ),
    "All games of the tuning, and those of all matches that measure it, against one opponent.",
)


def time_controls(
    store: Store, run: Run, sums: TimeControlSums | None, matches: Sequence[Iteration]
) -> Iterator[TimeControlStatus]:
    """The games by time control, with those of all `matches` against the opponent of the run.

    Of a run without parameters, those of the last match. Nothing for a run with one time control.
    """
    own = run.game_settings
    if not own.time_controls:
        return
    weights = sums.weights_of_pairs(own.weights) if sums else ()
    opponent = opponent_of(matches)
    asked = [one for one in matches if one.measures(opponent)] if run.tunes else matches[-1:]
    told = [one for one in asked if one.game_settings.time_controls]
    its = [(one.game_settings, one.match_number) for one in told]
    alike = [number for settings, number in its if settings == its[-1][0]]
    ours = ((Purpose.VALIDATE, settings, alike) for settings, _ in its[-1:])
    tuned = ((Purpose.TUNE, own, list[int]()),) if run.tunes else ()
    for purpose, settings, numbers in (*tuned, *ours):
        played = {one.time_control: one for one in store.time_control_games(run.id, *numbers)}
        for number, one in enumerate(settings.time_controls):
            found = played.get(number)
            yield TimeControlStatus(
                limits=str(one.time_control),
                purpose=purpose,
                share=one.share / sum(settings.shares),
                tally=found.tally if found else Tally(),
                seconds=found.seconds if found else 0.0,
                weight=weights[number] if weights and not numbers else None,
            )


def time_control_sums(run: Run) -> TimeControlSums | None:
    """What the results say by time control; None of a single one, or if the state is unreadable."""
    try:
        several = run.tunes and run.game_settings.time_controls
        return tuning_of(run).sums(run.state) if several else None
    except UnusableState:
        return None


_MAX_DIGITS = 9  # of a result


def _thetas(run: Run) -> dict[ThetaChoice, Mapping[str, float] | None]:
    return {
        ThetaChoice.START: run.start_theta,
        ThetaChoice.FINAL: run.theta,
        ThetaChoice.SUPPORTED: run.estimates.supported,
    }


def chosen_theta(run: Run, which: ThetaChoice) -> Mapping[str, float]:
    """One of the thetas of a run, every parameter in its own unit.

    Raises:
        NothingToDo: the run has too few results for it yet.
    """
    values = _thetas(run)[which]
    if values is None:
        raise NothingToDo(
            f"run {run.name} has no {which} theta yet, after {plural(run.applied, 'result')}: "
            f"use --theta {ThetaChoice.FINAL}"
        )
    return values


def is_theta(word: str) -> bool:
    """Whether a word means a theta."""
    is_number = word.isascii() and word.isdigit() and len(word) <= _MAX_DIGITS
    return word in tuple(ThetaChoice) or is_number


def named_theta(store: Store, run: Run, word: str) -> tuple[Values, int]:
    """The theta "start", "final" or "supported", or that after a result.

    Returns the values that engines get, and how many results it holds.

    Raises:
        NothingToDo: the run has too few results for it.
        InvalidInput: the word is none of them.
    """
    if word in tuple(ThetaChoice):
        theta = chosen_theta(run, ThetaChoice(word))
        k = 0 if word == ThetaChoice.START else run.applied
    elif is_theta(word):
        k = int(word)
        theta = theta_at(store, run, tuning_of(run), k).theta
    else:
        known = f"{', '.join(ThetaChoice)} or the number of a result"
        remedy = f"write {known}; --against takes the path of an engine, too"
        raise InvalidInput.of(f"run {run.name}", "theta", f"{word[:40]!r} is none", remedy)
    return Space.from_json(run.space).playable(theta), k
