"""What `init` suggests for an engine's constants, and that it can be started from as it stands."""

import re
import tomllib
from pathlib import Path

import pytest

from spsa.builds.sources.reading import parse
from spsa.builds.sources.rewriting import element, elements, render
from spsa.config import load_config
from spsa.config.source import check_against_source, other_values
from spsa.config.space import load_space
from spsa.config.starter import read_source, setup_of_source, starter_config, starter_params
from spsa.config.suggestions import Suggested, select
from spsa.core.params import Location
from spsa.core.params.parameter import assignments
from spsa.planning.plan_inputs import Shape

ROOT = Path(__file__).parents[2]
SHAPES = ROOT / "tests" / "fixtures" / "rust" / "shapes.rs"
SOURCES = [
    SHAPES,
    ROOT / "engine" / "src" / "engine_constants.rs",
    ROOT / "tests" / "fixtures" / "rust" / "hostile.rs",
]


def suggest(text: str) -> tuple[Suggested, ...]:
    return select({"eval.rs": text}).suggestions["eval.rs"]


def suggested(text: str) -> dict[str, Suggested]:
    return {one.name: one for one in suggest(text)}


def suggest_in(path: str, text: str) -> dict[str, Suggested]:
    return {one.name: one for one in select({path: text}).suggestions[path]}


def one(declaration: str) -> tuple[float, float, float, float]:
    (found,) = suggest(declaration)
    return found.value, found.minimum, found.maximum, found.step


@pytest.mark.parametrize(
    ("declaration", "numbers"),
    [
        ("const A: i32 = 200;", (200, 100, 400, 18)),
        ("const A: i32 = -4000;", (-4000, -8000, -2000, 360)),
        ("const A: u8 = 3;", (3, 1, 6, 1)),
        ("const A: u8 = 1;", (1, 0, 3, 1)),
        ("const A: f64 = 0.5;", (0.5, 0.25, 1.0, 0.045)),
    ],
)
def test_range_and_step_follow_the_value(declaration, numbers):
    assert one(declaration) == pytest.approx(numbers)


@pytest.mark.parametrize(
    ("declaration", "reason"),
    [
        ("const HASH_MB: usize = 64;", "a size, a limit"),
        ("const MAX_DEPTH: u8 = 100;", "a size, a limit"),
        ("const TICK_MILLIS: u16 = 500;", "the clock"),
        ("const ROWS: usize = 5; static X: [[u8; 2]; ROWS] = rows();", "the length"),
        ("const PATTERN: u32 = 0x1f;", "a bit pattern"),
        ("const BETA_MAX_DEPTH: u8 = 6;", ""),
        ("const MATE_KILLER_BONUS: i32 = 900;", ""),
        ("const A: i32 = 0;", "switched off"),
        ("const A: u64 = 4_294_967_295;", "limit"),
        ("const MARGIN: i32 = 64;", ""),
        ("const MAX_LMP_DEPTH: u8 = 8;", ""),
        ("const FULL_PHASE: i32 = 24;", "the phase of the game"),
        ("const HISTORY_LIMIT: i32 = 16_384;", "large and round"),
        ("const ASPIRATION_WINDOW_SIZE: i32 = 11;", ""),
        ("const lmr_first_move_index: usize = 3;", ""),
        ("const RAZOR_DEPTH: Depth = 3 * ONE_PLY;", ""),
        ("const VOTE_OFFSET: i32 = 11;", "threads"),
    ],
)
def test_what_is_hardly_meant_to_be_tuned_has_a_reason(declaration, reason):
    (found,) = suggest(declaration)
    assert reason in found.reason
    assert bool(reason) == bool(found.reason)


def test_what_cannot_be_rewritten_is_not_suggested():
    text = (
        "const A: bool = true; const B: i32 = C + 1; const Z: [u8; 9] = [0; 9]; const L: u8 = f();"
    )
    assert suggested(text) == {}
    assert suggested("#[cfg(test)] mod t { const A: i32 = 5; }") == {}


