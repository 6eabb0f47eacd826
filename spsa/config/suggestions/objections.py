"""Why a number is not suggested: by its name, how it is written, its file; "" is no reason."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import PurePosixPath
from typing import NamedTuple

from spsa.builds.sources.constant import Element, Kind, SourceConstant, SourceFile

NUMBERED = "numbered one after the other, as indexes and flags are"
SET_ANEW = "no more than a default: another value is set in its place"
LIMIT = "a limit of the option whose default stands beside it"
COUNTED = "the length or an index of an array"
SIGNS = "signs and directions"
UNRELATED = "neither the file nor the name speaks of search or evaluation"
UNNAMED = "its name does not speak of search or evaluation"
APART = "far from the others of its table, as a king's value is"
LAST_RANK = "of the eighth rank, where no pawn stands"
LONG_TABLE = "a long table"
COARSE = "counted in pawns: a step of it is too large"
IN_TABLE = "one number of a table: alone it hardly changes a game"
NOT_DECLARED = "the author declares the ranges of others"
LEFT_OUT = "its author leaves it out, by what stands beside its range"
UNREAD = "neither search nor evaluation reads it"
ORDERED = "it keeps kinds of moves apart: no more than their order reads it"
SWITCH = "on or off, by its name or its range"
OTHER_TYPE = "no number: set it in [engine.options]"
NO_RANGE = "without a default between a minimum and a maximum"

PHASE = "the phase of the game: a step of it moves all evaluations"
PERHAPS_SIZE = "perhaps a size or a limit, by its name"
ZERO = "0 may stand for switched off: give it a range of its own"

_SIZE = "a size, a limit or a kind of something, by its name"
_STANDARD = "an option of the protocol, or of how the engine is run"
_CLOCK = "about the clock or threads: games with neither show nothing of it"
_ROUND = "large and round: a limit, or it keeps kinds of moves apart"
_UNIT = "a unit in which others are counted"

_BY_USE = frozenset({_CLOCK, PHASE, _ROUND, _UNIT, ORDERED, UNREAD, UNNAMED})
COMMENTED = _BY_USE | {COARSE, IN_TABLE, NOT_DECLARED, LEFT_OUT, PERHAPS_SIZE, ZERO}
"""Reasons with which a number is a comment in params.toml; with any other it is left out."""

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def words(name: str) -> list[str]:
    """The words of a name in capitals, whether it is written MAX_DEPTH, max_depth or SEEDepth."""
    return [word for word in _CAMEL.sub("_", name).upper().split("_") if word]


class _Rule(NamedTuple):
    """Holds for a name as a `whole`, or with a `word`, but not with a word of `unless`."""

    reason: str
    whole: str = r"(?!)"
    word: str = r"(?!)"
    unless: str = r"(?!)"

    def holds(self, parts: Sequence[str]) -> bool:
        found = holds(self.whole, ["_".join(parts)]) or holds(self.word, parts)
        return found and not holds(self.unless, parts)


def holds(pattern: str, parts: Iterable[str]) -> bool:
    return any(re.fullmatch(pattern, part) for part in parts)


_OF_USE = _Rule(
    _CLOCK,
    whole=r"(BM|BEST_MOVE|NODE)_(\w+_)?(BASE|MUL\w*|SCALE\w*|FACTOR\d*|MIN|MAX)|(BEST_MOVE_CHANGES?|SCORE_DROP)\w*"
    r"|EASY\w+|\w*MOVES_TO_GO\w*|ONE_SECOND|(?!.*(DELTA|FUTILITY))(\w+_)?INCREMENT(_\w+)?|\w*(SOFT|HARD)_(BOUND|CONSTANT|LIMIT|SCALE|STOP|TIME)\w*",
    word=r"CLOCK|EMERGENCY|PONDER|TIMER?|(IN)?STAB(ILITY)?\d*|TM\d*|\w{3,}TM|[BW]?INC|LATENCY|MILLIS(ECONDS)?|MS"
    r"|CORES|CPUS|THREADS?|MOVESTOGO|OVERHEAD|SAFEGUARD|SECONDS|SECS?|SMP|SUBTREE|TC|VOT(E|ES|ING)",
)
_OF_NAME = (
    _Rule(
        _SIZE,
        whole=r"MAXMOBILITY|(DEPTH|EXTENSIONS?)_(LIMIT|MAX)|(\w+_)?LIMITS_MAX_DEPTH"
        r"|(MIN|SEARCH|START|TARGET|DEFAULT(_\w+)?|(\w+_)?CONFIG)_DEPTH"
        r"|\w*MATE_(BOUND|MARGIN|THRESHOLD)|(MAX|MIN)_(ALPHA|BETA|EVAL|SCORE)|SIZE_\w+|MIN(IMUM)?_MATERIAL|MAX_(\w+_)?(DEPTH|EVAL(UATION)?"
        r"|EXTENSIONS?|GAME|HASH|ITERATIONS|LEVEL|MATERIAL|MOBILITY|MOVES(_\w+)?|QUIESCE\w*|SCORE|VALUE"
        r"|WINDOW)",
        unless=r"FUTILITY|FP|IIR|LM[PR]|NMP|PROBCUT|PRUN(E|ING)|RAZOR(ING)?|RFP|SEE|SINGULAR",
    ),
    _Rule(
        _SIZE,
        whole=r"(\w+_)?KING(_MG|_EG)?_(VAL(UE)?|SCORE|MATERIAL|WORTH)"  # it is never captured
        r"|(\w+_)?(VAL(UE)?|SEE|MATERIAL|WEIGHT)_KING"
        r"|((PIECE|SQUARE)_)?EMPTY|COLOU?R|ONE|UP|DOWN|COUNTER_?MOVES?|PROMOTIONS?(_TYPE_BONUS|_[NBRQ])?|\w+_ORDER|[PNBRQK]X(_[PNBRQK])?"
        r"|(VICTIM|ATTACKER|AGGRESSOR)_(VALUE|SCORE)S?|(\w+_)?TABLE_(SIZE|OFFSETS?)|[WB]_\w+_START"
        r"|(\w+_)?((SQ|PC|OPP)_OFFSET|EVAL_SCALE(_[A-Z])?)|(\w+_)?(TO_CP|(FROM|TO)_TT|WDL)(_\w+)?",
        word=r"BENCH\w*|BITS?|BYTES|CURR(ENT|MOVE)|DIM(S|ENSIONS?)?|DIR(ECTION)?S?|LEFT|RIGHT|FRC|EPS(ILON)?|FLAGS?"
        r"|FRACTIONS|ELO|LEARN|PREFETCH|HASH|HEIGHT|IDS?|INDENT|INDEXES|INF|INFINIT[EY]|INTERVAL|INVALID|LEN|(MVV)?LVA|MASKS?"
        r"|ME(GA|BI)BYTES?|NONE|NORMALI[SZ]\w+|NUM|NR|QUANTI[SZ]\w+|RIGHTS|SEED|\w*SHIFTS?|SKIP|SLOTS|SQ|STRIDES?"
        r"|STAT(S|ISTICS?)|SYZYGY|TYPES|UNITS?|UNKNOWN|VERBOSE|VERSION|WIN|WON",
    ),
    _Rule(
        _STANDARD,
        whole=r"(\w+_)?DRAW_(SCORE|VALUE|PENALTY)|(SCORE|VALUE)_DRAW",
        word=r"BOOK|CONTEMPT|STYLE|PERIODIC\w*|FEN",
    ),
    _Rule(
        _SIZE,
        word=r"BLACK|WHITE|CASTL(E|ING)|CNT|COUNT|DIST|IDX|INDEX|(CHECK|TB)?MATED?|NO|NODES"
        r"|NOT|PLIES|PLY|SIZE|SQUARES|(EG)?TB(BASE)?|WIDTH",
        unless=r"BONUS(ES)?|EXTENSIONS?|FUTILITY|KILLERS?|LM[PR]|MARGINS?|MODIFIERS?|PASSED"
        r"|PENALT(Y|IES)|RAZOR(ING)?|REDUC(E|TIONS?)|SAFETY|THRESHOLDS?|WEIGHTS?|WINDOW",
    ),
    _Rule(
        PHASE,
        whole=r"\w*(PHASES?|GAME_STAGE)(_\w+)?|\w*PIECES_FOR_END_?GAME|END_?GAME_(MAT(ERIAL)?(_(START|THRESHOLD|LIMIT))?|PIECES(_\w+)?)"
        r"|(OPENING|END_?GAME)_SCORE|((MID(DLE)?|END)_?GAME|[ME]G)(_LIMIT)?",
    ),
    _OF_USE,
)
_OF_MAKER = (
    _OF_USE,
    _Rule(LEFT_OUT, r"NO(T|N)?_TUN(E|E?ABLE)", r"DISABLED?|FIXED|(NON|UN)TUNABLE|[IU]NACTIVE"),
)
_OF_OPTION = (
    _Rule(
        _STANDARD,
        whole=r"(\w+_)?(HASH|CACHE)(_(SIZE|(IN_)?MB))?|THREADS|PONDER|(OWN_)?BOOK\w*|(\w+_)?(CONTEMPT|RANDOM(NESS)?|FUZZ)|(SEARCH_)?DEPTH"
        r"|MULTI_?PV|(MINIMUM_THINKING|SLOW_MOVER|MOVE_?OVERHEAD)(_TIME)?|NODESTIME|((SKILL|OUTPUT|LOG)_)?LEVEL"
        r"|SYZYGY_?\w*|UCI_?ELO|UCI_RATING\w*|\w*UCI_OPTIONS?_\w+",
    ),
    _OF_USE,
)


def to_name(name: str) -> str:
    """Why a constant of this name is not tunable."""
    return _first(_OF_NAME, name)


def to_declared(name: str, maker: str = "") -> str:
    """Why a number with a range of its author is not tunable, by its name or by its macro's."""
    return _first(_OF_OPTION, name.replace(" ", "_")) or _first(_OF_MAKER, maker)


