//! The protocol, spoken to the real binary.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{channel, Receiver};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

struct Engine {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Engine {
    fn start() -> Engine {
        let mut child = Command::new(env!("CARGO_BIN_EXE_diapason"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the engine starts");
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Engine { input: child.stdin.take(), child, lines }
    }

    fn send(&mut self, text: &str) -> &mut Engine {
        writeln!(self.input.as_mut().unwrap(), "{text}").unwrap();
        self
    }

    /// All lines up to and including the first that starts so.
    fn until(&mut self, start: &str) -> Vec<String> {
        let mut seen = vec![];
        loop {
            let line = self.lines.recv_timeout(PATIENCE).unwrap_or_else(|_| {
                panic!("no line starts with {start:?} in {seen:#?}");
            });
            seen.push(line);
            if seen.last().unwrap().starts_with(start) {
                return seen;
            }
        }
    }

    fn go(&mut self, position: &str, limits: &str) -> Vec<String> {
        self.send(&format!("position {position}")).send(&format!("go {limits}")).until("bestmove")
    }

    fn best(&mut self, position: &str, limits: &str) -> String {
        word_after(self.go(position, limits).last().unwrap(), "bestmove")
    }

    /// Waits for the process to end by itself.
    fn ends_within(&mut self, time: Duration) -> bool {
        let started = Instant::now();
        while started.elapsed() < time {
            if self.child.try_wait().unwrap().is_some() {
                return true;
            }
            thread::sleep(Duration::from_millis(1));
        }
        false
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn word_after(line: &str, key: &str) -> String {
    let mut words = line.split_whitespace().skip_while(|&word| word != key);
    words.nth(1).unwrap_or_else(|| panic!("no {key} in {line}")).to_string()
}

/// The last score reported, as `cp N` or `mate N`.
fn score(lines: &[String]) -> String {
    let line = lines.iter().rfind(|line| line.contains(" score ")).expect("a score");
    let kind = word_after(line, "score");
    format!("{kind} {}", word_after(line, &kind))
}

/// Lines without what depends on the clock.
fn timeless(lines: &[String]) -> Vec<String> {
    let clock = ["nps", "time"];
    let strip = |line: &String| {
        let mut words = vec![];
        let mut rest = line.split_whitespace();
        while let Some(word) = rest.next() {
            if clock.contains(&word) {
                rest.next();
            } else {
                words.push(word);
            }
        }
        words.join(" ")
    };
    lines.iter().map(strip).collect()
}

const MIDDLEGAME: &str =
    "fen r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10";

#[test]
fn it_introduces_itself() {
    let lines = Engine::start().send("uci").until("uciok");
    assert!(lines[0].starts_with("id name Diapason"));
    assert!(lines.contains(&"option name Hash type spin default 16 min 1 max 4096".to_string()));
    assert!(lines.contains(&"option name Clear Hash type button".to_string()));
}

#[test]
fn it_is_ready_at_once_also_while_searching() {
    let mut engine = Engine::start();
    engine.send("isready").until("readyok");
    engine.send("go infinite");
    thread::sleep(Duration::from_millis(50));
    assert!(on_a_free_core(|| {
        let asked = Instant::now();
        let lines = engine.send("isready").until("readyok");
        assert!(!lines.iter().any(|line| line.starts_with("bestmove")));
        asked.elapsed() < Duration::from_millis(100)
    }));
    engine.send("stop").until("bestmove");
    engine.send("isready").until("readyok");
}

#[test]
fn stop_is_answered_within_a_tenth_of_a_second() {
    for position in [MIDDLEGAME, "fen 7k/8/5KQ1/8/8/8/8/8 w - - 0 1"] {
        assert!(on_a_free_core(|| {
            let mut engine = Engine::start();
            engine.send(&format!("position {position}")).send("go infinite");
            thread::sleep(Duration::from_millis(300));
            assert!(engine.lines.try_iter().all(|line| !line.starts_with("bestmove")));
            let asked = Instant::now();
            engine.send("stop").until("bestmove");
            asked.elapsed() < Duration::from_millis(100)
        }));
    }
}

#[test]
fn the_end_of_input_ends_the_process_even_while_searching() {
    for command in ["isready", "go infinite", "go depth 100"] {
        let mut engine = Engine::start();
        engine.send(command);
        engine.input = None;
        assert!(engine.ends_within(Duration::from_secs(5)), "{command}");
    }
}

#[test]
fn quit_ends_the_process_even_while_searching() {
    let mut engine = Engine::start();
    engine.send("go infinite").send("quit");
    assert!(engine.ends_within(Duration::from_secs(5)));
    assert!(engine.child.wait().unwrap().success());
}

#[test]
fn fixed_nodes_are_exact_and_repeat_themselves() {
    let mut first = Engine::start();
    let lines = first.go(MIDDLEGAME, "nodes 12345");
    let last = &lines[lines.len() - 2];
    assert_eq!(word_after(last, "nodes"), "12345");
    let expected = timeless(&lines);
    assert_eq!(timeless(&Engine::start().go(MIDDLEGAME, "nodes 12345")), expected);
    first.go("startpos moves e2e4", "nodes 5000");
    first.send("ucinewgame");
    assert_eq!(timeless(&first.go(MIDDLEGAME, "nodes 12345")), expected);
    first.send("setoption name Clear Hash");
    assert_eq!(timeless(&first.go(MIDDLEGAME, "nodes 12345")), expected);
}

#[test]
fn a_whole_game_repeats_itself() {
    let play = || {
        let mut engine = Engine::start();
        engine.send("setoption name Hash value 1");
        let mut moves = String::from("startpos moves");
        for _ in 0..40 {
            moves += " ";
            moves += &engine.best(&moves.clone(), "nodes 500");
        }
        moves
    };
    assert_eq!(play(), play());
}

#[test]
fn every_answer_comes_with_a_score() {
    let mut engine = Engine::start();
    for limits in
        ["nodes 0", "nodes 1", "nodes 30", "depth 1", "movetime 0", "movetime 1", "wtime 1"]
    {
        let lines = engine.send("ucinewgame").go("startpos", limits);
        assert!(score(&lines).starts_with("cp "), "{limits}: {lines:?}");
        assert_ne!(word_after(lines.last().unwrap(), "bestmove"), "0000", "{limits}");
    }
}

#[test]
fn move_time_is_kept() {
    let mut engine = Engine::start();
    engine.send("isready").until("readyok");
    for time in [20, 100, 250] {
        assert!(
            on_a_free_core(|| {
                let started = Instant::now();
                engine.go(MIDDLEGAME, &format!("movetime {time}"));
                let used = started.elapsed().as_millis();
                assert!(used >= time - 5, "{used} ms for {time}");
                used < time + 30
            }),
            "{time}"
        );
    }
}

/// Whether what is timed ever takes as little as it should: on a crowded
/// machine any single try may have waited for a core.
fn on_a_free_core(mut quick: impl FnMut() -> bool) -> bool {
    (0..20).any(|_| quick())
}

#[test]
fn the_clock_is_never_overstepped() {
    assert!(on_a_free_core(a_game_is_played_in_time));
}

fn a_game_is_played_in_time() -> bool {
    let mut engine = Engine::start();
    engine.send("isready").until("readyok");
    let mut left = 400;
    let mut moves = String::from("startpos moves");
    for ply in 0..60 {
        let started = Instant::now();
        let best = engine.best(&moves, &format!("wtime {left} btime {left} winc 0 binc 0"));
        if best == "0000" {
            break;
        }
        moves += &format!(" {best}");
        if ply % 2 == 0 {
            left -= started.elapsed().as_millis() as i64;
        }
        if left <= 0 {
            return false;
        }
    }
    true
}

#[test]
fn mates_are_found_and_announced() {
    let mates = [
        ("fen 6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1", "d1d8", "mate 1"),
        ("fen r1bq2r1/b4pk1/p1pp1p2/1p2pP2/1P2P1PB/3P4/1PPQ2P1/R3K2R w KQ - 0 1", "d2h6", "mate 2"),
        ("fen r5rk/5p1p/5R2/4B3/8/8/7P/7K w - - 0 1", "f6a6", "mate 3"),
        ("fen 3r2k1/5ppp/8/8/8/8/5PPP/6K1 b - - 0 1", "d8d1", "mate 1"),
    ];
    let mut engine = Engine::start();
    for (fen, best, mate) in mates {
        let lines = engine.send("ucinewgame").go(fen, "depth 12");
        assert_eq!(score(&lines), mate, "{fen}");
        assert_eq!(word_after(lines.last().unwrap(), "bestmove"), best, "{fen}");
    }
    let lines = engine.go("fen 7k/8/5K2/6Q1/8/8/8/8 b - - 0 1", "depth 6");
    assert_eq!(score(&lines), "mate -1");
}

#[test]
fn without_a_legal_move_there_is_none() {
    let mut engine = Engine::start();
    for (fen, expected) in [
        ("fen R5k1/5ppp/8/8/8/8/8/6K1 b - - 0 1", "mate 0"),
        ("fen 7k/5Q2/8/8/8/8/8/6K1 b - - 0 1", "cp 0"),
    ] {
        let lines = engine.go(fen, "nodes 100");
        assert_eq!(lines.last().unwrap(), "bestmove 0000");
        assert_eq!(score(&lines), expected);
    }
}

#[test]
fn repetitions_are_draws() {
    let shuffle = "fen 6k1/5ppp/8/8/8/8/q4PPP/1R4K1 b - - 0 1 moves a2a3 b1b8";
    assert_eq!(Engine::start().best(shuffle, "depth 5"), "a3f8");
    let perpetual = "fen 5rk1/5p1p/5Q2/8/8/8/qr4PP/6K1 w - - 0 1";
    assert_eq!(score(&Engine::start().go(perpetual, "depth 10")), "cp 0");
}

#[test]
fn nonsense_is_survived() {
    let mut engine = Engine::start();
    for nonsense in [
        "position fen 8/8/8/8/8/8/8/8 w - - 0 1",
        "position startpos moves e2e5",
        "position",
        "position fen",
        "setoption name Hash value many",
        "setoption name Nothing value 3",
        "setoption",
    ] {
        let lines = engine.send(nonsense).until("info string");
        assert_eq!(lines.len(), 1, "{nonsense}");
    }
    engine
        .send("")
        .send("hello")
        .send("xyzzy 1 2 3")
        .send("stop")
        .send("ponderhit")
        .send("debug on");
    engine.send("setoption name Hash value 1");
    assert_ne!(engine.best("startpos", "searchmoves e2e4 depth 2"), "0000");
}

#[test]
fn a_second_go_ends_the_first() {
    let mut engine = Engine::start();
    engine.send("go infinite").send("go depth 2").until("bestmove");
    engine.until("bestmove");
}

#[test]
fn bench_prints_the_same_signature_each_time() {
    let bench = || {
        let output =
            Command::new(env!("CARGO_BIN_EXE_diapason")).args(["bench", "4"]).output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        let last = text.lines().last().unwrap().to_string();
        let words: Vec<&str> = last.split_whitespace().collect();
        assert_eq!((words.len(), words[1], words[3]), (4, "nodes", "nps"));
        words[0].to_string()
    };
    assert_eq!(bench(), bench());
}

#[test]
fn perft_answers_on_the_command_line_and_in_the_protocol() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_diapason")).args(["perft", "4"]).output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("Nodes searched: 197281"));
    let lines = Engine::start().send("go perft 3").until("Nodes searched");
    assert_eq!(lines.last().unwrap(), "Nodes searched: 8902");
}
