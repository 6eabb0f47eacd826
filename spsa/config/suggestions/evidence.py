"""What speaks for a number: search or evaluation reads it, its name, and what stands beside it."""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import spsa.config.suggestions.objections as against
from spsa.builds.sources.constant import Kind, SourceConstant, SourceFile

_NAME = re.compile(r"[^\W\d]\w*")
_READ = re.compile(r"[^\W\d]\w*\b(?!\s*=(?![=>]))")
"""A name, but not one that is given a value."""
_WRITTEN = re.compile(r"\b(\w{3,})(?:\s*\[[^\]\n]*\])*\s*(?:[-+*/|&^]|<<|>>)?=(?![=>])")
_STRENGTH = re.compile(
    r"(?i)\w*(negamax|alpha_?beta|q_?search|quiesce(?!nt))\w*|pvs|think|iterat(e|ive_?deepening)|aspirat\w*"
    r"|([a-z]{2,6}_?)?search(_?(root|(non_?)?pv|zero|zw|main|node|moves?|position|iterat\w*|best_?move"
    r"|internal|inner|helper|impl|rec\w*|worker|full|depth))?|(\w*_)?eval(uate|uation)?"
    r"|(static|lazy)_?eval\w*|eval\w*_?(position|board|all|static|internal|pos|pieces?|pawns?)"
)
"""The functions with which search and evaluation begin."""
_ORDERING = re.compile(
    r"(?i)_?(score|order|sort|rate|select|pick|next)_?(moves?|captures?|quiets?)\w*|\w*move_?order\w*"
)
"""The functions that say which move is tried first."""
_COMPARED = re.compile(r"[=!]=\s*(?:\w+::)*\w+|\b(\w+)\[[^][]*\]\s*\*\s*\d+\s*-\s*\1\[[^][]*\]")
"""What only an order asks for: `== KILLER`, and `value[victim] * 16 - value[attacker]`."""

_SUM = re.compile(r"\b(\w+)\s*[-+]=(?!=)([^;{}]*);")
"""psqt += table[piece][square];"""

_CLAUSE = re.compile(r"[;{}]|&&|\|\|")
_CONDITION = re.compile(r"\((?:[^()]|\([^()]*\))*+\)(?=\s*\?)")
_BLOCK = r"\{(?:[^{}]++|\{(?:[^{}]++|\{[^{}]*+\})*+\})*+\}"
_OF_NETWORK = re.compile(rf"\bif\b([^{{}};<>=!]*)(\breturn\b[^{{}};]*;|{_BLOCK})")
"""if (USE_NNUE && options.net) { ... return score; }"""
_NEVER_RUN = (
    re.compile(rf"(?<=[;{{}}])(\s*return\b[^;{{}}]*;)(?:[^{{}}#:?]++|::|\?[^;{{}}#]*+|{_BLOCK})*+"),
    re.compile(
        rf"(?i)(\bif)\s*\([^{{}};!]*(?:chess_?960|\bfrc)[^{{}};!]*\)\s*(?:{_BLOCK}|[^{{}};]*;)"
    ),
)
"""What follows a return to the end of its block, a label or a directive; what Chess960 asks for."""
_IN_COMMENT = re.compile(r"(?m)^[ \t]*//+[ \t]*#[ \t]*define[ \t]+(?!\w*(?:TUN[EI]|SPSA))(\w+)")
_DEFINED = re.compile(r"(?m)^[ \t]*#[ \t]*define[ \t]+(\w+)")
_ZERO = re.compile(r"(?m)^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+0[ \t]*$")
_GUARDED = re.compile(
    r"(?m)^[ \t]*#[ \t]*if(?P<asks>(?:def)?[ \t]+(?:defined[ \t(]+)?)(?P<name>\w+)"
    r"[ \t)]*(?:&&[^\n|]*)?\n(?:(?![ \t]*#[ \t]*(?:if|el|end))[^\n]*\n)*+"
)
"""The lines behind #ifdef and #if, up to the next directive."""
_OF_OTHERS = re.compile(r"(?i)(.*/)?(uci|options?|setup|protocol|tun(er?|ing)|texel)\w*\.\w+")
"""Files of the protocol and of a tuner: they set what search reads, and it does not call them."""
_RESULT = re.compile(r"\breturn\b|=>|^[^=(]*$")
"""A clause that may be what its function is worth."""
_SCORE = re.compile(
    r"(?i)\w*(score|point|power|eval|value|alpha|beta|depth|bonus|penal|material|mobil|margin|reduc|safety|danger"
    r"|hist|delta|divis|exten|weight|threat|psq|opening|(end|mid)game|middle|window|[a-z](?-i:Mg|Eg|MG|EG|Val))\w*"
    r"|mg|eg|r|val?|ply|lmr|\w*_(mg|eg)|[me]g_\w*|see\w*"
)
"""Names of scores and depths, and of what is added to them."""

