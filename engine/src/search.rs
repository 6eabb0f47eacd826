//! Iterative deepening at the root: windows, limits, reports.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine_constants::*;
use crate::eval::evaluate;
use crate::history::{Arrival, Context, History};
use crate::movegen::legal_moves;
use crate::ordering::{Hints, Picker};
use crate::pawns::PawnTable;
use crate::position::Position;
use crate::time::{Deadline, Limits};
use crate::tt::Table;
use crate::types::*;

pub const MAX_PLY: usize = 128;
pub const MATE: Score = 32_000;
/// Scores beyond this one are mates.
pub const MATE_BOUND: Score = MATE - 2 * MAX_PLY as Score;
pub const INFINITE: Score = MATE + 1;
pub const DRAW: Score = 0;

/// One line of a search's report.
pub struct Report {
    pub depth: u32,
    pub seldepth: usize,
    pub score: Score,
    pub nodes: u64,
    pub time: Duration,
    pub hashfull: usize,
    pub pv: Vec<Move>,
}

#[derive(Clone, Copy)]
pub struct Frame {
    pub static_eval: Score,
    pub arrival: Option<Arrival>,
    pub killers: [Move; 2],
}

const EMPTY_FRAME: Frame =
    Frame { static_eval: -INFINITE, arrival: None, killers: [Move::NONE; 2] };

/// All that a search needs and leaves behind for the next one.
pub struct Searcher {
    pub table: Table,
    pub history: History,
    pub pawn_table: PawnTable,
    pub frames: Vec<Frame>,
    /// Keys of the game and of the path searched.
    pub keys: Vec<u64>,
    pub nodes: u64,
    pub seldepth: usize,
    pub root_depth: i32,
    pub stopped: bool,
    pv: Vec<Vec<Move>>,
    root_best: Option<(Move, Score)>,
    node_limit: u64,
    deadline: Deadline,
    started: Instant,
    stop: Arc<AtomicBool>,
}

impl Searcher {
    pub fn new(hash_megabytes: usize) -> Searcher {
        Searcher {
            table: Table::new(hash_megabytes),
            history: History::new(),
            pawn_table: PawnTable::new(),
            frames: vec![EMPTY_FRAME; MAX_PLY + 8],
            keys: Vec::new(),
            nodes: 0,
            seldepth: 0,
            root_depth: 0,
            stopped: false,
            pv: vec![Vec::new(); MAX_PLY + 8],
            root_best: None,
            node_limit: u64::MAX,
            deadline: Deadline::default(),
            started: Instant::now(),
            stop: Arc::default(),
        }
    }

    /// Forgets everything, as for a new game.
    pub fn clear(&mut self) {
        self.table.clear();
        self.history.clear();
        #[cfg(feature = "options")] // its entries have the bonuses of `EvalFile`
        {
            self.pawn_table = PawnTable::new();
        }
    }

    pub fn resize(&mut self, hash_megabytes: usize) {
        self.table = Table::new(hash_megabytes);
    }

    /// Searches and returns the best move, `Move::NONE` if there is none.
    /// `game` holds the keys of the positions played before this one.
    pub fn think(
        &mut self,
        position: &Position,
        game: &[u64],
        limits: &Limits,
        started: Instant,
        stop: Arc<AtomicBool>,
        report: &mut dyn FnMut(&Report),
    ) -> Move {
        self.prepare(position, game, limits, started, stop);
        let moves = legal_moves(position);
        let fallback = self.first_choice(position);
        if moves.as_slice().is_empty() {
            let score = if position.in_check() { -MATE } else { DRAW };
            report(&self.report(0, score, vec![]));
            return Move::NONE;
        }
        let only_move = moves.as_slice().len() == 1 && self.deadline.soft.is_some();
        let depths = limits.depth.unwrap_or(u32::MAX).clamp(1, MAX_PLY as u32 - 1);
        let depths = if only_move { 1 } else { depths };
        let best = self.deepen(position, depths, limits.infinite, report);
        best.unwrap_or_else(|| {
            let score = evaluate(position, &mut self.pawn_table);
            report(&self.report(1, score, vec![fallback]));
            fallback
        })
    }

    fn prepare(
        &mut self,
        position: &Position,
        game: &[u64],
        limits: &Limits,
        started: Instant,
        stop: Arc<AtomicBool>,
    ) {
        self.table.next_search();
        self.frames.fill(EMPTY_FRAME);
        self.keys.clear();
        self.keys.extend_from_slice(game);
        self.keys.push(position.key);
        self.nodes = 0;
        self.stopped = false;
        self.node_limit = limits.nodes.unwrap_or(u64::MAX);
        self.deadline = limits.deadline(position.side);
        self.started = started;
        self.stop = stop;
    }

    /// The move to play when not even one iteration can be finished.
    fn first_choice(&self, position: &Position) -> Move {
        let mut picker = Picker::all(position, Hints::table_move(Move::NONE));
        picker.next(position, &self.history).unwrap_or(Move::NONE)
    }

