"""What `init` suggests for an engine's constants, and that it can be started from as it stands."""

import re
import tomllib
from pathlib import Path

import pytest

from spsa.builds.sources.reading import parse
from spsa.builds.sources.rewriting import element, render
from spsa.config import load_config
from spsa.config.source import check_against_source, other_values
from spsa.config.space import load_space
from spsa.config.starter import read_source, setup_of_source, starter_config, starter_params
from spsa.config.suggestions import select
from spsa.config.suggestions.objections import NOT_DECLARED, rank_of_file
from spsa.config.suggestions.ranges import free_name
from spsa.core.params import Location
from spsa.planning.plan_inputs import Shape

ROOT = Path(__file__).parents[2]
SHAPES = ROOT / "tests" / "fixtures" / "rust" / "shapes.rs"
SOURCES = [
    SHAPES,
    ROOT / "engine" / "src" / "engine_constants.rs",
    ROOT / "tests" / "fixtures" / "rust" / "hostile.rs",
]


def found(text, path="eval.rs"):
    return {one.name: one for one in select({path: text}).suggestions[path]}


def active(**texts):
    """The names of what is suggested, of files like search_rs."""
    chosen = select({f"src/{name.replace('_', '.')}": text for name, text in texts.items()})
    return [one.name for each in chosen.suggestions.values() for one in each if not one.reason]


@pytest.mark.parametrize(
    ("path", "declaration", "numbers"),
    [
        ("eval.rs", "const A: i32 = 200;", (200, 100, 400, 18)),
        ("eval.rs", "const A: i32 = -4000;", (-4000, -8000, -2000, 335)),
        ("eval.rs", "const A: i32 = 20;", (20, 10, 40, 3)),
        ("eval.rs", "const A: i32 = -1;", (-1, -3, 1, 1)),
        ("eval.rs", "const A: u8 = 3;", (3, 1, 6, 1)),
        ("eval.rs", "const A: u8 = 1;", (1, 0, 3, 1)),
        ("eval.rs", "const A: f64 = 0.5;", (0.5, 0.25, 1.0, 0.045)),
        ("eval.rs", "const A: f64 = 2.0;", (2.0, 1.0, 4.0, 0.09)),
        ("see.rs", "const QUEEN_VALUE: i32 = 900;", (900, 450, 1800, 24)),
        ("see.rs", "const KNIGHT_VALUE: i32 = 3;", (3, 1, 6, 1)),
        # a weight in centipawns has an absolute range and a small step
        ("eval.h", "const int A = S(3, 40);", (3, -5, 11, 2)),
        ("eval.h", "const int A = S(-1, 40);", (-1, -9, 7, 2)),
        ("eval.h", "const int A = S(80, 40);", (80, 40, 160, 7)),
        ("eval.h", "const int KnightWeights = S(4, 4);", (4, 0, 8, 1)),  # of each square
        ("eval.h", "const int A = S(1500, 40);", (1500, 750, 3000, 33)),
    ],
)
def test_range_and_step_follow_the_value(path, declaration, numbers):
    one, *_ = found(declaration, path).values()
    assert (one.value, one.minimum, one.maximum, one.step) == pytest.approx(numbers)


def test_a_name_that_is_taken_gets_those_around_it_and_then_a_number():
    taken: set[str] = set()
    for name in ("b", "y_b", "x_y_b", "b_2", "b_3"):
        assert free_name("b", ("x", "", "Y"), taken) == name
        taken.add(name)


@pytest.mark.parametrize(
    ("path", "rank"),
    [("src/eval.rs", 1), ("src/lib.rs", 0), ("search/lib.rs", 1), ("src/uci.rs", -1)],
)
def test_files_of_evaluation_and_search_go_before_others(path, rank):
    assert rank_of_file(path) == rank


