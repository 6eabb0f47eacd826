//! Pawn structure: everything that depends on pawns alone, kept in a table.

use crate::attacks;
use crate::bitboard::*;
use crate::engine_constants::*;
use crate::piece_square_tables;
use crate::position::Position;
use crate::tapered::*;
use crate::types::*;

#[derive(Clone, Copy, Default)]
pub struct PawnStructure {
    key: u64,
    /// White's score less black's.
    pub score: Tapered,
    pub passed: Bitboard,
    /// Squares each side's pawns attack or may come to attack by advancing.
    pub attack_span: [Bitboard; 2],
}

const ENTRIES: usize = 1 << 12;

/// Values depend on the key only, so the table never needs to be cleared.
pub struct PawnTable {
    entries: Vec<PawnStructure>,
}

impl PawnTable {
    pub fn new() -> PawnTable {
        let mut entries = vec![PawnStructure::default(); ENTRIES];
        entries[0].key = 1; // so that the key 0 is not found there
        PawnTable { entries }
    }

    pub fn get(&mut self, position: &Position) -> PawnStructure {
        let index = position.pawn_key as usize % ENTRIES;
        if self.entries[index].key != position.pawn_key {
            self.entries[index] = analyse(position);
        }
        self.entries[index]
    }
}

fn analyse(position: &Position) -> PawnStructure {
    let mut structure = PawnStructure { key: position.pawn_key, ..Default::default() };
    for color in [Color::White, Color::Black] {
        let pawns = position.of(color, Kind::Pawn);
        structure.attack_span[color as usize] =
            attacks::pawns(color, pawns | forward_fill(color, pawns));
    }
    structure.score =
        side(position, Color::White, &mut structure) - side(position, Color::Black, &mut structure);
    structure
}

fn side(position: &Position, us: Color, structure: &mut PawnStructure) -> Tapered {
    let own = position.of(us, Kind::Pawn);
    let enemy = position.of(!us, Kind::Pawn);
    let mut score = Tapered::default();
    for square in Squares(own) {
        score += from_pair(PAWN_VALUE_PAIR);
        score += from_pair(piece_square_tables::bonus(Kind::Pawn, relative_square(us, square)));
        score += placement(us, square, own, enemy);
        if is_passed(us, square, own, enemy) {
            structure.passed |= bit(square);
        }
    }
    score + passed_pawns(us, structure.passed & own, own)
}

/// No enemy pawn can stop it, no own pawn stands in front of it.
fn is_passed(us: Color, square: Square, own: Bitboard, enemy: Bitboard) -> bool {
    let path = forward_fill(us, bit(square));
    widen(path) & enemy == 0 && path & own == 0
}

fn placement(us: Color, square: Square, own: Bitboard, enemy: Bitboard) -> Tapered {
    let mut score = Tapered::default();
    let neighbours = adjacent_files(square) & own;
    if forward_fill(us, bit(square)) & own != 0 {
        score -= pair(DOUBLED_PAWN_PENALTY, 2 * DOUBLED_PAWN_PENALTY);
    }
    if neighbours == 0 {
        score -= both(ISOLATED_PAWN_PENALTY);
    } else if is_backward(us, square, neighbours, enemy) {
        score -= both(VALUE_BACKWARD_PAWN_PENALTY);
    }
    if attacks::pawns(!us, bit(square)) & own != 0 {
        score += both(VALUE_SUPPORTED_PAWN);
    }
    if widen(bit(square)) & neighbours != 0 {
        let steps = relative_rank(us, square) as Score - 1;
        score += pair(VALUE_PHALANX_PAWN, VALUE_PHALANX_PAWN / 2) * steps.min(4);
    }
    score
}

/// All neighbours have gone ahead and an enemy pawn guards the next square.
fn is_backward(us: Color, square: Square, neighbours: Bitboard, enemy: Bitboard) -> bool {
    let ahead = forward(us, bit(square));
    let level_or_behind = widen(forward_fill(!us, ahead));
    neighbours & level_or_behind == 0 && attacks::pawns(us, ahead) & enemy != 0
}

fn passed_pawns(us: Color, passed: Bitboard, own: Bitboard) -> Tapered {
    let mut score = Tapered::default();
    for square in Squares(passed) {
        let index = (relative_rank(us, square) + 5) % 6; // rank 1..6 to 0..5
        let bonus = VALUE_PASSED_PAWN_BONUS[index];
        score += pair(bonus, bonus * PASSED_PAWN_ENDGAME_PERCENT / 100);
        if adjacent_files(square) & passed != 0 {
            score += both(VALUE_CONNECTED_PASSED_PAWNS[index]);
        }
        if attacks::pawns(!us, bit(square)) & own != 0 {
            score += both(VALUE_GUARDED_PASSED_PAWN);
        }
    }
    score
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(fen: &str) -> Bitboard {
        analyse(&Position::from_fen(fen).unwrap()).passed
    }

    #[test]
    fn passed_pawns_are_found() {
        assert_eq!(passed("4k3/8/8/3p4/8/8/3P4/4K3 w - - 0 1"), 0);
        assert_eq!(passed("4k3/8/8/3p4/8/8/P7/4K3 w - - 0 1"), bit(8) | bit(35));
        assert_eq!(passed("4k3/8/8/8/P7/8/P7/4K3 w - - 0 1"), bit(24));
    }

    #[test]
    fn a_backward_pawn_needs_a_guard_against_it() {
        let e3 = Position::from_fen("4k3/8/8/3p4/3P4/4P3/8/4K3 w - - 0 1").unwrap();
        let (own, enemy) = (e3.of(Color::White, Kind::Pawn), e3.of(Color::Black, Kind::Pawn));
        assert!(is_backward(Color::White, 20, adjacent_files(20) & own, enemy));
        assert!(!is_backward(Color::White, 20, adjacent_files(20) & own, 0));
    }
}
