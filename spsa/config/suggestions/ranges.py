"""From numbers of an engine to parameters, each with a range and a step. Pure.

The author may have declared them, in the source or as UCI options. In a source that is recognised
by its shape, whatever the macro or the class is called: a number that lies between the next two.

Any other number does not show what a step of it is worth in Elo. Its step is as large as authors
declare for such numbers, its range goes from half the value to twice it. A person edits these.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, count, pairwise
from math import ceil, floor, inf

import spsa.config.suggestions.objections as against
from spsa.builds.sources.constant import Bounds, Element, Kind, Opaque, SourceConstant, SourceFile
from spsa.builds.sources.reading import ATTRIBUTE, PRINTED
from spsa.core.parameter import Access, Location, Number
from spsa.core.uci_options import Declarations, Declared

_PART, _PART_OVER_ONE = 0.09, 0.045
"""Of a fraction, and of one over 1: the median step of fourteen authors."""
_STEPS = 20
"""Steps in a range without one, as the tuning macro of Stockfish has them."""
_FINEST_STEP = 200
"""In a range of fractions at most so many; what is smaller is the rate of a tuner, as 0.002 is."""
_LIMIT_OF_TYPE, _LIMIT_OF_OPTION = 200, 20
"""A range of more than so many times the value is a limit, and no place to search in."""

_LEAST_TOLD = 3
_MAX_IN_ROW, _MAX_LISTED = 8, 32
"""Numbers of a row that are suggested, of two rows at most; of a table that are comments."""

_PHASES = ([1, 1, 2, 4], [3, 3, 5, 9])
"""What knights, bishops, rooks and queens count, and a pawn does not."""

_PER_UNIT = re.compile("mobility|weight|factor|mult")
"""Names of what is counted several times in one score, so that a step of it is small."""

_RANKED = re.compile("(pass(ed|er)|pawn)(?!.*(file|dist))")
"""Names of what counts by ranks, of which pawns stand on the second to the seventh."""

_OF_PIECE = re.compile(
    "([pnbrq]|pawn|knight|bishop|rook|queen)_((mg|eg|see)_)?(score|mg|eg)"
    "|pawn|knight|bishop|rook|queen|[pnbrq]_?wt|piece_scores?"
)
_STEPPED = re.compile(r"\(\w+, *\w+, *\w*step\w*\)", re.IGNORECASE)
"""The arguments of a macro that is given a value and a step: ten either way are a range."""
_NAMED_INDEX = re.compile(r"\[[A-Za-z_]\w*\]")
_LONGEST_TABLE = 64

_OF_OPENBENCH = re.compile(
    r"\s*(?P<name>[^,]+?)\s*,\s*(?P<type>int|float)"
    + "".join(rf"\s*,\s*(?P<{key}>-?\d+\.?\d*)" for key in ("value", "min", "max", "step"))
    + r"\s*,\s*[-+.\deE]+\s*"
)
"""`name, int or float, start, min, max, c_end, r_end`."""

Numbers = Mapping[Location, Element]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggested:
    """A parameter as params.toml would have it; `reason` says why it is not suggested, or "".

    `keys` are further keys of its table, such as `constant`. With `declared` the author of the
    engine gave the range.
    """

    name: str
    value: Number
    minimum: Number
    maximum: Number
    step: Number
    group: str = ""
    reason: str = ""
    declared: bool = False
    keys: Mapping[str, str] = field(default_factory=dict)

    @property
    def left_out(self) -> bool:
        """Whether params.toml does not even mention it."""
        return self.reason != "" and self.reason not in against.COMMENTED

    def opposed(self, *reasons: str) -> "Suggested":
        """The same with a reason against it: the first that leaves it out, else the first."""
        found = [reason for reason in (self.reason, *reasons) if reason]
        chosen = (reason for reason in found if reason not in against.COMMENTED)
        return replace(self, reason=next(chosen, found[0] if found else ""))


def snake(name: str) -> str:
    """A name as parameters have it: MAX_DEPTH as max_depth, and PawnDoubled as pawn_doubled."""
    is_plain = name.isupper() or name.islower()
    return name.lower() if is_plain else "_".join(against.words(name)).lower()


def name_of(text: str) -> str:
    """The name of a parameter for what an engine calls `text`; "" for what gives none."""
    name = re.sub(r"[^a-z0-9]+", "_", snake(text).lower()).strip("_")[:90]
    return name if name.isidentifier() or not name else f"option_{name}"


def free_name(name: str, outer: Sequence[str], taken: set[str]) -> str:
    """The name, or one with the names around it, or a number behind it, that is not taken."""
    outwards = (part.lower() for part in reversed(outer) if part)
    wider = accumulate(outwards, lambda inner, part: f"{part}_{inner}", initial=name)
    numbered = (f"{name}_{n}" for n in count(2))
    return next(each for each in chain(wider, numbered) if each not in taken)


def _own_name(name: str, place: Location) -> str:
    return "_".join((name, *(str(access.position).lower() for access in place.accesses)))


def around(
    name: str, value: Number, *, real: bool, centipawns: bool = False, **keys: str
) -> Suggested:
    """A range around a number of which nothing else is known.

    A small weight in centipawns may change its sign, and a large one has a smaller step.
    """
    size = abs(value)
    whole = round(size / 12 + 1.5) if size >= 10 else 1
    step = (_PART if size <= 1 else _PART_OVER_ONE) * size if real else whole
    if centipawns:
        least = 1 if _PER_UNIT.search(name) else 2
        step = max(least, round(min(_PART * size, 10 + size / 64)))
    low, high = _bounds(value, step, real=real)
    if real and value > 1 and re.search("asp|window|widen", name):  # it makes a window wider
        low = max(low, (value + 1) / 2)
    if centipawns and size < 10:
        low, high = min(low, value - 4 * step), max(high, value + 4 * step)
    return Suggested(name=name, value=value, minimum=low, maximum=high, step=step or 0.1, keys=keys)


def _bounds(value: Number, step: Number, *, real: bool) -> tuple[Number, Number]:
    """Half to twice the value, and room for two steps either way."""
    least, most = sorted((value / 2, value * 2))
    low, high = min(least, value - 2 * step), max(most, value + 2 * step)
    if value > 0:
        low = max(low, 1 if not real and value > 1 else 0)
    return (low, high) if real else (floor(low), ceil(high))


def _within(found: Suggested, element: Element) -> Suggested:
    """With a range that the type of the number can hold."""
    least, most = element.limits or (found.minimum, found.maximum)
    return replace(found, minimum=max(found.minimum, least), maximum=min(found.maximum, most))


def of_numbers(name: str, found: Numbers, *, computed: bool) -> Iterator[Suggested]:
    """Each number of a constant, or with `computed` of an expression; a long table is one."""
    sizes = sorted(abs(element.number) for element in found.values() if element.number) or [0]
    far = 5 * sizes[-2] if 5 < len(sizes) < 9 else sizes[-1]
    if len(sizes) in (6, 7) and against.of_piece(name) and not _RANKED.search(name):
        far = 1.9 * sizes[-2]  # a king's
    is_piece = against.of_piece(name) or _OF_PIECE.fullmatch(name) is not None
    pairs = set[Location]() if computed else _pairs(found)
    table = _of_table(found, pairs)
    rows = {p: p.accesses[0].position for p, e in found.items() if p.accesses and e.number}
    are_ranks = _RANKED.search(name) and {*rows.values()} <= {*range(1, 8)}
    for place, element in list(found.items())[: 1 if table == against.LONG_TABLE else None]:
        in_centipawns = (is_piece and abs(element.number) > 50) or place in pairs
        guess = around(
            _own_name(name, place),
            element.number,
            real=element.real,
            centipawns=in_centipawns and not element.real,
            constant=str(place),
        )
        is_apart = against.APART if abs(element.number) > far else ""
        own = against.to_number(element, computed=computed)
        beyond = against.LAST_RANK if are_ranks and rows.get(place) == 7 else ""
        as_whole = table if table == against.LONG_TABLE else ""
        yield _within(guess, element).opposed(as_whole, is_apart, own, table, beyond)


def _pairs(found: Numbers) -> set[Location]:
    """Those that are one of two, as those for middle game and endgame are.

    So are rows of two in brackets, but for those whose first numbers count up.
    """
    rows = Counter(place.accesses[:-1] for place in found)
    firsts = [e.number for place, e in found.items() if place.accesses[-1:] == (Access(0),)]
    counts = {b - a for a, b in pairwise(firsts)} == {1}
    are_rows = len(rows) > 2 and {*rows.values()} == {2} and not counts
    return {
        place
        for place in found
        for end in place.accesses[-1:]
        if end.position in (0, 1) and (are_rows or end.field)
    }


def _of_table(found: Numbers, pairs: set[Location]) -> str:
    """Why a number of so many is not suggested; a pair counts as one in its row."""
    if len(found) > _MAX_LISTED:
        return against.LONG_TABLE
    numbers = [one.number for one in found.values()]
    values = [number for number in numbers if number]
    if values in _PHASES:
        return against.PHASE
    if values[:3] == [1, 3, 3]:
        return against.COARSE
    if len(numbers) > 4 and {b - a for a, b in pairwise(numbers)} in ({1}, {0, 1}, {-1}, {-1, 0}):
        return against.NUMBERED
    if len(numbers) > 3 and sorted(numbers) == sorted(-number for number in numbers):
        return against.SIGNS  # the moves of a piece
    if len(numbers) > 4 and len({*numbers} - {0}) == 1:
        return against.IN_TABLE
    are_two = len({place.accesses[:1] for place in found}) == 2
    if are_two and len(numbers) > 5 and numbers == numbers[::-1] != sorted(numbers):
        return against.IN_TABLE  # of each colour: one row is the other as its side sees it
    most = _MAX_IN_ROW * (2 if pairs or are_two else 1)
    return against.IN_TABLE if len(found) > most else ""


def with_bounds(files: Mapping[str, SourceFile]) -> dict[str, SourceFile]:
    """With the ranges that calls give, in any file; an index by name counts from 0."""
    told: dict[str, Bounds] = {}
    for bounds in (each for file in files.values() for each in file.bounds):
        places = (_NAMED_INDEX.sub(f"[{n}]", bounds.place) for n in range(_LONGEST_TABLE))
        told.setdefault(next((each for each in places if each not in told), bounds.place), bounds)

    constant = [c for file in files.values() for c in file.constants if c.kind is Kind.CONSTANT]
    fixed = {(one.name, e.number) for one in constant for e in one.numbers()}
    stepped = {n for f in files.values() for n, given in f.definitions if _STEPPED.match(given)}

    def known(one: SourceConstant, item: Element | Opaque) -> Element | Opaque:
        if isinstance(item, Element) and item.maker in stepped and len(item.beside) == 1:
            far = _STEPS // 2 * item.beside[0]
            return replace(item, beside=(item.number - far, item.number + far, *item.beside))
        place = str(item.location)
        names = "::".join((*one.scope[-1:], place)), place, place.rpartition(".")[2]
        found = next((told[name] for name in names if name in told), None)
        if not (found and found.numbers) or isinstance(item, Opaque) or item.beside:
            return item
        is_copy = one.kind is Kind.VARIABLE and (one.name, item.number) in fixed  # for tuning
        is_option, first = found.maker == PRINTED, found.numbers[0]
        if is_copy or (is_option and item.real and isinstance(first, int)):  # in another unit
            return item
        parts = (found.numbers[n:] for n in range(len(found.numbers) - 1))
        around = (p for p in parts if p[0] < p[1] and p[0] <= item.number <= p[1])
        return replace(item, beside=next(around, found.numbers), maker=found.maker)

    def constants(file: SourceFile) -> tuple[SourceConstant, ...]:
        return tuple(replace(c, items=tuple(known(c, e) for e in c.items)) for c in file.constants)

    return {name: replace(file, constants=constants(file)) for name, file in files.items()}


def makers_of(constants: Iterable[SourceConstant]) -> set[str]:
    """The macros, functions and tables by which the author declares ranges.

    Nearly all numbers they are given lie between the next two, and at least three; of those with
    names in quotes more than a half do. An attribute names what is a minimum and a maximum.
    """
    found: dict[str, list[bool]] = {}
    named = set[str]()
    for one in constants:
        for e in one.numbers():
            if len(set(e.beside[:2])) > 1 and not (one.test_only or one.computed):
                holds = _may_be_range(e) and e.beside[0] <= e.number <= e.beside[1]
                found.setdefault(_maker(one, e), []).append(holds)
                named |= {_maker(one, e)} if e.label or not e.maker else set()
    shares = {maker: 0.6 if maker in named else 0.9 for maker in found}
    makers = {one for one, told in found.items() if sum(told) > shares[one] * len(told) - 0.1}
    told = sum(sum(found[maker]) for maker in makers)
    return (makers if told >= _LEAST_TOLD else makers & named) | {ATTRIBUTE}


def is_declared(one: SourceConstant, element: Element, makers: set[str]) -> bool:
    return _may_be_range(element) and _maker(one, element) in makers


def _maker(one: SourceConstant, element: Element) -> str:
    return element.maker or f"{one.path}[]"


def _may_be_range(element: Element) -> bool:
    """Whether the two numbers behind this one could be a minimum and a maximum."""
    return 2 <= len(element.beside) <= 5 and element.beside[0] <= element.beside[1]


def of_declaration(name: str, place: Location, element: Element) -> Suggested:
    """What the author declares in the source."""
    inner = place.accesses and place.accesses[-1].field and element.maker != PRINTED
    outer = replace(place, accesses=place.accesses[:-1]) if inner else place
    called = name_of(element.label) or _own_name(name, outer)
    of_table = place.accesses and not (inner or element.label)
    limit = _LIMIT_OF_OPTION if element.maker == PRINTED else _LIMIT_OF_TYPE
    found = _declared_range(
        called, element.number, element.beside, real=element.real, limit=inf if of_table else limit
    )
    found = replace(found, keys={"constant": str(place), **found.keys})
    fixed = against.LEFT_OUT if element.beside[0] == element.beside[1] else ""
    return _within(found, element).opposed(against.to_declared(called, element.maker), fixed)


def _declared_range(
    name: str, value: Number, beside: Sequence[Number], *, real: bool, limit: float
) -> Suggested:
    """The range that the author gave: a minimum, a maximum, a step if any.

    One of more than `limit` times the value is narrowed.
    """
    low, high, *more = beside
    width = max(high, value) - min(low, value)
    is_coarse = real and not more and width > _STEPS * abs(value) > 0
    is_narrowed = is_coarse or width > limit * (max(abs(value), 5) if value else 1000)
    is_changed = is_narrowed or not low <= value <= high
    keys = {"note": f"its author has {low} to {high}"} if is_changed else {}
    low, high = min(low, value), max(high, value)
    if is_narrowed:
        nearest, farthest = _bounds(value, 0 if real else 1, real=real)
        low, high, more = max(low, nearest), min(high, farthest), []
    least = (high - low) / _FINEST_STEP if real else 0.5
    is_step = more and least <= more[0] <= (high - low) / 2
    usual = (high - low) / _STEPS
    step = (is_step and more[0]) or (min(usual, value / 4) if low >= 0 < value else usual)
    if real and not any(number % 1 for number in (low, high, step)):
        keys["type"] = "float"
    if not real:
        low, high, step = ceil(low), floor(high), max(1, round(step))
    return Suggested(
        name=name, value=value, minimum=low, maximum=high, step=step, declared=True, keys=keys
    ).opposed(against.SWITCH if not real and (*beside[:2],) == (0, 1) else "")


def suggest_options(declarations: Declarations, lines: Iterable[str] = ()) -> tuple[Suggested, ...]:
    """A parameter for every option of a UCI engine; what is not tunable is left out.

    A string whose default is a number is one: OpenBench sends fractions to such options. Where
    `lines` of the engine list some as OpenBench wants them, the other options are comments.
    """
    read = (_OF_OPENBENCH.fullmatch(line) for line in lines)
    listed = {line["name"]: line for line in read if line is not None}
    taken: set[str] = set()
    found = {one.name: _of_option(one, taken) for one in declarations.by_name.values()}
    return tuple(
        _as_listed(one, listed[name])
        if name in listed
        else one.opposed(against.NOT_DECLARED if listed else "")
        for name, one in found.items()
    )


def _as_listed(one: Suggested, line: re.Match[str]) -> Suggested:
    """An option with the range and the step that its author gave."""
    is_real = line["type"] == "float"
    value, low, high, step = (float(line[key]) for key in ("value", "min", "max", "step"))
    read = float if is_real else int
    bounds = (read(low), read(high))
    found = _declared_range(one.name, read(value), bounds, real=is_real, limit=inf)
    keys = {**{key: one.keys[key] for key in one.keys if key == "option"}, "type": line["type"]}
    found = replace(found, keys=keys, step=step if 0 < step <= (high - low) / 2 else found.step)
    return found.opposed(against.to_declared(line["name"]))


def _of_option(option: Declared, taken: set[str]) -> Suggested:
    name = free_name(name_of(option.name) or "option_", (), taken)
    taken.add(name)
    value, low, high = option.default or 0, option.low or 0, option.high or 0
    if option.type == "string" and option.default is not None:
        found = around(name, value, real=isinstance(value, float))
        reason = "" if value else against.ZERO
    else:
        found = _declared_range(name, value, (low, high), real=False, limit=_LIMIT_OF_OPTION)
        reason = "" if low <= value <= high > low else against.NO_RANGE
        reason = reason if option.type == "spin" else against.OTHER_TYPE
    keys = {} if name == option.name else {"option": option.name}
    is_size = against.to_name(re.sub(r"\W+", "_", option.name))
    return replace(found, keys={**keys, **found.keys}).opposed(
        reason, against.to_declared(option.name), against.PERHAPS_SIZE if is_size else ""
    )
