"""The proof as Markdown: a table of Elo, and one of where the parameters went."""

from collections.abc import Iterator, Sequence
from math import isfinite

from benches.proof.verdict import Proof, Verdict, recovered
from spsa.core.scoring import Tally
from spsa.report.table import duration, elo_text, number


def markdown(proof: Proof) -> str:
    """Both tables, with an empty line between them."""
    return "\n".join((*_strengths(proof), "", *_parameters(proof)))


def _strengths(proof: Proof) -> Iterator[str]:
    yield from _heading("engine", "games", "tuned in", "Elo against the untouched", "recovered")
    yield _row(("start", "", "", f"{elo_text(proof.start)} ({proof.start.games} games)", ""))
    for verdict in proof.verdicts:
        yield _row(
            (
                _name(verdict),
                str(verdict.games),
                duration(verdict.seconds),
                f"{elo_text(verdict.match)} ({verdict.match.games} games)",
                _part(verdict.match, proof.start),
            )
        )
    yield from _pooled(proof)
    for one in proof.between:
        tally = one.match.tally
        pair = f"{one.run.name} against {one.against}"
        yield _row((pair, "", "", f"{elo_text(tally)} ({tally.games} games)", ""))


def _pooled(proof: Proof) -> Iterator[str]:
    """The error of a pooled row is that of its games, not of another choice of seeds."""
    if len({verdict.seed for verdict in proof.verdicts}) > 1:
        for engine, tally in proof.pooled().items():
            found = f"{elo_text(tally)} ({tally.games} games)"
            yield _row((f"{engine}, all seeds", "", "", found, _part(tally, proof.start)))
    for (later, earlier), by in proof.differences().items():
        found = f"{by.value:+.1f} ± {by.error:.1f} (by seed)"
        yield _row((f"{later} minus {earlier}", "", "", found, ""))


def _name(verdict: Verdict) -> str:
    return f"{verdict.engine}, seed {verdict.seed}"


def _part(tuned: Tally, start: Tally) -> str:
    part = recovered(tuned, start)
    return f"{part.value:.0%} ± {part.error:.0%}" if isfinite(part.error) else "-"


def _parameters(proof: Proof) -> Iterator[str]:
    """Steps from the untouched engine's value, at the start and after each run."""
    yield from _heading("steps away from", "untouched", "start", *map(_name, proof.verdicts))
    for name, own in proof.own.items():
        away = (proof.start_away[name], *(v.away[name] for v in proof.verdicts))
        yield _row((f"`{name}`", number(own), *(f"{steps:+.1f}" for steps in away)))
    lengths = (proof.start_away, *(v.away for v in proof.verdicts))
    means = [sum(map(abs, away.values())) / len(away) for away in lengths]
    yield _row(("mean distance", "", *(f"{mean:.1f}" for mean in means)))


def _heading(first: str, *others: str) -> Iterator[str]:
    yield _row((first, *others))
    yield "|---|" + "---:|" * len(others)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
