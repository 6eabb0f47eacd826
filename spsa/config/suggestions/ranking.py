"""Which numbers of an engine are likely to be worth tuning, from the names of files and constants.

Names are all there is to go by before games are played. A number that is not tunable, such
as a size or a limit, is recognised by the words of its name.
"""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from spsa.builds.sources import Element, Kind, SourceConstant
from spsa.core.params import Number


@dataclass(frozen=True, slots=True)
class Objection:
    """Why a number is not suggested; `left_out` if params.toml does not even mention it."""

    reason: str
    left_out: bool = True


_STRENGTH_FILES = re.compile(
    r"const|param|tun(e(?!r)|ing|able)|weight|eval|search|hce|psqt?|pst|piece_?sq|material|pawn|king|mobility"
    r"|threat|history|order|pick|prun|reduc|time|quiesc|see|score|value|negamax|alpha|engine"
)
_OTHER_FILES = re.compile(
    r"attack|bench|bitboard|book|cache|cli|datagen|deflate|epd|fen|gen|hash|inflate|learn|magic"
    r"|nnue|network|numa|perft|pgn|position|simd|squares?$|stats?$|syzygy|tablebase|tbcore|tbprobe"
    r"|test|texel|thread|^tt$|transposition|tuner|uci|version|zobrist|^moves?$|option"
)
_OTHER_FOLDERS = re.compile(r"nnue|networks?|numa|syzygy|tablebases?|zlib|zstd|lz4|fmt|json\w*")
"""Folders whose files do other work whatever they are called."""
_STRENGTHS = re.compile(
    r"aspiration|asp|attack(s|ers?)?|backwards?|base|bias|bishops?|blockade|bonus(es)?|capture"
    r"|castling|center|check|coeff|contempt|connected|continuation|countermove|danger|defen[cs]e|delta"
    r"|depth|distance|div(isor|ision)?|doubled|endgame|eg|eval(uation)?|extension|factor|fp|futility"
    r"|hanging|histories|history|iid|iir|improving|isolated|killers?|king|knights?|lever|lmp|lmr"
    r"|lva|margins?|material|mg|mid(game)?|mobilit(y|ies)|mul(tiplier)?|multicut|mvv|nmp|null|offset|open|opening"
    r"|outposts?|pair|passed|passers?|pawns?|penalt(y|ies)|phalanx|phase|pieces?|probcut|promotion|protect(ion|or)"
    r"|prune"
    r"|pruning|pst|psqt?|queens?|ratio|razor(ing)?|reduc(e|tion|tions)|rfp|rooks?|safe(ty)?|scale"
    r"|scores?|se|see|semi|shelter|shield|singular|space|squares?|storm|tables?|tempo|threats?"
    r"|threshold|trapped|unstoppable|val(ues?)?|weak(ness)?|weights?|window"
)
_OF_BOARD = re.compile(
    r"ATTACK(S|ERS?)?|BASE|BISHOPS?|CAPTURE|CASTLING|CENTER|CHECK|DELTA|DEPTH|DISTANCE"
    r"|DIV(ISOR|ISION)?|FACTOR|KINGS?|KNIGHTS?|NULL|OFFSET|OPEN|OPENING|PAIR|PAWNS?|PIECES?"
    r"|PROMOTION|QUEENS?|ROOKS?|SCALE|SE|SPACE|SQUARES?|TABLES?|THRESHOLD"
)
"""Words that stand for the board and for what a program is made of as well."""

