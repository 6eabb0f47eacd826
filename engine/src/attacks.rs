//! Attack sets. Sliding pieces use hyperbola quintessence (the o^(o-2r)
//! trick) and a 512-byte table for ranks: nothing to initialise, nothing that
//! crowds the cache.

use crate::bitboard::*;
use crate::types::{Color, Kind, Square};

const KNIGHT_STEPS: [(i32, i32); 8] =
    [(1, 2), (2, 1), (2, -1), (1, -2), (-1, -2), (-2, -1), (-2, 1), (-1, 2)];
const KING_STEPS: [(i32, i32); 8] =
    [(1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1)];

static KNIGHT: [Bitboard; 64] = step_table(&KNIGHT_STEPS);
static KING: [Bitboard; 64] = step_table(&KING_STEPS);
static DIAGONAL: [Bitboard; 64] = line_table(1);
static ANTI_DIAGONAL: [Bitboard; 64] = line_table(-1);
static RANK_ATTACKS: [[u8; 8]; 64] = rank_table();

const fn step_table(steps: &[(i32, i32); 8]) -> [Bitboard; 64] {
    let mut table = [0; 64];
    let mut square = 0;
    while square < 64 {
        let mut i = 0;
        while i < 8 {
            let file = file_of(square) as i32 + steps[i].0;
            let rank = rank_of(square) as i32 + steps[i].1;
            if 0 <= file && file < 8 && 0 <= rank && rank < 8 {
                table[square] |= bit((rank * 8 + file) as usize);
            }
            i += 1;
        }
        square += 1;
    }
    table
}

/// The diagonals (slope 1) or anti-diagonals (slope -1), own square excluded.
const fn line_table(slope: i32) -> [Bitboard; 64] {
    let mut table = [0; 64];
    let mut square = 0;
    while square < 64 {
        let mut file = 0;
        while file < 8 {
            let steps = file - file_of(square) as i32;
            let rank = rank_of(square) as i32 + slope * steps;
            if steps != 0 && 0 <= rank && rank < 8 {
                table[square] |= bit((rank * 8 + file) as usize);
            }
            file += 1;
        }
        square += 1;
    }
    table
}

/// Attacks along a rank by the occupancy of its six inner squares and the file.
const fn rank_table() -> [[u8; 8]; 64] {
    let mut table = [[0; 8]; 64];
    let mut inner = 0;
    while inner < 64 {
        let mut file = 0;
        while file < 8 {
            table[inner][file] = rank_attacks(inner << 1, file);
            file += 1;
        }
        inner += 1;
    }
    table
}

const fn rank_attacks(occupied: usize, file: usize) -> u8 {
    let mut attacks = 0;
    let mut east = file + 1;
    while east < 8 {
        attacks |= 1 << east;
        if occupied >> east & 1 == 1 {
            break;
        }
        east += 1;
    }
    let mut west = file;
    while west > 0 {
        west -= 1;
        attacks |= 1 << west;
        if occupied >> west & 1 == 1 {
            break;
        }
    }
    attacks as u8
}

#[inline]
fn along(occupied: Bitboard, square: Square, mask: Bitboard) -> Bitboard {
    let slider = bit(square);
    let blockers = occupied & mask;
    let up = blockers.wrapping_sub(slider << 1);
    let down = blockers.swap_bytes().wrapping_sub(slider.swap_bytes() << 1).swap_bytes();
    (up ^ down) & mask
}

#[inline]
pub fn bishop(square: Square, occupied: Bitboard) -> Bitboard {
    let square = square & 63;
    along(occupied, square, DIAGONAL[square]) | along(occupied, square, ANTI_DIAGONAL[square])
}

#[inline]
pub fn rook(square: Square, occupied: Bitboard) -> Bitboard {
    let square = square & 63;
    let shift = square & 56;
    let inner = (occupied >> (shift + 1)) & 63;
    let rank = (RANK_ATTACKS[inner as usize][square & 7] as Bitboard) << shift;
    rank | along(occupied, square, file_bb(square) & !bit(square))
}

#[inline]
pub fn queen(square: Square, occupied: Bitboard) -> Bitboard {
    bishop(square, occupied) | rook(square, occupied)
}

#[inline]
pub fn knight(square: Square) -> Bitboard {
    KNIGHT[square & 63]
}

#[inline]
pub fn king(square: Square) -> Bitboard {
    KING[square & 63]
}

/// Squares attacked by a set of pawns.
#[inline]
pub fn pawns(color: Color, pawns: Bitboard) -> Bitboard {
    let ahead = forward(color, pawns);
    east(ahead) | west(ahead)
}

/// Squares attacked by a piece other than a pawn.
#[inline]
pub fn piece(kind: Kind, square: Square, occupied: Bitboard) -> Bitboard {
    match kind {
        Kind::Pawn => 0,
        Kind::Knight => knight(square),
        Kind::Bishop => bishop(square, occupied),
        Kind::Rook => rook(square, occupied),
        Kind::Queen => queen(square, occupied),
        Kind::King => king(square),
    }
}

/// Squares strictly between two squares on a common line; empty otherwise.
pub fn between(a: Square, b: Square) -> Bitboard {
    let (from_a, from_b) = (bit(a), bit(b));
    if rook(a, 0) & from_b != 0 {
        rook(a, from_b) & rook(b, from_a)
    } else if bishop(a, 0) & from_b != 0 {
        bishop(a, from_b) & bishop(b, from_a)
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(square: Square, occupied: Bitboard, steps: &[(i32, i32)]) -> Bitboard {
        let mut attacks = 0;
        for &(df, dr) in steps {
            let (mut file, mut rank) = (file_of(square) as i32 + df, rank_of(square) as i32 + dr);
            while (0..8).contains(&file) && (0..8).contains(&rank) {
                let target = bit((rank * 8 + file) as usize);
                attacks |= target;
                if occupied & target != 0 {
                    break;
                }
                file += df;
                rank += dr;
            }
        }
        attacks
    }

    #[test]
    fn sliders_agree_with_walking_the_board() {
        let mut occupied: Bitboard = 0x9E37_79B9_7F4A_7C15;
        for _ in 0..500 {
            occupied ^= occupied << 13;
            occupied ^= occupied >> 7;
            occupied ^= occupied << 17;
            for square in 0..64 {
                let sparse = occupied & occupied.rotate_left(21);
                for occ in [occupied, sparse] {
                    let straight = walk(square, occ, &[(1, 0), (-1, 0), (0, 1), (0, -1)]);
                    let oblique = walk(square, occ, &[(1, 1), (-1, 1), (1, -1), (-1, -1)]);
                    assert_eq!(rook(square, occ), straight);
                    assert_eq!(bishop(square, occ), oblique);
                }
            }
        }
    }

    #[test]
    fn between_is_symmetric_and_excludes_the_ends() {
        assert_eq!(between(0, 7), 0x7E);
        assert_eq!(between(0, 63), between(63, 0));
        assert_eq!(between(0, 17), 0);
        assert_eq!(between(0, 1), 0);
    }
}