def _first(rules: Iterable[_Rule], name: str) -> str:
    parts = words(name)
    parts = parts[1:] if len(parts) > 1 and parts[0] in ("C", "G", "K", "M", "S") else parts
    return next((rule.reason for rule in rules if rule.holds(parts)), "")


_VALUE = re.compile(r"\b[^\W\d]\w*\b(?!\s*[(:])")  # no call, no class
_SIZES = {2**n for n in range(12, 21)}
_UNITS = {10**n for n in range(1, 7)} | {2**n for n in range(1, 21)} | {24, 63, 127, 255}
_SWITCH = r"USE|DO|(EN|DIS)ABLED?|HAS|IS|ALLOW|WITH"
_GRAINS = {2**n for n in range(5, 13)} | {100, 1000, 10_000}
_OF_GRAIN = r"GRAIN|NORMAL|PLY|SCALE|PRECISION|RES|RESOLUTION|ONE"
_OF_NUMBER: Sequence[tuple[str, Callable[[Element, float], bool]]] = (
    (
        "written as a bit pattern",
        lambda e, _: e.text.lstrip("- ").lower().startswith(("0x", "0b", "0o")),
    ),
    (
        "0 inside an array: most often a place that is not used",
        lambda e, size: size == 0 and any(not access.field for access in e.location.accesses),
    ),
    (
        SWITCH,
        lambda e, size: (
            size <= 1
            and holds(_SWITCH, (w := words(_VALUE.findall(str(e.location))[-1]))[:1] + w[-1:])
        ),
    ),
    (ZERO, lambda _, size: size == 0),
    (
        "so large or so small that it looks like a limit or a tolerance",
        lambda _, size: size < 1e-5 or size >= 1_000_000,
    ),
    (
        _SIZE,
        lambda e, size: (
            (w := words(re.sub(r"\W+", "_", str(e.location))))[-1:] == ["TABLE"]
            or ("MAX" in w and (size in _GRAINS or size >= 20_000))
            or (w[-1:] == ["DEPTH"] and (e.number < 0 or size in (64, 99, 100, 127, 128)))
        ),
    ),
    (_ROUND, lambda e, _: e.number in _SIZES),
    (_ROUND, lambda _, size: size >= 10_000 and (size + 3) % 10_000 < 7),
    (
        _ROUND,
        lambda e, size: (
            (size >= 30_000 or (size >= 4000 and size % 1000 == 0))
            and holds("SCORE|VALUE", words(e.location.name)[-1:])
        ),
    ),
    (_UNIT, lambda e, size: size in _GRAINS and holds(_OF_GRAIN, words(e.location.name))),
)