# the file, the text, and how the reasons begin, "-" for what is suggested
REASONS = """\
src/eval.rs | const HASH_MB: usize = 64; | a size
src/eval.rs | const MAX_DEPTH: u8 = 100; | a size
src/eval.rs | const TICK_MILLIS: u16 = 500; | about the clock
src/eval.rs | const ROWS: usize = 5; static X: [[u8; 2]; ROWS] = rows(); | the length
src/eval.rs | const PATTERN: u32 = 0x1f; | written as a bit pattern
src/eval.rs | const BETA_MAX_DEPTH: u8 = 6; const MATE_KILLER_BONUS: i32 = 900; | -
src/eval.rs | const A: i32 = 0; const B: u64 = 4_294_967_295; | 0 may stand, so large
src/eval.rs | const MARGIN: i32 = 64; const MAX_LMP_DEPTH: u8 = 8; | -
src/eval.rs | const FULL_PHASE: i32 = 24; const HISTORY_LIMIT: i32 = 16_384; | the phase, large and
src/eval.rs | const ASPIRATION_WINDOW_SIZE: i32 = 11; const lmr_first_move_index: usize = 3; | -
src/eval.rs | const RAZOR_DEPTH: Depth = 3 * ONE_PLY; const VOTE_OFFSET: i32 = 11; | -, about
src/bitboard.h | const int PawnDelta[3] = {7, 8, 9}; | neither
src/types.h | enum Piece { PAWN = 2, KNIGHT = 4, BISHOP = 6, W_KING = 14 }; | the number of a piece
src/types.rs | const NNE: Dir = (2, -1); const SEE: Dir = (-1, -2); | signs
src/eval_tuning.rs | const SEE: i32 = 90; const PawnValue: i32 = 82; | -
src/tuning_eval.rs | const PawnValue: i32 = 82; | neither
src/search.rs | const ONE: Depth = Depth(1); const EVAL_WRAPPING: u8 = 9; | a size
src/const.h | enum Kind { PROMOTION_B = 4, PROMOTION_Q = 12, ENPASSANT = 1 }; | a size
src/search.rs | const HardScaleCap: f64 = 3.4; const EvalInstability: f64 = 0.1; | about the clock
src/types.h | enum Way { NW = 7, SE = -7, NORTH_WEST = 9 }; | neither, a size
src/eval.h | const int EVAL_UNKNOWN = 2046; | a size
src/eval.rs | const PIECE_STRIDE: usize = 60; | a size
src/search.c | int CASTLING_ROOK = 3; | a size
src/nnue/threats.h | const int ThreatDelta[3] = {24, 31, 12}; | neither
src/eval.h | const int SideFactor[3] = {1, -1, 1}; | signs
src/history.h | const int CorrHistGrain = 256; | a unit
src/score.h | const int ScoreOdd = -32768; | so large
src/search.h | int PhaseWeight() { return 4; } const int TPhase = 24; | the phase
src/order.h | const int KillerBonus = 200000, KingValue = 1000; | large and round, a size
src/search.h | const double MoveStabilityBase = 1.5, SmpVotingDepth = 2.1; | about the clock
src/search.c | const int SeeValue[] = {100, 300, 310, 500, 900, 30000}; | -, far from
src/eval.h | constexpr int EG = 3; constexpr int WIN = VALUES[EG][PAWN]; | the length
src/search.h | int LowestElo = 1320, ONE_SECOND = 1000, contempt = 10; | a size, neither, an option
src/search.h | enum { MIN_DEPTH = -8 }; static const int MAX_ELEMENTS = 16; | a size
src/search.h | constexpr int EvalSqOffset = 8, ScoreToCp = 200, EvalRes = 1000; | a size, a unit
src/search.cpp | enum Options { useNull = 1, allowFutility = 1 }; | on or off
src/search.h | struct Limits { int margin = -1; int verboseScore = 900; }; | -1 in a var, a size
src/order.h | const int lvaValue[] = {5, 4, 3, 2}; | a size
src/engine.h | int Perft() { static const int expected[] = {20, 400, 8902}; } | a size
enginetuning/search.h | const double LearnMargin = 0.3; | neither
src/selfplay.c | const int EvalScore = 10; | neither
src/eval.cpp | class WDL { static constexpr double as = 13.6; }; | a size
src/see.cpp | const u8 seeValue[] = { 0, 1, 3, 3, 5, 9, 99 }; | 0 inside, -, far from
src/data.cpp | const int npValue[7] = { 0, 0, 3, 3, 5, 9, 0 }; | 0 inside, the phase
src/eval.rs | const PH: [u8; 5] = [0, 1, 1, 2, 4]; const B: u8 = 2; | 0 inside, the phase, -
src/eval.rs | const SF_NORMAL: i32 = 64; const SF_PAWNLESS: i32 = 40; | a unit, -
src/see.h | constexpr int SEE_KING = 9900, SEE_PAWN = 90; | a size, -
src/eval.cpp | double K = 0.23; int f(int q) { return 1.0 / (1.0 + exp(-K * q)); } | in a model
src/search.rs | const RATE: f64 = 0.3; fn f(q: f64) { 1. / (1. + (-RATE * q).exp()) } | in a model
src/search.rs | const LAP: u64 = 1024; fn f(n: u64) -> bool { n % LAP == 0 } | the length
src/search.h | enum Piece { PIECE_EMPTY = 6 }; const int InfoInterval = 900; | a size
src/search.h | constexpr int flip(int s) { return s ^ 56; } constexpr int Depth = 7; | -
src/chrono.h | constexpr double StealRatio = 0.35; | about
src/search.h | const int SoftLimitScale = 34; | about
src/eval.h | const int mob[] = { -16, -8, +0, +8, +11, +13, +14, +15, +16 }; | one number, 0 inside
src/order.rs | const LEAST: [i16; 6] = [0, 1, 2, 3, 4, 5]; const LMP: u8 = 3; | 0 in, numbered, -
src/eval.rs | const SIZE_PASSED: usize = 7; const MIN_EVAL: i32 = -31000; | a size
src/eval.rs | const MG_LIMIT: i16 = 9100; const EG: usize = 1; | the phase
src/eval.h | const int SeeValues[6] = {100, 330, 330, 500, 1000, 2000}; | -, far from
src/eval.h | const int MatMul[5] = {1, 9, 27, 81, 243}; const int RANK_1 = 1; | numbered, a size
src/search.h | const int s_maxScore = 30100, kMaxWeight = 256, DepthLimit = 90; | a size
src/search.h | const int lmrTableSize = 60; | a size
src/search.h | const int SearchCores = 3, minDepth = -100, MP_KING = 20936; | about, a size
src/search.h | const int KillerFirst = 100003, StaticEval = -20001; | large and round
src/search.h | const int HistMargin = 10153; | -
src/eval.h | const int kRanks = 8, PawnShifts[2] = {48, 47}, PstTableOffset = 65; | a size
src/eval.h | const int MinScore = -32766, EndOffset[5] = {9, 9, 9, 9, 9}; | a size, one number
src/search.h | enum { DO_NULL = 1 }; | on or off
src/search.h | const int BENCHMARK_DEPTH = 12, GENFENS_MARGIN = 60, StackPadding = 8; | a size
src/search.h | const int BestValue = 32498; | large and
src/search.c | int RazorDepth = 2, RazorMargin[3] = {0, 90, 170}; | the length, 0 inside, -
src/search.c | int FutilityDepth = 6, FutilityMargin[3] = {30, 90, 170}; | -
src/search.c | int LMP_depth = 16; static int LMP[2][16]; // | the length
src/search.c | int LMP_depth = 9; static int LMP[2][16]; int f(void) { return LMP[9]; } | -
src/order.c | const int VICTIM_VALUE[2] = {6, 12}; const int Color = 1; | a size
src/nnue_eval.c | const int Scale = 112; | neither
src/search.h | const int LmrAllow = 1, EGTB_SCORE = 25100; | on or off, a size
src/const.h | class Bitboards { const int kingSpan = 46; }; | a size
src/eval.h | const int PieceValue[] = {100, 300, 320, 500, 900, 4}; | -, far
src/nn.h | const int EVAL_SCALE = 400; | neither
src/board.h | const int G2 = 9, a7 = 55; | a square
src/order.h | const int PxN = 300, RxQ = 700, Kx_ = 2; | a size
src/eval.h | enum Term { MOBILITY = 9, THREAT, TOTAL }; const int DrawScore = -50; | numb, an option
src/search.h | const float BookWeight = 0.3; const double MinReportDelay = 1.5; | an option
src/stopper.rs | const EVAL_FACTOR: f32 = 1.3; const MARGIN: i32 = 90; | about
src/search.rs | const SOFT_STOP_DEPTH: u8 = 5; const MARGIN: i32 = 90; | about, -
src/tuning.h | const double Factor = 90; const int LmrBase = 70; | neither, -
src/eval.h | const int OffsetBlock = 6, TUNABLE_START = 26; | a size
my-engine/src/coretypes.rs | const KNIGHT_MOVES: i32 = 8; | neither
src/eval.rs | const PASSED: [[i32; 4]; 2] = [[5, 9, 20, 60], [60, 20, 9, 5]]; | one number
src/eval.h | const int W[] = {300, 310, 500, 900, 10250}; | -, far
src/pick.rs | const A: i16 = 99; const B: i16 = 98; const C: i16 = 97; const D: i16 = 96; | numbered
"""


