"""A status as text for people: numbers with their errors, tables, and sentences for what is odd."""

from collections.abc import Iterator, Mapping
from math import floor, log10
from types import MappingProxyType

from rich.console import Console, Group, RenderableType
from rich.text import Text

from spsa.core.scoring import Tally
from spsa.db.read_queries import WorkerRow
from spsa.db.tables import Compared, Iteration
from spsa.lifecycle import Purpose, RunStatus
from spsa.report.alarm import alarm_lines
from spsa.report.named_theta import asked
from spsa.report.parameters import ParameterStatus
from spsa.report.runs import building, duration, standings_table
from spsa.report.status import Status, estimate, verdict_lines
from spsa.report.table import Column, FittedTable
from spsa.report.trails import Trail, gauge
from spsa.text import LINE_LENGTH, printable
from spsa.text import plural as plural

LOG_WIDTH = 160
"""Columns of text in a file or a pipe, where no terminal sets them."""

START_A_WORKER = "start `compete --spsa -c 8` here or on any machine that reaches the database"


def terminal(*, stderr: bool = False) -> Console:
    """Where text goes: as wide as the terminal, or wide enough not to break names in a pipe.

    Names are shown as they are, whatever brackets and colons they have.
    """
    found = _console(stderr, None)
    return found if found.is_terminal else _console(stderr, LOG_WIDTH)


def _console(stderr: bool, width: int | None) -> Console:
    return Console(highlight=False, markup=False, emoji=False, stderr=stderr, width=width)


def rendered(status: Status) -> RenderableType:
    """The whole of `spsa-master status`."""
    parts: list[RenderableType] = [sentence(line) for line in headlines(status)]
    if tuning := tuple(it for it in status.open if it.purpose is Purpose.TUNE):
        parts.append(iterations_table("open iterations: plus against minus", tuning))
    if status.validations:
        parts.append(iterations_table("validations", status.validations, status.measured))
    parts.append(parameters_table(status.parameters, status.trails))
    if status.present:
        parts.append(workers_table(status.present))
    if status.beside:
        parts.append(standings_table(status.beside))
    return Group(*parts)


def sentence(text: str) -> Text:
    """One line of a report, whatever names and reasons it quotes."""
    return Text(printable(text, LINE_LENGTH))


def headlines(status: Status, *, figures: bool = True) -> Iterator[str]:
    """Progress, gain, workers and warnings; the `figures` of a page beside them may be left out."""
    run = status.run
    if figures:
        yield (
            f"run {run.name}: {run.status}, "
            f"{run.applied} of {plural(run.max_iterations, 'iteration')} applied, "
            f"{plural(status.games.games, 'game')}, {run.algorithm}, seed {run.seed}"
        )
    if run.reason:
        yield f"  reason: {run.reason}"
    if status.origin:
        yield f"  {status.origin}"
    yield f"  {_strength(status)}"
    yield from (f"  {line}" for line in verdict_lines(status.verdict))
    if run.finished_at is None or status.open:
        stopped = _standstill(status)
        yield from [f"  {stopped or _pace(status)}"] if stopped or figures else ()
    if status.builds.iterations:
        yield f"  {building(status.builds)}"
    if gone := status.absent:
        yield f"  {plural(len(gone), 'worker')} left after {sum(w.games for w in gone)} games"
    if purged := status.purged_games:
        yield f"  {plural(purged, 'game')} removed by {plural(run.purges, 'purge')}"
    if _is_unsure(status):
        yield (
            "  supported values have no interval: the games do not say how much the parameters "
            "differ in what a step costs"
        )
    if figures and status.void_games:
        yield f"  {status.void_games} void games (played again, never counted)"
    if status.bounded:
        yield f"  {plural(status.bounded, 'step')} bounded: a result was implausibly one-sided"
    yield from (f"  {line}" for line in alarm_lines(status.alarms))


def _is_unsure(status: Status) -> bool:
    return any(
        p.active and not (p.supported is None or p.supported_is_theta) and p.supported_sd is None
        for p in status.parameters
    )


def _strength(status: Status) -> str:
    """Only a validation measures it; plus against minus says which way to go, not how far."""
    if status.strength is not None:
        elo, error = status.strength.elo[-1], status.strength.errors[-1]
        return (
            f"strength: Elo {elo:+.1f} ± {error:.1f} over the start after "
            f"{status.strength.ks[-1]} results, by all validations together"
        )
    played = [it for it in status.validations if it.tally.pairs]
    if not played:
        return "strength: not measured; `spsa-master validate` plays the tuned values against start"
    match = played[-1]
    which = status.measured[status.validations.index(match)]
    theta = f"{which[0]} theta" if which else asked(match) or "tuned"
    return f"strength: {theta} against start, games {score(match.tally)}"


def _standstill(status: Status) -> str:
    """Why nothing is played, and what to do; empty if games are played."""
    if status.run.status is RunStatus.PAUSED:
        return "paused: `spsa-master resume` continues it"
    if status.run.master_id is None:
        command = "run" if status.run.finished_at is None else "validate"
        return f"no master runs it: `spsa-master {command}` continues it"
    return "" if status.present else f"no worker plays: {START_A_WORKER}"


def _pace(status: Status) -> str:
    left = "" if status.seconds_left is None else f", {duration(status.seconds_left)} to go"
    slots = sum(worker.concurrency for worker in status.playing)
    aside = len(status.present) - len(status.playing)
    return (
        f"pace: {status.games_per_second:.2f} games/s lately{left}; "
        f"{plural(len(status.playing), 'worker')} on {plural(slots, 'slot')}"
        + (f", {aside} set aside" if aside else "")
    )