_FIXED = re.compile(
    r"ALLOC|BENCH|BITS?|BUCKETS?|BYTES|CAPACITY|DEBUG|DIM(S|ENSIONS?)?|DIRECTIONS?|NORTH|SOUTH|EAST|WEST|LEFT|RIGHT|FWD|ENTRIES"
    r"|EPOCH|EPSILON|FLAGS?|HASH|HEIGHT|HIDDEN|IDS?|INDENT|LEARNING|RANDOM|STRIDES?|SYZYGY|UNKNOWN"
    r"|INF|INFINITY|INFINITE|INPUTS?|INVALID|KEYS?|LAYERS?|LEN|LENGTH|LOGIT|LOST|MASKS?|MEGABYTES?|[KMG]I?B"
    r"|NONE|NORMALI[SZ]E|NUM|NUMBER|OUTPUTS?|PORT|QA|QB|QUANTI[SZ]\w+|RIGHTS|SEED|\w*SHIFT|SKIP|STACK|THREADS?|TRACE|TUNING|TYPES|UNDEFINED|UNITS?|VERSION|WON|WIN"
    r"|ZOBRIST"
)
_OFTEN_FIXED = re.compile(
    r"BLACK|WHITE|BOARD|CASTL(E|ING)|CNT|COUNT|DIST|IDX|INDEX|(CHECK|TB)?MATED?|NO|NODES|NOT|PLIES|PLY|SIZE|SQUARES"
    r"|STARTING|TB|WIDTH"
)
_WEIGHTS = re.compile(
    r"BONUS(ES)?|EXTENSIONS?|FUTILITY|KILLERS?|LM[PR]|MARGINS?|MODIFIERS?|PASSED|PENALT(Y|IES)"
    r"|RAZOR(ING)?|REDUCTIONS?|SAFETY|THRESHOLDS?|WEIGHTS?|WINDOW"
)
_CLOCK = re.compile(
    r"CLOCK|TIME|STABILITY|TM\d*|\w{3,}TM|[BW]INC|INCREMENT|LATENCY|MILLIS(ECONDS)?|MOVESTOGO|MS|OVERHEAD|SAFEGUARD|SECONDS|SECS?"
    r"|TIMER?"
)
_THREADED = re.compile(r"SMP|VOT(E|ES|ING)")
_CLOCK_FILES = re.compile(r"clock\w*|time\w*|tm")
_LIMIT = re.compile(
    r"(MAX|MIN)(IMUM)?|MAXMOBILITY|ONE_HUNDRED|DEFAULT_(\w+_)?DEPTH|MATE_(BOUND|MARGIN|THRESHOLD)|(MAX|MIN)_(ALPHA|BETA)"
    r"|MAX_(\w+_)?(DEPTH|EVAL(UATION)?|EXTENSIONS?|GAME|HASH|LEVEL|MATERIAL|MOBILITY|MOVES(_\w+)?|QUIESCE\w*|SCORE|VALUE|WINDOW)"
)
_METHODS = re.compile(
    r"FUTILITY|FP|IIR|LM[PR]|NMP|PROBCUT|PRUN(E|ING)|RAZOR(ING)?|RFP|SEE|SINGULAR"
)
_KING = re.compile(r"(\w+_)?KING(_MG|_EG)?_(VALUE|SCORE)|VALUE_KING")
_MOVES = re.compile(
    r"((NO|NULL|NONE|NORMAL)_)?MOVE|(DOUBLE_)?PUSH|CAPTURE|CASTLING|PROMOTION|QUIET"
)
_PIECE = re.compile(r"(([BW]|BLACK|WHITE)_?)?(PAWN|KNIGHT|BISHOP|ROOK|QUEEN|KING)S?|PIECES?")
_MOST_PIECES = 16
_PHASE = re.compile(r"\w*PHASES?(_\w+)?|(MID(DLE)?|END)_?GAME")
_STANDARD = re.compile(
    r"HASH|THREADS|PONDER|(OWN_)?BOOK\w*|CONTEMPT|RANDOM(NESS)?|(SEARCH_)?DEPTH|MULTI_?PV"
    r"|(MINIMUM_THINKING|SLOW_MOVER|MOVE_?OVERHEAD)(_TIME)?|SLOW_MOVER|NODESTIME|SKILL_LEVEL"
    r"|SYZYGY_?\w*|UCI_?ELO"
)
_GRAINS = re.compile(r"GRAIN|SCALE|PRECISION|RESOLUTION|ONE")
_LARGEST = 1_000_000  # scores and depths are smaller; what is larger is a limit or a bit pattern
_MIN_NUMBER = 1e-9  # but for 0; what is smaller is a tolerance
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

OF_CLOCK = Objection("about the clock: it counts only in games with a clock", left_out=False)
_OF_THREADS = Objection("about several threads: games are played with one", left_out=False)
_OF_PHASE = Objection("the phase of the game: a step of it moves all evaluations", left_out=False)
_BAND = 50_000
_KEEPS_APART = Objection("so large and round a number keeps kinds of moves apart", left_out=False)
_GRAIN = Objection("a power of two in which others are counted", left_out=False)
_POWER = Objection("a large power of two, as sizes and limits of types are", left_out=False)


def words(name: str) -> list[str]:
    """The words of a name in capitals, whether it is written MAX_DEPTH, max_depth or SEEDepth."""
    return [word for word in _CAMEL.sub("_", name).upper().split("_") if word]


def snake(name: str) -> str:
    """A name as parameters have it: MAX_DEPTH as max_depth, and PawnDoubled as pawn_doubled."""
    return name.lower() if name.isupper() or name.islower() else "_".join(words(name)).lower()


def name_of(text: str) -> str:
    """The name of a parameter for what an engine calls `text`; "" for what gives none."""
    name = re.sub(r"[^a-z0-9]+", "_", snake(text).lower()).strip("_")[:90]
    return name if name.isidentifier() or not name else f"option_{name}"


def is_standard(name: str) -> bool:
    """Whether it is an option of the protocol, or of how an engine is run and not of its play."""
    return _STANDARD.fullmatch("_".join(words(name.replace(" ", "_")))) is not None


def rank_of_file(path: str) -> int:
    """1 for a file that may hold search or evaluation, -1 for one that does other work, else 0."""
    parts = PurePosixPath(path)
    if any(_OTHER_FOLDERS.fullmatch(name.lower()) for name in parts.parent.parts):
        return -1
    for name in (parts.stem, *reversed(parts.parent.parts)):
        if name in ("src", "lib", "mod"):
            continue
        if _STRENGTH_FILES.search(name.lower()):
            return 1
        if _OTHER_FILES.search(name.lower()):
            return -1
    return 0