@pytest.mark.parametrize("case", REASONS.splitlines())
def test_what_is_hardly_meant_to_be_tuned_has_a_reason(case):
    path, text, begins = case.split(" | ")
    reasons = dict.fromkeys(one.reason or "-" for one in found(text, path).values())
    pairs = zip(reasons, begins.split(", "), strict=True)
    assert all(reason.startswith(begin) for reason, begin in pairs), reasons


def test_what_cannot_be_rewritten_is_not_suggested():
    text = (
        "const A: bool = true; const B: i32 = C + 1; const Z: [u8; 9] = [0; 9]; const L: u8 = f();"
    )
    assert found(text) == found("#[cfg(test)] mod t { const A: i32 = 5; }") == {}


def test_short_arrays_are_suggested_number_by_number_and_longer_ones_are_comments():
    text = "const LMP: [u8; 4] = [0, 5, 11, 8];"
    text += f"const ROWS: [[i8; 8]; 2] = [{[*range(3, 19, 2)]}, {[*range(4, 20, 2)]}];"
    text += f"const CURVE: [i32; 9] = {[-15, 3, 12, 20, 25, 28, 30, 31, 31]};"
    text += f"const SQUARES: [i32; 64] = {[*range(5, 69)]};"
    all_of = found(text)
    rows = [f"rows_{i}_{j}" for i in range(2) for j in range(8)]
    assert active(eval_rs=text) == ["lmp_1", "lmp_2", "lmp_3", *rows]
    comments = {name for name, one in all_of.items() if one.reason and not one.left_out}
    assert comments == {f"curve_{i}" for i in range(9)}
    assert all_of["lmp_0"].left_out and all_of["squares_0"].left_out and "squares_1" not in all_of


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (
            {"eval_h": "const int Passers[] = {S(0, 0), S(5, 9), S(-8, 70), S(40, 99)};"},
            [f"passers_{i}_{j}" for i in (1, 2, 3) for j in (0, 1)],
        ),
        (  # the file tells of what a number is
            {
                "main_cpp": "const int passers[] = {12, 45, 90}; const int verbose = 3;",
                "search_h": "static const int SEEQuietMargin = -64;",
                "timeman_h": "constexpr double StabilityFactor = 1.5;",
                "tuner_h": "constexpr double LearningRate = 0.1;",
            },
            ["passers_0", "passers_1", "passers_2", "see_quiet_margin"],
        ),
        (  # a name that occurs nowhere else changes nothing
            {
                "search_rs": "const MARGIN: i32 = 80; const OLD: i32 = 70; tune! { LMR = 3; }"
                "const A: i32 = 9; const B: i32 = 11; const C: i32 = 14; // OLD\n"
                "fn f() -> i32 { MARGIN + lmr() + A + B + C + f() }"
            },
            ["margin", "lmr", "a", "b", "c"],
        ),
        (  # brackets in comments are no indexes
            {
                "search_rs": "const MARGIN: i32 = 80; const ROWS: usize = 7; // [MARGIN]\n"
                "fn f(t: &T) -> i32 { t[self::ROWS] + MARGIN + (1 << OFF) } const OFF: u8 = 6;"
            },
            ["margin"],
        ),
        (  # two declared ranges do not yet say that the others are not meant
            {
                "search_h": 'Option options[] = {{"p0", 20, 10, 50}, {"p1", 30, 10, 50}};'
                "const int Margin = 90;"
            },
            ["p0", "p1", "margin"],
        ),
        (  # beside a range: what the author does not tune
            {
                "params_rs": "tune!(lmr: i32 = 6 (4..=12); fp: i32 = 90 (40..=200););"
                "nontunable!(fp_depth: i32 = 6 (4..=12); see_depth: i32 = 9 (5..=15););"
            },
            ["lmr", "fp"],
        ),
        (  # of namesakes the later one has the name of its file, too
            {"eval_rs": "const A: i32 = 5; const B: i32 = 7;", "search_rs": "const A: i32 = 6;"},
            ["a", "b", "search_a"],
        ),
        (  # a macro that is a list of calls
            {
                "tune_h": "#define ALL_PARAMS   \\\n  DEPTH_PARAM(RFP_DEPTH, 8) \\\n   \\\n"
                "  SCORE_PARAM(RFP_MARGIN, -42)\nconst int Margin = 90;\n"
                "#define ALL(T, NO_T) \\\n  /* null moves */ \\\n"
                "  T(nmp, u8, 6, 1, 12, 1) \\\n  T(fp, Score, 70, 0, 200)\n"
            },
            ["rfp_depth", "rfp_margin", "margin", "nmp", "fp"],
        ),
        (  # a king is never captured, and where a loop ends is no strength
            {
                "see_rs": "const fn value(p: P) -> i32 { match p { P::Pawn => 95, P::King => 90 } }"
                "const fn see_sum() -> i32 { let mut p = 0; while p < 6 { p += 33; } p }"
            },
            ["value_0", "see_sum_0"],
        ),
        (  # a list of lengths
            {"tune_h": "#define ALL(T) \\\n  T(kingZone, 15) \\\n  T(rookZone, 9)\n"},
            [],
        ),
        (  # what the author declares with a step alone stays
            {"search_cpp": "PARAM_S(probcut, 170, 12);\nconst int FutilityMargin = 90;\n"},
            ["probcut", "futility_margin"],
        ),
    ],
)
def test_what_is_suggested(texts, names):
    assert active(**texts) == names


