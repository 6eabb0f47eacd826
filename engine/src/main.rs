//! Diapason, a UCI chess engine made to be tuned.

mod attacks;
mod bench;
mod bitboard;
mod engine_constants;
mod eval;
mod fen;
mod history;
mod movegen;
mod negamax;
mod ordering;
mod pawns;
mod perft;
mod piece_square_tables;
mod position;
mod search;
mod see;
mod tapered;
mod time;
mod tt;
mod tunables;
mod types;
mod uci;
mod zobrist;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["bench", rest @ ..] => println!("{}", bench::run(uci::number(rest.first(), bench::DEPTH))),
        ["perft", depth, fen @ ..] => perft_of(depth, &fen.join(" ")),
        _ => uci::run(),
    }
}

fn perft_of(depth: &str, fen: &str) {
    let fen = if fen.is_empty() { fen::START } else { fen };
    match position::Position::from_fen(fen) {
        Ok(position) => {
            println!("{}", perft::divide(&position, uci::number(Some(&depth), 1).max(1)))
        }
        Err(reason) => eprintln!("{reason}"),
    }
}
