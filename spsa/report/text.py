"""A status as text for people: numbers with their errors, tables, and sentences for what is odd."""

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from spsa.params import Space, target
from spsa.report.status import Status, Tuned, estimate
from spsa.scoring import Tally
from spsa.store import Iteration, WorkerRow

LOG_WIDTH = 160
"""Columns of what is written into a file or a pipe, where nobody's terminal sets them."""


def terminal(*, stderr: bool = False) -> Console:
    """Where text goes: as wide as the terminal, or wide enough not to break names in a pipe."""
    found = Console(highlight=False, stderr=stderr)
    return found if found.is_terminal else Console(highlight=False, stderr=stderr, width=LOG_WIDTH)


def rendered(status: Status) -> RenderableType:
    """The whole of `spsa-master status`."""
    parts: list[RenderableType] = [Text(line) for line in headlines(status)]
    if status.open:
        parts.append(iterations_table("open iterations", status.open))
    if status.validations:
        parts.append(iterations_table("validation: tuned against start", status.validations))
    parts.append(parameters_table(status.parameters))
    if status.workers:
        parts.append(workers_table(status.workers))
    return Group(*parts)


def headlines(status: Status) -> Iterator[str]:
    """The sentences above the tables."""
    run = status.run
    yield (
        f"run {run.name}: {run.status}, {run.applied} of {run.max_iterations} iterations applied"
        f" by {run.algorithm}, seed {run.seed}"
    )
    if run.reason:
        yield f"  because: {run.reason}"
    yield f"  games {score(status.games)}"
    left = "" if status.seconds_left is None else f", {duration(status.seconds_left)} to go"
    yield f"  {status.games_per_second:.2f} games/s lately{left}"
    if status.void_games:
        yield f"  {status.void_games} void games (played again, never counted)"
    if status.bounded:
        yield f"  {status.bounded} steps were bounded because a result was implausibly one-sided"


def score(tally: Tally) -> str:
    """`240: +80 -70 =90  [10 30 50 20 10]  Elo 14.5 ± 31.0`, from plus's side."""
    counts = " ".join(str(n) for n in tally.pentanomial)
    text = f"{tally.games}: +{tally.wins} -{tally.losses} ={tally.draws}  [{counts}]"
    return text + ("" if not tally.pairs else f"  Elo {elo_text(tally)}")


def elo_text(tally: Tally) -> str:
    """`14.5 ± 31.0`, the 95% interval; a dash before the first pair."""
    found = estimate(tally)
    return "-" if found is None else f"{found.value:+.1f} ± {found.error:.1f}"


def duration(seconds: float) -> str:
    """`2d 3h`, `1h 20m`, `4m 10s`: two units are enough."""
    whole = round(seconds)
    for size, name, part, part_name in ((86400, "d", 3600, "h"), (3600, "h", 60, "m")):
        if whole >= size:
            return f"{whole // size}{name} {whole % size // part}{part_name}"
    return f"{whole // 60}m {whole % 60}s" if whole >= 60 else f"{whole}s"


def number(value: float) -> str:
    """A value without the digits nobody reads."""
    return f"{value:.6g}"


def iterations_table(title: str, iterations: tuple[Iteration, ...]) -> Table:
    table = _table(title, "number", "status", "games", "W-L-D", "pentanomial", "Elo ± 95%", "void")
    for it in iterations:
        tally = it.tally
        table.add_row(
            str(it.iteration_number),
            it.status,
            f"{it.games_played}/{it.target_games}",
            f"{tally.wins}-{tally.losses}-{tally.draws}",
            " ".join(str(n) for n in tally.pentanomial),
            elo_text(tally),
            str(it.void_games),
        )
    return table


def parameters_table(parameters: tuple[Tuned, ...]) -> Table:
    """Start and present value of every active parameter, and which are at a bound."""
    table = _table(
        "parameters", "name", "start", "now", "played as", "steps moved", "min", "max", ""
    )
    for p in parameters:
        if p.active:
            table.add_row(
                p.name,
                number(p.start),
                number(p.value),
                number(p.played),
                f"{p.steps_moved:+.2f}",
                number(p.minimum),
                number(p.maximum),
                f"at {p.bound}" if p.bound else "",
            )
    return table


def space_table(space: Space) -> Table:
    """What params.toml would tune, and where in the engine each value goes."""
    table = _table("parameters", "name", "value", "min", "max", "step", "place", "group", "")
    for p in space.parameters:
        table.add_row(
            p.name,
            *(number(x) for x in (p.value, p.minimum, p.maximum, p.step)),
            str(target(p.place)),
            p.group,
            "" if p.active else "frozen",
        )
    return table


def workers_table(workers: tuple[WorkerRow, ...]) -> Table:
    """Who plays, those heard of last first."""
    table = _table(
        "workers", "name", "slots", "playing", "games", "void", "time losses", "knps", "seen"
    )
    for worker in workers:
        table.add_row(
            worker.name,
            str(worker.concurrency),
            str(worker.games_leased),
            str(worker.games),
            str(worker.void_games),
            str(worker.time_losses),
            "" if worker.nps is None else f"{worker.nps / 1000:.0f}",
            f"{duration(worker.seconds_since_seen)} ago",
        )
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for column in columns:
        words = column in ("name", "status", "pentanomial", "place", "group", "")
        table.add_column(column, justify="left" if words else "right", overflow="fold")
    return table
