//! Proof that no constant is idle: each number in `engine_constants.rs` is
//! moved by about one tuning step in a copy of the crate, and the bench
//! signature has to change.

use std::collections::HashSet;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;

const CONSTANTS: &str = "src/engine_constants.rs";

/// Read by nothing, as the comment beside it says.
const IDLE_BY_DESIGN: [&str; 1] = ["LMP_MOVE_THRESHOLDS[0]"];

/// One number in the source.
#[derive(Debug)]
struct Tunable {
    /// `NAME`, `NAME.0` in a pair, `NAME[3]` in an array.
    name: String,
    unsigned: bool,
    small: bool,
    value: i64,
    place: Range<usize>,
}

impl Tunable {
    fn neighbours(&self) -> Vec<i64> {
        let step = if self.small { 1 } else { (self.value.abs() / 8).max(1) };
        let both = [self.value + step, self.value - step];
        both.into_iter().filter(|&value| !self.unsigned || value >= 0).collect()
    }
}

fn crate_root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn source() -> String {
    fs::read_to_string(crate_root().join(CONSTANTS)).unwrap()
}

/// Replaces comments by spaces, so that places stay what they are.
fn without_comments(source: &str) -> String {
    let blank = |line: &str| {
        let code = line.find("//").unwrap_or(line.len());
        format!("{}{}", &line[..code], " ".repeat(line.len() - code))
    };
    source.split('\n').map(blank).collect::<Vec<_>>().join("\n")
}

/// Every number that a literal constant consists of.
fn tunables(source: &str) -> Vec<Tunable> {
    let code = without_comments(source);
    let mut found = vec![];
    for (start, _) in code.match_indices("pub const ") {
        let statement = &code[start..start + code[start..].find(" =").unwrap()];
        let (name, kind) = statement["pub const ".len()..].split_once(": ").unwrap();
        let from = start + statement.len() + 2;
        let to = statement_end(&code, from);
        let numbers = numbers(&code, from..to);
        let literal =
            code[from..to].chars().all(|c| c.is_ascii_digit() || "-_,()[] \n".contains(c));
        if !literal {
            continue;
        }
        for (i, place) in numbers.into_iter().enumerate() {
            let name = match kind.chars().next() {
                Some('[') => format!("{name}[{i}]"),
                _ if kind == "ScorePair" => format!("{name}.{i}"),
                _ => name.to_string(),
            };
            let value = code[place.clone()].replace('_', "").parse().unwrap();
            let unsigned = kind.trim_start_matches('[').starts_with('u');
            found.push(Tunable { name, unsigned, small: kind.contains("u8"), value, place });
        }
    }
    found
}

fn statement_end(code: &str, from: usize) -> usize {
    let mut depth = 0;
    for (i, c) in code[from..].char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ';' if depth == 0 => return from + i,
            _ => {}
        }
    }
    code.len()
}

fn numbers(code: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let mut places = vec![];
    let mut at = range.start;
    while at < range.end {
        let rest = &code[at..range.end];
        let Some(offset) = rest.find(|c: char| c.is_ascii_digit() || c == '-') else { break };
        let start = at + offset;
        let number = |c: char| c.is_ascii_digit() || c == '_';
        let length = code[start + 1..].find(|c| !number(c)).unwrap() + 1;
        places.push(start..start + length);
        at = start + length;
    }
    places
}

/// A copy of the crate that can be rebuilt with other constants.
struct Workshop {
    root: PathBuf,
    original: String,
}

impl Workshop {
    fn open(number: usize) -> Workshop {
        let root = std::env::temp_dir().join(format!("diapason-{}-{number}", std::process::id()));
        for folder in ["src", ".cargo"] {
            fs::create_dir_all(root.join(folder)).unwrap();
            for file in fs::read_dir(crate_root().join(folder)).unwrap().map(Result::unwrap) {
                fs::copy(file.path(), root.join(folder).join(file.file_name())).unwrap();
            }
        }
        for file in ["Cargo.toml", "Cargo.lock"] {
            fs::copy(crate_root().join(file), root.join(file)).unwrap();
        }
        Workshop { root, original: source() }
    }

    /// The bench signature with a number replaced.
    fn signature(&self, place: Range<usize>, value: &str) -> u64 {
        let mut text = self.original.clone();
        text.replace_range(place, value);
        fs::write(self.root.join(CONSTANTS), text).unwrap();
        let build = Command::new(env!("CARGO"))
            .args(["build", "--release", "--quiet", "--target-dir", "target"])
            .current_dir(&self.root)
            .output()
            .unwrap();
        assert!(build.status.success(), "{}", String::from_utf8_lossy(&build.stderr));
        let bench =
            Command::new(self.root.join("target/release/diapason")).arg("bench").output().unwrap();
        let output = String::from_utf8(bench.stdout).unwrap();
        let last = output.lines().last().expect("bench prints its signature");
        last.split_whitespace().next().unwrap().parse().unwrap()
    }

    fn is_alive(&self, tunable: &Tunable, unchanged: u64) -> bool {
        tunable.neighbours().iter().any(|value| {
            let signature = self.signature(tunable.place.clone(), &value.to_string());
            println!("{} {} -> {value}: {signature}", tunable.name, tunable.value);
            signature != unchanged
        })
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

#[test]
fn every_form_of_constant_is_there() {
    let found = tunables(&source());
    let names: HashSet<&str> = found.iter().map(|tunable| tunable.name.as_str()).collect();
    assert_eq!(names.len(), found.len(), "every name once");
    for name in [
        "PAWN_VALUE_PAIR.0",
        "PAWN_VALUE_PAIR.1",
        "ALPHA_PRUNE_MARGINS[7]",
        "LMP_MOVE_THRESHOLDS[3]",
        "VALUE_PASSED_PAWN_BONUS[5]",
        "VALUE_BISHOP_PAIR",
        "VALUE_BISHOP_PAIR_FEWER_PAWNS_BONUS",
        "LMR_CONTINUATION_BAD_THRESHOLD",
        "LMR_BASE_X1000",
    ] {
        assert!(names.contains(name), "{name}");
    }
    for derived in ["PAWN_VALUE_AVERAGE", "ENABLE_MULTICUT", "LMR_TABLE[0]"] {
        assert!(!names.contains(derived), "{derived}");
    }
    let bad =
        found.iter().find(|tunable| tunable.name == "LMR_CONTINUATION_BAD_THRESHOLD").unwrap();
    assert!(bad.value < 0 && source()[bad.place.clone()].starts_with('-'));
}

/// Some two builds for every constant: minutes, not seconds.
#[test]
#[ignore = "rebuilds the engine a few hundred times"]
fn every_constant_changes_the_bench() {
    let found = tunables(&source());
    let queue = Mutex::new(found.iter().collect::<Vec<_>>());
    let idle = Mutex::new(vec![]);
    let work = |number| {
        let workshop = Workshop::open(number);
        let first = &found[0];
        let unchanged = workshop.signature(first.place.clone(), &first.value.to_string());
        println!("unchanged: {unchanged}");
        loop {
            let Some(tunable) = queue.lock().unwrap().pop() else { break };
            let expected = !IDLE_BY_DESIGN.contains(&tunable.name.as_str());
            if workshop.is_alive(tunable, unchanged) != expected {
                idle.lock().unwrap().push(tunable.name.clone());
            }
        }
    };
    let jobs = thread::available_parallelism().map_or(1, |n| n.get());
    thread::scope(|scope| {
        for number in 0..jobs {
            scope.spawn(move || work(number));
        }
    });
    assert!(idle.lock().unwrap().is_empty(), "without effect: {idle:?}");
}
