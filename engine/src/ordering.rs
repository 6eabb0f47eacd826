//! The order in which moves are tried: the table's move, captures that do not
//! lose material, quiet moves by history, captures that do.

use crate::bitboard::relative_rank;
use crate::engine_constants::*;
use crate::history::{Context, History};
use crate::movegen::{legal_captures, legal_moves, MoveList};
use crate::position::Position;
use crate::see;
use crate::types::*;

/// Quiet scores are at most a few hundred thousand either way.
const GOOD_CAPTURE: i32 = 1 << 26;
const TRIED: i32 = i32::MIN;

pub struct Hints {
    pub table_move: Move,
    pub killers: [Move; 2],
    pub context: Context,
}

impl Hints {
    pub fn table_move(table_move: Move) -> Hints {
        Hints { table_move, killers: [Move::NONE; 2], context: [None; 2] }
    }
}

pub struct Picker {
    list: MoveList,
    scores: [i32; 256],
    hints: Hints,
    started: bool,
    scored: bool,
    /// Where the table's move stands in the list.
    hashed: Option<usize>,
}

impl Picker {
    pub fn all(position: &Position, hints: Hints) -> Picker {
        Picker::new(legal_moves(position), hints)
    }

    pub fn captures(position: &Position, hints: Hints) -> Picker {
        Picker::new(legal_captures(position), hints)
    }

    fn new(list: MoveList, hints: Hints) -> Picker {
        Picker { list, scores: [0; 256], hints, started: false, scored: false, hashed: None }
    }

    pub fn len(&self) -> usize {
        self.list.as_slice().len()
    }

    /// The next best move. Nothing is scored before the table's move has
    /// failed to cut off.
    pub fn next(&mut self, position: &Position, history: &History) -> Option<Move> {
        if !self.started {
            self.started = true;
            self.hashed = self.list.as_slice().iter().position(|&mv| mv == self.hints.table_move);
            if self.hashed.is_some() {
                return Some(self.hints.table_move);
            }
        }
        if !self.scored {
            self.scored = true;
            self.score(position, history);
        }
        self.best(position)
    }

    fn score(&mut self, position: &Position, history: &History) {
        let counter = history.countermove(position, &self.hints.context);
        for (score, &mv) in self.scores.iter_mut().zip(self.list.as_slice()) {
            *score = if mv.is_quiet() {
                quiet_score(position, history, &self.hints, counter, mv)
            } else {
                GOOD_CAPTURE + capture_score(position, history, mv)
            };
        }
        if let Some(index) = self.hashed {
            self.scores[index] = TRIED;
        }
    }

    fn best(&mut self, position: &Position) -> Option<Move> {
        loop {
            let scores = &self.scores[..self.list.as_slice().len()];
            let (index, &score) =
                scores.iter().enumerate().max_by_key(|&(i, &s)| (s, usize::MAX - i))?;
            if score == TRIED {
                return None;
            }
            let mv = self.list.as_slice()[index];
            if score > GOOD_CAPTURE / 2 && !see::is_at_least(position, mv, 0) {
                self.scores[index] = score - 2 * GOOD_CAPTURE;
                continue;
            }
            self.scores[index] = TRIED;
            return Some(mv);
        }
    }
}

fn capture_score(position: &Position, history: &History, mv: Move) -> i32 {
    let divisor = (CAPTURE_HISTORY_DIVISOR as i32).max(1);
    let attacker = position.kind_at(mv.from()).map_or(0, |kind| kind as i32);
    see::gain(position, mv) - attacker + history.capture(position, mv) / divisor
}

fn quiet_score(
    position: &Position,
    history: &History,
    hints: &Hints,
    counter: Move,
    mv: Move,
) -> i32 {
    let mut score = history.quiet(position, &hints.context, mv);
    if mv == hints.killers[0] {
        score += MOVE_SCORE_KILLER_1;
    } else if mv == hints.killers[1] {
        score += MOVE_SCORE_KILLER_2;
    }
    if mv == counter {
        score += MOVE_SCORE_COUNTERMOVE;
    }
    if position.kind_at(mv.from()) == Some(Kind::Pawn) {
        score += match relative_rank(position.side, mv.to()) {
            6 => MOVE_SCORE_PAWN_PUSH_7TH,
            5 => MOVE_SCORE_PAWN_PUSH_6TH,
            _ => 0,
        };
    }
    score
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(fen: &str, table_move: Move) -> Vec<String> {
        let position = Position::from_fen(fen).unwrap();
        let history = History::new();
        let mut picker = Picker::all(&position, Hints::table_move(table_move));
        std::iter::from_fn(|| picker.next(&position, &history)).map(|mv| mv.to_string()).collect()
    }

    #[test]
    fn every_move_comes_once_with_the_table_move_first() {
        let moves = order(crate::fen::START, Move::new(12, 28, Move::DOUBLE_PUSH));
        assert_eq!(moves.len(), 20);
        assert_eq!(moves[0], "e2e4");
        assert_eq!(moves.iter().collect::<std::collections::HashSet<_>>().len(), 20);
    }

    #[test]
    fn good_captures_come_first_and_bad_ones_last() {
        let moves = order("4k3/8/2p5/3p1r2/8/3QB3/8/4K3 w - - 0 1", Move::NONE);
        assert_eq!(moves[0], "d3f5");
        assert_eq!(moves.last().unwrap(), "d3d5");
    }

    #[test]
    fn a_table_move_that_is_not_legal_is_not_played() {
        assert_eq!(order(crate::fen::START, Move::new(0, 63, 0)).len(), 20);
    }
}
