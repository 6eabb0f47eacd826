//! Everything a tuner may turn. Scores are in internal units: a pawn is worth
//! roughly 150 of them. Depths are in plies.
//!
//! Derived constants follow the ones they are computed from and are not to be
//! overwritten themselves.

pub type Score = i32;

/// A value in the opening and one in the endgame.
pub type ScorePair = (Score, Score);

// ---- material ------------------------------------------------------------

pub const PAWN_VALUE_PAIR: ScorePair = (110, 190);
pub const KNIGHT_VALUE_PAIR: ScorePair = (620, 660);
pub const BISHOP_VALUE_PAIR: ScorePair = (650, 700);
pub const ROOK_VALUE_PAIR: ScorePair = (950, 1120);
pub const QUEEN_VALUE_PAIR: ScorePair = (1800, 2150);

pub const PAWN_VALUE_AVERAGE: Score = (PAWN_VALUE_PAIR.0 + PAWN_VALUE_PAIR.1) / 2;
pub const KNIGHT_VALUE_AVERAGE: Score = (KNIGHT_VALUE_PAIR.0 + KNIGHT_VALUE_PAIR.1) / 2;
pub const BISHOP_VALUE_AVERAGE: Score = (BISHOP_VALUE_PAIR.0 + BISHOP_VALUE_PAIR.1) / 2;
pub const ROOK_VALUE_AVERAGE: Score = (ROOK_VALUE_PAIR.0 + ROOK_VALUE_PAIR.1) / 2;
pub const QUEEN_VALUE_AVERAGE: Score = (QUEEN_VALUE_PAIR.0 + QUEEN_VALUE_PAIR.1) / 2;

pub const VALUE_BISHOP_PAIR: Score = 40;
pub const VALUE_BISHOP_PAIR_FEWER_PAWNS_BONUS: Score = 3; // per pawn the side has lost
pub const TEMPO_BONUS: Score = 20;

// ---- search: pruning ------------------------------------------------------

pub const BETA_PRUNE_MARGIN_PER_DEPTH: Score = 110;
pub const BETA_PRUNE_MAX_DEPTH: u8 = 8;

/// Futility margins of depths 1 to 8.
pub const ALPHA_PRUNE_MARGINS: [Score; 8] = [128, 192, 256, 320, 384, 448, 512, 576];

pub const NULL_MOVE_MIN_DEPTH: u8 = 3;
pub const NULL_MOVE_REDUCE_DEPTH_BASE: u8 = 3;
pub const NULL_MOVE_REDUCE_DEPTH_DIVISOR: u8 = 4; // one more ply per so many of depth
pub const NULL_MOVE_EVAL_DIVISOR: Score = 300;

pub const SEE_PRUNE_MARGIN: Score = 40; // per ply, quiet moves
pub const SEE_PRUNE_CAPTURE_MARGIN: Score = 120; // per ply, captures
pub const SEE_PRUNE_MAX_DEPTH: u8 = 6;

/// Quiet moves searched at depths 1 to 3 before the rest is skipped; depth 0
/// is quiescence, which has none, so the first element is never read.
pub const LMP_MOVE_THRESHOLDS: [u8; 4] = [0, 8, 12, 16];

pub const RAZOR_MARGIN_PER_DEPTH: Score = 300;
pub const RAZOR_MAX_DEPTH: u8 = 2;

pub const QUIESCENCE_DELTA_MARGIN: Score = 200;

pub const PROBCUT_MIN_DEPTH: u8 = 5;
pub const PROBCUT_MARGIN: Score = 200;
pub const PROBCUT_DEPTH_REDUCTION: u8 = 3;

pub const ENABLE_MULTICUT: bool = true;
/// Must exceed `MULTICUT_DEPTH_REDUCTION`, or the probes are mere quiescence.
pub const MULTICUT_MIN_DEPTH: u8 = 8;
pub const MULTICUT_DEPTH_REDUCTION: u8 = 4;
pub const MULTICUT_MOVES_TO_TRY: u8 = 8;
pub const MULTICUT_REQUIRED_CUTOFFS: u8 = 3;

// ---- search: reductions, extensions, windows --------------------------------

pub const LMR_LEGAL_MOVES_BEFORE_ATTEMPT: u8 = 3;
pub const LMR_MIN_DEPTH: u8 = 3;
pub const LMR_BASE_X1000: u32 = 750;
pub const LMR_DIVISOR_X1000: u32 = 2500;
pub const LMR_CONTINUATION_GOOD_THRESHOLD: i32 = 4000;
pub const LMR_CONTINUATION_BAD_THRESHOLD: i32 = -4000;