_SURE = (
    r"ASP(IRATION)?|BACKWARDS?|BLOCKADE|BONUS(ES)?|CONNECTED|DOUBLED|EXTENSION|FP|FUTILITY|HANGING|IID|IIR"
    r"|ISOLATED|LEVER|LM[PR]|MALUS|F?MARGINS?|MATERIAL|MOBILIT(Y|IES)|MULTICUT|NMP|OUTPOSTS?|PASSED|PASSERS?"
    r"|PEN|PENALT(Y|IES)|PHALANX|PROBCUT|PRUN(E|ING)|P?VAL(UES?)?|RAZOR(ING)?|REDUC(E|TIONS?)|RFP|SHELTER"
    r"|SINGULAR|STORM|TEMPO|THREATS?|TRAPPED|UNSTOPPABLE|WEIGHTS?"
)
"""Words that stand for a strength, whatever is beside them."""
_CLEAR = (
    r"BIAS|COEFF|CONTEMPT|CONTINUATION|COUNTERMOVE|DANGER|DEFEN[CS]E|ENDGAME|EG|EVAL(UATION)?|HISTORIES|HISTORY"
    r"|IMPROVING|KILLERS?|MG|MID(GAME)?|MUL(TIPLIER)?|MVV|PHASE|PROTECT(ION|OR)|PST|PSQT?|RATIO|SAFE(TY)?|SCORES?"
    r"|SEE|SEMI|SHIELD|WEAK(NESS)?|WINDOW|WORTH"
)
"""Words that stand for search and evaluation, where a score or a depth is beside them."""
_OF_BOARD = (
    r"\w*(ATTACK|BISHOP|CAPTURE|CENT(ER|RE)|CHECK|CONNECT|DELTA|DISTANCE|DIVISOR|ENEM|EXTEN|HIST|KING|KNIGHT"
    r"|LIMIT|MAJOR|MALUS|MATER|MINOR|MOB|MODIF|NULL|OPENING|OUTPOST|PASS(?!ANT)|PAWN|PENAL|PHALANX|PROMO|PRUN"
    r"|QUEEN|RAZOR|ROOK|SCAL|SHIELD|SPACE|THREAT|THRES|TROPISM|UNDEFENDED|WEIGHT)\w*|(FUT|ISO|PIN|RED|VAL)\w*"
    r"|ADJ(USTMENT)?|BASE|BATTERY|CASTLING|DECAY|DEPTH|DISCOUNT|EXT|DIV(ISOR|ISION)?|FACTOR|GAIN|HANG|HOLE"
    r"|KS|LAZY|LOOSE|OFFSET|OPEN|ORDERING|PAIR|PIECES?|R|RULE|SE|SQUARES?|TABLES?"
)
"""Words that stand for the board or a program as well: only in files of strength."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The names that are read (none: not known), beside a score, and only by the order of moves.

    `whole` is the text of all files in small letters, without underscores: a macro may make
    `rfp_margin()` of RFP_MARGIN.
    """

    read: set[str]
    weighed: set[str]
    ordering: set[str]
    whole: str

    def unread(self, one: SourceConstant) -> str:
        """What speaks against a number with a declared range: its name stands nowhere else."""
        name = _squeezed(one.name)
        told = re.findall(rf"&{name}, *-?[\d.]", self.whole)  # {"margin", &margin, 80, 40, 120}
        is_alone = one.single is not None and self.whole.count(name) - len(told) == 1
        return against.UNREAD if self.read and is_alone else ""

    def lacks(self, one: SourceConstant, name: str, rank: int) -> str:
        """What a number lacks whose parameter is called so, in a file of that rank."""
        places = [e.location.accesses for e in one.numbers()]
        own = {one.name, *(str(access.position) for each in places for access in each)}
        is_told, parts = one.kind is Kind.MACRO, against.words("_".join((*one.scope, name)))
        if self.read and not is_told and self.read.isdisjoint(own):
            return against.UNREAD
        if not is_told and one.name in self.ordering:
            return against.ORDERED
        is_pair = any(end.field and end.position == 1 for each in places for end in each[-1:])
        used = is_pair or is_told or not self.read or not self.weighed.isdisjoint(own)
        clear = f"{_SURE}|{_CLEAR}|{_OF_BOARD}" if rank > 0 else f"{_SURE}|{_CLEAR}"
        speaks = against.holds(clear if used else _SURE, parts) or (is_told and rank > 0)
        return "" if speaks and rank >= 0 else against.UNNAMED if rank > 0 else against.UNRELATED