RUST_RANGES = """\
tunable! {
    rfp_margin = 80, 40, 120, 8;
    nmp_base: i32 = 4, 2..=7;
    asp_width { value: 30, min: 10, max: 60 }
    lmr, 0.75, 0.25, 1.5;
}
block![
    inner,
    hist_base: isize = 300; 100..=900; step=30;
    hist_wide: isize = 700; 0..=32 * 1024; step=512;
    hist_low: isize = -47; -200..=0;
];
before! { QS_DELTA: 0..=400 = 90; QS_DEPTH: 1..=20 = 8; }
brackets!(quiet_see: i32 = -60 (-120..=-30); tactic_see : i16 = 20 (10..=40););
arrows! { Search { ["Fpu"] fpu: f64 => 0.2, 0.05, 0.95, 0.05, 0.002; cap: i64 => 7, 1, 32, 2; } }
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
TUNEABLE(futility, int, 1'500, -5'000, 5'000, 250, 0.002);
inline Tunable<int> razor(300, 100, 600, 25);
Tunable<int> delta = Tunable<int>(-20, -60, 0);
TunableParam lmr{0.75, 0.25, 1.5};
TunableParam asp{30, 10, 60};
Option options[] = {{"hist_max", 1500, 500, 9000}, {"Threads", 1, 1, 512}};
static const Param iir = {.value = 4, .min = 2, .max = 8};
const int WINDOW = 25;
const int STAIRS[] = {3, 1, 9};
"""


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
ROWS = ", ".join(f"{{'p{i}', 20, 10, 50}}" for i in range(10))


