//! A score for the opening and one for the endgame, added as one.

use std::ops::{Add, AddAssign, Mul, Neg, Sub, SubAssign};

use crate::engine_constants::{Score, ScorePair};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tapered {
    pub opening: Score,
    pub endgame: Score,
}

/// A pair from an opening and an endgame score.
pub const fn pair(opening: Score, endgame: Score) -> Tapered {
    Tapered { opening, endgame }
}

/// The same score throughout the game.
pub const fn both(score: Score) -> Tapered {
    pair(score, score)
}

pub const fn from_pair(scores: ScorePair) -> Tapered {
    pair(scores.0, scores.1)
}

impl Tapered {
    /// The mean weighted by the material left: 24 of 24 is the opening.
    pub fn blend(self, phase: Score) -> Score {
        (self.opening * phase + self.endgame * (24 - phase)) / 24
    }
}

impl Add for Tapered {
    type Output = Tapered;

    #[inline]
    fn add(self, other: Tapered) -> Tapered {
        pair(self.opening + other.opening, self.endgame + other.endgame)
    }
}

impl Sub for Tapered {
    type Output = Tapered;

    #[inline]
    fn sub(self, other: Tapered) -> Tapered {
        pair(self.opening - other.opening, self.endgame - other.endgame)
    }
}

impl Neg for Tapered {
    type Output = Tapered;

    fn neg(self) -> Tapered {
        pair(-self.opening, -self.endgame)
    }
}

impl Mul<Score> for Tapered {
    type Output = Tapered;

    #[inline]
    fn mul(self, factor: Score) -> Tapered {
        pair(self.opening * factor, self.endgame * factor)
    }
}

impl AddAssign for Tapered {
    #[inline]
    fn add_assign(&mut self, other: Tapered) {
        *self = *self + other;
    }
}

impl SubAssign for Tapered {
    #[inline]
    fn sub_assign(&mut self, other: Tapered) {
        *self = *self - other;
    }
}