def evidence_of(files: Collection[SourceFile]) -> Evidence:
    """From all that search and evaluation call, and from what fills what they read."""
    plain = [against.NO_CODE.sub(" ", file.text) for file in files]
    texts: dict[str, list[str]] = {}
    ordering, others = set[str](), set[str]()
    for name, text in _running(files, plain):
        is_order = _ORDERING.fullmatch(name)
        asked = text if is_order else _COMPARED.sub("", text)
        (ordering if is_order else others).update({*_NAME.findall(asked)} - {name})
        texts.setdefault(name, []).append(text)
    weighed = {name for text in plain for name in _weighed(text)}
    found = Evidence(set(), weighed, ordering - others, _squeezed("\n".join(plain)))
    outer = {n for f in files if _OF_OTHERS.fullmatch(f.name) for n, _ in f.definitions} | {"main"}
    begin = set(filter(_STRENGTH.fullmatch, texts))
    sums: list[tuple[str, set[str]]] = []
    evaluations = {name for name in begin if "eval" in name.lower()}
    outside = {""} & texts.keys() if begin else set[str]()
    _follow(found, sums, texts, (begin - evaluations) | outside)
    if evaluations <= texts.keys():  # no search that is known by its name calls one of them
        _follow(found, sums, texts, evaluations)
    for _ in range(2):  # what search reads is filled by functions from what others have filled
        own = texts.keys() - outer
        filling = {name for name in own if any(_writes(t, found.read) for t in texts[name])}
        _follow(found, sums, texts, filling)
    return found


def _follow(
    found: Evidence, sums: list[tuple[str, set[str]]], texts: dict[str, list[str]], names: set[str]
) -> None:
    """Read these functions and all that they call, and take them out of `texts`.

    What is added to one of `sums`, but in search and evaluation, is read if the sum is.
    """
    while names:
        reached = [(name, text) for name in names & texts.keys() for text in texts.pop(name)]
        found.weighed.update(name for each in reached for name in _results(*each))
        own = " ".join(text for name, text in reached if _STRENGTH.fullmatch(name))
        others = " ".join(text for name, text in reached if not _STRENGTH.fullmatch(name))
        sums += ((total, {*_READ.findall(more)}) for total, more in _SUM.findall(others))
        names = {*_READ.findall(own), *_READ.findall(_SUM.sub("", others))}
        known = found.read | names
        names = names.union(*(more for total, more in sums if total in known)) - found.read
        found.read.update(names)


def _squeezed(text: str) -> str:
    return text.lower().replace("_", "")


def _turns_network_on(one: SourceConstant) -> bool:
    """USE_NNUE = 1 or true."""
    on = one.single is not None and one.single.text in ("1", "true")
    return on and "NNUE" in against.words(one.name)


def _running(files: Collection[SourceFile], plain: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The functions and the values outside of them, each the part that can run.

    `plain` are the texts of the files without comments.
    """
    live = {name for text in plain for name in _DEFINED.findall(text)}
    settled = _Settled(
        networks={one.name for file in files for one in file.constants if _turns_network_on(one)},
        missing={name for file in files for name in _IN_COMMENT.findall(file.text)} - live,
        zero={name for text in plain for name in _ZERO.findall(text)},
    )
    for name, text in (definition for file in files for definition in file.definitions):
        yield name, settled.running(against.NO_CODE.sub(" ", text))


class _Settled(NamedTuple):
    """What is settled before an engine runs: its networks that are on, its defines that are off."""

    networks: set[str]
    missing: set[str]
    zero: set[str]

    def running(self, text: str) -> str:
        """The part of a function that can run."""
        for never in _NEVER_RUN:
            text = never.sub(r"\1", text)
        return self._until_network(_GUARDED.sub(self._guarded, text))

    def _guarded(self, lines: re.Match[str]) -> str:
        off = self.missing if "def" in lines["asks"] else self.missing | self.zero
        return "" if lines["name"] in off else lines[0]

    def _until_network(self, text: str) -> str:
        """A function without what stands behind the return of a network's score."""
        for found in _OF_NETWORK.finditer(text):
            if "return" in found[2] and not self.networks.isdisjoint(_NAME.findall(found[1])):
                return text[: found.end()]
        return text


def _weighed(text: str) -> Iterator[str]:
    """The names beside a score or a depth.

    In `score += (a && b) ? PAIR : 0` the condition does not part PAIR from the score.
    """
    for clause in _CLAUSE.split(_CONDITION.sub("", text)):
        names = _NAME.findall(clause)
        scores = {name for name in names if _SCORE.fullmatch(name)}
        yield from (name for name in names if scores - {name})


def _results(function: str, text: str) -> Iterator[str]:
    """The names in what a function results in whose own name is a score's."""
    if _SCORE.fullmatch(function):
        for clause in filter(_RESULT.search, _CLAUSE.split(text)):
            yield from _NAME.findall(clause)


def _writes(text: str, names: set[str]) -> bool:
    """Whether a function assigns to one of the names, which it does not declare itself."""
    written = names.intersection(_WRITTEN.findall(text))
    firsts = (re.search(rf"(->|\S|^)\s*\b{name}\b", text) for name in written)
    return any(first and not re.match(r"[\w>*&\]]", first[1]) for first in firsts)
