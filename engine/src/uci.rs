//! The Universal Chess Interface. The main thread reads commands; a second
//! one searches and answers `go`.

use std::io::{self, BufRead, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::bench;
use crate::eval::evaluate;
use crate::movegen::legal_moves;
use crate::pawns::PawnTable;
use crate::perft;
#[cfg(feature = "options")]
use crate::piece_square_tables;
use crate::position::Position;
use crate::search::{Report, Searcher, MATE, MATE_BOUND};
use crate::time::Limits;
#[cfg(feature = "options")]
use crate::tunables::options;

const DEFAULT_HASH: usize = 16;
const MAX_HASH: usize = 4096;
const SEARCH_STACK: usize = 16 << 20;
/// What the tuner's users read as one pawn, in internal units.
const PAWN: i32 = 150;

/// What the main thread asks of the searching one.
enum Order {
    Go {
        position: Box<Position>,
        game: Vec<u64>,
        limits: Limits,
        started: Instant,
        stop: Arc<AtomicBool>,
    },
    Clear,
    Resize(usize),
    /// To be answered when everything ordered before is done.
    Ready(Sender<()>),
}

fn say(line: &str) {
    let mut out = io::stdout().lock();
    // A closed pipe means that nobody listens any more; end of input follows.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Reads commands until `quit` or the end of input.
pub fn run() {
    let (orders, inbox) = channel();
    let searches = Arc::new(AtomicUsize::new(0));
    let pending = Arc::clone(&searches);
    let worker = thread::Builder::new().stack_size(SEARCH_STACK);
    worker.spawn(move || serve(&inbox, &pending)).expect("a thread for searching");
    let mut session = Session::new(orders, searches);
    for line in io::stdin().lock().lines() {
        match line {
            Ok(line) if session.obey(&line) => {}
            _ => break,
        }
    }
}

/// The searching thread.
fn serve(inbox: &Receiver<Order>, pending: &AtomicUsize) {
    let mut searcher = Searcher::new(DEFAULT_HASH);
    for order in inbox {
        match order {
            Order::Go { position, game, limits, started, stop } => {
                let best = searcher.think(
                    &position,
                    &game,
                    &limits,
                    started,
                    Arc::clone(&stop),
                    &mut print_report,
                );
                while limits.infinite && !stop.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(1));
                }
                pending.fetch_sub(1, Ordering::AcqRel);
                say(&format!("bestmove {best}"));
            }
            Order::Clear => searcher.clear(),
            Order::Resize(megabytes) => searcher.resize(megabytes),
            Order::Ready(answer) => drop(answer.send(())),
        }
    }
}

fn print_report(report: &Report) {
    let pv: String = report.pv.iter().map(|mv| format!(" {mv}")).collect();
    let pv = if pv.is_empty() { pv } else { format!(" pv{pv}") };
    let (depth, seldepth, nodes) = (report.depth, report.seldepth, report.nodes);
    let milliseconds = report.time.as_millis();
    let nps = (nodes as f64 / report.time.as_secs_f64().max(1e-6)) as u64;
    let (score, hashfull) = (score_text(report.score), report.hashfull);
    say(&format!(
        "info depth {depth} seldepth {seldepth} score {score} nodes {nodes} nps {nps} \
         time {milliseconds} hashfull {hashfull}{pv}"
    ));
}

fn score_text(score: i32) -> String {
    if score >= MATE_BOUND {
        format!("mate {}", (MATE - score + 1) / 2)
    } else if score <= -MATE_BOUND {
        format!("mate {}", -(MATE + score) / 2)
    } else {
        format!("cp {}", score * 100 / PAWN)
    }
}

struct Session {
    orders: Sender<Order>,
    /// Searches ordered and not yet answered.
    searches: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    position: Position,
    /// Keys of the positions before the present one.
    game: Vec<u64>,
}

impl Session {
    fn new(orders: Sender<Order>, searches: Arc<AtomicUsize>) -> Session {
        Session {
            orders,
            searches,
            stop: Arc::default(),
            position: Position::start(),
            game: vec![],
        }
    }

