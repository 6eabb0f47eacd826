//! Legal moves. Pins and checks are found first, so that nothing has to be
//! made and taken back.

use crate::attacks;
use crate::bitboard::*;
use crate::position::*;
use crate::types::*;

/// No legal position of at most 16 men a side has more than 218 moves; men
/// placed by a hand-written FEN stay below 256 as well.
const CAPACITY: usize = 256;

pub struct MoveList {
    moves: [Move; CAPACITY],
    len: usize,
}

impl MoveList {
    fn new() -> MoveList {
        MoveList { moves: [Move::NONE; CAPACITY], len: 0 }
    }

    #[inline]
    fn push(&mut self, mv: Move) {
        if self.len < CAPACITY {
            self.moves[self.len] = mv;
            self.len += 1;
        }
    }

    pub fn as_slice(&self) -> &[Move] {
        &self.moves[..self.len]
    }
}

/// Every legal move.
pub fn legal_moves(position: &Position) -> MoveList {
    Generator::new(position, !0).run()
}

/// Legal captures and promotions to a queen by a push.
pub fn legal_captures(position: &Position) -> MoveList {
    Generator::new(position, position.them()).run()
}

struct Generator<'a> {
    position: &'a Position,
    us: Color,
    king: Square,
    occupied: Bitboard,
    /// Where pieces may go: not onto their own, captures only if so asked.
    wanted: Bitboard,
    captures_only: bool,
    /// Where a piece other than the king must go to parry a check.
    parry: Bitboard,
    pinned: Bitboard,
    list: MoveList,
}

