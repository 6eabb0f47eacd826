"""Why a number of an engine is not suggested: by its name, by how it is written, by its file.

Names are all there is to go by before games are played. The tables below are tried in order.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple

from spsa.builds.sources.constant import Element, Kind, SourceConstant
from spsa.core.params import Number


class Objection(NamedTuple):
    """Why a number is not suggested; `left_out` if params.toml does not even mention it."""

    reason: str
    left_out: bool = True


_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


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


def free_name(name: str, outer: Sequence[str], taken: Collection[str]) -> str:
    """The name, or one with the names around it, or a number behind it, that is not taken."""
    known = [part for part in outer if part]
    wider = ("_".join((*known[-n:], name)).lower() for n in range(1, len(known) + 1))
    numbered = (f"{name}_{n}" for n in range(2, len(taken) + 3))
    return next(each for each in (name, *wider, *numbered) if each not in taken)


def _holds(pattern: str, parts: Iterable[str]) -> bool:
    return any(re.fullmatch(pattern, part) for part in parts)


@dataclass(frozen=True, slots=True)
class _Rule:
    """Holds for a name as a `whole`, or with a `word`, but not with a word of `unless`."""

    reason: str
    whole: str = r"(?!)"
    word: str = r"(?!)"
    unless: str = r"(?!)"
    left_out: bool = True

    def holds(self, parts: Sequence[str]) -> bool:
        found = _holds(self.whole, ["_".join(parts)]) or _holds(self.word, parts)
        return found and not _holds(self.unless, parts)


OF_CLOCK = Objection("about the clock: it counts only in games with a clock", left_out=False)
_A_SIZE = "a size or a limit, by its name"
_PHASE = r"\w*PHASES?(_\w+)?|(MID(DLE)?|END)_?GAME"
_OF_USE = (
    _Rule(
        "about several threads: games are played with one",
        word=r"SMP|VOT(E|ES|ING)",
        left_out=False,
    ),
    _Rule(
        OF_CLOCK.reason,
        whole=r"\w*MOVES_TO_GO\w*|ONE_SECOND",
        word=r"CLOCK|TIME|STABILITY|TM\d*|\w{3,}TM|[BW]INC|INCREMENT|LATENCY|MILLIS(ECONDS)?"
        r"|MOVESTOGO|MS|OVERHEAD|SAFEGUARD|SECONDS|SECS?|TIMER?",
        left_out=False,
    ),
)
_OF_SCOPE = (
    _Rule("in a model of results", whole=r"\w*WDL\w*"),
    _Rule("in what a hash or a debugger needs", word=r"HASH|DEBUG"),
)
_OF_PHASE = _Rule(
    "the phase of the game: a step of it moves all evaluations", whole=_PHASE, left_out=False
)
_OF_NAME = (
    _Rule(
        "a limit, by its name",
        whole=r"(MAX|MIN)(IMUM)?|MAXMOBILITY|ONE_HUNDRED|DEFAULT_(\w+_)?DEPTH|MIN_DEPTH"
        r"|(MAX|MIN|LOWEST|HIGHEST)_ELO|(MAX|MIN)_ELEMENTS"
        r"|MATE_(BOUND|MARGIN|THRESHOLD)|(MAX|MIN)_(ALPHA|BETA)|MAX_(\w+_)?(DEPTH|EVAL(UATION)?"
        r"|EXTENSIONS?|GAME|HASH|LEVEL|MATERIAL|MOBILITY|MOVES(_\w+)?|QUIESCE\w*|SCORE|VALUE"
        r"|WINDOW)",
        unless=r"FUTILITY|FP|IIR|LM[PR]|NMP|PROBCUT|PRUN(E|ING)|RAZOR(ING)?|RFP|SEE|SINGULAR",
    ),
    _Rule(
        "the value of the king, which is never captured",
        whole=r"(\w+_)?KING(_MG|_EG)?_(VALUE|SCORE)|VALUE_KING",
    ),
    _Rule(
        "a kind of move, by its name",
        whole=r"((NO|NULL|NONE|NORMAL)_)?MOVE|(DOUBLE_)?PUSH|CAPTURE|CASTLING|PROMOTION|QUIET"
        r"|(\w+_)?(MOVE|PROMOTION|SCORE)_TYPE",
    ),
    _Rule("a rank or a file, by its name", whole=r"(\w+_)?PROMOTION_(RANK|FILE)(_\w)?"),
    _Rule("a place in a pattern, by its name", whole=r"(\w+_)?(SQ|PC|OPP)_OFFSET"),
    _Rule("a conversion, by its name", whole=r"(\w+_)?(TO_CP|(FROM|TO)_TT|WDL)(_\w+)?"),
    _Rule("an option, by its name", word=r"CONTEMPT|STYLE|NUMA|PERIODIC\w*|FEN"),
    _Rule(
        _A_SIZE,
        word=r"ALLOC|BENCH|BITS?|BUCKETS?|BYTES|CAPACITY|DEBUG|DIM(S|ENSIONS?)?|DIRECTIONS?|NORTH"
        r"|SOUTH|EAST|WEST|LEFT|RIGHT|FWD|ENTRIES|EPOCH|EPSILON|FLAGS?|HASH|HEIGHT|HIDDEN|IDS?"
        r"|INDENT|LEARNING|RANDOM|STRIDES?|SYZYGY|UNKNOWN|INF|INFINITY|INFINITE|INPUTS?|INVALID"
        r"|KEYS?|LAYERS?|LEN|LENGTH|LOGIT|LOST|MASKS?|MEGABYTES?|[KMG]I?B|NONE|NORMALI[SZ]E|NUM"
        r"|NUMBER|OUTPUTS?|PORT|QA|QB|QUANTI[SZ]\w+|RIGHTS|SEED|\w*SHIFT|SKIP|STACK|THREADS?"
        r"|TRACE|TUNING|TYPES|UNDEFINED|UNITS?|VERSION|WON|WIN|ZOBRIST",
    ),
    _Rule(
        _A_SIZE,
        word=r"BLACK|WHITE|BOARD|CASTL(E|ING)|CNT|COUNT|DIST|IDX|INDEX|(CHECK|TB)?MATED?|NO|NODES"
        r"|NOT|PLIES|PLY|SIZE|SQUARES|STARTING|TB|WIDTH",
        unless=r"BONUS(ES)?|EXTENSIONS?|FUTILITY|KILLERS?|LM[PR]|MARGINS?|MODIFIERS?|PASSED"
        r"|PENALT(Y|IES)|RAZOR(ING)?|REDUCTIONS?|SAFETY|THRESHOLDS?|WEIGHTS?|WINDOW",
    ),
    _OF_PHASE,
    *_OF_USE,
)
_STANDARD = _Rule(
    "an option of the protocol, or of how the engine is run",
    whole=r"HASH|THREADS|PONDER|(OWN_)?BOOK\w*|CONTEMPT|RANDOM(NESS)?|(SEARCH_)?DEPTH|MULTI_?PV"
    r"|(MINIMUM_THINKING|SLOW_MOVER|MOVE_?OVERHEAD)(_TIME)?|SLOW_MOVER|NODESTIME|SKILL_LEVEL"
    r"|SYZYGY_?\w*|UCI_?ELO",
)


def to_name(name: str) -> Objection | None:
    """Why a constant of this name is not tunable; None where nothing says so."""
    return _first(_OF_NAME, name)


def to_scope(scope: Sequence[str]) -> Objection | None:
    """Why what stands in a function or a class of this name is not tunable."""
    return _first((_OF_PHASE, *_OF_SCOPE), scope[-1]) if scope else None


def to_declared(name: str) -> Objection | None:
    """Why a number with a range of its author is not tunable: an option that every engine has.

    And one of which games with a limit for each move, or with one thread, show nothing.
    """
    return _first((_STANDARD, *_OF_USE), name.replace(" ", "_"))


def _first(rules: Iterable[_Rule], name: str) -> Objection | None:
    parts = words(name)
    found = (Objection(rule.reason, rule.left_out) for rule in rules if rule.holds(parts))
    return next(found, None)


_ENDS = {2**bits - below for bits in (15, 16) for below in (0, 1)}
_UNITS = {10**n for n in range(1, 7)} | {2**n for n in range(1, 21)} | {63, 127, 255}
_PIECE = r"(([BW]|BLACK|WHITE)_?)?(PAWN|KNIGHT|BISHOP|ROOK|QUEEN|KING)S?|PIECES?"
NOT_DECLARED = Objection("the author declares the ranges of others", left_out=False)
ZERO = Objection("0 may stand for switched off: give it a range of its own", left_out=False)
_OF_NUMBER: Sequence[tuple[Objection, Callable[[Element, Number], bool]]] = (
    (
        Objection("the number of a piece, by its name"),
        lambda e, size: size <= 16 and _holds(_PIECE, [e.location.name.upper()]),
    ),
    (
        Objection("written as a bit pattern"),
        lambda e, _: e.text.lstrip("- ").lower().startswith(("0x", "0b", "0o")),
    ),
    (
        Objection("0 inside an array: most often a place that is not used"),
        lambda e, size: size == 0 and any(not access.field for access in e.location.accesses),
    ),
    (ZERO, lambda _, size: size == 0),
    (Objection("so small a number looks like a tolerance"), lambda _, size: size < 1e-9),
    (
        Objection("so large a number looks like a limit or a pattern"),
        lambda _, size: size >= 1_000_000 or size in _ENDS,
    ),
    (
        Objection("so large and round a number keeps kinds of moves apart", left_out=False),
        lambda e, size: size >= 50_000 and e.number % 1000 == 0,
    ),
    (
        Objection("a large power of two, as sizes and limits of types are", left_out=False),
        lambda e, _: e.number in {2**n for n in range(12, 21)},
    ),
    (
        Objection("a power of two or ten in which others are counted", left_out=False),
        lambda e, _: (
            e.number in {2**n for n in range(5, 13)} | {100, 1000, 10_000}
            and _holds(r"GRAIN|SCALE|PRECISION|RES|RESOLUTION|ONE", words(e.location.name))
        ),
    ),
)


def to_number(element: Element, *, computed: bool = False) -> Objection | None:
    """Why a number as it is written is not tunable; `computed` if it is a part of an expression.

    In an expression powers of ten and of two are units, and so is what is hardly more than 1.
    """
    size = abs(element.number)
    found = (objection for objection, holds in _OF_NUMBER if holds(element, size))
    unit = computed and (size <= 2 or element.number in _UNITS)
    return next(found, Objection("a unit of a computation", left_out=False) if unit else None)


_STRENGTH_FILES = re.compile(
    r"const|param|tun(e(?!r)|ing|able)|weight|eval|search|hce|psqt?|pst|piece_?sq|material|pawn"
    r"|king|mobility|threat|history|order|pick|prun|reduc|time|quiesc|see|score|value|negamax"
    r"|alpha|engine"
)
_OTHER_FILES = re.compile(
    r"attack|bench|bitboard|book|cache|castl|cli|datagen|deflate|epd|fen|gen|hash|inflate|learn|magic"
    r"|nnue|network|numa|perft|pgn|position|simd|squares?$|stats?$|syzygy|tablebase|tbcore|tbprobe"
    r"|test|texel|thread|^tt$|transposition|tuner|uci|version|zobrist|^moves?$|option"
)
_OTHER_FOLDERS = r"nnue|networks?|numa|syzygy|tablebases?|zlib|zstd|lz4|fmt|json\w*"
"""Folders whose files do other work whatever they are called."""
_STRENGTHS = (
    r"aspiration|asp|attack(s|ers?)?|backwards?|base|bias|bishops?|blockade|bonus(es)?|capture"
    r"|castling|center|check|coeff|contempt|connected|continuation|countermove|danger|defen[cs]e"
    r"|delta|depth|distance|div(isor|ision)?|doubled|endgame|eg|eval(uation)?|extension|factor|fp"
    r"|futility|hanging|histories|history|iid|iir|improving|isolated|killers?|king|knights?|lever"
    r"|lmp|lmr|lva|margins?|material|mg|mid(game)?|mobilit(y|ies)|mul(tiplier)?|multicut|mvv|nmp"
    r"|null|offset|open|opening|outposts?|pair|passed|passers?|pawns?|penalt(y|ies)|phalanx|phase"
    r"|pieces?|probcut|promotion|protect(ion|or)|prune|pruning|pst|psqt?|queens?|ratio|razor(ing)?"
    r"|reduc(e|tion|tions)|rfp|rooks?|safe(ty)?|scale|scores?|se|see|semi|shelter|shield|singular"
    r"|space|squares?|storm|tables?|tempo|threats?|threshold|trapped|unstoppable|val(ues?)?"
    r"|weak(ness)?|weights?|window"
)
_OF_BOARD = (
    r"ATTACK(S|ERS?)?|BASE|BISHOPS?|CAPTURE|CASTLING|CENTER|CHECK|DELTA|DEPTH|DISTANCE"
    r"|DIV(ISOR|ISION)?|FACTOR|KINGS?|KNIGHTS?|NULL|OFFSET|OPEN|OPENING|PAIR|PAWNS?|PIECES?"
    r"|PROMOTION|QUEENS?|ROOKS?|SCALE|SE|SPACE|SQUARES?|TABLES?|THRESHOLD"
)
"""Words that stand for the board and for what a program is made of as well."""


def rank_of_file(path: str) -> int:
    """1 for a file that may hold search or evaluation, -1 for one that does other work, else 0."""
    parts = PurePosixPath(path.lower())
    if _holds(_OTHER_FOLDERS, parts.parent.parts):
        return -1
    for name in (parts.stem, *reversed(parts.parent.parts)):
        if name not in ("src", "lib", "mod"):
            if _STRENGTH_FILES.search(name):
                return 1
            if _OTHER_FILES.search(name):
                return -1
    return 0


def to_file(path: str) -> Objection | None:
    """Why what a file holds is not tunable: it decides how long a search takes."""
    of_time = _holds(r"clock\w*|time\w*|tm", [PurePosixPath(path).stem.lower()])
    return OF_CLOCK if of_time else None


def is_related(one: SourceConstant, rank: int) -> bool:
    """Whether the file, by its rank, or the name speaks of search or evaluation."""
    name = "_".join((*one.scope, one.name))
    known = [word for word in words(name) if re.fullmatch(_STRENGTHS, word.lower())]
    told = len(name) > 2 and bool(known)  # SE is a direction
    if rank == 1:
        return told or one.kind not in (Kind.CONST_FUNCTION, Kind.VARIABLE)
    clear = not all(re.fullmatch(_OF_BOARD, word) for word in known)
    return rank == 0 and told and (clear or _is_pair(one))


def _is_pair(one: SourceConstant) -> bool:
    """Whether its numbers come in twos, as those for middle game and endgame do."""
    last = [e.location.accesses[-1:] for e in one.numbers()]
    return {access.position for each in last for access in each if access.field} == {0, 1}