def to_number(element: Element, *, computed: bool = False) -> str:
    """Why a number as it is written is not tunable; `computed` if it is a part of an expression.

    In an expression powers of ten and of two are units, and so are wholes and halves up to 2. What
    is hardly more than 0 is a tolerance there.
    """
    size = abs(element.number)
    found = (reason for reason, holds in _OF_NUMBER if holds(element, size))
    is_small = size <= 2 and (2 * size % 1 == 0 or size < 0.01)
    is_unit = computed and (is_small or element.number in _UNITS)
    return next(found, _UNIT if is_unit else "")


def of_piece(name: str) -> bool:
    """Whether a constant of this name is what pieces are worth."""
    return holds(r"VAL(UE)?S?|MATERIAL(VALUES?)?", words(name)[-2:])


NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', re.DOTALL)
_PHASED = re.compile(r"(?i)\b\w*(?:phase|game_?factor)\w*\s*[-+]?=(?!=)([^;{}]*)")
"""What the phase of a game is made of: phase += count(KNIGHTS) * KNIGHT_WEIGHT;"""
_BY_OPTION = re.compile(r'(?im)^[ \t]*(\w+)\s*=[^=;"{}]*option\w*\s*[(\[]\s*"')
"""razor_margin = get_option("Razor Margin");"""
_TRUTH = re.compile(rb"[^\n]*?\b(true|false)\b")


class Told(NamedTuple):
    """What all files say together: the names with a reason against them.

    `left_out` are makers with the word, whether it is `true`, that fewer of their numbers have.
    """

    names: Mapping[str, set[str]]
    left_out: set[tuple[str, bool | None]]

    def against(self, one: SourceConstant) -> Iterator[str]:
        return (reason for reason, names in self.names.items() if one.name in names)


