//! Sets of squares as 64-bit words: a1 is bit 0, h1 bit 7, h8 bit 63.

use crate::types::{Color, Square};

pub type Bitboard = u64;

pub const FILE_A: Bitboard = 0x0101_0101_0101_0101;
pub const FILE_H: Bitboard = FILE_A << 7;
pub const RANK_1: Bitboard = 0xFF;
pub const RANK_8: Bitboard = RANK_1 << 56;
pub const LIGHT_SQUARES: Bitboard = 0x55AA_55AA_55AA_55AA;
/// Files c to f.
pub const CENTRE_FILES: Bitboard = (FILE_A << 2) | (FILE_A << 3) | (FILE_A << 4) | (FILE_A << 5);

pub const fn bit(square: Square) -> Bitboard {
    1 << square
}

pub const fn file_of(square: Square) -> usize {
    square & 7
}

pub const fn rank_of(square: Square) -> usize {
    square >> 3
}

pub const fn file_bb(square: Square) -> Bitboard {
    FILE_A << file_of(square)
}

pub const fn rank_bb(rank: usize) -> Bitboard {
    RANK_1 << (8 * rank)
}

/// The rank counted from the colour's own side: 0 is its back rank.
pub const fn relative_rank(color: Color, square: Square) -> usize {
    match color {
        Color::White => rank_of(square),
        Color::Black => 7 - rank_of(square),
    }
}

/// The square as white would see it from the colour's side of the board.
pub const fn relative_square(color: Color, square: Square) -> Square {
    match color {
        Color::White => square,
        Color::Black => square ^ 56,
    }
}

pub const fn east(bb: Bitboard) -> Bitboard {
    (bb & !FILE_H) << 1
}

pub const fn west(bb: Bitboard) -> Bitboard {
    (bb & !FILE_A) >> 1
}

/// The set itself and its neighbours on both sides.
pub const fn widen(bb: Bitboard) -> Bitboard {
    bb | east(bb) | west(bb)
}

/// One step towards the opponent.
pub const fn forward(color: Color, bb: Bitboard) -> Bitboard {
    match color {
        Color::White => bb << 8,
        Color::Black => bb >> 8,
    }
}

/// Every square in front of the set, the set itself excluded.
pub const fn forward_fill(color: Color, bb: Bitboard) -> Bitboard {
    let mut fill = forward(color, bb);
    match color {
        Color::White => {
            fill |= fill << 8;
            fill |= fill << 16;
            fill | fill << 32
        }
        Color::Black => {
            fill |= fill >> 8;
            fill |= fill >> 16;
            fill | fill >> 32
        }
    }
}

pub const fn adjacent_files(square: Square) -> Bitboard {
    let file = file_bb(square);
    east(file) | west(file)
}

/// King moves between two squares.
pub fn distance(a: Square, b: Square) -> i32 {
    let files = file_of(a).abs_diff(file_of(b));
    let ranks = rank_of(a).abs_diff(rank_of(b));
    files.max(ranks) as i32
}

/// Iterates over the squares of a set from a1 to h8.
pub struct Squares(pub Bitboard);

impl Iterator for Squares {
    type Item = Square;

    #[inline]
    fn next(&mut self) -> Option<Square> {
        if self.0 == 0 {
            return None;
        }
        let square = self.0.trailing_zeros() as Square;
        self.0 &= self.0 - 1;
        Some(square)
    }
}

/// The only (or lowest) square of a set that is not empty.
pub fn lowest(bb: Bitboard) -> Square {
    (bb.trailing_zeros() & 63) as Square
}

pub fn count(bb: Bitboard) -> i32 {
    bb.count_ones() as i32
}

pub fn has_several(bb: Bitboard) -> bool {
    bb & bb.wrapping_sub(1) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_run_to_the_edge_without_the_start() {
        assert_eq!(forward_fill(Color::White, bit(12)), file_bb(4) & !0xFFFF);
        assert_eq!(forward_fill(Color::Black, bit(12)), bit(4));
    }

    #[test]
    fn neighbours_do_not_wrap_around_the_board() {
        assert_eq!(east(bit(7)), 0);
        assert_eq!(west(bit(8)), 0);
        assert_eq!(adjacent_files(0), FILE_A << 1);
    }

    #[test]
    fn distance_counts_king_moves() {
        assert_eq!(distance(0, 63), 7);
        assert_eq!(distance(0, 8), 1);
        assert_eq!(distance(27, 27), 0);
    }
}
