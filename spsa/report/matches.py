"""What validations measured: a line and a JSON object for each match."""

from collections.abc import Iterator
from typing import Any

from spsa.core.scoring import Sprt, los, nelo
from spsa.db.tables import Compared, Iteration
from spsa.master.validation import sprt_of
from spsa.report.status import plain, tally_json
from spsa.report.text import elo_text


def compared_of(match: Iteration) -> Compared:
    """What a match compares; one that does not say is theta against the start."""
    return match.compared or Compared()


def match_name(match: Iteration) -> str:
    """`final theta after 40 results against start, at 60+0.6`."""
    compared = compared_of(match)
    control = "" if compared.time_control is None else f", at {compared.time_control}"
    return f"{_side(compared.theta, match.opened_on)} against {_side(compared.against)}{control}"


def _side(name: str, k: int | None = None) -> str:
    if name.isdigit():
        return f"theta after {name} results"
    if k is not None:
        return f"{name} theta after {k} results"
    return name


def match_sentences(match: Iteration) -> Iterator[str]:
    """What a match measured: Elo, normalised Elo, the likelihood of superiority, its test."""
    tally = match.tally
    yield (
        f"{match_name(match)}: {tally.games} games, Elo {elo_text(tally)}, normalised Elo "
        f"{nelo(tally).value:+.1f} ± {nelo(tally).error:.1f}, likelihood of superiority "
        f"{100 * los(tally):.1f}%"
    )
    if (sentence := sprt_sentence(match)) is not None:
        yield sentence


def sprt_sentence(match: Iteration) -> str | None:
    """The state of a sequential test; None for a match of a fixed length."""
    compared = compared_of(match)
    test = sprt_of(compared, match.tally)
    if test is None or compared.sprt is None:
        return None
    low, high = compared.sprt
    state = {
        None: "not decided",
        0: f"{low:+g} is accepted",
        1: f"{high:+g} is accepted",
    }[test.accepted]
    return (
        f"test of normalised Elo {low:+g} and {high:+g}: LLR {test.llr:+.2f} "
        f"({test.lower:.2f} to {test.upper:.2f}), {state}"
    )


def match_json(match: Iteration) -> dict[str, Any]:
    """A match for programs: what it compares, its counts, Elo with its error, and its test."""
    compared, normalised = compared_of(match), nelo(match.tally)
    value = {
        "iteration_number": match.iteration_number,
        "status": match.status,
        "k": match.opened_on,
        "theta": compared.theta,
        "against": compared.against,
        "time_control": compared.time_control,
        "background": compared.background,
        "games_played": match.games_played,
        "target_games": match.target_games,
        "void_games": match.void_games,
        "result": tally_json(match.tally),
        "nelo": normalised.value,
        "nelo_error": normalised.error,
        "los": los(match.tally),
        "sprt": sprt_json(match),
    }
    return {name: plain(one) for name, one in value.items()}


def sprt_json(match: Iteration) -> dict[str, Any] | None:
    """The hypotheses of a sequential test, its log-likelihood ratio and what it accepts."""
    compared = compared_of(match)
    test: Sprt | None = sprt_of(compared, match.tally)
    if test is None or compared.sprt is None:
        return None
    return {
        "elo0": compared.sprt[0],
        "elo1": compared.sprt[1],
        "llr": test.llr,
        "lower": test.lower,
        "upper": test.upper,
        "accepted": None if test.accepted is None else compared.sprt[test.accepted],
    }