def is_about_time(path: str) -> bool:
    """Whether a file decides how long a search takes."""
    return _CLOCK_FILES.fullmatch(PurePosixPath(path).stem.lower()) is not None


def _rank_of_name(name: str) -> int:
    """2 for a name with a word of search or evaluation, 1 if only the board has that word, too."""
    known = [word for word in words(name) if _STRENGTHS.fullmatch(word.lower())]
    if len(name) <= 2 or not known:  # SE is a direction
        return 0
    return 1 if all(_OF_BOARD.fullmatch(word) for word in known) else 2


def is_related(one: SourceConstant, rank: int) -> bool:
    """Whether the file, by its rank, or the name speaks of search or evaluation."""
    told = _rank_of_name("_".join((*one.scope, one.name)))
    if rank == 1:
        return told > 0 or one.kind not in (Kind.CONST_FUNCTION, Kind.VARIABLE)
    return rank == 0 and told > (0 if _is_pair(one) else 1)


def _is_pair(one: SourceConstant) -> bool:
    """Whether its numbers come in twos, as those for middle game and endgame do."""
    last = [e.location.accesses[-1:] for e in one.numbers()]
    return {access.position for each in last for access in each if access.field} == {0, 1}


def are_signs(one: SourceConstant) -> bool:
    """Whether it is a list of 1 and -1, such as the directions of the sides."""
    return not one.single and all(abs(e.number) in (0, 1) for e in one.numbers())


def objection_to_name(name: str) -> Objection | None:
    """Why a constant of this name is not tunable; None where nothing says so."""
    parts = words(name)
    whole = "_".join(parts)
    if _LIMIT.fullmatch(whole) and not _any(_METHODS, parts):
        return Objection("a limit, by its name")
    if _KING.fullmatch(whole):
        return Objection("the value of the king, which is never captured")
    if _MOVES.fullmatch(whole):
        return Objection("a kind of move, by its name")
    if _any(_FIXED, parts) or (_any(_OFTEN_FIXED, parts) and not _any(_WEIGHTS, parts)):
        return Objection("a size or a limit, by its name")
    if _PHASE.fullmatch(whole):
        return _OF_PHASE
    return objection_to_use(name)


def objection_to_use(name: str) -> Objection | None:
    """Why games with a limit for each move, or with one thread, do not show what a name stands for.

    None where nothing says so.
    """
    parts = words(name)
    if _any(_THREADED, parts):
        return _OF_THREADS
    of_clock = _any(_CLOCK, parts) or "MOVES_TO_GO" in "_".join(parts)
    return OF_CLOCK if of_clock else None


def objection_to_scope(scope: tuple[str, ...]) -> Objection | None:
    """Why what stands in a function or a class of this name is not tunable."""
    return _OF_PHASE if scope and _PHASE.fullmatch("_".join(words(scope[-1]))) else None


def _any(pattern: re.Pattern[str], parts: list[str]) -> bool:
    return any(pattern.fullmatch(part) for part in parts)


def objection_to_number(element: Element, *, indexed: bool = False) -> Objection | None:
    """Why a number as it is written is not tunable; None where nothing says so.

    A 0 inside an array most often fills a place that is not used.
    """
    number = element.number
    if abs(number) <= _MOST_PIECES and _PIECE.fullmatch(element.location.name.upper()):
        return Objection("the number of a piece, by its name")
    if element.text.lstrip("- ").lower().startswith(("0x", "0b", "0o")):
        return Objection("written as a bit pattern")
    if number == 0 and indexed:
        return Objection("0 inside an array: most often a place that is not used")
    if number == 0:
        return Objection("0 may stand for switched off: give it a range of its own", left_out=False)
    if abs(number) < _MIN_NUMBER:
        return Objection("so small a number looks like a tolerance")
    if abs(number) >= _LARGEST or abs(number) in _ENDS:
        return Objection("so large a number looks like a limit or a pattern")
    if abs(number) >= _BAND and number % 1000 == 0:
        return _KEEPS_APART
    if number in _LARGE_POWERS:
        return _POWER
    return _GRAIN if number in _POWERS and _any(_GRAINS, words(element.location.name)) else None


def objection_to_factor(number: Number) -> Objection | None:
    """Why a number inside an expression is no strength: powers of ten and of two are units."""
    if abs(number) <= 2 or number in _UNITS:
        return Objection("a unit of a computation", left_out=False)
    return None


_POWERS = frozenset(2**n for n in range(6, 13))
_ENDS = {2**bits - below for bits in (15, 16) for below in (0, 1)}
_LARGE_POWERS = frozenset(2**n for n in range(12, 21))
_UNITS = frozenset({10**n for n in range(1, 7)} | {2**n for n in range(1, 21)} | {63, 127, 255})
