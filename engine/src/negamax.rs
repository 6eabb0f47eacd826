//! The tree search: principal variation search with pruning, reductions and
//! extensions.

use crate::attacks;
use crate::bitboard::bit;
use crate::engine_constants::*;
use crate::history::Arrival;
use crate::ordering::{Hints, Picker};
use crate::position::Position;
use crate::search::*;
use crate::see;
use crate::tt::{Bound, Entry};
use crate::tunables::tuned;
use crate::types::*;

/// What is known about a node before its moves are searched.
struct Node<'a> {
    position: &'a Position,
    depth: i32,
    alpha: Score,
    beta: Score,
    ply: usize,
    pv: bool,
    in_check: bool,
    /// Better than it was a move ago.
    improving: bool,
    /// The evaluation as such, and corrected by the table.
    raw_eval: Score,
    static_eval: Score,
    table_move: Move,
    /// Passing fails badly here.
    threatened: bool,
}

impl Node<'_> {
    fn extension(&self, root_depth: i32) -> i32 {
        let room = (self.ply as i32) < 2 * root_depth;
        i32::from(room && (self.in_check || self.threatened))
    }
}

/// How the moves of a node have fared so far.
struct Progress {
    best: Score,
    best_move: Move,
    alpha: Score,
    searched: usize,
    tried: Vec<Move>,
}

fn is_mate(score: Score) -> bool {
    score.abs() >= MATE_BOUND
}

/// Mates are stored by their distance from the node, not from the root.
fn to_table(score: Score, ply: usize) -> Score {
    match score {
        _ if score >= MATE_BOUND => score + ply as Score,
        _ if score <= -MATE_BOUND => score - ply as Score,
        _ => score,
    }
}

fn from_table(score: Score, ply: usize) -> Score {
    match score {
        _ if score >= MATE_BOUND => score - ply as Score,
        _ if score <= -MATE_BOUND => score + ply as Score,
        _ => score,
    }
}

fn settles(bound: Bound, score: Score, alpha: Score, beta: Score) -> bool {
    match bound {
        Bound::Exact => true,
        Bound::Lower => score >= beta,
        Bound::Upper => score <= alpha,
    }
}

impl Searcher {
    pub fn negamax(
        &mut self,
        position: &Position,
        depth: i32,
        mut alpha: Score,
        mut beta: Score,
        ply: usize,
    ) -> Score {
        if depth <= 0 {
            return self.quiesce(position, alpha, beta, ply);
        }
        self.clear_pv(ply);
        if !self.enter_node(ply) {
            return DRAW;
        }
        if ply > 0 {
            if self.is_draw(position, ply) {
                return DRAW;
            }
            alpha = alpha.max(-MATE + ply as Score);
            beta = beta.min(MATE - ply as Score - 1);
            if alpha >= beta {
                return alpha;
            }
        }
        if ply >= MAX_PLY - 1 {
            return self.evaluate(position);
        }
        let pv = beta - alpha > 1;
        let entry = self.table.get(position.key);
        if let Some(entry) = entry.filter(|entry| !pv && entry.depth >= depth) {
            let score = from_table(entry.score, ply);
            if settles(entry.bound, score, alpha, beta) {
                return score;
            }
        }
        let mut node = self.look_around(position, depth, alpha, beta, ply, entry);
        if !pv && !node.in_check {
            if let Some(score) = self.prune(&mut node) {
                return score;
            }
        }
        self.search_moves(&node)
    }

