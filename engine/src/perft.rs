//! Counting the leaves of the game tree: the proof of the move generator.

use crate::movegen::legal_moves;
use crate::position::Position;

pub fn perft(position: &Position, depth: u32) -> u64 {
    if depth == 0 {
        return 1;
    }
    let list = legal_moves(position);
    if depth == 1 {
        return list.as_slice().len() as u64;
    }
    list.as_slice().iter().map(|&mv| perft(&position.after(mv), depth - 1)).sum()
}

/// Perft split by first move, as text.
pub fn divide(position: &Position, depth: u32) -> String {
    let mut text = String::new();
    let mut total = 0;
    for &mv in legal_moves(position).as_slice() {
        let nodes = perft(&position.after(mv), depth.saturating_sub(1));
        text += &format!("{mv}: {nodes}\n");
        total += nodes;
    }
    format!("{text}\nNodes searched: {total}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Position, then the counts from depth 1 on.
    const SUITE: [(&str, &[u64]); 18] = [
        (crate::fen::START, &[20, 400, 8902, 197_281, 4_865_609]),
        (
            "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
            &[48, 2039, 97_862, 4_085_603],
        ),
        ("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", &[14, 191, 2812, 43_238, 674_624]),
        (
            "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1",
            &[6, 264, 9467, 422_333],
        ),
        (
            "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8",
            &[44, 1486, 62_379, 2_103_487],
        ),
        (
            "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10",
            &[46, 2079, 89_890, 3_894_594],
        ),
        // An en passant capture that would uncover a check along the rank.
        ("3k4/3p4/8/K1P4r/8/8/8/8 b - - 0 1", &[18, 92, 1670, 10_138, 185_429, 1_134_888]),
        // One that would uncover a diagonal.
        ("8/8/4k3/8/2p5/8/B2P1K2/8 w - - 0 1", &[13, 102, 1284, 10_375, 138_886, 1_038_514]),
        // En passant that gives check.
        ("8/8/1k6/2b5/2pP4/8/5K2/8 b - d3 0 1", &[15, 126, 1928, 13_931, 206_379, 1_440_467]),
        // Castling that gives check, on either wing.
        ("5k2/8/8/8/8/8/8/4K2R w K - 0 1", &[15, 66, 1198, 6399, 120_330, 661_072]),
        ("3k4/8/8/8/8/8/8/R3K3 w Q - 0 1", &[16, 71, 1286, 7418, 141_077, 803_711]),
        // Rights lost by captured rooks.
        ("r3k2r/1b4bq/8/8/8/8/7B/R3K2R w KQkq - 0 1", &[26, 1141, 27_826, 1_274_206]),
        // Castling prevented by attacks.
        ("r3k2r/8/3Q4/8/8/5q2/8/R3K2R b KQkq - 0 1", &[44, 1494, 50_509, 1_720_476]),
        // Promotion out of check, underpromotion that gives check.
        ("2K2r2/4P3/8/8/8/8/8/3k4 w - - 0 1", &[11, 133, 1442, 19_174, 266_199, 3_821_001]),
        ("8/8/1P2K3/8/2n5/1q6/8/5k2 b - - 0 1", &[29, 165, 5160, 31_961, 1_004_658]),
        // Stalemate and checkmate.
        ("K1k5/8/P7/8/8/8/8/8 w - - 0 1", &[2, 6, 13, 63, 382, 2217]),
        ("8/k1P5/8/1K6/8/8/8/8 w - - 0 1", &[10, 25, 268, 926, 10_857, 43_261, 567_584]),
        ("n1n5/PPPk4/8/8/8/8/4Kppp/5N1N b - - 0 1", &[24, 496, 9483, 182_838, 3_605_103]),
    ];

    #[test]
    fn counts_are_those_of_the_suite() {
        for (fen, counts) in SUITE {
            let position = Position::from_fen(fen).unwrap();
            for (depth, &nodes) in (1..).zip(counts) {
                assert_eq!(perft(&position, depth), nodes, "{fen} depth {depth}");
            }
        }
    }

    fn walk(position: &Position, depth: u32) {
        assert_eq!((position.key, position.pawn_key), position.keys_from_scratch());
        assert_eq!(Position::from_fen(&position.fen()).as_ref(), Ok(position));
        if depth == 0 {
            return;
        }
        for &mv in legal_moves(position).as_slice() {
            walk(&position.after(mv), depth - 1);
        }
    }

    #[test]
    fn positions_made_move_by_move_equal_those_read_from_their_fen() {
        for (fen, _) in SUITE {
            walk(&Position::from_fen(fen).unwrap(), 2);
        }
    }

    #[test]
    fn the_mirrored_position_has_as_many_moves() {
        for (fen, counts) in SUITE {
            let mirror = Position::from_fen(fen).unwrap().mirrored();
            assert_eq!(perft(&mirror, 3), counts[2], "{fen}");
        }
    }
}