@pytest.mark.parametrize(
    ("texts", "ranges"),
    [
        (
            {"src/uci.rs": RUST_RANGES},
            {
                "rfp_margin": (80, 40, 120, 8, "rfp_margin"),
                "nmp_base": (4, 2, 7, 1, "nmp_base"),
                "asp_width": (30, 10, 60, 2, "asp_width"),
                "lmr": (0.75, 0.25, 1.5, 0.0625, "lmr"),
                "hist_base": (300, 100, 900, 30, "hist_base"),
                "hist_low": (-47, -200, 0, 10, "hist_low"),
                "qs_delta": (90, 0, 400, 20),
                "qs_depth": (8, 1, 20, 1),
                "quiet_see": (-60, -120, -30, 4, "quiet_see"),
                "tactic_see": (20, 10, 40, 2, "tactic_see"),
                "fpu": (0.2, 0.05, 0.95, 0.05, "Search::fpu"),
                "cap": (7, 1, 32, 2, "Search::cap"),
                "delta": (-20, -60, 0, 5, "delta"),
                "razor": (300, 100, 600, 25, "razor"),
                "probcut": (170, 80, 300, 11, "probcut"),
                "lmp_base": (3, 1, 9, 1, "LMP"),
                "see_margin": (-90, -200, 0, 10, "SEE"),
                "iir": (4, 2, 8, 1, "IIR.default"),
                "se_depth": (6, 1, 8, 1),
                "hist_max": (1500, 500, 9000, 425, "TABLE[0]"),
                "hist_mul": (30, 1, 99, 5, "TABLE[1]"),
            },
        ),
        (
            {"src/search.cpp": C_RANGES + "PARAM_S(probcut, 170, 12);\n"},
            {
                "rfp_margin": (75, 40, 200, 10, "rfpMargin"),
                "nmp_base": (4, 2, 8, 1, "nmpBase"),
                "futility": (1500, -5000, 5000, 250, "futility"),
                "razor": (300, 100, 600, 25, "razor.0"),
                "delta": (-20, -60, 0, 3, "delta.0"),
                "lmr": (0.75, 0.25, 1.5, 0.0625, "lmr.0"),
                "asp": (30, 10, 60, 2, "asp.0"),
                "hist_max": (1500, 500, 9000, 425, "options[0]"),
                "iir": (4, 2, 8, 1, "iir.value"),
                "probcut": (170, 85, 340, 16, "probcut"),
            },
        ),
        (  # apart from the constants
            {"src/tune.h": RANGES_ELSEWHERE, "src/uci.cpp": CALLS},
            {
                "scale": (40, 20, 60, 2, "History::scale"),
                "slope": (-1.805, -2.5, -0.5, 0.1, "slope"),
                "margin_0": (0, 0, 90, 4, "margin[0]"),
                "margin_1": (150, 100, 400, 15, "margin[1]"),
                "margin_2": (300, 200, 800, 30, "margin[2]"),
                "tt_no_age": (7, 2, 20, 1, "tt_no_age"),
            },
        ),
        (  # behind a value that is older than the constant's, but not behind a rate
            {
                "src/search.cpp": "int lmr = 90, base = 7, rate = 9; int table[2] = {3, 4};",
                "src/tune.cpp": 'void f() { add(Field("LMR", &lmr, 80, 50, 300, 0.002));'
                'add(Field("Base", &base, 7, 2, 12, 0.002)); limit(rate, 1, 0, 40);'
                'add(Field("T", &table[1], 5, 1, 9, 0.002)); }',
            },
            {
                "lmr": (90, 50, 300, 12, "lmr"),
                "base": (7, 2, 12, 1, "base"),
                "table_1": (4, 1, 9, 1, "table[1]"),
            },
        ),
        (  # behind a table it is of each of its numbers
            {
                "src/params.rs": "tunable! { factors = [-300, 4, 17], -1024..=1024; "
                "base = 40, 20..=80; top = 9, 4..=18; }"
            },
            {
                "factors_0": (-300, -1024, 1024, 102, "factors[0]"),
                "factors_1": (4, -1024, 1024, 102, "factors[1]"),
                "factors_2": (17, -1024, 1024, 102, "factors[2]"),
                "base": (40, 20, 80, 3, "base"),
                "top": (9, 4, 18, 1, "top"),
            },
        ),
        (  # one that does not hold its value, and one as wide as a type
            {
                "src/uci.h": f"Option options[] = {{{ROWS}, {{'p10', 5, 10, 50}}, "
                "{'temperature', 100, 0, 131072}, {'less', 1, 0, 1000}, "
                "{'more', 1, 0, 1001}};".replace("'", '"')
            },
            {f"p{i}": (20, 10, 50, 2, f"options[{i}]") for i in range(10)}
            | {
                "p10": (5, 5, 50, 2, "options[10]", "its author has 10 to 50"),
                "temperature": (100, 50, 200, 8, "options[11]", "its author has 0 to 131072"),
                "less": (1, 0, 1000, 50, "options[12]"),
                "more": (1, 0, 3, 1, "options[13]", "its author has 0 to 1001"),
            },
        ),
    ],
)
def test_the_authors_own_ranges_go_before_all_guesses(tmp_path, texts, ranges):
    """In files of any name; all other numbers are no more than comments."""
    chosen = select(texts)
    (tmp_path / "params.toml").write_text(starter_params(chosen.suggestions), encoding="utf-8")
    ordered = {chosen.constants_file: texts[chosen.constants_file], **texts}
    assert check_against_source(load_space(tmp_path / "params.toml"), ordered) == ()
    every = [one for each in chosen.suggestions.values() for one in each]
    assert {
        one.name: (one.value, one.minimum, one.maximum, one.step, *one.keys.values())
        for one in every
        if not one.reason
    } == ranges
    others = {one.reason for one in every if one.reason and not one.left_out}
    assert others == ({NOT_DECLARED} if "const int" in str(texts) else set())


