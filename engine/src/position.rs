//! The board and the rules of making a move. Positions are copied, not undone.

use crate::attacks;
use crate::bitboard::*;
use crate::types::*;
use crate::zobrist;

pub const WHITE_KINGSIDE: u8 = 1;
pub const WHITE_QUEENSIDE: u8 = 2;
pub const BLACK_KINGSIDE: u8 = 4;
pub const BLACK_QUEENSIDE: u8 = 8;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    pub kinds: [Bitboard; 6],
    pub colors: [Bitboard; 2],
    board: [Option<Kind>; 64],
    pub side: Color,
    pub castling: u8,
    /// Set only when a pawn stands ready to capture.
    pub en_passant: Option<u8>,
    pub halfmove_clock: u16,
    pub fullmove: u16,
    pub key: u64,
    pub pawn_key: u64,
    /// The opponent's pieces that give check to the side to move.
    pub checkers: Bitboard,
}

/// The rights that survive a move from or to the square.
const fn rights_kept(square: Square) -> u8 {
    match square {
        0 => !WHITE_QUEENSIDE,
        4 => !(WHITE_KINGSIDE | WHITE_QUEENSIDE),
        7 => !WHITE_KINGSIDE,
        56 => !BLACK_QUEENSIDE,
        60 => !(BLACK_KINGSIDE | BLACK_QUEENSIDE),
        63 => !BLACK_KINGSIDE,
        _ => !0,
    }
}

/// Where the rook goes when the king castles to the square.
pub fn castling_rook(king_to: Square) -> (Square, Square) {
    if file_of(king_to) == 6 {
        (king_to + 1, king_to - 1)
    } else {
        (king_to - 2, king_to + 1)
    }
}

impl Position {
    pub fn empty() -> Position {
        Position {
            kinds: [0; 6],
            colors: [0; 2],
            board: [None; 64],
            side: Color::White,
            castling: 0,
            en_passant: None,
            halfmove_clock: 0,
            fullmove: 1,
            key: 0,
            pawn_key: 0,
            checkers: 0,
        }
    }

    #[inline]
    pub fn occupied(&self) -> Bitboard {
        self.colors[0] | self.colors[1]
    }

    #[inline]
    pub fn of(&self, color: Color, kind: Kind) -> Bitboard {
        self.colors[color as usize] & self.kinds[kind as usize]
    }

    #[inline]
    pub fn us(&self) -> Bitboard {
        self.colors[self.side as usize]
    }

    #[inline]
    pub fn them(&self) -> Bitboard {
        self.colors[!self.side as usize]
    }

    #[inline]
    pub fn king(&self, color: Color) -> Square {
        lowest(self.of(color, Kind::King))
    }

    #[inline]
    pub fn kind_at(&self, square: Square) -> Option<Kind> {
        self.board[square & 63]
    }

    pub fn color_at(&self, square: Square) -> Option<Color> {
        if self.colors[0] & bit(square) != 0 {
            Some(Color::White)
        } else if self.colors[1] & bit(square) != 0 {
            Some(Color::Black)
        } else {
            None
        }
    }

    #[inline]
    pub fn in_check(&self) -> bool {
        self.checkers != 0
    }

    /// Does the colour own anything but pawns and the king?
    pub fn has_pieces(&self, color: Color) -> bool {
        let few = self.kinds[Kind::Pawn as usize] | self.kinds[Kind::King as usize];
        self.colors[color as usize] & !few != 0
    }

    /// The kind captured by a move; en passant captures a pawn.
    #[inline]
    pub fn captured(&self, mv: Move) -> Option<Kind> {
        if mv.is_en_passant() {
            Some(Kind::Pawn)
        } else {
            self.kind_at(mv.to())
        }
    }

    /// The pieces of both colours that attack a square.
    pub fn attackers_to(&self, square: Square, occupied: Bitboard) -> Bitboard {
        let queens = self.kinds[Kind::Queen as usize];
        let target = bit(square);
        attacks::pawns(Color::Black, target) & self.of(Color::White, Kind::Pawn)
            | attacks::pawns(Color::White, target) & self.of(Color::Black, Kind::Pawn)
            | attacks::knight(square) & self.kinds[Kind::Knight as usize]
            | attacks::king(square) & self.kinds[Kind::King as usize]
            | attacks::bishop(square, occupied) & (self.kinds[Kind::Bishop as usize] | queens)
            | attacks::rook(square, occupied) & (self.kinds[Kind::Rook as usize] | queens)
    }