def test_short_arrays_are_suggested_number_by_number_and_longer_ones_are_comments():
    text = "const LMP: [u8; 4] = [0, 5, 11, 8];"
    text += f"const ROWS: [[i8; 8]; 2] = [{[*range(3, 11)]}, {[*range(4, 12)]}];"
    text += f"const CURVE: [i32; 9] = {[-15, 3, 12, 20, 25, 28, 30, 31, 31]};"
    text += f"const SQUARES: [i32; 64] = {[*range(5, 69)]};"
    found = suggested(text)
    active = [name for name, one in found.items() if not one.reason]
    assert active[:3] == ["lmp_1", "lmp_2", "lmp_3"] and len(active) == 3 + 16
    assert found["lmp_0"].left_out
    comments = {name for name, one in found.items() if one.reason and not one.left_out}
    assert comments == {f"curve_{i}" for i in range(9)}
    assert found["squares_0"].left_out and "squares_1" not in found


def test_a_short_array_of_pairs_is_suggested_by_its_numbers():
    found = select({"eval.h": "const int Passers[] = {S(0, 0), S(5, 9), S(-8, 70), S(40, 99)};"})
    active = [one.name for one in found.suggestions["eval.h"] if not one.reason]
    assert active == [f"passers_{i}_{j}" for i in (1, 2, 3) for j in (0, 1)]


def test_the_file_tells_of_what_a_number_is():
    chosen = select(
        {
            "src/main.cpp": "const int passers[] = {12, 45, 90}; const int verbose = 3;",
            "src/search.h": "static const int SEEQuietMargin = -64;",
            "src/timeman.h": "constexpr double StabilityFactor = 1.5;",
            "src/tuner.h": "constexpr double LearningRate = 0.1;",
        }
    )
    told = {one.name: one.reason for each in chosen.suggestions.values() for one in each}
    assert told.pop("stability_factor").startswith("about the clock")
    unrelated = {name for name, reason in told.items() if reason}
    assert unrelated == {"verbose", "learning_rate"}
    assert told.keys() - unrelated == {"see_quiet_margin", "passers_0", "passers_1", "passers_2"}


RUST_RANGES = """\
tunable! {
    rfp_margin = 80, 40, 120, 8;
    nmp_base: i32 = 4, 2..=7;
    asp_width { value: 30, min: 10, max: 60 }
    lmr, 0.75, 0.25, 1.5;
}
make!(delta, -20, -60, 0, 5);
rows! { (razor, 300, 100, 600), (probcut, 170, 80, 300) }
const LMP: Tunable = Tunable::new("LMP Base", 3, 1, 9);
static SEE: Tunable = Tunable::new("see-margin", -90, -200, 0);
const IIR: Param = Param { name: "iir", default: 4, min: 2, max: 8, step: 1 };
#[uci(min = 1, max = 8, step = 1)]
const SE_DEPTH: u8 = 6;
const TABLE: [(&str, i32, i32, i32); 2] = [("hist_max", 1500, 500, 9000), ("hist_mul", 30, 1, 99)];
#[uci(min = 10, max = 50)]
const TOO_SMALL: i32 = 5;
const HASH: Tunable = Tunable::new("Hash", 16, 1, 1024);
const WINDOW: i32 = 25;
const POINT: Point = point(3, 1, 9);
const OTHER: Point = point(3, 9, 1);
"""
C_RANGES = """\
TUNE_PARAM(rfpMargin, 75, 40, 200, 10, 0.002)
TUNE_PARAM(nmpBase, 4, 2, 8, 0.5, 0.002)
inline Tunable<int> razor(300, 100, 600, 25);
Tunable<int> delta = Tunable<int>(-20, -60, 0);
TunableParam lmr{0.75, 0.25, 1.5};
TunableParam asp{30, 10, 60};
Option options[] = {{"hist_max", 1500, 500, 9000}, {"Threads", 1, 1, 512}};
static const Param iir = {.value = 4, .min = 2, .max = 8};
const int WINDOW = 25;
const int STAIRS[] = {3, 1, 9};
"""


