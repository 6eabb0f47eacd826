"""The report of a match: as lines for people, and as JSON for programs."""

from dataclasses import asdict
from typing import Any

from spsa.core.scoring import Tally, elo, los, nelo
from worker.match.games import Match, PlayedMatch


def as_json(match: Match, played: PlayedMatch) -> dict[str, Any]:
    """Counts are from the first engine's side; Elo errors are 95 % half-widths."""
    count, tally = played.count, played.count.tally
    return {
        "first": match.first.name,
        "second": match.second.name,
        "games": tally.games,
        "wins": tally.wins,
        "losses": tally.losses,
        "draws": tally.draws,
        "pentanomial": list(tally.pentanomial),
        **_estimates(tally),
        "voids": dict(count.voids),
        "time_losses": [count.plus_time_losses, count.minus_time_losses],
        "moves": count.moves,
        "nodes": [count.plus_nodes, count.minus_nodes],
        "seconds": round(played.seconds, 3),
        "games_per_second": round(_rate(played), 3),
        "nps_by_slot": [round(nps) for nps in played.nps_by_slot()],
        "seed": match.seed,
        "book_sha256": match.book.sha256,
        "sprt": None if (test := match.test(tally)) is None else asdict(test),
        "complete": tally.pairs == match.pairs or match.decided(tally),
        "failure": played.failure,
    }


def report_lines(match: Match, played: PlayedMatch) -> list[str]:
    """The same for people."""
    count, tally = played.count, played.count.tally
    lines = [
        f"{match.first.name} against {match.second.name}: {tally.games} of {2 * match.pairs} games",
        f"W-L-D        {tally.wins}-{tally.losses}-{tally.draws}",
        f"Ptnml(0-2)   {', '.join(str(n) for n in tally.pentanomial)}",
        *_estimate_lines(tally),
        *_test_lines(match, tally),
        f"void games   {_voids(played)}",
        f"time losses  {count.plus_time_losses} / {count.minus_time_losses}",
        f"speed        {_rate(played):.2f} games/s, {count.moves} moves in {played.seconds:.1f} s",
    ]
    if speeds := played.nps_by_slot():
        lines.append(f"nps by slot  {' '.join(f'{nps:.0f}' for nps in speeds)}")
    if played.failure is not None:
        lines.append(f"ended early  {played.failure}")
    return lines


def _estimates(tally: Tally) -> dict[str, Any]:
    if not tally.pairs:
        return {"elo": None, "elo_error": None, "nelo": None, "nelo_error": None, "los": None}
    plain, normalized = elo(tally), nelo(tally)
    return {
        "elo": plain.value,
        "elo_error": plain.error,
        "nelo": normalized.value,
        "nelo_error": normalized.error,
        "los": los(tally),
    }


def _estimate_lines(tally: Tally) -> list[str]:
    if not tally.pairs:
        return []
    found = _estimates(tally)
    return [
        f"Elo          {found['elo']:+.1f} ± {found['elo_error']:.1f} (95 %)",
        f"nElo         {found['nelo']:+.1f} ± {found['nelo_error']:.1f} (95 %)",
        f"LOS          {100 * found['los']:.1f} %",
    ]


def _test_lines(match: Match, tally: Tally) -> list[str]:
    test = match.test(tally)
    if test is None or match.bounds is None:
        return []
    verdict = "undecided" if test.accepted is None else f"H{test.accepted} accepted"
    bounds = "nElo {:g} against {:g}".format(*match.bounds)
    ratio = f"{test.llr:+.2f} in {test.lower:.2f}..{test.upper:.2f}"
    return [f"SPRT         LLR {ratio}, {bounds}: {verdict}"]


def _voids(played: PlayedMatch) -> str:
    voids = played.count.voids
    return ", ".join(f"{n} x {reason}" for reason, n in sorted(voids.items())) or "none"


def _rate(played: PlayedMatch) -> float:
    return played.count.tally.games / played.seconds if played.seconds else 0.0
