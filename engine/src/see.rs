//! Static exchange evaluation: does a sequence of captures on one square gain
//! at least so much?

use crate::attacks;
use crate::bitboard::*;
use crate::engine_constants::*;
use crate::position::Position;
use crate::types::*;

const VALUES: [Score; 6] = [
    PAWN_VALUE_AVERAGE,
    KNIGHT_VALUE_AVERAGE,
    BISHOP_VALUE_AVERAGE,
    ROOK_VALUE_AVERAGE,
    QUEEN_VALUE_AVERAGE,
    0,
];

pub fn value(kind: Kind) -> Score {
    VALUES[kind as usize]
}

/// What a move wins at once, before any reply.
pub fn gain(position: &Position, mv: Move) -> Score {
    let captured = position.captured(mv).map_or(0, value);
    captured + mv.promotion().map_or(0, |kind| value(kind) - value(Kind::Pawn))
}

/// Whether the exchange begun by the move is worth the threshold or more.
pub fn is_at_least(position: &Position, mv: Move, threshold: Score) -> bool {
    let mut balance = gain(position, mv) - threshold;
    if balance < 0 {
        return false;
    }
    let moved = mv.promotion().or(position.kind_at(mv.from()));
    balance -= moved.map_or(0, value);
    if balance >= 0 {
        return true;
    }
    let mut occupied = (position.occupied() ^ bit(mv.from())) | bit(mv.to());
    if mv.is_en_passant() {
        occupied ^= bit(mv.to() ^ 8);
    }
    exchange(position, mv.to(), occupied, balance)
}

/// Plays the captures out, cheapest first. The balance is seen from the side
/// that made the first move and is negative on entry.
fn exchange(
    position: &Position,
    target: Square,
    mut occupied: Bitboard,
    mut balance: Score,
) -> bool {
    let mut attackers = position.attackers_to(target, occupied) & occupied;
    let mut side = !position.side;
    loop {
        let own = attackers & position.colors[side as usize];
        let Some((kind, from)) = cheapest(position, own) else { break };
        if kind == Kind::King && attackers & position.colors[!side as usize] != 0 {
            break;
        }
        occupied ^= bit(from);
        attackers = (attackers | uncovered(position, target, occupied)) & occupied;
        side = !side;
        balance = -balance - 1 - value(kind);
        if balance >= 0 {
            break;
        }
    }
    side != position.side
}

fn cheapest(position: &Position, own: Bitboard) -> Option<(Kind, Square)> {
    KINDS.into_iter().find_map(|kind| {
        let candidates = own & position.kinds[kind as usize];
        (candidates != 0).then(|| (kind, lowest(candidates)))
    })
}

/// Sliders that reach the target once men have left the board.
fn uncovered(position: &Position, target: Square, occupied: Bitboard) -> Bitboard {
    let queens = position.kinds[Kind::Queen as usize];
    let diagonal = position.kinds[Kind::Bishop as usize] | queens;
    let straight = position.kinds[Kind::Rook as usize] | queens;
    attacks::bishop(target, occupied) & diagonal | attacks::rook(target, occupied) & straight
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::movegen::legal_moves;

    const P: Score = PAWN_VALUE_AVERAGE;
    const N: Score = KNIGHT_VALUE_AVERAGE;
    const B: Score = BISHOP_VALUE_AVERAGE;
    const R: Score = ROOK_VALUE_AVERAGE;
    const Q: Score = QUEEN_VALUE_AVERAGE;

    /// The exact value of a move is where the answer turns from yes to no.
    fn check(fen: &str, mv: &str, expected: Score) {
        let position = Position::from_fen(fen).unwrap();
        let list = legal_moves(&position);
        let mv = *list.as_slice().iter().find(|m| m.to_string() == mv).expect(mv);
        assert!(is_at_least(&position, mv, expected), "{fen} {mv} is worth {expected}");
        assert!(!is_at_least(&position, mv, expected + 1), "{fen} {mv} is worth {expected}");
    }

    #[test]
    fn exchanges_are_counted_to_the_end() {
        check("1k1r4/1pp4p/p7/4p3/8/P5P1/1PP4P/2K1R3 w - - 0 1", "e1e5", P);
        check("1k1r3q/1ppn3p/p4b2/4p3/8/P2N2P1/1PP1R1BP/2K1Q3 w - - 0 1", "d3e5", P - N);
        check("4k3/8/3p4/4r3/8/8/8/4RK2 w - - 0 1", "e1e5", R - R);
        check("4k3/8/8/4r3/3P4/8/8/4K3 w - - 0 1", "d4e5", R);
        check("4k3/8/3p4/4p3/8/5N2/8/4K3 w - - 0 1", "f3e5", P - N);
        check("4k3/8/8/3b4/8/8/8/3QK3 w - - 0 1", "d1d5", B);
    }

    #[test]
    fn sliders_behind_sliders_join_in() {
        check("3rk3/3r4/8/3p4/8/8/3R4/3RK3 w - - 0 1", "d2d5", P - R);
        check("4k3/3r4/8/3p4/8/8/3R4/3RK3 w - - 0 1", "d2d5", P);
        check("6k1/1b6/2b5/3p4/4P3/5B2/6B1/6K1 w - - 0 1", "e4d5", P);
    }

    #[test]
    fn special_moves_are_counted() {
        check("4k3/8/8/3pP3/8/8/8/4K3 w - d6 0 1", "e5d6", P);
        check("8/P3k3/8/8/8/8/8/4K3 w - - 0 1", "a7a8q", Q - P);
        check("1r2k3/P7/8/8/8/8/8/4K3 w - - 0 1", "a7a8q", -P);
        check("4k3/8/8/8/8/8/8/4K2R w K - 0 1", "e1g1", 0);
    }

    #[test]
    fn a_king_does_not_capture_into_check() {
        check("8/8/3k4/4p3/8/8/4R3/4RK2 w - - 0 1", "e2e5", P);
        check("8/8/3k4/4p3/8/8/4R3/5K2 w - - 0 1", "e2e5", P - R);
    }
}