pub const IID_MIN_DEPTH: u8 = 4;
pub const IID_REDUCE_DEPTH: u8 = 1;

/// How far below beta passing must fall to call the position a threatened one.
pub const THREAT_EXTENSION_MARGIN: Score = 700;

pub const ASPIRATION_MIN_DEPTH: u8 = 4;
pub const ASPIRATION_RADIUS: [Score; 6] = [25, 50, 100, 200, 400, 800];

// ---- move ordering ----------------------------------------------------------

pub const MOVE_SCORE_KILLER_1: i32 = 9000;
pub const MOVE_SCORE_KILLER_2: i32 = 7000;
pub const MOVE_SCORE_COUNTERMOVE: i32 = 5000;
pub const MOVE_SCORE_PAWN_PUSH_7TH: i32 = 8000;
pub const MOVE_SCORE_PAWN_PUSH_6TH: i32 = 2000;
pub const HISTORY_BONUS_PER_DEPTH: i32 = 200;
pub const HISTORY_BONUS_MAX: i32 = 1600;
pub const CAPTURE_HISTORY_DIVISOR: u16 = 16;

// ---- pawns ------------------------------------------------------------------

pub const DOUBLED_PAWN_PENALTY: Score = 14;
pub const ISOLATED_PAWN_PENALTY: Score = 16;
pub const VALUE_BACKWARD_PAWN_PENALTY: Score = 12;
pub const VALUE_SUPPORTED_PAWN: Score = 10;
pub const VALUE_PHALANX_PAWN: Score = 8;

/// By rank, second to seventh; see the endgame percentage below.
pub const VALUE_PASSED_PAWN_BONUS: [Score; 6] = [
    4,   // second rank
    8,   // third rank
    16,  // fourth rank
    40,  // fifth rank
    85,  // sixth rank
    140, // seventh rank
];
pub const PASSED_PAWN_ENDGAME_PERCENT: Score = 150;
pub const VALUE_CONNECTED_PASSED_PAWNS: [Score; 6] = [4, 6, 10, 18, 35, 60];
pub const VALUE_GUARDED_PASSED_PAWN: Score = 15;
pub const BLOCKED_PASSED_PAWN_PENALTY: Score = 25;
pub const KNIGHT_BLOCKADE_PENALTY: Score = 20; // on top, if the blocker is a knight
pub const VALUE_ROOK_BEHIND_PASSED_PAWN: Score = 20;
pub const VALUE_KING_DISTANCE_PASSED_PAWN_MULTIPLIER: Score = 4;
pub const VALUE_KING_SUPPORTS_PASSED_PAWN: Score = 12;
pub const VALUE_KING_CANNOT_CATCH_PAWN: Score = 600;
pub const VALUE_KING_CANNOT_CATCH_PAWN_PIECES_REMAIN: Score = 40;

// ---- pieces -----------------------------------------------------------------

pub const KNIGHT_MOBILITY_BASE: Score = -36;
pub const KNIGHT_MOBILITY_SCALE_X100: i32 = 1050;
pub const BISHOP_MOBILITY_BASE: Score = -34;
pub const BISHOP_MOBILITY_SCALE_X100: i32 = 900;
pub const ROOK_MOBILITY_BASE: Score = -30;
pub const ROOK_MOBILITY_SCALE_X100: i32 = 700;
pub const QUEEN_MOBILITY_BASE: Score = -24;
pub const QUEEN_MOBILITY_SCALE_X100: i32 = 400;

pub const VALUE_KNIGHT_OUTPOST: Score = 26;
pub const VALUE_BISHOP_OWN_COLOUR_PAWN: Score = -5; // each own pawn on its colour
pub const TRAPPED_BISHOP_PENALTY: Score = 120;
pub const TRAPPED_ROOK_PENALTY: Score = 50;
pub const ROOK_OPEN_FILE_BONUS: Score = 32;
pub const ROOK_SEMI_OPEN_FILE_BONUS: Score = 16;
pub const VALUE_ROOKS_ON_SAME_FILE: Score = 8;
pub const ROOKS_ON_SEVENTH_RANK_BONUS: Score = 20;
pub const SPACE_BONUS_PER_SQUARE: Score = 4;

// ---- threats ----------------------------------------------------------------

