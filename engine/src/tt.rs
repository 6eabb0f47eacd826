//! The transposition table: clusters of four entries of 16 bytes, zeroed
//! lazily by the system. Clearing starts a new epoch instead of touching the
//! memory, and entries of older epochs count as empty, so a cleared table
//! behaves exactly like a new one.

use crate::engine_constants::Score;
use crate::types::Move;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    Upper = 1,
    Lower = 2,
    Exact = 3,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    pub mv: Move,
    pub score: Score,
    pub eval: Score,
    pub depth: i32,
    pub bound: Bound,
}

/// 48 bits of key and the epoch; then move, score, evaluation, depth, bound
/// and age.
type Slot = [u64; 2];
type Cluster = [Slot; 4];

const AGE_MASK: u64 = 63;
const EPOCH_MASK: u64 = 0xFFFF;

pub struct Table {
    clusters: Vec<Cluster>,
    epoch: u64,
    age: u64,
}

fn pack(entry: &Entry, age: u64) -> u64 {
    entry.mv.0 as u64
        | (entry.score as i16 as u16 as u64) << 16
        | (entry.eval as i16 as u16 as u64) << 32
        | (entry.depth.clamp(0, 255) as u64) << 48
        | (entry.bound as u64) << 56
        | age << 58
}

fn unpack(data: u64) -> Entry {
    let bound = match data >> 56 & 3 {
        1 => Bound::Upper,
        2 => Bound::Lower,
        _ => Bound::Exact,
    };
    Entry {
        mv: Move(data as u16),
        score: (data >> 16) as i16 as Score,
        eval: (data >> 32) as i16 as Score,
        depth: (data >> 48 & 255) as i32,
        bound,
    }
}

impl Table {
    pub fn new(megabytes: usize) -> Table {
        let clusters = (megabytes.max(1) << 20) / size_of::<Cluster>();
        Table { clusters: vec![[[0; 2]; 4]; clusters], epoch: 1, age: 0 }
    }

    pub fn clear(&mut self) {
        self.age = 0;
        self.epoch += 1;
        if self.epoch > EPOCH_MASK {
            self.clusters.fill([[0; 2]; 4]);
            self.epoch = 1;
        }
    }

    /// Entries of earlier searches become the first to be replaced.
    pub fn next_search(&mut self) {
        self.age = (self.age + 1) & AGE_MASK;
    }

    fn index(&self, key: u64) -> usize {
        ((key as u128 * self.clusters.len() as u128) >> 64) as usize
    }

    /// The index uses the high bits of the key, so the low ones are kept.
    fn tag(&self, key: u64) -> u64 {
        key << 16 | self.epoch
    }

    pub fn get(&self, key: u64) -> Option<Entry> {
        let tag = self.tag(key);
        self.clusters[self.index(key)]
            .iter()
            .find(|slot| slot[0] == tag)
            .map(|slot| unpack(slot[1]))
    }

    /// Keeps the old move if the new entry has none.
    pub fn put(&mut self, key: u64, mut entry: Entry) {
        let (tag, age, epoch) = (self.tag(key), self.age, self.epoch);
        let index = self.index(key);
        let cluster = &mut self.clusters[index];
        let slot = match cluster.iter().position(|slot| slot[0] == tag) {
            Some(same) => &mut cluster[same],
            None => cheapest(cluster, epoch, age),
        };
        if slot[0] == tag {
            let old = unpack(slot[1]);
            if entry.mv.is_none() {
                entry.mv = old.mv;
            }
            if entry.bound != Bound::Exact && entry.depth + 4 < old.depth && slot[1] >> 58 == age {
                return;
            }
        }
        *slot = [tag, pack(&entry, age)];
    }

    /// Per mille of a sample of entries written by the current search.
    pub fn fullness(&self) -> usize {
        let sample = self.clusters.iter().take(250).flatten();
        let current =
            |slot: &&Slot| slot[0] & EPOCH_MASK == self.epoch && slot[1] >> 58 == self.age;
        sample.filter(current).count()
    }
}

/// The slot with the least to lose: empty, else old, else shallow.
fn cheapest(cluster: &mut Cluster, epoch: u64, age: u64) -> &mut Slot {
    let worth = |slot: &Slot| {
        if slot[0] & EPOCH_MASK != epoch {
            return i64::MIN;
        }
        let searches_ago = (age.wrapping_sub(slot[1] >> 58) & AGE_MASK) as i64;
        (slot[1] >> 48 & 255) as i64 - 8 * searches_ago
    };
    let mut best = 0;
    for i in 1..cluster.len() {
        if worth(&cluster[i]) < worth(&cluster[best]) {
            best = i;
        }
    }
    &mut cluster[best]
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: Entry =
        Entry { mv: Move(77), score: -31_000, eval: 250, depth: 9, bound: Bound::Lower };

    #[test]
    fn entries_read_back() {
        let mut table = Table::new(1);
        assert_eq!(table.get(5), None);
        table.put(5, ENTRY);
        assert_eq!(table.get(5), Some(ENTRY));
        assert_eq!(table.get(6), None);
    }

    #[test]
    fn a_missing_move_does_not_erase_the_old_one() {
        let mut table = Table::new(1);
        table.put(5, ENTRY);
        table.put(5, Entry { mv: Move::NONE, depth: 12, ..ENTRY });
        assert_eq!(table.get(5), Some(Entry { depth: 12, ..ENTRY }));
    }

    #[test]
    fn clearing_forgets_everything_even_when_the_epoch_wraps() {
        let mut table = Table::new(1);
        for key in 0..70_000 {
            table.put(key, ENTRY);
            table.clear();
            assert_eq!(table.get(key), None);
        }
        assert_eq!(table.fullness(), 0);
    }

    #[test]
    fn shallow_entries_go_first() {
        let mut table = Table::new(1);
        for key in 0..4 {
            table.put(key, Entry { depth: key as i32 + 1, ..ENTRY });
        }
        table.put(4, ENTRY);
        assert_eq!(table.get(0), None);
        assert!((1..5).all(|key| table.get(key).is_some()));
    }
}
