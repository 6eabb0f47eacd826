"""Reading and rewriting C and C++: what is found, what is refused, and what stays as it is."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from spsa.builds.sources import ConstantRefused, element, elements, parse, rewrite
from spsa.config import starter_params
from spsa.config.suggestions import select
from spsa.core.params import Location

SOURCE = """\
#ifndef PARAMS_H
#define PARAMS_H
#define RFP_MARGIN 80  // "75" once; /* 70 */
#define NEGATIVE (-5)
#define KNIGHT_PAIR S(82, -144)
#define DOUBLE(x) (2 * (x))
#define DERIVED (RFP_MARGIN * 2)
#define QS_DEPTH (-4 * ONE_PLY)
constexpr int Razor = 1'250, Probcut = 0x1F;
static const unsigned char Small = 200u;
inline constexpr double Rate = 0.75f;
std::int16_t Loose = -33;
TUNE(SetRange(0, 9), Loose);
TUNE_INT(lmr_base, 77, 0, 200);
Tunable extension("extension", 12, 0, 40);
const Score Bishop = make_score(24, 41);
const int Table[2][3] = {{1, 2, 3}, {4, -5, 6}};
constexpr std::array<int, 2> Steps = {7, 9};
static const Score Passed[] = { S(1, 2), S(3, 4) };
const Margins margins = { .razor = 250, .fut = { 1, 2 } };
int places[3] = { [2] = 5, [0] = 1 };
bool flag = 1;
char *text = "constexpr int InText = 5;";
// constexpr int InComment = 5;
namespace search { constexpr int Depth = 3; enum Value : int { DRAW = 0, PawnMg = 126 }; }
namespace eval { constexpr int Depth = 4; }
struct Options { int overhead = 30; static constexpr int kMul = static_cast<int>(25); };
#ifdef FAST
constexpr int Split = 1;
#else
constexpr int Split = 2;
#endif
SOME_MACRO_WITHOUT_SEMICOLON(x)
int futility(int depth) { static const int slope = 9; return 165 * depth + (depth > 3 ? 2 : 0); }
int Engine::reduction(int d) { const int base = d * 7; return base; }
constexpr int tempo() { return 18; }
typedef short Value16;
const Value16 Typed = 5;
#endif
"""
FILE = parse(SOURCE, "params.h")

PLACES = {
    "RFP_MARGIN": (80, None),
    "NEGATIVE": (-5, None),
    "KNIGHT_PAIR.1": (-144, None),
    "QS_DEPTH": (-4, None),
    "Razor": (1250, "int"),
    "Probcut": (31, "int"),
    "Small": (200, "unsigned"),
    "Rate": (0.75, "float"),
    "Loose": (-33, "int16_t"),
    "lmr_base": (77, None),
    "extension": (12, None),
    "Bishop.0": (24, None),
    "Table[1][1]": (-5, "int"),
    "Steps[1]": (9, "int"),
    "Passed[1].0": (3, None),
    "margins.razor": (250, None),
    "margins.fut[1]": (2, None),
    "search::Depth": (3, "int"),
    "eval::Depth": (4, "int"),
    "PawnMg": (126, None),
    "overhead": (30, "int"),
    "Options::kMul": (25, "int"),
    "FAST::Split": (1, "int"),
    "not_FAST::Split": (2, "int"),
    "futility::slope": (9, "int"),
    "futility.0": (165, None),
    "futility.2": (2, None),
    "Engine::reduction::base.0": (7, None),
    "tempo": (18, "int"),
    "Typed": (5, "short"),
}


@pytest.mark.parametrize(("place", "found"), PLACES.items(), ids=PLACES)
def test_numbers_are_found_with_their_types(place, found):
    there = element(FILE, Location.parse(place))
    assert (there.number, there.type) == found
    raw = SOURCE.encode()[there.start : there.end].decode()
    assert raw == there.text


@pytest.mark.parametrize("place", PLACES)
def test_a_number_is_rewritten_and_nothing_else(place):
    location = Location.parse(place)
    old = element(FILE, location)
    number = old.number + (0.125 if old.real else 3)
    after = rewrite(SOURCE, {location: number}, "params.h")
    assert element(parse(after, "params.h"), location).number == number
    before, behind = SOURCE.encode()[: old.start], SOURCE.encode()[old.end :]
    assert after.encode().startswith(before)
    assert after.encode().endswith(behind)


@pytest.mark.parametrize(
    ("place", "number", "line"),
    [
        ("Razor", 2500, "constexpr int Razor = 2'500, Probcut = 0x1F;"),
        ("Small", 7, "static const unsigned char Small = 7u;"),
        ("Rate", 0.5, "inline constexpr double Rate = 0.5f;"),
        ("NEGATIVE", 6, "#define NEGATIVE (6)"),
        ("RFP_MARGIN", -8, '#define RFP_MARGIN -8  // "75" once; /* 70 */'),
    ],
)
def test_a_number_keeps_its_style(place, number, line):
    assert line in rewrite(SOURCE, {Location.parse(place): number}, "params.h").split("\n")


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("Razr", "there is no constant Razr in params.h; did you mean Razor?"),
        ("InText", "there is no constant"),
        ("InComment", "there is no constant"),
        ("DOUBLE", "there is no constant"),
        ("DERIVED", "it follows by itself: tune RFP_MARGIN"),
        ("Depth", "write search::Depth or eval::Depth"),
        ("Split", "write crate::FAST::Split or crate::not_FAST::Split"),
        ("flag", "a bool"),
        ("places[0]", "a list with places out of order"),
        (
            "Table",
            "has 6 numbers; name one, such as Table[0][0], Table[0][1], Table[0][2], ...",
        ),
        ("Steps[2]", "is not among the 2 numbers of Steps; name one, such as Steps[0], Steps[1]"),
    ],
)
def test_what_cannot_be_rewritten_is_refused_with_a_remedy(place, said):
    with pytest.raises(ConstantRefused) as refused:
        element(FILE, Location.parse(place))
    assert said in str(refused.value)


def test_what_a_type_cannot_hold_is_refused():
    with pytest.raises(ConstantRefused, match="keep min and max within -32768 to 32767"):
        element(FILE, Location.parse("Loose")).check(40000)


def test_octal_and_hexadecimal_numbers_are_read_as_the_compiler_reads_them():
    found = parse("int a = 017; int b = 0XFFu; int c = 0b101; float d = .5f; long e = 10L;", "a.c")
    numbers = {c.name: element(found, Location(c.name)).number for c in found.constants}
    assert numbers == {"a": 15, "b": 255, "c": 5, "d": 0.5, "e": 10}


def test_a_whole_table_is_found_in_the_order_of_the_text():
    found = elements(FILE, Location.parse("Table"))
    assert [str(place) for place in found][:2] == ["Table[0][0]", "Table[0][1]"]
    assert [one.number for one in found.values()] == [1, 2, 3, 4, -5, 6]


def test_init_proposes_what_an_author_would_tune():
    chosen = select({"src/eval.h": SOURCE, "src/uci.cpp": "int port = 8080;"})
    active = {
        one.name: one for each in chosen.suggestions.values() for one in each if not one.reason
    }
    assert {
        "rfp_margin",
        "qs_depth",
        "razor",
        "bishop_0",
        "bishop_1",
        "lmr_base",
        "extension",
    } <= set(active)
    assert {"knight_pair_0", "knight_pair_1", "pawn_mg", "table_1_1", "table_1_2"} <= set(active)
    assert not {"port", "derived", "flag"} & set(active)
    assert active["lmr_base"].keys == {"constant": "lmr_base"}
    assert "[bishop_0]" in starter_params(chosen.suggestions)


MARKS = ("{", "}", "(", ")", "[", "]", "#if X\n", "#endif\n", '"', "/*", "\n", "é")
TOKENS = [*SOURCE.split(), *MARKS]


@settings(max_examples=60, deadline=None)
@example(["PARAMS_H", "PARAMS_H", "2,", "=", "200u;"], "a.c")
@given(st.lists(st.sampled_from(TOKENS), max_size=60), st.sampled_from(["a.c", "a.h", "a.cpp"]))
def test_of_any_text_every_number_that_is_found_can_be_rewritten(tokens, name):
    text = " ".join(tokens)
    file = parse(text, name)
    select({name: text})
    for one in file.constants[:5]:
        place = Location.parse(one.path.removeprefix("crate::"))
        try:
            numbers = elements(file, place)
        except ConstantRefused:
            continue
        wanted = {at: number.number + 1 for at, number in numbers.items()}
        after = elements(parse(rewrite(text, wanted, name), name), place)
        assert {at: number.number for at, number in after.items()} == wanted
