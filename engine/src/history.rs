//! What past cutoffs say about moves to come.

use crate::engine_constants::*;
use crate::position::Position;
use crate::types::*;

/// Every counter stays within this bound, by gravity towards zero.
pub const HISTORY_LIMIT: i32 = 16_384;

/// A kind of piece arriving on a square: the context of continuation history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival(u16);

const ARRIVALS: usize = 6 * 64;

impl Arrival {
    pub fn of(position: &Position, mv: Move) -> Arrival {
        let kind = position.kind_at(mv.from()).unwrap_or(Kind::Pawn);
        Arrival((kind as usize * 64 + mv.to()) as u16)
    }

    fn index(self) -> usize {
        self.0 as usize % ARRIVALS
    }
}

/// The moves before the one to be judged: the opponent's, then our own.
pub type Context = [Option<Arrival>; 2];

pub struct History {
    butterfly: Vec<[i16; 4096]>,
    captures: Vec<[i16; 6]>,
    continuation: [Vec<[i16; ARRIVALS]>; 2],
    countermoves: Vec<Move>,
}

impl History {
    pub fn new() -> History {
        History {
            butterfly: vec![[0; 4096]; 2],
            captures: vec![[0; 6]; ARRIVALS],
            continuation: [vec![[0; ARRIVALS]; ARRIVALS], vec![[0; ARRIVALS]; ARRIVALS]],
            countermoves: vec![Move::NONE; 2 * ARRIVALS],
        }
    }

    pub fn clear(&mut self) {
        self.butterfly.fill([0; 4096]);
        self.captures.fill([0; 6]);
        for table in &mut self.continuation {
            table.fill([0; ARRIVALS]);
        }
        self.countermoves.fill(Move::NONE);
    }

    pub fn quiet(&self, position: &Position, context: &Context, mv: Move) -> i32 {
        self.butterfly[position.side as usize][butterfly_index(mv)] as i32
            + self.continuation(position, context, mv)
    }

    /// The part that depends on the moves before.
    pub fn continuation(&self, position: &Position, context: &Context, mv: Move) -> i32 {
        let arrival = Arrival::of(position, mv).index();
        let in_table = |(table, before): (&Vec<[i16; ARRIVALS]>, &Option<Arrival>)| {
            before.map_or(0, |before| table[before.index()][arrival] as i32)
        };
        self.continuation.iter().zip(context).map(in_table).sum()
    }

    pub fn capture(&self, position: &Position, mv: Move) -> i32 {
        let captured = position.captured(mv).unwrap_or(Kind::Pawn);
        self.captures[Arrival::of(position, mv).index()][captured as usize] as i32
    }

    pub fn countermove(&self, position: &Position, context: &Context) -> Move {
        context[0].map_or(Move::NONE, |before| self.countermoves[counter_index(position, before)])
    }

    /// Rewards the move that cut off and blames those tried before it.
    pub fn cutoff(
        &mut self,
        position: &Position,
        context: &Context,
        best: Move,
        tried: &[Move],
        depth: i32,
    ) {
        let bonus = (HISTORY_BONUS_PER_DEPTH * depth).min(HISTORY_BONUS_MAX);
        if best.is_quiet() {
            self.add_quiet(position, context, best, bonus);
            if let Some(before) = context[0] {
                self.countermoves[counter_index(position, before)] = best;
            }
        } else {
            self.add_capture(position, best, bonus);
        }
        for &mv in tried {
            if !mv.is_quiet() {
                self.add_capture(position, mv, -bonus);
            } else if best.is_quiet() {
                self.add_quiet(position, context, mv, -bonus);
            }
        }
    }

    fn add_quiet(&mut self, position: &Position, context: &Context, mv: Move, bonus: i32) {
        add(&mut self.butterfly[position.side as usize][butterfly_index(mv)], bonus);
        let arrival = Arrival::of(position, mv).index();
        for (table, before) in self.continuation.iter_mut().zip(context) {
            if let Some(before) = before {
                add(&mut table[before.index()][arrival], bonus);
            }
        }
    }

    fn add_capture(&mut self, position: &Position, mv: Move, bonus: i32) {
        let captured = position.captured(mv).unwrap_or(Kind::Pawn);
        add(&mut self.captures[Arrival::of(position, mv).index()][captured as usize], bonus);
    }
}

fn butterfly_index(mv: Move) -> usize {
    mv.from() * 64 + mv.to()
}

fn counter_index(position: &Position, before: Arrival) -> usize {
    position.side as usize * ARRIVALS + before.index()
}

fn add(counter: &mut i16, bonus: i32) {
    let bonus = bonus.clamp(-HISTORY_LIMIT, HISTORY_LIMIT);
    let value = *counter as i32;
    *counter = (value + bonus - value * bonus.abs() / HISTORY_LIMIT) as i16;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_stay_within_the_limit() {
        let mut counter = 0;
        for _ in 0..1000 {
            add(&mut counter, 30_000);
        }
        assert_eq!(counter as i32, HISTORY_LIMIT);
        for _ in 0..1000 {
            add(&mut counter, -1000);
        }
        assert!(counter as i32 >= -HISTORY_LIMIT);
    }
}