pub const PAWN_ATTACKS_PIECE_BONUS: Score = 55;
pub const MINOR_ATTACKS_MAJOR_BONUS: Score = 40;
pub const HANGING_PIECE_BONUS: Score = 32;
pub const KNIGHT_ATTACKS_PAWN_GENERAL_BONUS: Score = 6;
pub const KNIGHT_FORK_THREAT_SCORE: Score = 12;

// ---- kings ------------------------------------------------------------------

pub const KING_THREAT_BONUS_KNIGHT: Score = 12;
pub const KING_THREAT_BONUS_BISHOP: Score = 9;
pub const KING_THREAT_BONUS_ROOK: Score = 11;
pub const KING_THREAT_BONUS_QUEEN: Score = 12;

pub const KING_SAFE_CHECK_BONUS: Score = 16; // per kind of piece that can give one
pub const KING_LINE_EXPOSURE_BONUS: Score = 4; // per square a queen would see from the king
pub const KING_DANGER_SQUARE_DIVISOR: Score = 150; // the smaller, the steeper

/// Weight in percent of those bonuses by the number of attackers, from one.
pub const KING_ATTACKERS_PERCENT: [Score; 4] = [
    15, 60, // one alone seldom mates
    100, 130, // four and more
];

/// Bonus for the own pawn nearest in front of the king, per file, by its
/// distance of one or two ranks.
pub const VALUE_KING_SHIELD: [Score; 2] = [26, 14];
pub const KING_OPEN_FILE_PENALTY: Score = 24; // no own pawn in front on the file
pub const KING_PAWN_STORM_PENALTY: Score = 10; // enemy pawn within three ranks

// ---- tables computed from the above -------------------------------------------

pub const LMR_TABLE: [[u8; 64]; 64] = generate_lmr_table();
pub const VALUE_KNIGHT_MOBILITY: [Score; 9] =
    generate_mobility(KNIGHT_MOBILITY_BASE, KNIGHT_MOBILITY_SCALE_X100);
pub const VALUE_BISHOP_MOBILITY: [Score; 14] =
    generate_mobility(BISHOP_MOBILITY_BASE, BISHOP_MOBILITY_SCALE_X100);
pub const VALUE_ROOK_MOBILITY: [Score; 15] =
    generate_mobility(ROOK_MOBILITY_BASE, ROOK_MOBILITY_SCALE_X100);
pub const VALUE_QUEEN_MOBILITY: [Score; 28] =
    generate_mobility(QUEEN_MOBILITY_BASE, QUEEN_MOBILITY_SCALE_X100);

/// Plies of reduction by depth and move number: base + ln(d) ln(m) / divisor.
const fn generate_lmr_table() -> [[u8; 64]; 64] {
    /// Natural logarithms, times 1000, of 1 to 64 (index 0 stands in for 1).
    const LN_X1000: [u64; 64] = [
        0, 0, 693, 1099, 1386, 1609, 1792, 1946, 2079, 2197, 2303, 2398, 2485, 2565, 2639,
        2708, //
        2773, 2833, 2890, 2944, 2996, 3045, 3091, 3135, 3178, 3219, 3258, 3296, 3332, 3367, 3401,
        3434, 3466, 3497, 3526, 3555, 3584, 3611, 3638, 3664, 3689, 3714, 3738, 3761, 3784, 3807,
        3829, 3850, 3871, 3892, 3912, 3932, 3951, 3970, 3989, 4007, 4025, 4043, 4060, 4078, 4094,
        4111, 4127, 4143,
    ];
    let divisor = if LMR_DIVISOR_X1000 == 0 { 1 } else { LMR_DIVISOR_X1000 as u64 };
    let mut table = [[0; 64]; 64];
    let mut depth = 1;
    while depth < 64 {
        let mut moves = 1;
        while moves < 64 {
            let product_x1000 = LN_X1000[depth] * LN_X1000[moves] / divisor;
            let plies = (LMR_BASE_X1000 as u64 + product_x1000) / 1000;
            table[depth][moves] = if plies > 63 { 63 } else { plies as u8 };
            moves += 1;
        }
        depth += 1;
    }
    table
}

/// A parabola that rises by the scale at first and flattens out near 30 squares.
const fn generate_mobility<const N: usize>(base: Score, scale_x100: i32) -> [Score; N] {
    let mut table = [0; N];
    let mut squares = 0;
    while squares < N {
        let x = squares as i64;
        table[squares] = base + (scale_x100 as i64 * x * (60 - x) / 6000) as Score;
        squares += 1;
    }
    table
}
