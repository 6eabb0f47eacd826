"""Which numbers of an engine are likely to be worth tuning, from the names of files and constants.

Names are all there is to go by before games are played. A number that is not tunable, such
as a size or a limit, is recognised by the words of its name.
"""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from spsa.builds.sources import Literal
from spsa.core.params import Number


@dataclass(frozen=True, slots=True)
class Objection:
    """Why a number is not proposed; `left_out` if params.toml does not even mention it."""

    reason: str
    left_out: bool = True


_STRENGTH_FILES = re.compile(
    r"const|param|tun(e|ing|able)|weight|eval|search|hce|psqt?|pst|square|material|pawn|king|mobility"
    r"|threat|history|order|pick|prun|reduc|time|quiesc|see|score|value|negamax|alpha|engine"
)
_OTHER_FILES = re.compile(
    r"attack|bench|bitboard|book|cache|cli|datagen|epd|fen|gen|hash|magic|main|nnue|network|perft"
    r"|pgn|simd|syzygy|tablebase|test|thread|transposition|uci|zobrist"
)
_STRENGTHS = re.compile(
    r"aspiration|asp|attack(s|ers?)?|backwards?|base|bias|bishops?|blockade|bonus(es)?|capture"
    r"|castling|center|check|coeff|contempt|connected|continuation|countermove|danger|defen[cs]e|delta"
    r"|depth|distance|div(isor|ision)?|doubled|endgame|eg|eval(uation)?|extension|factor|fp|futility"
    r"|hanging|histories|history|iid|iir|improving|isolated|killers?|king|knights?|lever|lmp|lmr"
    r"|lva|margins?|material|mg|mid(game)?|mobility|mul(tiplier)?|multicut|mvv|nmp|null|offset|open|opening"
    r"|outposts?|pair|passed|passer|pawns?|penalt(y|ies)|phase|pieces?|probcut|promotion|protector|prune"
    r"|pruning|pst|psqt?|queens?|ratio|razor(ing)?|reduc(e|tion|tions)|rfp|rooks?|safe(ty)?|scale"
    r"|scores?|se|see|semi|shelter|shield|singular|space|squares?|storm|tables?|tempo|threats?"
    r"|threshold|trapped|unstoppable|val(ues?)?|weak(ness)?|weights?|window"
)
_FIXED = re.compile(
    r"BITS?|BUCKETS?|BYTES|CAPACITY|DEBUG|DIRECTIONS?|ENTRIES|FLAGS?|HASH|HEIGHT|HIDDEN|INDEX|INF"
    r"|INFINITY|INFINITE|INPUTS?|KEYS?|LAYERS?|LEN|LENGTH|MASKS?|MEGABYTES?|[KMG]I?B|NO|NONE|NOT|NUM"
    r"|NUMBER|OUTPUTS?|PORT|QA|QB|SEED|SHIFT|SIZE|STACK|THREADS?|TYPES|UNITS?|VERSION|ZOBRIST"
)
_OFTEN_FIXED = re.compile(r"BLACK|WHITE|BOARD|CNT|COUNT|DIST|MATED?|NODES|PLIES|PLY|SQUARES|WIDTH")
_WEIGHTS = re.compile(
    r"BONUS(ES)?|EXTENSIONS?|FUTILITY|KILLERS?|LM[PR]|MARGINS?|PENALT(Y|IES)|RAZOR(ING)?"
    r"|REDUCTIONS?|THRESHOLDS?|WEIGHTS?"
)
_CLOCK = re.compile(
    r"CLOCK|INCREMENT|LATENCY|MILLIS(ECONDS)?|MOVESTOGO|MS|OVERHEAD|SAFEGUARD|SECONDS|SECS?|TIMER?"
)
_LIMIT = re.compile(r"(MAX|MIN)(IMUM)?|MAX_(\w+_)?(DEPTH|EXTENSIONS?|GAME|HASH|MOVES|QUIESCE\w*)")
_LARGEST = 1_000_000  # scores and depths are smaller; what is larger is a limit or a bit pattern
_MIN_NUMBER = 1e-9  # but for 0; what is smaller is a tolerance
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def words(name: str) -> list[str]:
    """The words of a name in capitals, whether it is written MAX_DEPTH, max_depth or MaxDepth."""
    return [word for word in _CAMEL.sub("_", name).upper().split("_") if word]


def snake(name: str) -> str:
    """A name as parameters have it: MAX_DEPTH as max_depth, and PawnDoubled as pawn_doubled."""
    return name.lower() if name.isupper() or name.islower() else "_".join(words(name)).lower()


def rank_of_file(path: str) -> int:
    """1 for a file that may hold search or evaluation, -1 for one that does other work, else 0."""
    parts = PurePosixPath(path)
    for name in (parts.stem, *reversed(parts.parent.parts)):
        if name in ("src", "lib", "mod"):
            continue
        if _STRENGTH_FILES.search(name.lower()):
            return 1
        if _OTHER_FILES.search(name.lower()):
            return -1
    return 0


def rank_of_name(name: str) -> int:
    """The words of a name that engines use for search and evaluation, at most 2."""
    known = [word for word in words(name) if _STRENGTHS.fullmatch(word.lower())]
    return min(2, len(known))


def objection_to_name(name: str) -> Objection | None:
    """Why a constant of this name is not tunable; None where nothing says so."""
    if _LIMIT.fullmatch("_".join(words(name))):
        return Objection("a limit, by its name")
    weight = any(_WEIGHTS.fullmatch(word) for word in words(name))
    fixed = any(_FIXED.fullmatch(word) for word in words(name))
    if fixed or (not weight and any(_OFTEN_FIXED.fullmatch(word) for word in words(name))):
        return Objection("a size or a limit, by its name")
    if any(_CLOCK.fullmatch(word) for word in words(name)):
        return Objection("about the clock: it counts only in games with a clock", left_out=False)
    return None


def objection_to_number(literal: Literal, *, indexed: bool = False) -> Objection | None:
    """Why a number as it is written is not tunable; None where nothing says so.

    A 0 inside an array most often fills a place that is not used.
    """
    number = literal.number
    if literal.text.lstrip("- ").lower().startswith(("0x", "0b", "0o")):
        return Objection("written as a bit pattern")
    if number == 0 and indexed:
        return Objection("0 inside an array: most often a place that is not used")
    if number == 0:
        return Objection("0 may stand for switched off: give it a range of its own", left_out=False)
    if abs(number) < _MIN_NUMBER:
        return Objection("so small a number looks like a tolerance")
    if abs(number) >= _LARGEST:
        return Objection("so large a number looks like a limit or a pattern")
    return None


def objection_to_factor(number: Number) -> Objection | None:
    """Why a number inside an expression is no strength: powers of ten and of two are units."""
    if abs(number) <= 2 or number in _UNITS:
        return Objection("a unit of a computation", left_out=False)
    return None


_UNITS = frozenset({10**n for n in range(1, 7)} | {2**n for n in range(1, 21)} | {63, 127, 255})