def told_by(files: Collection[SourceFile]) -> Told:
    constants = [(file, one) for file in files for one in file.constants]
    told = Counter(switch(file, e) for file, one in constants for e in one.numbers() if e.beside)
    phased = (_PHASED.findall(NO_CODE.sub("", file.text)) for file in files)
    named = {one.name for _, one in constants}
    defaults = {name.removeprefix("DEFAULT_") for name in named if name.startswith("DEFAULT_")}
    counts = {one.name for _, one in constants if all(e.number < 20 for e in one.numbers())}
    return Told(
        names={
            # MAX_MARGIN and MIN_MARGIN beside DEFAULT_MARGIN
            LIMIT: {f"{end}_{name}" for name in defaults for end in ("MAX", "MIN")},
            COUNTED: {name for file in files for name in (*file.lengths, *_reaching(file))},
            PHASE: counts.intersection(_VALUE.findall(" ".join(chain(*phased)))),
            SET_ANEW: {name for file in files for name in _BY_OPTION.findall(file.text)},
        },
        left_out={
            key for key, n in told.items() if n < told[key[0], not key[1]] and key[1] is not None
        },
    )


def _reaching(file: SourceFile) -> Iterator[str]:
    """The depths that end where a table of their name ends: RAZOR_DEPTH = 3 beside RAZOR[4]."""
    kinds = (Kind.CONSTANT, Kind.VARIABLE)
    tables = (one for one in file.constants if not one.single and one.kind in kinds)
    sizes = [(words(one.name), len(one.items)) for one in tables]
    for one in file.constants:
        *begin, last = [word for word in words(one.name) if word != "MAX"] or [""]
        if begin and last == "DEPTH" and isinstance(one.single, Element):
            left = (size - one.single.number for name, size in sizes if name[: len(begin)] == begin)
            if not {0, 1}.isdisjoint(left):
                yield one.name


def switch(file: SourceFile, element: Element) -> tuple[str, bool | None]:
    """What declares a number, and whether the next word of that kind in its line is `true`."""
    word = _TRUTH.match(file.content, element.end)
    return element.maker, word and word[1] == b"true"


_STRENGTH_FILES = re.compile(
    r"const|param|tun(e(?!r)|able)|weight|eval|search|hce|psqt?|(?<![a-z])pst|piece_?sq|material|pawn"
    r"|king|mobility|threat|history|order|pick|prun|reduc|time|quiesc|see|score|value|negamax"
    r"|alpha|engine"
)
_OTHER_FOLDERS = (
    r"nn(ue)?|networks?|neural|onnx|frontend|views?|g?ui|controllers?|numa|syzygy|tablebases?|zlib|zstd|lz4|fmt|json\w*"
    r"|[\w-]*(calibrat\w*|tuning|tuner|texel|selfplay|datagen|perft)"
)
"""Folders whose files do other work whatever they are called."""
_OTHER_FILES = (
    r"tun\w+(eval|hce|ps\w+)|nn|wdl|((uci|learn|pgn|report)|\w*(nnue|neural|network|test|data[gs]e|selfplay"
    r"|texel|train))\w*|mt\d*|mtwist|mersenne\w*|p?rng|rand(om)?\w*"
)
"""Files of a tuner's evaluation, of a network, of training, of chance and of the protocol."""


def rank_of_file(path: str) -> int:
    """1 for a file that may hold search or evaluation, -1 for one that does other work, else 0."""
    parts = PurePosixPath(path.lower())
    if holds(_OTHER_FOLDERS, parts.parent.parts) or holds(_OTHER_FILES, [parts.stem]):
        return -1
    folders = (name.replace("engine", "") for name in reversed(parts.parent.parts))
    for name in (parts.stem, *folders):
        if name not in ("src", "lib", "mod") and _STRENGTH_FILES.search(name):
            return 1
    return 0


def to_file(path: str) -> str:
    """Why what a file holds is not tunable: it decides how long a search takes."""
    is_clock = holds(r"chrono|clock\w*|stop(per)?|time\w*|tm", [PurePosixPath(path).stem.lower()])
    return _CLOCK if is_clock else ""


_OF_PIECES = r"(\w+_)?(PIECES?|SEE|EXCHANGE|MATERIAL|THREAT|PROMOTION)_(VAL(UE)?S?|SCORES?)"


def to_coarse(one: SourceConstant, name: str) -> str:
    """Why a table is not tunable that counts the values of pieces in pawns."""
    is_of_pieces = len(one.items) > 3 and holds(_OF_PIECES, ["_".join(words(name))])
    small = [e for e in one.numbers() if abs(e.number) < 50]
    return COARSE if is_of_pieces and 2 * len(small) > len(one.items) else ""
