//! Chance that does not depend on what else was drawn: the same seed and the same thing give the same number, so that a
//! day of which something was taken out goes on as it did.

use std::hash::{DefaultHasher, Hash, Hasher as _};

/// A number from `from` up to, and without, `to`.
pub fn between(seed: u64, about: impl Hash, from: i64, to: i64) -> i64 {
    let span = u64::try_from(to - from).unwrap_or(1).max(1);
    from + i64::try_from(hash(seed, about) % span).unwrap_or(0)
}

/// True in so many of a hundred cases.
pub fn chance(seed: u64, about: impl Hash, percent: i64) -> bool {
    between(seed, about, 0, 100) < percent
}

/// One of these.
pub fn pick<T: Copy>(seed: u64, about: impl Hash, of: &[T]) -> Option<T> {
    let n = between(seed, about, 0, i64::try_from(of.len()).unwrap_or(1));
    usize::try_from(n).ok().and_then(|n| of.get(n)).copied()
}

fn hash(seed: u64, about: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    (seed, about).hash(&mut hasher);
    hasher.finish()
}