impl<'a> Generator<'a> {
    fn new(position: &'a Position, targets: Bitboard) -> Generator<'a> {
        let us = position.side;
        let king = position.king(us);
        Generator {
            position,
            us,
            king,
            occupied: position.occupied(),
            wanted: targets & !position.us(),
            captures_only: targets != !0,
            parry: parry_mask(position, king),
            pinned: pinned(position, us, king),
            list: MoveList::new(),
        }
    }

    fn run(mut self) -> MoveList {
        self.king_moves();
        if self.parry != 0 {
            self.pawn_moves();
            for kind in [Kind::Knight, Kind::Bishop, Kind::Rook, Kind::Queen] {
                self.piece_moves(kind);
            }
            self.castling();
        }
        self.list
    }

    /// Where a pinned piece may go: along the line through its king.
    fn pin_line(&self, from: Square) -> Bitboard {
        if self.pinned & bit(from) == 0 {
            !0
        } else {
            line_through(self.king, from)
        }
    }

    fn add(&mut self, from: Square, targets: Bitboard) {
        let them = self.position.them();
        for to in Squares(targets & them) {
            self.list.push(Move::new(from, to, Move::CAPTURE));
        }
        for to in Squares(targets & !them) {
            self.list.push(Move::new(from, to, Move::QUIET));
        }
    }

    fn king_moves(&mut self) {
        let without_king = self.occupied ^ bit(self.king);
        let mut safe = 0;
        for to in Squares(attacks::king(self.king) & self.wanted) {
            if !self.position.is_attacked(to, !self.us, without_king) {
                safe |= bit(to);
            }
        }
        self.add(self.king, safe);
    }

    fn piece_moves(&mut self, kind: Kind) {
        for from in Squares(self.position.of(self.us, kind)) {
            let targets = attacks::piece(kind, from, self.occupied) & self.wanted & self.parry;
            self.add(from, targets & self.pin_line(from));
        }
    }

    fn pawn_moves(&mut self) {
        let last = RANK_1 | RANK_8;
        for from in Squares(self.position.of(self.us, Kind::Pawn)) {
            let allowed = self.parry & self.pin_line(from);
            let captures = attacks::pawns(self.us, bit(from)) & self.position.them() & allowed;
            for to in Squares(captures) {
                self.pawn_move(from, to, Move::CAPTURE, bit(to) & last != 0);
            }
            let push = forward(self.us, bit(from)) & !self.occupied;
            let promotes = push & last != 0;
            if push & allowed != 0 && (promotes || !self.captures_only) {
                self.pawn_move(from, lowest(push), Move::QUIET, promotes);
            }
            if !self.captures_only && relative_rank(self.us, from) == 1 {
                let double = forward(self.us, push) & !self.occupied & allowed;
                for to in Squares(double) {
                    self.list.push(Move::new(from, to, Move::DOUBLE_PUSH));
                }
            }
        }
        self.en_passant();
    }

    fn pawn_move(&mut self, from: Square, to: Square, flags: u16, promotes: bool) {
        if !promotes {
            self.list.push(Move::new(from, to, flags));
            return;
        }
        self.list.push(Move::new(from, to, flags | Move::PROMOTION | 3));
        if !self.captures_only {
            for piece in 0..3 {
                self.list.push(Move::new(from, to, flags | Move::PROMOTION | piece));
            }
        }
    }

    /// Two pawns leave a rank at once, so the capture is tried on the board.
    fn en_passant(&mut self) {
        let Some(to) = self.position.en_passant.map(|square| square as Square) else { return };
        let captured = bit(to ^ 8);
        let pawns = self.position.of(self.us, Kind::Pawn);
        for from in Squares(attacks::pawns(!self.us, bit(to)) & pawns) {
            let occupied = (self.occupied ^ bit(from) ^ captured) | bit(to);
            let attackers = self.position.attackers_to(self.king, occupied);
            if attackers & self.position.them() & !captured & occupied == 0 {
                self.list.push(Move::new(from, to, Move::EN_PASSANT));
            }
        }
    }

    fn castling(&mut self) {
        if self.position.in_check() || self.captures_only {
            return;
        }
        let (kingside, queenside) = match self.us {
            Color::White => (WHITE_KINGSIDE, WHITE_QUEENSIDE),
            Color::Black => (BLACK_KINGSIDE, BLACK_QUEENSIDE),
        };
        if self.position.castling & kingside != 0 {
            self.castle(self.king + 1, self.king + 2, self.king + 3);
        }
        if self.position.castling & queenside != 0 {
            self.castle(self.king - 1, self.king - 2, self.king - 4);
        }
    }

    fn castle(&mut self, over: Square, to: Square, rook: Square) {
        let attacked = |square| self.position.is_attacked(square, !self.us, self.occupied);
        let clear = attacks::between(self.king, rook) & self.occupied == 0;
        if clear && !attacked(over) && !attacked(to) {
            self.list.push(Move::new(self.king, to, Move::CASTLING));
        }
    }
}

/// Everything without check, the checker and the line from it with one,
/// nothing with two.
fn parry_mask(position: &Position, king: Square) -> Bitboard {
    match position.checkers {
        0 => !0,
        several if has_several(several) => 0,
        checker => checker | attacks::between(king, lowest(checker)),
    }
}

/// The colour's own pieces that shield its king from a slider.
pub fn pinned(position: &Position, us: Color, king: Square) -> Bitboard {
    let queens = position.of(!us, Kind::Queen);
    let diagonal = position.of(!us, Kind::Bishop) | queens;
    let straight = position.of(!us, Kind::Rook) | queens;
    let snipers = attacks::bishop(king, 0) & diagonal | attacks::rook(king, 0) & straight;
    let mut pinned = 0;
    for sniper in Squares(snipers) {
        let shield = attacks::between(king, sniper) & position.occupied();
        if !has_several(shield) {
            pinned |= shield & position.colors[us as usize];
        }
    }
    pinned
}

/// The whole line through two aligned squares.
fn line_through(a: Square, b: Square) -> Bitboard {
    let ends = bit(a) | bit(b);
    if attacks::rook(a, 0) & bit(b) != 0 {
        attacks::rook(a, 0) & attacks::rook(b, 0) | ends
    } else {
        attacks::bishop(a, 0) & attacks::bishop(b, 0) | ends
    }
}