    fn look_around<'a>(
        &mut self,
        position: &'a Position,
        depth: i32,
        alpha: Score,
        beta: Score,
        ply: usize,
        entry: Option<Entry>,
    ) -> Node<'a> {
        let in_check = position.in_check();
        let raw_eval = self.raw_eval(position, entry);
        let static_eval = corrected(raw_eval, ply, entry);
        self.frames[ply].static_eval = static_eval;
        self.frames[ply + 1].killers = [Move::NONE; 2];
        let before = ply.checked_sub(2).map_or(-INFINITE, |ply| self.frames[ply].static_eval);
        let table_move = entry.map_or(Move::NONE, |entry| entry.mv);
        let mut depth = depth;
        if table_move.is_none() && depth >= tuned!(IID_MIN_DEPTH) as i32 {
            depth = (depth - tuned!(IID_REDUCE_DEPTH) as i32).max(1);
        }
        Node {
            position,
            depth,
            alpha,
            beta,
            ply,
            pv: beta - alpha > 1,
            in_check,
            improving: !in_check && static_eval > before,
            raw_eval,
            static_eval,
            table_move,
            threatened: false,
        }
    }

    /// The evaluation, from the table if it is there; none in check.
    fn raw_eval(&mut self, position: &Position, entry: Option<Entry>) -> Score {
        match entry {
            _ if position.in_check() => -INFINITE,
            Some(entry) if entry.eval != -INFINITE => entry.eval,
            _ => self.evaluate(position),
        }
    }

    // ---- before any move ----------------------------------------------------

    /// A score good enough to search no move at all.
    fn prune(&mut self, node: &mut Node) -> Option<Score> {
        if node.ply == 0 {
            return None;
        }
        beta_prune(node)
            .or_else(|| self.razor(node))
            .or_else(|| self.null_move(node))
            .or_else(|| self.probcut(node))
            .or_else(|| self.multicut(node))
    }

    fn razor(&mut self, node: &Node) -> Option<Score> {
        let margin = tuned!(RAZOR_MARGIN_PER_DEPTH) * node.depth;
        if node.depth > tuned!(RAZOR_MAX_DEPTH) as i32 || node.static_eval + margin > node.alpha {
            return None;
        }
        let score = self.quiesce(node.position, node.alpha, node.beta, node.ply);
        (score <= node.alpha).then_some(score)
    }

    fn null_move(&mut self, node: &mut Node) -> Option<Score> {
        let position = node.position;
        let passed_before = node.ply > 0 && self.frames[node.ply - 1].arrival.is_none();
        if node.depth < tuned!(NULL_MOVE_MIN_DEPTH) as i32
            || node.static_eval < node.beta
            || is_mate(node.beta)
            || passed_before
            || !position.has_pieces(position.side)
        {
            return None;
        }
        let eval_plies = (node.static_eval - node.beta) / tuned!(NULL_MOVE_EVAL_DIVISOR).max(1);
        let reduction = tuned!(NULL_MOVE_REDUCE_DEPTH_BASE) as i32
            + node.depth / (tuned!(NULL_MOVE_REDUCE_DEPTH_DIVISOR) as i32).max(1)
            + eval_plies.min(3);
        let next = position.after_null();
        self.frames[node.ply].arrival = None;
        let score = self.zero_window(&next, node.depth - 1 - reduction, node.beta, node.ply);
        if self.stopped {
            return Some(DRAW);
        }
        if score < node.beta {
            node.threatened = score < node.beta - tuned!(THREAT_EXTENSION_MARGIN);
            return None;
        }
        Some(if is_mate(score) { node.beta } else { score })
    }

    /// Asks whether a move already made is worth beta to the side that made it.
    fn zero_window(&mut self, next: &Position, depth: i32, beta: Score, ply: usize) -> Score {
        self.keys.push(next.key);
        let score = -self.negamax(next, depth, -beta, 1 - beta, ply + 1);
        self.keys.pop();
        score
    }

    /// Tries captures with a raised beta and reduced depth.
    fn probcut(&mut self, node: &Node) -> Option<Score> {
        let beta = node.beta + tuned!(PROBCUT_MARGIN);
        if node.depth < tuned!(PROBCUT_MIN_DEPTH) as i32 || is_mate(node.beta) || is_mate(beta) {
            return None;
        }
        let position = node.position;
        let depth = node.depth - 1 - tuned!(PROBCUT_DEPTH_REDUCTION) as i32;
        let mut picker = Picker::captures(position, Hints::table_move(node.table_move));
        while let Some(mv) = picker.next(position, &self.history) {
            if !see::is_at_least(position, mv, beta - node.static_eval) {
                continue;
            }
            let next = position.after(mv);
            self.frames[node.ply].arrival = Some(Arrival::of(position, mv));
            let mut score = self.zero_window(&next, 0, beta, node.ply);
            if score >= beta && depth > 0 {
                score = self.zero_window(&next, depth, beta, node.ply);
            }
            if self.stopped {
                return Some(DRAW);
            }
            if score >= beta {
                return Some(score);
            }
        }
        None
    }

    /// If several of the first moves cut off at reduced depth, one will do so
    /// at full depth.
    fn multicut(&mut self, node: &Node) -> Option<Score> {
        if !ENABLE_MULTICUT || node.depth < tuned!(MULTICUT_MIN_DEPTH) as i32 || is_mate(node.beta)
        {
            return None;
        }
        if node.static_eval < node.beta {
            return None;
        }
        let position = node.position;
        let depth = node.depth - 1 - tuned!(MULTICUT_DEPTH_REDUCTION) as i32;
        let mut picker = Picker::all(position, self.hints(node));
        let mut cutoffs = 0;
        for _ in 0..tuned!(MULTICUT_MOVES_TO_TRY) {
            let mv = picker.next(position, &self.history)?;
            let next = position.after(mv);
            self.frames[node.ply].arrival = Some(Arrival::of(position, mv));
            cutoffs += i32::from(self.zero_window(&next, depth, node.beta, node.ply) >= node.beta);
            if self.stopped {
                return Some(DRAW);
            }
            if cutoffs >= tuned!(MULTICUT_REQUIRED_CUTOFFS) as i32 {
                return Some(node.beta);
            }
        }
        None
    }

    // ---- move by move ---------------------------------------------------------

    fn hints(&self, node: &Node) -> Hints {
        Hints {
            table_move: node.table_move,
            killers: self.frames[node.ply].killers,
            context: self.context(node.ply),
        }
    }

    fn search_moves(&mut self, node: &Node) -> Score {
        let mut picker = Picker::all(node.position, self.hints(node));
        if picker.len() == 0 {
            return if node.in_check { -MATE + node.ply as Score } else { DRAW };
        }
        let mut progress = Progress {
            best: -INFINITE,
            best_move: Move::NONE,
            alpha: node.alpha,
            searched: 0,
            tried: Vec::new(),
        };
        while let Some(mv) = picker.next(node.position, &self.history) {
            if self.skips(node, &progress, mv) {
                continue;
            }
            let score = self.search_move(node, &progress, mv);
            if self.stopped {
                return DRAW;
            }
            progress.searched += 1;
            if self.notes(node, &mut progress, mv, score) {
                break;
            }
            progress.tried.push(mv);
        }
        self.remember(node, &progress);
        progress.best
    }

    /// Shallow pruning of single moves, once one has been found that does not
    /// lose at once.
    fn skips(&self, node: &Node, progress: &Progress, mv: Move) -> bool {
        if node.ply == 0 || progress.best <= -MATE_BOUND || mv.promotion().is_some() {
            return false;
        }
        let idle = mv.is_quiet() && !node.in_check;
        if idle && (late(node, progress) || futile(node, progress)) {
            return !gives_direct_check(node.position, mv);
        }
        let per_ply =
            if mv.is_quiet() { tuned!(SEE_PRUNE_MARGIN) } else { tuned!(SEE_PRUNE_CAPTURE_MARGIN) };
        node.depth <= tuned!(SEE_PRUNE_MAX_DEPTH) as i32
            && !see::is_at_least(node.position, mv, -per_ply * node.depth)
    }

    /// Principal variation search with late move reductions.
    fn search_move(&mut self, node: &Node, progress: &Progress, mv: Move) -> Score {
        let next = node.position.after(mv);
        let depth = node.depth - 1 + node.extension(self.root_depth);
        let reduction = self.reduction(node, progress, mv, &next).clamp(0, (depth - 1).max(0));
        self.frames[node.ply].arrival = Some(Arrival::of(node.position, mv));
        self.keys.push(next.key);
        let (alpha, ply) = (progress.alpha, node.ply + 1);
        let mut score = alpha + 1;
        if progress.searched > 0 {
            score = -self.negamax(&next, depth - reduction, -alpha - 1, -alpha, ply);
            if score > alpha && reduction > 0 {
                score = -self.negamax(&next, depth, -alpha - 1, -alpha, ply);
            }
        }
        if progress.searched == 0 || (node.pv && score > alpha) {
            score = -self.negamax(&next, depth, -node.beta, -alpha, ply);
        }
        self.keys.pop();
        score
    }

    fn reduction(&self, node: &Node, progress: &Progress, mv: Move, next: &Position) -> i32 {
        let early = progress.searched < tuned!(LMR_LEGAL_MOVES_BEFORE_ATTEMPT) as usize;
        if node.depth < tuned!(LMR_MIN_DEPTH) as i32 || early || !mv.is_quiet() {
            return 0;
        }
        let moves = (progress.searched + 1).min(63);
        let mut reduction = LMR_TABLE[node.depth.min(63) as usize][moves] as i32;
        reduction -= i32::from(node.pv) + i32::from(next.in_check());
        reduction += i32::from(!node.improving);
        let continuation = self.history.continuation(node.position, &self.context(node.ply), mv);
        reduction -= i32::from(continuation > tuned!(LMR_CONTINUATION_GOOD_THRESHOLD));
        reduction + i32::from(continuation < tuned!(LMR_CONTINUATION_BAD_THRESHOLD))
    }

    /// Enters a move's score; true if it cuts off.
    fn notes(&mut self, node: &Node, progress: &mut Progress, mv: Move, score: Score) -> bool {
        if score <= progress.best {
            return false;
        }
        progress.best = score;
        if score <= progress.alpha {
            return false;
        }
        progress.best_move = mv;
        progress.alpha = score;
        if node.pv {
            self.extend_pv(node.ply, mv);
        }
        if node.ply == 0 {
            self.note_root_move(mv, score);
        }
        if score < node.beta {
            return false;
        }
        self.reward(node, progress, mv);
        true
    }

    fn reward(&mut self, node: &Node, progress: &Progress, mv: Move) {
        let killers = &mut self.frames[node.ply].killers;
        if mv.is_quiet() && killers[0] != mv {
            *killers = [mv, killers[0]];
        }
        let context = self.context(node.ply);
        self.history.cutoff(node.position, &context, mv, &progress.tried, node.depth);
    }

    fn remember(&mut self, node: &Node, progress: &Progress) {
        let bound = match progress.best {
            best if best >= node.beta => Bound::Lower,
            best if best > node.alpha => Bound::Exact,
            _ => Bound::Upper,
        };
        let entry = Entry {
            mv: progress.best_move,
            score: to_table(progress.best, node.ply),
            eval: node.raw_eval,
            depth: node.depth,
            bound,
        };
        self.table.put(node.position.key, entry);
    }

    // ---- quiescence -----------------------------------------------------------

    /// Captures until the position is quiet; every evasion when in check.
    fn quiesce(&mut self, position: &Position, alpha: Score, beta: Score, ply: usize) -> Score {
        self.clear_pv(ply);
        if !self.enter_node(ply) {
            return DRAW;
        }
        if ply >= MAX_PLY - 1 {
            return self.evaluate(position);
        }
        if self.is_draw(position, ply) {
            return DRAW;
        }
        let entry = self.table.get(position.key);
        if let Some(entry) = entry {
            let score = from_table(entry.score, ply);
            if beta - alpha == 1 && settles(entry.bound, score, alpha, beta) {
                return score;
            }
        }
        let raw_eval = self.raw_eval(position, entry);
        let stand_pat = corrected(raw_eval, ply, entry);
        if stand_pat >= beta {
            return stand_pat;
        }
        let table_move = entry.map_or(Move::NONE, |entry| entry.mv);
        self.quiesce_moves(position, alpha, beta, ply, [raw_eval, stand_pat], table_move)
    }

    fn quiesce_moves(
        &mut self,
        position: &Position,
        alpha: Score,
        beta: Score,
        ply: usize,
        [raw_eval, stand_pat]: [Score; 2],
        table_move: Move,
    ) -> Score {
        let in_check = position.in_check();
        let hints = Hints { context: self.context(ply), ..Hints::table_move(table_move) };
        let mut picker =
            if in_check { Picker::all(position, hints) } else { Picker::captures(position, hints) };
        if in_check && picker.len() == 0 {
            return -MATE + ply as Score;
        }
        let mut best = if in_check { -MATE + ply as Score } else { stand_pat };
        let mut best_move = Move::NONE;
        let mut window = alpha.max(best);
        while let Some(mv) = picker.next(position, &self.history) {
            if !in_check && !worth_a_look(position, mv, stand_pat, window) {
                continue;
            }
            let next = position.after(mv);
            self.frames[ply].arrival = Some(Arrival::of(position, mv));
            self.keys.push(next.key);
            let score = -self.quiesce(&next, -beta, -window, ply + 1);
            self.keys.pop();
            if self.stopped {
                return DRAW;
            }
            if score > best {
                best = score;
                if score > window {
                    window = score;
                    best_move = mv;
                    self.extend_pv(ply, mv);
                }
                if score >= beta {
                    break;
                }
            }
        }
        let bound = if best >= beta { Bound::Lower } else { Bound::Upper };
        let score = to_table(best, ply);
        self.table
            .put(position.key, Entry { mv: best_move, score, eval: raw_eval, depth: 0, bound });
        best
    }
}