def test_numbers_that_only_look_like_a_range_declare_none():
    text = "constexpr std::array Fit = {86.5, -259.8, 205.3, 127.5}; Entry empty(0, -100, 1);"
    text += "const int Margin = 80;"
    assert not any(one.declared for one in found(text, "src/eval.h").values())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("TUNE(other, 20, 10, 50, false);", "leaves it out"),
        ("TUNE_DISABLED(other, 20, 10, 50, true);", "leaves it out"),
        ("TUNE(other, 900, 900, 900, true);", "leaves it out"),
        ("NO_TUNE(other, 20, 10, 50, true);", "leaves it out"),
        ("UNACTIVE_TUNEABLE(other, int, 20, 10, 50, 4, 0.002);", "leaves it out"),
        ("TUNE_TM(other, 20, 10, 50, true);", "about the clock"),
        ("TUNE(nodeTmBase, 150, 100, 200, true);", "about the clock"),
        ("TUNE(timeNodesMax, 15, 10, 20, true);", "about the clock"),
    ],
)
def test_what_its_author_does_not_tune_is_a_comment(text, reason):
    rows = "".join(f"TUNE(p{i}, 20, 10, 50, true);\n" for i in range(3))
    named = "int sum() { return p0 + p1 + p2 + other; }\n"
    *others, last = found(f"{rows}{text}\n{named}", "src/search.h").values()
    assert reason in last.reason and not last.left_out
    assert [one.reason for one in others] == ["", "", ""]


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
    ordered = {file: texts[file], **texts}
    assert check_against_source(space, ordered) == () and len(space.parameters) > 2
    assert other_values(space, ordered) == {}
    values = space.rounded(space.steps({p.name: p.value for p in space.parameters}))
    assert render(space, values, ordered) == ordered


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
    chosen = select({**texts, "src/uci.c": SEARCH})
    condition = "if (depth < 7 && eval - 77 * depth >= MARGIN)"
    assert chosen.functions == {
        "src/search.c": (
            f"search.0 = 7 in line 4: {condition}",
            f"search.1 = 77 in line 4: {condition}",
            "search::beta.0 = 200 in line 6: int beta = eval + 200; e.PAIR = 33;",
            "search.3 = 33 in line 6: int beta = eval + 200; e.PAIR = 33;",
        ),
        "src/eval.c": ("src/eval.c::mob.0 = 9 in line 1: " + texts["src/eval.c"],),
    }
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
    told = []
    for place in (0, 1):
        path.write_text(table.format(place), encoding="utf-8")
        told += check_against_source(load_space(path), {"src/search.c": SEARCH})
    assert [fault.found for fault in told] == [
        "search.0 is 7 in the source, and value = 77 with min = 40 and max = 150 here"
    ]


