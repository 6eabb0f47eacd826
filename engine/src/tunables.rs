//! Search constants as UCI options, with the feature `options`.
//!
//! `tuned!(NAME)` is the constant `NAME`. With the feature it is what `setoption` last gave the
//! option of this name, and the constant is its default. Both give the same tree for equal values.

#[cfg(not(feature = "options"))]
macro_rules! tuned {
    ($name:ident) => {
        $crate::engine_constants::$name
    };
}

#[cfg(feature = "options")]
macro_rules! tuned {
    ($name:ident) => {
        $crate::tunables::options::$name.get()
    };
}

pub(crate) use tuned;

#[cfg(feature = "options")]
pub mod options {
    use std::marker::PhantomData;
    use std::ops::RangeInclusive;
    use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

    use crate::engine_constants as constants;
    use crate::engine_constants::Score;

    /// One option; its value is always inside its range, and so always a `T`.
    pub struct Tunable<T> {
        name: &'static str,
        default: i32,
        range: RangeInclusive<i32>,
        value: AtomicI32,
        kind: PhantomData<T>,
    }

    impl<T: TryFrom<i32>> Tunable<T> {
        const fn new(name: &'static str, default: i32, range: RangeInclusive<i32>) -> Tunable<T> {
            let value = AtomicI32::new(default);
            Tunable { name, default, range, value, kind: PhantomData }
        }

        pub fn get(&self) -> T {
            T::try_from(self.value.load(Relaxed)).unwrap_or_else(|_| unreachable!())
        }

        fn declaration(&self) -> String {
            let (name, default) = (self.name, self.default);
            let (low, high) = (self.range.start(), self.range.end());
            format!("option name {name} type spin default {default} min {low} max {high}")
        }

        /// Whether the value is inside the range; another one changes nothing.
        fn set(&self, value: i32) -> bool {
            let inside = self.range.contains(&value);
            if inside {
                self.value.store(value, Relaxed);
            }
            inside
        }
    }

    macro_rules! tunables {
        ($($name:ident: $type:ty, $range:expr;)*) => {
            $(pub static $name: Tunable<$type> =
                Tunable::new(stringify!($name), constants::$name as i32, $range);)*

            /// The lines that declare all options.
            pub fn declarations() -> Vec<String> {
                vec![$($name.declaration()),*]
            }

            /// Whether there is such an option, in any case, that takes this value.
            pub fn set(name: &str, value: i32) -> bool {
                $(if name.eq_ignore_ascii_case(stringify!($name)) {
                    return $name.set(value);
                })*
                false
            }
        };
    }

    tunables! {
        BETA_PRUNE_MARGIN_PER_DEPTH: Score, -220..=440;
        BETA_PRUNE_MAX_DEPTH: u8, 0..=32;
        NULL_MOVE_MIN_DEPTH: u8, 0..=12;
        NULL_MOVE_REDUCE_DEPTH_BASE: u8, 0..=12;
        NULL_MOVE_REDUCE_DEPTH_DIVISOR: u8, 1..=16;
        NULL_MOVE_EVAL_DIVISOR: Score, 1..=1200;
        SEE_PRUNE_MARGIN: Score, -80..=160;
        SEE_PRUNE_CAPTURE_MARGIN: Score, -240..=480;
        SEE_PRUNE_MAX_DEPTH: u8, 0..=24;
        RAZOR_MARGIN_PER_DEPTH: Score, -600..=1200;
        RAZOR_MAX_DEPTH: u8, 0..=8;
        QUIESCENCE_DELTA_MARGIN: Score, -400..=800;
        PROBCUT_MIN_DEPTH: u8, 0..=20;
        PROBCUT_MARGIN: Score, -400..=800;
        PROBCUT_DEPTH_REDUCTION: u8, 0..=12;
        MULTICUT_MIN_DEPTH: u8, 0..=32;
        MULTICUT_DEPTH_REDUCTION: u8, 0..=16;
        MULTICUT_MOVES_TO_TRY: u8, 0..=32;
        MULTICUT_REQUIRED_CUTOFFS: u8, 0..=12;
        LMR_LEGAL_MOVES_BEFORE_ATTEMPT: u8, 0..=12;
        LMR_MIN_DEPTH: u8, 0..=12;
        LMR_CONTINUATION_GOOD_THRESHOLD: i32, -8000..=16000;
        LMR_CONTINUATION_BAD_THRESHOLD: i32, -16000..=8000;
        IID_MIN_DEPTH: u8, 0..=16;
        IID_REDUCE_DEPTH: u8, 0..=8;
        THREAT_EXTENSION_MARGIN: Score, -1400..=2800;
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_default_is_the_constant_and_inside_its_range() {
            assert_eq!(RAZOR_MAX_DEPTH.get(), constants::RAZOR_MAX_DEPTH);
            for line in declarations() {
                let numbers: Vec<i32> =
                    line.split(' ').filter_map(|word| word.parse().ok()).collect();
                assert!(numbers[1] <= numbers[0] && numbers[0] <= numbers[2], "{line}");
            }
        }

        #[test]
        fn values_outside_the_range_change_nothing() {
            assert!(set("multicut_moves_to_try", 5));
            assert!(!set("MULTICUT_MOVES_TO_TRY", -1) && !set("NO_SUCH_OPTION", 1));
            assert_eq!(MULTICUT_MOVES_TO_TRY.get(), 5);
        }
    }
}
