//! Reading, checking and writing positions in Forsyth-Edwards notation.

use crate::bitboard::*;
use crate::position::*;
use crate::types::*;

pub const START: &str = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1";

const LETTERS: &str = "pnbrqk";

impl Position {
    pub fn start() -> Position {
        Position::from_fen(START).expect("the starting position is legal")
    }

    /// Clocks may be missing; everything else is required and checked.
    pub fn from_fen(fen: &str) -> Result<Position, String> {
        let fields: Vec<&str> = fen.split_whitespace().collect();
        let &[board, side, castling, en_passant, ..] = fields.as_slice() else {
            return Err("fewer than four fields".into());
        };
        let mut position = Position::empty();
        position.read_board(board)?;
        position.side = read_side(side)?;
        position.read_castling(castling)?;
        position.halfmove_clock = read_clock(fields.get(4), 0)?;
        position.fullmove = read_clock(fields.get(5), 1)?.max(1);
        position.check_men()?;
        position.read_en_passant(en_passant)?;
        (position.key, position.pawn_key) = position.keys_from_scratch();
        position.find_checkers();
        if position.is_attacked(position.king(!position.side), position.side, position.occupied()) {
            return Err("the side not to move is in check".into());
        }
        Ok(position)
    }

    fn read_board(&mut self, text: &str) -> Result<(), String> {
        let rows: Vec<&str> = text.split('/').collect();
        if rows.len() != 8 {
            return Err(format!("{} ranks instead of 8", rows.len()));
        }
        for (row, rank) in rows.iter().zip((0..8).rev()) {
            self.read_rank(row, rank)?;
        }
        Ok(())
    }

    fn read_rank(&mut self, row: &str, rank: usize) -> Result<(), String> {
        let mut file = 0;
        for letter in row.chars() {
            if let Some(gap @ 1..=8) = letter.to_digit(10) {
                file += gap as usize;
            } else {
                let kind = LETTERS.find(letter.to_ascii_lowercase());
                let kind = KINDS[kind.ok_or(format!("unknown piece '{letter}'"))?];
                let color = if letter.is_uppercase() { Color::White } else { Color::Black };
                if file < 8 {
                    self.put(color, kind, rank * 8 + file);
                }
                file += 1;
            }
        }
        if file == 8 {
            Ok(())
        } else {
            Err(format!("rank {} has {file} files", rank + 1))
        }
    }

    /// Rights without king and rook at home are dropped in silence.
    fn read_castling(&mut self, text: &str) -> Result<(), String> {
        if text == "-" {
            return Ok(());
        }
        for letter in text.chars() {
            let (right, color, king, rook) = match letter {
                'K' => (WHITE_KINGSIDE, Color::White, 4, 7),
                'Q' => (WHITE_QUEENSIDE, Color::White, 4, 0),
                'k' => (BLACK_KINGSIDE, Color::Black, 60, 63),
                'q' => (BLACK_QUEENSIDE, Color::Black, 60, 56),
                _ => return Err(format!("unknown castling right '{letter}'")),
            };
            let at_home = self.of(color, Kind::King) & bit(king) != 0
                && self.of(color, Kind::Rook) & bit(rook) != 0;
            if at_home {
                self.castling |= right;
            }
        }
        Ok(())
    }

    fn read_en_passant(&mut self, text: &str) -> Result<(), String> {
        if text == "-" {
            return Ok(());
        }
        let square = parse_square(text).ok_or(format!("en passant square '{text}'"))?;
        let pushed = bit(square ^ 8) & self.of(!self.side, Kind::Pawn);
        let clear = self.occupied() & (bit(square) | bit(square ^ 24)) == 0;
        if relative_rank(self.side, square) == 5 && pushed != 0 && clear {
            self.side = !self.side;
            self.allow_en_passant(square);
            self.side = !self.side;
        }
        Ok(())
    }

    fn check_men(&self) -> Result<(), String> {
        for color in [Color::White, Color::Black] {
            if count(self.of(color, Kind::King)) != 1 {
                return Err(format!("{color:?} needs one king"));
            }
            if count(self.colors[color as usize]) > 16 || count(self.of(color, Kind::Pawn)) > 8 {
                return Err(format!("{color:?} has too many men"));
            }
        }
        if self.kinds[Kind::Pawn as usize] & (RANK_1 | RANK_8) != 0 {
            return Err("a pawn on the first or last rank".into());
        }
        Ok(())
    }