def test_shapes_of_other_engines_are_suggested():
    names = active(eval_rs=SHAPES.read_text(encoding="utf-8"))
    assert {*names} >= {
        *("doubled_0", "doubled_1", "hanging_0", "outpost_1", "margins_futility_slope"),
        *("tempo", "small", "wrapped", "pawn_drop", "null_base", "rook_lift"),
        *("late_first", "late_counts_2", "asp_grow", "nested_bishop_eye"),
        *("build_reductions_shrink_0", "build_reductions_shrink_1", "razor_margin"),
    }
    assert "build_reductions_shrink_2" not in names  # / 1000 is a unit


def test_tuples_constants_in_scopes_and_namesakes_say_where_they_are_and_what_declares_them():
    text = "const P: (i32, i32) = (1, 2); fn f() { const Q: i32 = 5; } const R: i32 = 1;"
    text += "mod Late { const R: i32 = 2; }"
    named = found(text, "src/eval/mod.rs").items()
    assert {name: (one.keys["constant"], one.group) for name, one in named} == {
        "p_0": ("P.0", "eval"),
        "p_1": ("P.1", "eval"),
        "q": ("f::Q", "f"),
        "r": ("crate::R", "eval"),
        "late_r": ("Late::R", "late"),
    }


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_what_the_starter_file_has_is_right_and_what_it_has_as_comments(tmp_path, source):
    text, path = source.read_text(encoding="utf-8"), tmp_path / "params.toml"
    every = [*found(text).values()]
    starter = starter_params({"c.rs": every})
    keys = "value|min|max|step|constant|group"
    uncommented = re.sub(rf"(?m)^# (\[\w+\]|(?:{keys}) = )", r"\1", starter)
    for written in (uncommented, starter):
        path.write_text(written, encoding="utf-8")
        space = load_space(path)
        assert check_against_source(space, {"c.rs": text}) == ()
        if written == uncommented:
            assert len(space.parameters) == sum(not one.left_out for one in every)
    assert len(space.parameters) > 10
    assert other_values(space, {"c.rs": text}) == {}