@pytest.mark.parametrize(
    ("name", "text", "ranges"),
    [
        (
            "src/uci.rs",
            RUST_RANGES,
            {
                "rfp_margin": (80, 40, 120, 8, "rfp_margin"),
                "nmp_base": (4, 2, 7, 1, "nmp_base"),
                "asp_width": (30, 10, 60, 2, "asp_width"),
                "lmr": (0.75, 0.25, 1.5, 0.0625, "lmr"),
                "delta": (-20, -60, 0, 5, "delta"),
                "razor": (300, 100, 600, 25, "razor"),
                "probcut": (170, 80, 300, 11, "probcut"),
                "lmp_base": (3, 1, 9, 1, "LMP"),
                "see_margin": (-90, -200, 0, 10, "SEE"),
                "iir": (4, 2, 8, 1, "IIR.default"),
                "se_depth": (6, 1, 8, 1, None),
                "hist_max": (1500, 500, 9000, 425, "TABLE[0]"),
                "hist_mul": (30, 1, 99, 5, "TABLE[1]"),
            },
        ),
        (
            "src/uci.h",
            C_RANGES,
            {
                "rfp_margin": (75, 40, 200, 10, "rfpMargin"),
                "nmp_base": (4, 2, 8, 1, "nmpBase"),
                "razor": (300, 100, 600, 25, "razor.0"),
                "delta": (-20, -60, 0, 3, "delta.0"),
                "lmr": (0.75, 0.25, 1.5, 0.0625, "lmr.0"),
                "asp": (30, 10, 60, 2, "asp.0"),
                "hist_max": (1500, 500, 9000, 425, "options[0]"),
                "iir": (4, 2, 8, 1, "iir.value"),
            },
        ),
    ],
)
def test_the_authors_own_ranges_go_before_all_guesses(tmp_path, name, text, ranges):
    """In a file of any name; all other numbers are no more than comments."""
    chosen = select({name: text}).suggestions
    (tmp_path / "params.toml").write_text(starter_params(chosen), encoding="utf-8")
    assert check_against_source(load_space(tmp_path / "params.toml"), {name: text}, name) == ()
    found = [one for one in chosen[name] if not one.reason]
    assert {
        one.name: (one.value, one.minimum, one.maximum, one.step, one.keys.get("constant"))
        for one in found
    } == ranges


def test_a_range_that_does_not_hold_its_value_is_as_wide_as_both_need():
    rows = ", ".join(f'("p{i}", {n}, 10, 50, 2)' for i, n in enumerate([20] * 10 + [5]))
    text = f"const TABLE: [(&str, i32, i32, i32, i32); 11] = [{rows}];"
    *_, last = select({"src/search.rs": text}).suggestions["src/search.rs"]
    assert (last.value, last.minimum, last.maximum, last.reason) == (5, 5, 50, "")
    assert last.keys["note"] == "its author has 10 to 50"


RANGES_ELSEWHERE = """\
class History { static constexpr int scale = 40; };
TUNED float slope = -1.805;
TUNED std::array<int, 3> margin = { 0, 150, 300 };
TUNED int tt_no_age = 7;
const int other = 9;
"""
CALLS = """\
void options() {
    add(slope, -2.5, -0.5); add(margin[ONE], 0, 90); add(margin[TWO], 100, 400);
    add(margin[2], 200, 800); add(tt_no_age, 2, 20); add(History::scale, 20, 60);
    clamp(other, 0, 3);
}
"""


def test_ranges_may_stand_apart_from_the_constants():
    chosen = select({"src/tune.h": RANGES_ELSEWHERE, "src/uci.cpp": CALLS}).suggestions
    ranges = {
        one.keys.get("constant", one.name): (one.value, one.minimum, one.maximum)
        for one in chosen["src/tune.h"]
        if not one.reason
    }
    assert ranges == {
        "slope": (-1.805, -2.5, -0.5),
        "margin[0]": (0, 0, 90),
        "margin[1]": (150, 100, 400),
        "margin[2]": (300, 200, 800),
        "tt_no_age": (7, 2, 20),
        "History::scale": (40, 20, 60),
    }


