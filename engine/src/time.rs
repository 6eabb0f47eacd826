//! What ends a search: depth, nodes, or the clock.

use std::time::Duration;

use crate::types::Color;

#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Limits {
    pub depth: Option<u32>,
    pub nodes: Option<u64>,
    pub movetime: Option<Duration>,
    /// Time left and increment, white's first.
    pub clock: [Option<Duration>; 2],
    pub increment: [Duration; 2],
    pub moves_to_go: Option<u32>,
    pub infinite: bool,
}

/// No iteration is begun after `soft`, none goes on after `hard`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Deadline {
    pub soft: Option<Duration>,
    pub hard: Option<Duration>,
}

/// Kept back from the time left for what happens between engine and clock.
const OVERHEAD: Duration = Duration::from_millis(10);
const SHORTEST: Duration = Duration::from_millis(1);
const MOVES_EXPECTED: u32 = 28;

impl Limits {
    pub fn deadline(&self, side: Color) -> Deadline {
        if let Some(time) = self.movetime {
            let hard = time.saturating_sub(Duration::from_millis(2)).max(SHORTEST);
            return Deadline { soft: None, hard: Some(hard) };
        }
        match self.clock[side as usize] {
            None => Deadline::default(),
            Some(left) => self.share(left, self.increment[side as usize]),
        }
    }

    fn share(&self, left: Duration, increment: Duration) -> Deadline {
        let usable = left.saturating_sub(OVERHEAD).min(left.mul_f64(0.9)).max(SHORTEST);
        let moves = self.moves_to_go.map_or(MOVES_EXPECTED, |moves| moves.clamp(1, MOVES_EXPECTED));
        let share = usable / moves + increment.mul_f64(0.75);
        let hard = (share * 3).min(usable.mul_f64(if moves == 1 { 0.9 } else { 0.5 }));
        Deadline { soft: Some(share.mul_f64(0.6).min(hard)), hard: Some(hard.max(SHORTEST)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(left: u64, increment: u64, moves_to_go: Option<u32>) -> Duration {
        let limits = Limits {
            clock: [Some(Duration::from_millis(left)), None],
            increment: [Duration::from_millis(increment), Duration::ZERO],
            moves_to_go,
            ..Limits::default()
        };
        limits.deadline(Color::White).hard.unwrap()
    }

    #[test]
    fn the_clock_never_runs_out() {
        for left in [1, 5, 10, 11, 20, 100, 1000, 60_000] {
            for increment in [0, 10, 5000] {
                for moves in [None, Some(0), Some(1), Some(40)] {
                    let hard = clock(left, increment, moves);
                    assert!(hard <= Duration::from_millis(left), "{left} {increment} {moves:?}");
                }
            }
        }
    }

    #[test]
    fn without_a_clock_there_is_no_deadline() {
        assert_eq!(Limits::default().deadline(Color::Black), Deadline::default());
    }

    #[test]
    fn a_move_time_is_used_almost_in_full() {
        let limits = Limits { movetime: Some(Duration::from_millis(100)), ..Limits::default() };
        assert_eq!(limits.deadline(Color::White).hard, Some(Duration::from_millis(98)));
    }
}