    /// Carries out one command; false to end.
    fn obey(&mut self, line: &str) -> bool {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (command, arguments) = match words.split_first() {
            Some((command, arguments)) => (*command, arguments),
            None => return true,
        };
        match command {
            "quit" => return false,
            "uci" => introduce(),
            "isready" => self.ready(),
            "ucinewgame" => self.order(Order::Clear),
            "setoption" => self.set_option(arguments),
            "position" => self.set_position(arguments),
            "go" => self.go(arguments),
            "stop" => self.stop.store(true, Ordering::Relaxed),
            "d" => say(&self.position.diagram()),
            "eval" => self.eval(),
            "perft" => self.perft(arguments.first()),
            "bench" => say(&bench::run(number(arguments.first(), bench::DEPTH))),
            _ => {}
        }
        true
    }

    /// Ends a search under way and queues the order behind it.
    fn order(&mut self, order: Order) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.orders.send(order);
    }

    /// At once during a search, else when everything ordered has been done.
    fn ready(&self) {
        if self.searches.load(Ordering::Acquire) == 0 {
            let (answer, done) = channel();
            let _ = self.orders.send(Order::Ready(answer));
            let _ = done.recv();
        }
        say("readyok");
    }

    fn set_option(&mut self, arguments: &[&str]) {
        #[cfg(feature = "options")]
        if let ["name", name, "value", path @ ..] = arguments {
            if name.eq_ignore_ascii_case("evalfile") {
                return self.load_tables(&path.join(" "));
            }
        }
        let text = arguments.join(" ").to_lowercase();
        let text = text.strip_prefix("name ").unwrap_or(&text);
        let (name, value) = text.split_once(" value ").unwrap_or((text, ""));
        #[cfg(feature = "options")]
        if value.trim().parse().is_ok_and(|value| options::set(name.trim(), value)) {
            return;
        }
        match (name.trim(), value.trim().parse::<usize>()) {
            ("clear hash", _) => self.order(Order::Clear),
            ("hash", Ok(megabytes)) => self.order(Order::Resize(megabytes.clamp(1, MAX_HASH))),
            ("hash", Err(_)) => say(&format!("info string not a size: {value}")),
            _ => say(&format!("info string no option {name}")),
        }
    }

    /// An engine without its tables must not play.
    #[cfg(feature = "options")]
    fn load_tables(&mut self, path: &str) {
        if let Err(reason) = piece_square_tables::load(path) {
            say(&format!("info string error: EvalFile {path}: {reason}"));
            std::process::exit(1);
        }
        self.order(Order::Clear);
    }

    /// A position that cannot be read leaves the old one in place.
    fn set_position(&mut self, arguments: &[&str]) {
        match read_position(arguments) {
            Ok((position, game)) => (self.position, self.game) = (position, game),
            Err(reason) => say(&format!("info string error: {reason}")),
        }
    }

    fn go(&mut self, arguments: &[&str]) {
        if arguments.first() == Some(&"perft") {
            return self.perft(arguments.get(1));
        }
        let stop = Arc::new(AtomicBool::new(false));
        let order = Order::Go {
            position: Box::new(self.position),
            game: self.game.clone(),
            limits: read_limits(arguments),
            started: Instant::now(),
            stop: Arc::clone(&stop),
        };
        self.searches.fetch_add(1, Ordering::AcqRel);
        self.order(order);
        self.stop = stop;
    }

    fn eval(&self) {
        let score = evaluate(&self.position, &mut PawnTable::new());
        say(&format!("evaluation: {score} internal, {} for the side to move", score_text(score)));
    }

    fn perft(&self, depth: Option<&&str>) {
        let started = Instant::now();
        let text = perft::divide(&self.position, number(depth, 1).max(1));
        say(&format!("{text}\nTime: {} ms\n", started.elapsed().as_millis()));
    }
}