def test_a_range_behind_a_table_is_of_each_of_its_numbers():
    text = (
        "tunable! { factors = [-300, 4, 17], -1024..=1024; base = 40, 20..=80; top = 9, 4..=18; }"
    )
    found = select({"src/params.rs": text}).suggestions["src/params.rs"]
    assert [(one.value, one.minimum, one.maximum) for one in found[:3]] == [
        (value, -1024, 1024) for value in (-300, 4, 17)
    ]


def test_numbers_that_only_look_like_a_range_declare_none():
    text = "constexpr std::array Fit = {86.5, -259.8, 205.3, 127.5}; Entry empty(0, -100, 1);"
    text += "const int Margin = 80;"
    assert not any(one.declared for one in suggest_in("src/eval.h", text).values())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("TUNE({}, 20, 10, 50, false);\n", "leaves it out"),
        ("TUNE_DISABLED({}, 20, 10, 50, true);\n", "leaves it out"),
        ("TUNE_TM({}, 20, 10, 50, true);\n", "about the clock"),
    ],
)
def test_what_its_author_does_not_tune_is_a_comment(text, reason):
    rows = "".join(f"TUNE(p{i}, 20, 10, 50, true);\n" for i in range(3))
    named = "int sum() { return p0 + p1 + p2 + Other; }\n"
    found = suggest_in("src/search.h", rows + text.format("Other") + named)
    assert reason in found["other"].reason and not found["other"].left_out
    assert not any(found[f"p{i}"].reason for i in range(3))


def test_a_name_that_occurs_nowhere_else_changes_nothing():
    text = "const MARGIN: i32 = 80; const OLD: i32 = 70; tune! { LMR = 3; } // OLD\n"
    text += "".join(
        f"const A{i}: i32 = {i + 9}; fn f{i}() -> i32 {{ A{i} + f{i}() }}" for i in range(3)
    )
    found = suggest_in("src/search.rs", text + "fn f() -> i32 { MARGIN + lmr() + f() }")
    assert {name for name, one in found.items() if one.reason} == {"old"}


def test_brackets_in_comments_are_no_indexes():
    text = "const MARGIN: i32 = 80; const ROWS: usize = 7; // [MARGIN]\n"
    text += "fn f(t: &T) -> i32 { t[self::ROWS] + MARGIN + (1 << OFF) } const OFF: u8 = 6;"
    found = suggest_in("src/search.rs", text)
    assert {name for name, one in found.items() if one.reason} == {"rows", "off"}


def test_the_files_of_init_have_the_numbers_of_the_source(tmp_path):
    """Each by a name that is found, with its digits, whatever types other files declare."""
    numbers = (1.3983208308938992, -1.805, 0.7001)
    texts = {
        "src/types.h": "typedef int four __attribute__((vector_size(16)));",
        "src/eval.h": "four Open = {28, 41, 37, 12}; Score Tempo = 3; double Scale = 192.5f;"
        + "".join(f"const double Rate{i} = {number};" for i, number in enumerate(numbers)),
        "src/uci.cpp": "int f() { return a(Open, Tempo, Rate0, Rate1, Rate2); add(Scale, 80, 320);"
        "add(Rate0, 0, 3); add(Rate1, -9, 0); }",
    }
    chosen = select(texts)
    (tmp_path / "params.toml").write_text(starter_params(chosen.suggestions), encoding="utf-8")
    space, file = load_space(tmp_path / "params.toml"), chosen.constants_file
    assert check_against_source(space, texts, file) == () and len(space.parameters) > 2
    assert other_values(space, texts, file) == {}
    values = space.rounded(space.steps({p.name: p.value for p in space.parameters}))
    assert render(space, values, {file: texts[file]}, file) == {file: texts[file]}