/// A score in the table may say more than the evaluation.
fn corrected(eval: Score, ply: usize, entry: Option<Entry>) -> Score {
    let Some(entry) = entry.filter(|_| eval != -INFINITE) else { return eval };
    let score = from_table(entry.score, ply);
    let better = match entry.bound {
        Bound::Exact => true,
        Bound::Lower => score > eval,
        Bound::Upper => score < eval,
    };
    if better && !is_mate(score) {
        score
    } else {
        eval
    }
}

/// Captures that lose material or cannot lift the score to alpha are left out.
fn worth_a_look(position: &Position, mv: Move, stand_pat: Score, alpha: Score) -> bool {
    let hopeless = stand_pat + see::gain(position, mv) + tuned!(QUIESCENCE_DELTA_MARGIN) <= alpha;
    !hopeless && see::is_at_least(position, mv, 0)
}

/// Whether the moved piece itself attacks the king.
fn gives_direct_check(position: &Position, mv: Move) -> bool {
    let king = position.king(!position.side);
    let target = bit(mv.to());
    match position.kind_at(mv.from()) {
        Some(Kind::Pawn) => attacks::pawns(position.side, target) & bit(king) != 0,
        Some(kind) => attacks::piece(kind, king, position.occupied()) & target != 0,
        None => false,
    }
}

/// So far above beta that no reply will matter.
fn beta_prune(node: &Node) -> Option<Score> {
    let margin = tuned!(BETA_PRUNE_MARGIN_PER_DEPTH) * (node.depth - i32::from(node.improving));
    let safe = node.depth <= tuned!(BETA_PRUNE_MAX_DEPTH) as i32 && !is_mate(node.beta);
    (safe && node.static_eval - margin >= node.beta).then_some(node.static_eval)
}

fn late(node: &Node, progress: &Progress) -> bool {
    let threshold = LMP_MOVE_THRESHOLDS.get(node.depth as usize);
    threshold.is_some_and(|&moves| progress.searched >= moves as usize)
}

/// So far below alpha that no quiet move will help.
fn futile(node: &Node, progress: &Progress) -> bool {
    let margin = ALPHA_PRUNE_MARGINS.get(node.depth as usize - 1);
    margin.is_some_and(|&margin| node.static_eval + margin <= progress.alpha)
}