    pub fn fen(&self) -> String {
        let board: Vec<String> = (0..8).rev().map(|rank| self.rank_text(rank)).collect();
        let side = if self.side == Color::White { 'w' } else { 'b' };
        let rights: String = "KQkq"
            .chars()
            .enumerate()
            .filter(|(i, _)| self.castling >> i & 1 == 1)
            .map(|(_, c)| c)
            .collect();
        let rights = if rights.is_empty() { "-".into() } else { rights };
        let en_passant = self.en_passant.map_or("-".into(), |square| square_name(square as Square));
        let (halfmove, fullmove) = (self.halfmove_clock, self.fullmove);
        format!("{} {side} {rights} {en_passant} {halfmove} {fullmove}", board.join("/"))
    }

    fn rank_text(&self, rank: usize) -> String {
        let mut text = String::new();
        let mut gap = 0;
        for square in rank * 8..rank * 8 + 8 {
            match self.letter(square) {
                None => gap += 1,
                Some(letter) => {
                    if gap > 0 {
                        text += &gap.to_string();
                    }
                    gap = 0;
                    text.push(letter);
                }
            }
        }
        if gap > 0 {
            text += &gap.to_string();
        }
        text
    }

    fn letter(&self, square: Square) -> Option<char> {
        let letter = LETTERS.as_bytes()[self.kind_at(square)? as usize] as char;
        let white = self.color_at(square) == Some(Color::White);
        Some(if white { letter.to_ascii_uppercase() } else { letter })
    }

    /// A board for human eyes.
    pub fn diagram(&self) -> String {
        let mut text = String::new();
        for rank in (0..8).rev() {
            text += &format!("{} ", rank + 1);
            for file in 0..8 {
                text.push(' ');
                text.push(self.letter(rank * 8 + file).unwrap_or('.'));
            }
            text.push('\n');
        }
        format!("{text}\n   a b c d e f g h\n\nFen: {}\nKey: {:016x}", self.fen(), self.key)
    }

    /// Colours exchanged, board turned: the same game seen from the other side.
    #[cfg(test)]
    pub fn mirrored(&self) -> Position {
        let mut mirror = Position::empty();
        for square in Squares(self.occupied()) {
            if let (Some(color), Some(kind)) = (self.color_at(square), self.kind_at(square)) {
                mirror.put(!color, kind, square ^ 56);
            }
        }
        mirror.side = !self.side;
        mirror.castling = self.castling >> 2 | (self.castling & 3) << 2;
        mirror.en_passant = self.en_passant.map(|square| square ^ 56);
        mirror.halfmove_clock = self.halfmove_clock;
        mirror.fullmove = self.fullmove;
        (mirror.key, mirror.pawn_key) = mirror.keys_from_scratch();
        mirror.find_checkers();
        mirror
    }
}

fn read_side(text: &str) -> Result<Color, String> {
    match text {
        "w" => Ok(Color::White),
        "b" => Ok(Color::Black),
        _ => Err(format!("side to move '{text}'")),
    }
}

fn read_clock(field: Option<&&str>, default: u16) -> Result<u16, String> {
    field.map_or(Ok(default), |text| text.parse().map_err(|_| format!("move counter '{text}'")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fens_read_back() {
        for fen in [
            START,
            "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
            "rnbqkbnr/ppp1p1pp/8/3pPp2/8/8/PPPP1PPP/RNBQKBNR w KQkq f6 0 3",
            "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 12 40",
        ] {
            assert_eq!(Position::from_fen(fen).unwrap().fen(), fen);
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for fen in [
            "",
            "8/8/8/8/8/8/8/8 w - - 0 1",
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP w KQkq - 0 1",
            "rnbqkbnr/ppppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
            "rnbqkbnx/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR x KQkq - 0 1",
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KXkq - 0 1",
            "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - a 1",
            "4k3/8/8/8/8/8/4R3/4K3 w - - 0 1",
            "P3k3/8/8/8/8/8/8/4K3 w - - 0 1",
            "QQQQkQQQ/QQQQQQQQ/QQQQQQQQ/8/8/8/8/4K3 b - - 0 1",
        ] {
            assert!(Position::from_fen(fen).is_err(), "{fen}");
        }
    }

    #[test]
    fn rights_that_cannot_be_are_dropped() {
        let position = Position::from_fen("4k3/8/8/8/8/8/8/4K2R w KQkq e6 0 1").unwrap();
        assert_eq!(position.fen(), "4k3/8/8/8/8/8/8/4K2R w K - 0 1");
    }
}
