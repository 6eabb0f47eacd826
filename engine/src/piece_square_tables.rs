//! Bonuses by square, on top of the piece values. One half of the board is
//! written down, files a to d; the other half mirrors it. Rank 1 comes first.

use crate::engine_constants::{Score, ScorePair};
use crate::types::{Kind, Square};

type Half = [[ScorePair; 4]; 8];

#[cfg(not(feature = "options"))]
pub fn bonus(kind: Kind, relative_square: Square) -> ScorePair {
    TABLES[kind as usize][relative_square & 63]
}

#[cfg(feature = "options")]
pub use loaded::{bonus, load};

/// Tables of a file in the place of those below, by the option `EvalFile`.
#[cfg(feature = "options")]
mod loaded {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

    use super::{Kind, Score, ScorePair, Square, TABLES};

    const BYTES: usize = 6 * 8 * 4 * 4;
    #[allow(clippy::declare_interior_mutable_const)]
    const NONE: AtomicU32 = AtomicU32::new(0);
    #[allow(clippy::declare_interior_mutable_const)]
    const EMPTY: [AtomicU32; 64] = [NONE; 64];

    static LOADED: [[AtomicU32; 64]; 6] = [EMPTY; 6];
    static IS_LOADED: AtomicBool = AtomicBool::new(false);

    pub fn bonus(kind: Kind, relative_square: Square) -> ScorePair {
        if !IS_LOADED.load(Relaxed) {
            return TABLES[kind as usize][relative_square & 63];
        }
        let both = LOADED[kind as usize][relative_square & 63].load(Relaxed);
        (Score::from(both as i16), Score::from((both >> 16) as i16))
    }

    /// Reads the tables in the order of those below, from the pawn's to the king's. Each bonus is
    /// two signed numbers of 16 bits, the opening's first, the lower byte first.
    pub fn load(path: &str) -> Result<(), String> {
        let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
        if bytes.len() != BYTES {
            return Err(format!("it has {} bytes, not {BYTES}", bytes.len()));
        }
        let pairs: Vec<u32> = bytes
            .chunks_exact(4)
            .map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
            .collect();
        for (kind, table) in LOADED.iter().enumerate() {
            for (square, place) in table.iter().enumerate() {
                let (rank, file) = (square / 8, square % 8);
                place.store(pairs[(kind * 8 + rank) * 4 + file.min(7 - file)], Relaxed);
            }
        }
        IS_LOADED.store(true, Relaxed);
        Ok(())
    }
}

static TABLES: [[ScorePair; 64]; 6] =
    [unfold(&PAWN), unfold(&KNIGHT), unfold(&BISHOP), unfold(&ROOK), unfold(&QUEEN), unfold(&KING)];

const fn unfold(half: &Half) -> [ScorePair; 64] {
    let mut table: [ScorePair; 64] = [(0, 0); 64];
    let mut square = 0;
    while square < 64 {
        let file = square % 8;
        let column = if file < 4 { file } else { 7 - file };
        table[square] = half[square / 8][column];
        square += 1;
    }
    table
}

const NONE: ScorePair = (0, 0);

const PAWN: Half = [
    [NONE, NONE, NONE, NONE],
    [(0, 6), (4, 6), (2, 6), (-8, 6)],
    [(-4, 2), (-2, 2), (4, 0), (4, -2)],
    [(-6, 6), (-4, 4), (12, -4), (24, -8)],
    [(-2, 14), (4, 12), (12, 2), (26, -2)],
    [(4, 36), (14, 34), (28, 24), (36, 18)],
    [(30, 60), (40, 56), (46, 48), (50, 44)],
    [NONE, NONE, NONE, NONE],
];

const KNIGHT: Half = [
    [(-110, -76), (-60, -52), (-48, -36), (-40, -22)],
    [(-50, -50), (-30, -34), (-14, -16), (-6, 4)],
    [(-36, -34), (-8, -18), (10, -4), (16, 18)],
    [(-22, -24), (8, 0), (26, 12), (34, 24)],
    [(-16, -24), (18, 0), (36, 14), (44, 26)],
    [(-6, -36), (24, -20), (48, 0), (50, 16)],
    [(-50, -50), (-16, -34), (14, -22), (28, 8)],
    [(-140, -84), (-70, -60), (-50, -42), (-26, -20)],
];

const BISHOP: Half = [
    [(-34, -36), (-10, -22), (-14, -22), (-18, -10)],
    [(-12, -22), (14, -12), (8, -6), (4, 0)],
    [(-4, -12), (14, -2), (8, 4), (12, 10)],
    [(-4, -10), (8, 0), (16, 6), (26, 14)],
    [(-8, -10), (14, 2), (20, 6), (30, 14)],
    [(-8, -12), (6, 2), (12, 6), (16, 10)],
    [(-24, -18), (-16, -8), (-2, -2), (0, 4)],
    [(-40, -30), (-14, -24), (-22, -20), (-22, -12)],
];

const ROOK: Half = [
    [(-18, -8), (-12, -8), (2, -6), (12, -8)],
    [(-24, -8), (-12, -8), (-8, -4), (0, -4)],
    [(-24, -2), (-12, -6), (-6, -4), (-2, -6)],
    [(-18, 2), (-8, 0), (-6, 2), (0, 0)],
    [(-12, 4), (-4, 4), (4, 4), (10, 2)],
    [(-4, 6), (12, 4), (16, 2), (20, 2)],
    [(10, 12), (16, 12), (24, 12), (28, 8)],
    [(10, 12), (8, 12), (6, 14), (14, 10)],
];

const QUEEN: Half = [
    [(-6, -54), (-10, -46), (-6, -40), (4, -32)],
    [(-8, -46), (2, -32), (8, -22), (8, -8)],
    [(-4, -34), (6, -16), (6, -4), (2, 4)],
    [(-4, -20), (2, 4), (2, 14), (-4, 24)],
    [(-6, -14), (-4, 10), (-2, 22), (-6, 34)],
    [(-4, -24), (2, -4), (6, 14), (6, 22)],
    [(-14, -30), (-22, -10), (2, 4), (4, 18)],
    [(-2, -36), (4, -20), (8, -12), (12, -4)],
];

const KING: Half = [
    [(48, -76), (64, -46), (20, -34), (0, -36)],
    [(38, -34), (36, -16), (-8, -4), (-24, -2)],
    [(-20, -18), (-20, -2), (-44, 12), (-56, 16)],
    [(-44, -8), (-40, 12), (-60, 24), (-72, 28)],
    [(-50, 0), (-40, 24), (-56, 32), (-70, 34)],
    [(-40, 4), (-24, 30), (-40, 36), (-56, 36)],
    [(-40, -10), (-24, 18), (-36, 22), (-44, 24)],
    [(-50, -50), (-36, -22), (-44, -10), (-56, -6)],
];

/// How far the loser's king stands from the centre, for mopping up.
pub fn edge_distance_bonus(square: Square) -> Score {
    let off = |coordinate: usize| (2 * coordinate as Score - 7).abs() / 2;
    off(square & 7) + off(square >> 3)
}