def test_a_range_as_wide_as_a_type_is_no_range():
    rows = ", ".join(f'Option("p{i}", 20, 10, 50)' for i in range(3))
    wide = f'Option options[] = {{{rows}, Option("temperature", 100, 0, 131072)}};'
    found = select({"src/uci.h": wide}).suggestions["src/uci.h"]
    last = next(one for one in found if one.name == "temperature")
    assert (last.value, last.minimum, last.maximum, last.step) == (100, 50, 200, 8)
    assert last.keys["note"] == "its author has 0 to 131072" and last.declared


def test_what_counts_only_with_a_clock_is_a_comment_even_if_it_is_declared():
    rows = "".join(f"TUNE(p{i}, 20, 10, 50);\n" for i in range(3))
    text = rows + "TUNE(nodeTmBase, 150, 100, 200);\nTUNE(timeNodesMax, 15, 10, 20);\n"
    found = select({"src/tune.h": text}).suggestions["src/tune.h"]
    told = {one.name: (one.reason, one.left_out) for one in found if one.reason}
    assert told.keys() == {"node_tm_base", "time_nodes_max"}
    assert all("clock" in reason and not out for reason, out in told.values())


@pytest.mark.parametrize(
    ("value", "numbers"),
    [(3, (-5, 11, 2)), (-1, (-9, 7, 2)), (80, (40, 160, 7)), (1500, (750, 3000, 33))],
)
def test_a_weight_in_centipawns_has_an_absolute_range_and_a_small_step(value, numbers):
    found = select({"eval.h": f"const int Shelter = S({value}, 40);"}).suggestions["eval.h"]
    assert (found[0].minimum, found[0].maximum, found[0].step) == numbers


def test_what_the_author_declares_with_a_step_alone_stays():
    steps = "PARAM_S(probcut, 170, 12);\nconst int FutilityMargin = 90;\n"
    found = select({"src/search.cpp": steps}).suggestions["src/search.cpp"]
    assert [one.name for one in found if not one.reason] == ["probcut", "futility_margin"]
    found = select({"src/search.cpp": steps + C_RANGES}).suggestions["src/search.cpp"]
    assert "probcut" in {one.name for one in found if not one.reason}
    assert {one.reason for one in found if one.name == "futility_margin"} == {
        "the author declares the ranges of others"
    }


@pytest.mark.parametrize(
    ("path", "declaration"),
    [
        ("src/bitboard.h", "const int PawnDelta[3] = {7, 8, 9};"),
        ("src/types.h", "enum Piece { PAWN = 2, KNIGHT = 4, BISHOP = 6, W_KING = 14 };"),
        ("src/types.h", "enum Way { NW = 7, SE = -7, NORTH_WEST = 9 };"),
        ("src/eval.h", "const int EVAL_UNKNOWN = 2046;"),
        ("src/eval.rs", "const PIECE_STRIDE: usize = 60;"),
        ("src/search.c", "int CASTLING_ROOK = 3;"),
        ("src/nnue/threats.h", "const int ThreatDelta[3] = {24, 31, 12};"),
        ("src/eval.h", "const int SideFactor[3] = {1, -1, 1};"),
        ("src/history.h", "const int CorrHistGrain = 256;"),
        ("src/score.h", "const int ScoreOdd = -32768;"),
        ("src/search.h", "int PhaseWeight() { return 4; } const int TPhase = 24;"),
        ("src/order.h", "const int KillerBonus = 200000, KingValue = 1000;"),
        ("src/search.h", "const double MoveStabilityBase = 1.5, SmpVotingDepth = 2.1;"),
        ("src/search.c", "const int SeeValue[] = {100, 300, 310, 500, 900, 30000};"),
        ("src/eval.h", "constexpr int EG = 3; constexpr int WIN = VALUES[EG][PAWN];"),
        ("src/search.h", "int LowestElo = 1320, ONE_SECOND = 1000, contempt = 10;"),
        ("src/search.h", "enum { MIN_DEPTH = -8 }; static const int MAX_ELEMENTS = 16;"),
        ("src/search.h", "constexpr int ThreatenedSqOffset = 8, ScoreToCp = 200, EvalRes = 1000;"),
        ("src/search.cpp", "enum Options { useNull = 1, allowFutility = 1 };"),
        ("src/search.h", "struct Limits { int margin = -1; int verboseScore = 900; };"),
        ("src/order.h", "const int lvaValue[] = {5, 4, 3, 2};"),
        ("src/engine.h", "int Perft() { static const int expected[] = {20, 400, 8902}; }"),
        ("enginetuning/search.h", "const double LearnMargin = 0.3;"),
        ("src/selfplay.c", "const int DrawScore = 10;"),
        ("src/eval.cpp", "class WDL { static constexpr double as = 13.6; };"),
        (
            "src/movepick.rs",
            "const KILLER: i16 = 99; const COUNTER: i16 = 98;"
            "const PROMO: i16 = 97; const BAD: i16 = 96;",
        ),
    ],
)
def test_what_is_no_strength_is_not_suggested(path, declaration):
    numbers = [100, 300, 310, 500, 900]
    found = select({path: declaration}).suggestions[path]
    assert [one.value for one in found if not one.reason] == (
        numbers if "See" in declaration else []
    )