    /// Is the square attacked by the colour, given an occupancy?
    pub fn is_attacked(&self, square: Square, by: Color, occupied: Bitboard) -> bool {
        let queens = self.of(by, Kind::Queen);
        attacks::knight(square) & self.of(by, Kind::Knight) != 0
            || attacks::pawns(!by, bit(square)) & self.of(by, Kind::Pawn) != 0
            || attacks::king(square) & self.of(by, Kind::King) != 0
            || attacks::bishop(square, occupied) & (self.of(by, Kind::Bishop) | queens) != 0
            || attacks::rook(square, occupied) & (self.of(by, Kind::Rook) | queens) != 0
    }

    pub fn put(&mut self, color: Color, kind: Kind, square: Square) {
        self.board[square & 63] = Some(kind);
        self.toggle(color, kind, square);
    }

    fn remove(&mut self, color: Color, kind: Kind, square: Square) {
        self.board[square & 63] = None;
        self.toggle(color, kind, square);
    }

    #[inline]
    fn toggle(&mut self, color: Color, kind: Kind, square: Square) {
        self.kinds[kind as usize] ^= bit(square);
        self.colors[color as usize] ^= bit(square);
        let key = zobrist::piece(color, kind, square);
        self.key ^= key;
        if kind == Kind::Pawn {
            self.pawn_key ^= key;
        }
    }

    /// The position after a legal move.
    pub fn after(&self, mv: Move) -> Position {
        let mut next = *self;
        next.start_turn();
        next.move_pieces(mv);
        next.lose_rights(mv);
        next.finish_turn();
        next
    }

    /// The position after passing. Not to be used in check.
    pub fn after_null(&self) -> Position {
        let mut next = *self;
        next.start_turn();
        next.finish_turn();
        next
    }

    fn start_turn(&mut self) {
        if let Some(square) = self.en_passant.take() {
            self.key ^= zobrist::en_passant(square as Square);
        }
        self.halfmove_clock = self.halfmove_clock.saturating_add(1);
    }

    fn move_pieces(&mut self, mv: Move) {
        let (from, to, us) = (mv.from(), mv.to(), self.side);
        let Some(kind) = self.kind_at(from) else { return };
        if let Some(captured) = self.captured(mv) {
            let square = if mv.is_en_passant() { to ^ 8 } else { to };
            self.remove(!us, captured, square);
            self.halfmove_clock = 0;
        }
        self.remove(us, kind, from);
        self.put(us, mv.promotion().unwrap_or(kind), to);
        if kind == Kind::Pawn {
            self.halfmove_clock = 0;
        }
        match mv.flags() {
            Move::CASTLING => {
                let (rook_from, rook_to) = castling_rook(to);
                self.remove(us, Kind::Rook, rook_from);
                self.put(us, Kind::Rook, rook_to);
            }
            Move::DOUBLE_PUSH => self.allow_en_passant(to ^ 8),
            _ => {}
        }
    }

    /// Notes an en passant square for the opponent if one of its pawns can use it.
    pub fn allow_en_passant(&mut self, square: Square) {
        let capturers = attacks::pawns(self.side, bit(square)) & self.of(!self.side, Kind::Pawn);
        if capturers != 0 {
            self.en_passant = Some(square as u8);
            self.key ^= zobrist::en_passant(square);
        }
    }

    fn lose_rights(&mut self, mv: Move) {
        let kept = self.castling & rights_kept(mv.from()) & rights_kept(mv.to());
        if kept != self.castling {
            self.key ^= zobrist::castling(self.castling) ^ zobrist::castling(kept);
            self.castling = kept;
        }
    }

    fn finish_turn(&mut self) {
        if self.side == Color::Black {
            self.fullmove = self.fullmove.saturating_add(1);
        }
        self.side = !self.side;
        self.key ^= zobrist::black_to_move();
        self.find_checkers();
    }

    pub fn find_checkers(&mut self) {
        self.checkers = self.attackers_to(self.king(self.side), self.occupied()) & self.them();
    }

    /// Key and pawn key computed from nothing, to check the incremental ones.
    pub fn keys_from_scratch(&self) -> (u64, u64) {
        let (mut key, mut pawn_key) = (zobrist::castling(self.castling), 0);
        for color in [Color::White, Color::Black] {
            for kind in KINDS {
                for square in Squares(self.of(color, kind)) {
                    key ^= zobrist::piece(color, kind, square);
                    if kind == Kind::Pawn {
                        pawn_key ^= zobrist::piece(color, kind, square);
                    }
                }
            }
        }
        if let Some(square) = self.en_passant {
            key ^= zobrist::en_passant(square as Square);
        }
        if self.side == Color::Black {
            key ^= zobrist::black_to_move();
        }
        (key, pawn_key)
    }

    /// Neither side can mate by any series of legal moves, or almost: bare
    /// kings, or a single minor piece.
    pub fn is_insufficient_material(&self) -> bool {
        let heavy = [Kind::Pawn, Kind::Rook, Kind::Queen];
        heavy.iter().all(|&kind| self.kinds[kind as usize] == 0) && count(self.occupied()) <= 3
    }
}