def test_the_starter_config_is_right_as_it_stands(tmp_path):
    path = tmp_path / "config.toml"
    shape = Shape(iterations=250, games=8, batch_games=2, in_flight=2, adapts=True)
    setup = setup_of_source('../my "engine" \N{ROBOT FACE}', "src/consts.rs", {})
    path.write_text(starter_config(setup, shape), encoding="utf-8")
    build = load_config(path, {}).build
    assert build.source_path == tmp_path.parent / 'my "engine" \N{ROBOT FACE}'
    assert build.constants_file == "src/consts.rs"


TUNER = '#include "uci.h"\nvoid fit() { memset(sums, 0, 8); }\n'
OPTIONS = 'void uci() { add_option("margin", 80); }\n'
OF_CARGO = {
    "Cargo.toml": '[package]\nname = "crow"\n[features]\ntune = []\nspsa = []\ntuning = []\n',
    "src/uci.rs": 'mod eval;\n#[cfg(feature = "tune")]\nfn fit(w: Option<i32>) {\n    step(w);\n}\n'
    '#[cfg(feature = "tune")]\nuse crate::options::*;\n',
    "src/tools/list.rs": 'macro_rules! t { () => {\n    #[cfg(feature = "tuning")]\n'
    '    fn list() {\n\n      println!("option name");\n    }\n  } }\n'
    '#[cfg(feature = "spsa_old")]\nlist_options();\n',
    "src/main.rs": '  #[cfg(feature = "spsa")]\n  list(&all);\n\n  println!("uciok");\n',
}


@pytest.mark.parametrize(
    ("files", "switches"),
    [
        ({"src/a.c": f"#ifdef SPSA_TUNE\n{OPTIONS}#endif\n"}, ["-DSPSA_TUNE"]),
        ({"src/a.c": f"#if defined(TUNING)\n{TUNER}#endif\nint spin;\n"}, []),
        ({"src/a.c": '#ifdef TUNE\n  list();\n#endif\n  puts("uciok");\n'}, ["-DTUNE"]),
        (  # macros that are given ranges, in a folder of tools
            {
                "src/tuner/a.h": "#ifdef TUNE_IT\n#define P(a, b, c, d) int a = add(#a, b, c, d)\n"
                "#else\n#define P(a, b, c, d) int a = b\n#endif\n",
                "src/a.h": "P(margin, 80, 40, 120);\n",
            },
            ["-DTUNE_IT"],
        ),
        ({"src/a.c": "#ifdef TUNE\n  ranged(margin, 40, 120),\n#endif\n"}, ["-DTUNE"]),
        (  # the source's own define goes before one of the command
            {"src/a.h": f"#define TUNE_ON false\n#if TUNE_ON == true\n{OPTIONS}#endif\n"},
            ["`#define TUNE_ON` in src/a.h"],
        ),
        (
            {
                "src/a.h": "#ifndef TUNE_ON\n #define TUNE_ON 0\n#endif\n"
                f"#if TUNE_ON\n{OPTIONS}#endif\n"
            },
            ["-DTUNE_ON"],
        ),
        (OF_CARGO, ["--features spsa", "--features tuning"]),
    ],
)
def test_what_turns_options_for_tuning_on_stands_beside_them(tmp_path, files, switches):
    for name, text in {**files, "Training/a.c": "#ifdef TUNE\n#endif\n"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    source = read_source(tmp_path)
    assert source.switches == switches
    assert not {"Training/a.c", "src/tools/list.rs"} & set(source.texts), (
        "nothing of other programs"
    )


CMAKE = "project(Crow)\nadd_executable(CrowTest a)\n"


@pytest.mark.parametrize(
    ("files", "binary"),
    [
        ({"src/Makefile": "BINARY = $(DIR)/$(NAME)-debug\nNAME = crow\n"}, "src/crow"),
        ({"Crow/makefile": 'EXE := "crow"\n'}, "Crow/crow"),
        ({"CMakeLists.txt": CMAKE, "Crow/makefile": "EXE := other\n"}, "build/Crow"),
    ],
)
def test_the_program_of_a_makefile_is_a_whole_name_and_no_test(tmp_path, files, binary):
    for name, text in {**files, "Crow/search.cpp": "int A = 5;\n"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert read_source(tmp_path).build["binary"] == binary