SEARCH = """\
int MARGIN = 90;
Score search(int depth, Score eval) {
    // naïve
    if (depth < 7 && eval - 77 * depth >= MARGIN)
        return eval + 1;
    int beta = eval + 200; e.PAIR = 33;
    return table[5] & 0xFF;
}
"""


def test_numbers_inside_functions_are_listed_with_their_lines_of_source():
    texts = {"src/search.c": SEARCH, "src/eval.c": "int mob(int n) { return 9 * n; }"}
    chosen = select(texts)
    condition = "if (depth < 7 && eval - 77 * depth >= MARGIN)"
    assert chosen.functions["src/search.c"] == (
        f"search.0 = 7 in line 4: {condition}",
        f"search.1 = 77 in line 4: {condition}",
        "search::beta.0 = 200 in line 6: int beta = eval + 200; e.PAIR = 33;",
        "search.3 = 33 in line 6: int beta = eval + 200; e.PAIR = 33;",
    )
    assert chosen.functions["src/eval.c"] == (
        "src/eval.c::mob.0 = 9 in line 1: " + texts["src/eval.c"],
    )
    for lines in chosen.functions.values():
        for line in lines:
            place, _, number = line.partition(" in ")[0].partition(" = ")
            location = Location.parse(place)
            path = location.file or "src/search.c"
            assert element(parse(texts[path], path), location).text == number
    starter = starter_params(chosen.suggestions, chosen.functions)
    assert f"# search.1 = 77 in line 4: {condition}\n" in starter
    assert set(tomllib.loads(starter)) == {"margin"}


def test_a_number_in_a_function_whose_range_leaves_it_out_is_another_one(tmp_path):
    path = tmp_path / "params.toml"
    table = '[futile]\nconstant = "search.{}"\nvalue = 77\nmin = 40\nmax = 150\nstep = 8\n'
    texts = {"src/search.c": SEARCH}
    told = []
    for place in (0, 1):
        path.write_text(table.format(place), encoding="utf-8")
        found = check_against_source(load_space(path), texts, "src/search.c")
        told.append([fault.found for fault in found])
    assert told == [
        ["search.0 is 7 in the source, and value = 77 with min = 40 and max = 150 here"],
        [],
    ]


def test_of_a_file_without_search_or_evaluation_no_function_is_listed():
    assert select({"src/uci.c": SEARCH, "src/search.c": "int A = 5;"}).functions == {}


def test_shapes_of_other_engines_are_suggested():
    text = SHAPES.read_text(encoding="utf-8")
    active = {name for name, one in suggested(text).items() if not one.reason}
    assert active >= {
        *("doubled_0", "doubled_1", "hanging_0", "outpost_1", "margins_futility_slope"),
        *("tempo", "small", "wrapped", "pawn_drop", "null_base", "rook_lift"),
        *("late_first", "late_counts_2", "asp_grow", "nested_bishop_eye"),
        *("build_reductions_shrink_0", "build_reductions_shrink_1", "razor_margin"),
    }
    assert "build_reductions_shrink_2" not in active  # / 1000 is a unit