def score(tally: Tally) -> str:
    """`240: +80 -70 =90  [10 30 50 20 10]  Elo 14.5 ± 31.0`, from plus's side."""
    counts = " ".join(str(n) for n in tally.pentanomial)
    text = f"{tally.games}: +{tally.wins} -{tally.losses} ={tally.draws}  [{counts}]"
    return text + ("" if not tally.pairs else f"  Elo {elo_text(tally)}")


def elo_text(tally: Tally) -> str:
    """`14.5 ± 31.0`, the 95% interval; a dash before the first pair."""
    found = estimate(tally)
    return "-" if found is None else f"{found.value:+.1f} ± {found.error:.1f}"


def number(value: float) -> str:
    """A value with the digits that matter; a large one with all of its whole digits."""
    return f"{value:.0f}" if 999_999.5 <= abs(value) < 1e15 else f"{value:.6g}"


def estimated(value: float | None, deviation: float | None) -> str:
    """`541 ± 12`, with no more digits than its deviation has a use for; a dash if unknown."""
    if value is None:
        return "-"
    if not deviation:
        return number(value)
    decimals = max(0, 1 - floor(log10(deviation)))
    return f"{value:.{decimals}f} ± {deviation:.{decimals}f}"


def iterations_table(
    title: str, iterations: tuple[Iteration, ...], thetas: tuple[tuple[str, ...], ...] = ()
) -> FittedTable:
    """`thetas` are those that validations measured, by `status.measured`."""
    table = FittedTable(
        title,
        (
            Column("number"),
            Column("status", 2, is_number=False),
            Column("games"),
            Column("W-L-D", 1),
            Column("pentanomial", is_number=False),
            Column("Elo ± 95%"),
            Column("void", 1),
            Column("theta", 1, is_number=False),
            Column("against", 2, is_number=False),
        ),
    )
    for it, which in zip(iterations, thetas or ((),) * len(iterations), strict=True):
        tally = it.tally
        table.add(
            str(it.iteration_number),
            it.status,
            f"{it.games_played}/{it.target_games}",
            f"{tally.wins}-{tally.losses}-{tally.draws}",
            " ".join(str(n) for n in tally.pentanomial),
            elo_text(tally),
            unless_zero(it.void_games),
            ", ".join(which) or asked(it),
            _against(it),
        )
    return table


def _against(it: Iteration) -> str:
    """What a validation compares with, under which other time control, and its hypotheses."""
    if it.purpose is not Purpose.VALIDATE:
        return ""
    told = it.compared or Compared()
    control = "" if told.time_control is None else f" at {told.time_control}"
    test = "" if told.sprt is None else f", test {told.sprt[0]:+g} {told.sprt[1]:+g}"
    return f"{told.against}{control}{test}"


def parameters_table(
    parameters: tuple[ParameterStatus, ...], trails: Mapping[str, Trail] = MappingProxyType({})
) -> FittedTable:
    """Where every active parameter started and is now, on average and by all games; and bounds.

    With its trail also the path to there, and whether that is more than noise.
    """
    table = FittedTable(
        "parameters",
        (
            Column("name", is_number=False),
            Column("start"),
            Column("final"),
            Column("averaged ± sd", 3),
            Column("supported ± sd", 1),
            Column("played as", 5),
            Column("steps moved", 4),
            Column("path", 2, is_number=False),
            Column("signal/noise", 3),
            Column("min", 6),
            Column("in its bounds", 5, is_number=False),
            Column("max", 6),
            Column("bound", 2, is_number=False),
        ),
    )
    for p in parameters:
        if p.active:
            trail = trails.get(p.name, Trail(()))
            table.add(
                p.name,
                number(p.start),
                number(p.value),
                estimated(p.averaged, p.averaged_sd),
                "" if p.supported_is_theta else estimated(p.supported, p.supported_sd),
                number(p.played),
                f"{p.steps_moved:+.2f}",
                trail.sparkline,
                "" if trail.signal_to_noise is None else f"{trail.signal_to_noise:.1f}",
                number(p.minimum),
                gauge(p.value, p.minimum, p.maximum),
                number(p.maximum),
                f"at {p.bound}" if p.bound else "",
            )
    return table


def workers_table(workers: tuple[WorkerRow, ...]) -> FittedTable:
    """The workers, last seen first: games of all runs and matches, and the last batch's speed."""
    table = FittedTable(
        "workers",
        (
            Column("name", is_number=False),
            Column("slots"),
            Column("claimed", 1),
            Column("all games", 1),
            Column("void", 3),
            Column("time losses", 3),
            Column("knps lately", 4),
            Column("sandbox", 5, is_number=False),
            Column("seen", 2),
        ),
    )
    for worker in workers:
        table.add(
            worker.name,
            str(worker.concurrency),
            str(worker.games_leased),
            str(worker.games),
            unless_zero(worker.void_games),
            unless_zero(worker.time_losses),
            "" if worker.nps is None else f"{worker.nps / 1000:.0f}",
            worker.sandbox or "",
            f"{duration(worker.seconds_since_seen)} ago",
        )
    return table


def unless_zero(count: int) -> str:
    """A count for a cell, which is empty where there is none."""
    return str(count) if count else ""
