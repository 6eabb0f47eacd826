//! A fixed workload whose node count is the signature of the build.

use std::time::Instant;

use crate::position::Position;
use crate::search::Searcher;
use crate::time::Limits;

pub const DEPTH: u32 = 10;

/// Openings, middlegames, endgames, mates and a stalemate trap.
pub const POSITIONS: [&str; 43] = [
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1",
    "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1",
    "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8",
    "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10",
    "r1bqkbnr/pppp1ppp/2n5/1B2p3/4P3/5N2/PPPP1PPP/RNBQK2R b KQkq - 3 3",
    "rnbqkb1r/pp2pppp/3p1n2/8/3NP3/8/PPP2PPP/RNBQKB1R w KQkq - 1 5",
    "rnbq1rk1/ppp1ppbp/3p1np1/8/2PPP3/2N2N2/PP2BPPP/R1BQK2R b KQ - 3 6",
    "rnbqk2r/pp2ppbp/6p1/2p5/2BPP3/2P5/P3NPPP/R1BQK2R b KQkq - 1 8",
    "r1bq1rk1/pp2bppp/2n1pn2/3p4/3P4/2NBPN2/PP3PPP/R1BQ1RK1 w - - 0 10",
    "r2q1rk1/pb1nbppp/1p2pn2/2pp4/3P1B2/2PBPN2/PP1N1PPP/R2Q1RK1 w - - 2 10",
    "r1b1k2r/2q1bppp/p2ppn2/1p6/3NP3/2N1B3/PPP1BPPP/R2Q1R1K b kq - 1 12",
    "2rq1rk1/pb2bppp/1pn1pn2/8/2BP4/P1N1BN2/1P2QPPP/3R1RK1 b - - 0 14",
    "r1bq1r1k/1p1nN1pp/1p6/5p2/8/1Q1p1NB1/PPP2PPP/R4RK1 w - - 0 18",
    "2kr3r/ppp1qpp1/2n1bn1p/4p3/2P1P3/P1NB1P2/1PQ1N1PP/R4RK1 w - - 3 15",
    "r4rk1/pp3ppp/1qn1bn2/3p4/3P4/1P1B1N2/P2Q1PPP/R1R3K1 b - - 1 16",
    "3r1rk1/p1q2ppp/1pn1p3/8/2PP4/2Q2N2/P4PPP/2R1R1K1 w - - 0 21",
    "1k1r3r/pp1b1pp1/1q2p2p/3pP3/1b1N1PP1/1P4P1/P2Q3B/2R1K2R w K - 3 22",
    "r1b2rk1/1pq1bppp/p1nppn2/8/P2NPP2/2N1B3/1PP1B1PP/R2Q1R1K w - - 1 11",
    "5rk1/1p3ppp/pq3b2/8/8/1P1Q1N2/P4PPP/3R2K1 w - - 2 27",
    "4rrk1/pp1n3p/3q2pQ/2p1pb2/2PP4/2P3N1/P2B2PP/4RRK1 b - - 7 19",
    "r3r1k1/2p2ppp/p1p1bn2/8/1q2P3/2NPQN2/PPP3PP/R4RK1 b - - 2 15",
    "1rbqk2r/4bppp/p2p1n2/1p1Np3/4P3/1B2B3/PPP2PPP/R2QK2R b KQk - 1 13",
    "6k1/6p1/6Pp/ppp5/3pn2P/1P3K2/1PP2P2/3N4 b - - 0 1",
    "3b4/5kp1/1p1p1p1p/pP1PpP1P/P1P1P3/3KN3/8/8 w - - 0 1",
    "8/8/8/8/5kp1/P7/8/1K1N4 w - - 0 1",
    "8/3k4/8/8/8/4B3/4KB2/2B5 w - - 0 1",
    "8/8/1P6/5pr1/8/4R3/7k/2K5 w - - 0 1",
    "8/2p4P/8/kr6/6R1/8/8/1K6 w - - 0 1",
    "8/1p3pp1/7p/5P1P/2k3P1/8/2K2P2/8 w - - 0 1",
    "8/8/4kpp1/3p1b2/p6P/2B5/6P1/6K1 b - - 2 47",
    "2r3k1/5ppp/p3p3/1p1pP3/3P4/1P2R1P1/P4P1P/6K1 w - - 0 28",
    "8/5k2/3r2p1/2p1R2p/p1P4P/P3K1P1/8/8 b - - 5 45",
    "4k3/3b4/1p1p2p1/pP1Pp2p/P1P1P2P/3K1P2/4N3/8 w - - 0 40",
    "8/pp2k3/4p1p1/3pPp1p/3P1P1P/2P1K1P1/P7/8 w - - 0 33",
    "r1bq2rk/pp3pbp/2p1p1pQ/7P/3P4/2PB1N2/PP3PPR/2KR4 w - - 0 1",
    "5rk1/ppp2ppp/8/3q4/8/2Q5/PPP2nPP/4R1K1 w - - 0 1",
    "4r1k1/4pp1p/6p1/8/3p4/3P4/PP3PPP/2R3K1 w - - 0 24",
    "8/2k5/8/PPn5/3pp3/8/4K3/3N4 w - - 0 1",
    "2r3k1/5p1p/1PP3p1/8/8/2pp1P2/6PP/2R3K1 b - - 0 30",
    "r4rk1/B1p2ppp/1p1q1n2/3p4/3P4/2P2N2/PP1Q1PPP/R4RK1 w - - 0 16",
    "rn2k2r/pppB1pBp/4p1p1/q2p1b2/3P4/2P2N2/PP3PPP/R2QK2R b KQkq - 0 9",
];

/// Searches every position to the depth; the nodes in total.
pub fn nodes(depth: u32) -> u64 {
    let mut searcher = Searcher::new(16);
    let limits = Limits { depth: Some(depth), ..Limits::default() };
    POSITIONS.iter().map(|fen| search(&mut searcher, fen, &limits)).sum()
}

fn search(searcher: &mut Searcher, fen: &str, limits: &Limits) -> u64 {
    let position = Position::from_fen(fen).expect("the bench positions are legal");
    searcher.clear();
    searcher.think(&position, &[], limits, Instant::now(), Default::default(), &mut |_| {});
    searcher.nodes
}

/// The bench and its closing line.
pub fn run(depth: u32) -> String {
    let started = Instant::now();
    let nodes = nodes(depth);
    let nps = (nodes as f64 / started.elapsed().as_secs_f64()) as u64;
    format!("Bench: {nodes} nodes {nps} nps\n{nodes} nodes {nps} nps")
}