    fn deepen(
        &mut self,
        position: &Position,
        depths: u32,
        infinite: bool,
        report: &mut dyn FnMut(&Report),
    ) -> Option<Move> {
        let mut best: Option<(Move, Score)> = None;
        for depth in 1..=depths {
            self.root_depth = depth as i32;
            self.seldepth = 0;
            self.root_best = None;
            self.aspire(position, depth as i32, best.map_or(DRAW, |(_, score)| score));
            best = self.root_best.or(best);
            if let Some((mv, score)) = best {
                report(&self.report(depth, score, self.principal_variation(mv)));
                let mate_found =
                    score.abs() >= MATE_BOUND && depth as Score > 2 * (MATE - score.abs()) + 8;
                if mate_found && !infinite {
                    break;
                }
            }
            let late = |limit: Duration| self.started.elapsed() >= limit;
            if self.stopped || self.deadline.soft.is_some_and(late) {
                break;
            }
        }
        best.map(|(mv, _)| mv)
    }

    /// Searches in windows around the last score that widen step by step.
    fn aspire(&mut self, position: &Position, depth: i32, last: Score) {
        let narrow = depth >= ASPIRATION_MIN_DEPTH as i32 && last.abs() < MATE_BOUND;
        let widest = ASPIRATION_RADIUS.len();
        let (mut below, mut above) = if narrow { (0, 0) } else { (widest, widest) };
        loop {
            let radius = |step: usize| ASPIRATION_RADIUS.get(step).map(|&radius| radius.max(1));
            let alpha = radius(below).map_or(-INFINITE, |r| (last - r).max(-INFINITE));
            let beta = radius(above).map_or(INFINITE, |r| (last + r).min(INFINITE));
            let score = self.negamax(position, depth, alpha, beta, 0);
            if self.stopped {
                return;
            }
            if score <= alpha && below < widest {
                below += 1;
            } else if score >= beta && above < widest {
                above += 1;
            } else {
                return;
            }
        }
    }

    fn report(&self, depth: u32, score: Score, pv: Vec<Move>) -> Report {
        Report {
            depth,
            seldepth: self.seldepth,
            score,
            nodes: self.nodes,
            time: self.started.elapsed(),
            hashfull: self.table.fullness(),
            pv,
        }
    }

    // ---- services to the tree search ----------------------------------------

    /// Counts a node; false when the search is over.
    pub fn enter_node(&mut self, ply: usize) -> bool {
        if self.nodes >= self.node_limit {
            self.stopped = true;
        } else if self.nodes & 255 == 255 {
            self.check_clock();
        }
        if self.stopped {
            return false;
        }
        self.nodes += 1;
        self.seldepth = self.seldepth.max(ply);
        true
    }

    /// The clock is read only if there is a deadline, so that searches to a
    /// fixed number of nodes or depth never depend on it.
    fn check_clock(&mut self) {
        let late = |limit: Duration| self.started.elapsed() >= limit;
        if self.stop.load(Ordering::Relaxed) || self.deadline.hard.is_some_and(late) {
            self.stopped = true;
        }
    }

    pub fn evaluate(&mut self, position: &Position) -> Score {
        evaluate(position, &mut self.pawn_table)
    }

    /// What was played before the move to come at this ply.
    pub fn context(&self, ply: usize) -> Context {
        let before = |plies: usize| ply.checked_sub(plies).and_then(|ply| self.frames[ply].arrival);
        [before(1), before(2)]
    }

    /// Drawn by the fifty-move rule, by material, or by repetition: once
    /// within the search, twice if reaching back into the game.
    pub fn is_draw(&self, position: &Position, ply: usize) -> bool {
        if position.halfmove_clock >= 100 {
            return !position.in_check() || !legal_moves(position).as_slice().is_empty();
        }
        position.is_insufficient_material() || self.is_repetition(position, ply)
    }

    fn is_repetition(&self, position: &Position, ply: usize) -> bool {
        let now = self.keys.len() - 1;
        let reach = (position.halfmove_clock as usize).min(now);
        let mut before_root = 0;
        for back in (4..=reach).step_by(2) {
            if self.keys[now - back] == position.key {
                before_root += 1;
                if back < ply || before_root == 2 {
                    return true;
                }
            }
        }
        false
    }

    pub fn note_root_move(&mut self, mv: Move, score: Score) {
        self.root_best = Some((mv, score));
    }

    pub fn clear_pv(&mut self, ply: usize) {
        self.pv[ply].clear();
    }

    pub fn extend_pv(&mut self, ply: usize, mv: Move) {
        let (upper, lower) = self.pv.split_at_mut(ply + 1);
        upper[ply].clear();
        upper[ply].push(mv);
        upper[ply].extend_from_slice(&lower[0]);
    }

    fn principal_variation(&self, mv: Move) -> Vec<Move> {
        if self.pv[0].first() == Some(&mv) {
            self.pv[0].clone()
        } else {
            vec![mv]
        }
    }
}