def test_tuples_constants_in_scopes_and_namesakes_say_where_they_are():
    text = "const P: (i32, i32) = (1, 2); fn f() { const Q: i32 = 5; } const R: i32 = 1;"
    text += "mod m { const R: i32 = 2; }"
    assert {name: dict(one.keys) for name, one in suggested(text).items()} == {
        "p_0": {"constant": "P.0"},
        "p_1": {"constant": "P.1"},
        "q": {"constant": "f::Q"},
        "r": {"constant": "crate::R"},
        "m_r": {"constant": "m::R"},
    }


def test_a_group_is_what_declares_a_parameter():
    texts = {"src/eval/mod.rs": "const A: i32 = 5;", "src/eval.h": "namespace Late { int B = 5; }"}
    chosen = select(texts).suggestions
    assert {one.group for each in chosen.values() for one in each} == {"eval", "late"}


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_what_the_starter_file_has_is_right_and_what_it_has_as_comments(tmp_path, source):
    text, path = source.read_text(encoding="utf-8"), tmp_path / "params.toml"
    starter = starter_params({"c.rs": suggest(text)})
    keys = "value|min|max|step|constant|group"
    uncommented = re.sub(rf"(?m)^# (\[\w+\]|(?:{keys}) = )", r"\1", starter)
    for written in (uncommented, starter):
        path.write_text(written, encoding="utf-8")
        space = load_space(path)
        assert check_against_source(space, {"c.rs": text}, "c.rs") == ()
        if written == uncommented:
            assert len(space.parameters) == sum(not one.left_out for one in suggest(text))
    assert len(space.parameters) > 10

    file = parse(text)

    def current(location):
        return {place: one.number for place, one in elements(file, location).items()}

    values = {parameter.name: parameter.value for parameter in space.parameters}
    for location, number in assignments(space.parameters, values, current).items():
        assert current(location) == {location: number}


def test_the_starter_config_is_right_as_it_stands(tmp_path):
    path = tmp_path / "config.toml"
    shape = Shape(iterations=250, games=8, batch_games=2, in_flight=2, adapts=True)
    setup = setup_of_source('../my "engine" \N{ROBOT FACE}', "src/consts.rs", {})
    path.write_text(starter_config(setup, shape), encoding="utf-8")
    config = load_config(path, {})
    assert config.build.source_path == tmp_path.parent / 'my "engine" \N{ROBOT FACE}'
    assert config.build.constants_file == "src/consts.rs"
    assert (config.games.games_per_iteration, config.games.batch_size) == (8, 8)
    assert config.spsa.max_iterations == 250


def test_what_turns_options_for_tuning_on_is_found(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "search.c").write_text("#ifdef SPSA_TUNE\n#endif\n#if defined(TUNING)\n")
    (tmp_path / "Training").mkdir()
    (tmp_path / "Training" / "a.c").write_text("#ifdef TUNE\n")
    found = read_source(tmp_path)
    assert list(found.texts) == ["src/search.c"], "and nothing of other programs"
    assert found.switches == ["-DSPSA_TUNE", "-DTUNING"]
    assert found.build["command"][:2] == ("cc", "-O3")


@pytest.mark.parametrize(
    ("files", "binary"),
    [
        ({"src/Makefile": "BINARY = $(DIR)/$(NAME)-debug\nNAME = crow\n"}, "src/crow"),
        ({"Crow/makefile": "EXE := crow\n"}, "Crow/crow"),
        (
            {
                "CMakeLists.txt": "project(Crow)\nadd_executable(CrowTest a)\n",
                "Crow/makefile": "EXE := other\n",
            },
            "build/Crow",
        ),
    ],
)
def test_the_program_of_a_makefile_is_a_whole_name_and_no_test(tmp_path, files, binary):
    for name, text in {**files, "Crow/search.cpp": "int A = 5;\n"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert read_source(tmp_path).build["binary"] == binary