fn introduce() {
    say(&format!("id name Diapason {}", env!("CARGO_PKG_VERSION")));
    say("id author the authors of Diapason");
    say(&format!("option name Hash type spin default {DEFAULT_HASH} min 1 max {MAX_HASH}"));
    say("option name Clear Hash type button");
    #[cfg(feature = "options")]
    {
        say("option name EvalFile type string default <empty>");
        options::declarations().iter().for_each(|line| say(line));
    }
    say("uciok");
}

pub fn number<T: std::str::FromStr>(word: Option<&&str>, default: T) -> T {
    word.and_then(|word| word.parse().ok()).unwrap_or(default)
}

/// The position and the keys of those before it.
fn read_position(arguments: &[&str]) -> Result<(Position, Vec<u64>), String> {
    let moves_at = arguments.iter().position(|&word| word == "moves").unwrap_or(arguments.len());
    let (setup, moves) = arguments.split_at(moves_at);
    let mut position = match setup.split_first() {
        Some((&"startpos", _)) => Position::start(),
        Some((&"fen", fields)) => Position::from_fen(&fields.join(" "))?,
        _ => return Err("position needs startpos or fen".into()),
    };
    let mut game = vec![];
    for text in moves.iter().skip(1) {
        let list = legal_moves(&position);
        let found = list.as_slice().iter().find(|mv| mv.to_string() == *text);
        let mv = *found.ok_or(format!("illegal move {text} in {}", position.fen()))?;
        game.push(position.key);
        position = position.after(mv);
    }
    Ok((position, game))
}

fn read_limits(arguments: &[&str]) -> Limits {
    let mut limits = Limits::default();
    for (i, &word) in arguments.iter().enumerate() {
        let value: Option<i64> = arguments.get(i + 1).and_then(|word| word.parse().ok());
        let count = value.map(|value| value.max(0) as u64);
        let time = count.map(Duration::from_millis);
        match word {
            "depth" => limits.depth = count.map(|depth| depth.min(1000) as u32),
            "nodes" => limits.nodes = count,
            "movetime" => limits.movetime = time,
            "wtime" => limits.clock[0] = time,
            "btime" => limits.clock[1] = time,
            "winc" => limits.increment[0] = time.unwrap_or_default(),
            "binc" => limits.increment[1] = time.unwrap_or_default(),
            "movestogo" => limits.moves_to_go = count.map(|moves| moves.min(1000) as u32),
            "mate" => limits.depth = count.map(|moves| moves.min(500) as u32 * 2),
            "infinite" | "ponder" => limits.infinite = true,
            _ => {}
        }
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        text.split_whitespace().collect()
    }

    #[test]
    fn limits_are_read() {
        let limits =
            read_limits(&words("wtime 1000 btime -5 winc 10 movestogo 3 nodes 77 depth 4"));
        assert_eq!(limits.clock, [Some(Duration::from_secs(1)), Some(Duration::ZERO)]);
        assert_eq!(limits.increment[0], Duration::from_millis(10));
        assert_eq!((limits.moves_to_go, limits.nodes, limits.depth), (Some(3), Some(77), Some(4)));
        assert!(read_limits(&words("infinite")).infinite);
        assert_eq!(read_limits(&words("depth")), Limits::default());
    }

    #[test]
    fn positions_are_read_with_their_moves() {
        let (position, game) = read_position(&words("startpos moves e2e4 e7e5 g1f3")).unwrap();
        assert_eq!(game.len(), 3);
        assert!(position.fen().starts_with("rnbqkbnr/pppp1ppp/8/4p3/4P3/5N2/PPPP1PPP/RNBQKB1R b"));
        assert!(read_position(&words("startpos moves e2e5")).is_err());
        assert!(read_position(&words("fen")).is_err());
        assert!(read_position(&[]).is_err());
    }

    #[test]
    fn mates_are_counted_in_moves() {
        assert_eq!(score_text(MATE - 1), "mate 1");
        assert_eq!(score_text(MATE - 3), "mate 2");
        assert_eq!(score_text(-MATE), "mate 0");
        assert_eq!(score_text(2 - MATE), "mate -1");
        assert_eq!(score_text(PAWN), "cp 100");
    }
}
