//! Colours, kinds of pieces, moves.

use std::fmt;
use std::ops::Not;

pub type Square = usize;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Color {
    White,
    Black,
}

impl Not for Color {
    type Output = Color;

    fn not(self) -> Color {
        match self {
            Color::White => Color::Black,
            Color::Black => Color::White,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub enum Kind {
    Pawn,
    Knight,
    Bishop,
    Rook,
    Queen,
    King,
}

pub const KINDS: [Kind; 6] =
    [Kind::Pawn, Kind::Knight, Kind::Bishop, Kind::Rook, Kind::Queen, Kind::King];

pub const PROMOTIONS: [Kind; 4] = [Kind::Knight, Kind::Bishop, Kind::Rook, Kind::Queen];

pub fn square_name(square: Square) -> String {
    let file = (b'a' + (square & 7) as u8) as char;
    let rank = (b'1' + (square >> 3) as u8) as char;
    format!("{file}{rank}")
}

pub fn parse_square(text: &str) -> Option<Square> {
    let &[file @ b'a'..=b'h', rank @ b'1'..=b'8'] = text.as_bytes() else {
        return None;
    };
    Some((rank - b'1') as Square * 8 + (file - b'a') as Square)
}

/// From, to and four flag bits: 8 promotion, 4 capture; the low two bits name
/// the promotion piece or mark double pushes (1), castling (2), en passant (5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Move(pub u16);

impl Move {
    pub const NONE: Move = Move(0);
    pub const QUIET: u16 = 0;
    pub const DOUBLE_PUSH: u16 = 1;
    pub const CASTLING: u16 = 2;
    pub const CAPTURE: u16 = 4;
    pub const EN_PASSANT: u16 = 5;
    pub const PROMOTION: u16 = 8;

    #[inline]
    pub const fn new(from: Square, to: Square, flags: u16) -> Move {
        Move(from as u16 | (to as u16) << 6 | flags << 12)
    }

    #[inline]
    pub const fn from(self) -> Square {
        (self.0 & 63) as Square
    }

    #[inline]
    pub const fn to(self) -> Square {
        ((self.0 >> 6) & 63) as Square
    }

    #[inline]
    pub const fn flags(self) -> u16 {
        self.0 >> 12
    }

    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    pub const fn is_en_passant(self) -> bool {
        self.flags() == Move::EN_PASSANT
    }

    /// Neither a capture nor a promotion.
    pub const fn is_quiet(self) -> bool {
        self.flags() & (Move::CAPTURE | Move::PROMOTION) == 0
    }

    pub fn promotion(self) -> Option<Kind> {
        (self.flags() & Move::PROMOTION != 0).then(|| PROMOTIONS[(self.flags() & 3) as usize])
    }
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if self.is_none() {
            return f.write_str("0000");
        }
        write!(f, "{}{}", square_name(self.from()), square_name(self.to()))?;
        match self.promotion() {
            Some(kind) => write!(f, "{}", ['p', 'n', 'b', 'r', 'q', 'k'][kind as usize]),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_read_back() {
        for square in 0..64 {
            assert_eq!(parse_square(&square_name(square)), Some(square));
        }
        assert_eq!(parse_square("i1"), None);
        assert_eq!(parse_square("a9"), None);
        assert_eq!(parse_square("a1b"), None);
    }

    #[test]
    fn moves_print_as_uci() {
        assert_eq!(Move::new(12, 28, Move::DOUBLE_PUSH).to_string(), "e2e4");
        assert_eq!(Move::new(52, 60, Move::PROMOTION | 3).to_string(), "e7e8q");
        assert_eq!(Move::NONE.to_string(), "0000");
    }
}
