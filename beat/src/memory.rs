//! What the agent keeps from beat to beat, and the rule that makes a beat of it.

use chrono::TimeDelta;
use reveille::domain::{Beat, Instant};
use serde::{Deserialize, Serialize};

/// Two beats further apart leave a minute that nobody saw. Twice the timer's minute, and half a minute for a slow run: one
/// beat may be missed.
pub(crate) const LONGEST_GAP: TimeDelta = TimeDelta::seconds(150);

/// What one look saw.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sample {
    /// The readiness endpoint answered 2xx.
    pub(crate) ready: bool,
    /// Connections open; absent where they could not be read.
    pub(crate) open: Option<u32>,
    /// What the access log said.
    pub(crate) lines: Lines,
    /// GPU use in percent; absent where there is none to ask, or where it did not answer.
    pub(crate) gpu: Option<u8>,
}

/// New lines of the access log that are use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Lines {
    /// None are counted: no log is configured.
    #[default]
    Off,
    /// So many, and none was missed.
    Counted(u32),
    /// So many at least: others could not be read.
    AtLeast(u32),
}

impl Lines {
    fn count(self) -> Option<u32> {
        match self {
            Self::Off => None,
            Self::Counted(count) | Self::AtLeast(count) => Some(count),
        }
    }
}

impl Sample {
    /// Whether everything that is configured was read. The GPU is no part of it: a node whose driver broke cannot be in
    /// use, and has to be stopped all the same (field case 42).
    fn is_complete(&self) -> bool {
        self.open.is_some() && !matches!(self.lines, Lines::AtLeast(_))
    }
}

/// What is kept from one look to the next, for as long as the node is up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// The last look.
    last_at: Option<Instant>,
    /// As in [`Beat`].
    row: u32,
    ready_since: Option<Instant>,
    open_at: Option<Instant>,
    used_at: Option<Instant>,
    since: Option<Instant>,
    /// Counted and not yet written.
    unwritten: u32,
}

impl Memory {
    /// Forgets what the written beat has carried away.
    pub(crate) fn written(&mut self) {
        self.unwritten = 0;
    }
}

/// Makes a beat of one look and of what is remembered. The GPU counts as use from `gpu_use` percent on.
///
/// A gap of more than [`LONGEST_GAP`], or a clock that went back, begins the rows anew: nobody saw what was between. Use
/// is never forgotten by it, and never lies in the future.
pub(crate) fn next(memory: &Memory, sample: &Sample, gpu_use: u8, now: Instant) -> (Memory, Beat) {
    let unbroken = memory.last_at.is_some_and(|last| last <= now && now - last <= LONGEST_GAP);
    let before = if unbroken { memory.clone() } else { Memory { row: 0, ready_since: None, since: None, ..*memory } };

    let is_open = sample.open.is_some_and(|open| open > 0);
    let counted = sample.lines.count();
    let is_used = counted.is_some_and(|count| count > 0) || sample.gpu.is_some_and(|percent| percent >= gpu_use);
    let newest = |seen: bool, last: Option<Instant>| if seen { Some(now) } else { last.map(|last| last.min(now)) };

    let after = Memory {
        last_at: Some(now),
        row: if sample.ready { before.row.saturating_add(1) } else { 0 },
        ready_since: sample.ready.then(|| before.ready_since.unwrap_or(now)),
        open_at: newest(is_open, before.open_at),
        used_at: newest(is_used, before.used_at),
        since: sample.is_complete().then(|| before.since.unwrap_or(now)),
        unwritten: before.unwritten.saturating_add(counted.unwrap_or(0)),
    };
    let beat = Beat {
        at: now,
        ready: sample.ready,
        row: after.row,
        ready_since: after.ready_since,
        open: sample.open,
        counted: counted.map(|_| after.unwritten),
        gpu: sample.gpu,
        open_at: after.open_at,
        used_at: after.used_at,
        since: after.since,
    };
    (after, beat)
}

/// Whether a beat says something that the one written before it in this run did not.
pub(crate) fn is_news(written: Option<&Beat>, beat: &Beat) -> bool {
    let Some(written) = written else { return true };
    (written.ready, written.row, written.open, written.since.is_some())
        != (beat.ready, beat.row, beat.open, beat.since.is_some())
        || beat.counted.is_some_and(|count| count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GPU_USE: u8 = 10;

    fn at(clock: &str) -> Instant {
        format!("2026-11-30T{clock}Z").parse().unwrap()
    }

    fn quiet() -> Sample {
        Sample { ready: true, open: Some(0), lines: Lines::Counted(0), gpu: Some(0) }
    }

    /// The last beat of these looks.
    fn beat_of(looks: &[(&str, Sample)]) -> Beat {
        let (mut memory, mut beat) = (Memory::default(), None);
        for (clock, sample) in looks {
            let (after, made) = next(&memory, sample, GPU_USE, at(clock));
            (memory, beat) = (after, Some(made));
        }
        beat.unwrap()
    }

    #[test]
    fn a_row_of_ready_answers_grows_and_a_flap_begins_it_anew() {
        let flap = || Sample { ready: false, ..quiet() };
        type Looks = Vec<(&'static str, Sample)>;
        let rows: Vec<(&str, Looks, u32, Option<&str>)> = vec![
            ("the first", vec![("10:00:00", quiet())], 1, Some("10:00:00")),
            ("the second", vec![("10:00:00", quiet()), ("10:00:05", quiet())], 2, Some("10:00:00")),
            ("not ready", vec![("10:00:00", quiet()), ("10:01:00", flap())], 0, None),
            (
                "after a flap",
                vec![("10:00:00", quiet()), ("10:01:00", flap()), ("10:01:05", quiet())],
                1,
                Some("10:01:05"),
            ),
            ("after 150 s", vec![("10:00:00", quiet()), ("10:02:30", quiet())], 2, Some("10:00:00")),
            ("after 151 s", vec![("10:00:00", quiet()), ("10:02:31", quiet())], 1, Some("10:02:31")),
            ("after a step back", vec![("10:00:00", quiet()), ("09:59:59", quiet())], 1, Some("09:59:59")),
        ];
        for (name, looks, row, since) in rows {
            let beat = beat_of(&looks);
            assert_eq!((beat.row, beat.ready_since), (row, since.map(at)), "{name}");
        }
    }

    #[test]
    fn silence_is_proved_by_an_unbroken_row_of_complete_beats() {
        let lost = || Sample { lines: Lines::AtLeast(0), ..quiet() };
        let blind = || Sample { open: None, ..quiet() };
        type Looks = Vec<(&'static str, Sample)>;
        let rows: Vec<(&str, Looks, Option<&str>)> = vec![
            ("from the first on", vec![("10:00:00", quiet()), ("10:01:00", quiet())], Some("10:00:00")),
            ("not ready is seen too", vec![("10:00:00", Sample { ready: false, ..quiet() })], Some("10:00:00")),
            ("no log is configured", vec![("10:00:00", Sample { lines: Lines::Off, ..quiet() })], Some("10:00:00")),
            ("case 42: no GPU to ask", vec![("10:00:00", Sample { gpu: None, ..quiet() })], Some("10:00:00")),
            ("open unread", vec![("10:00:00", quiet()), ("10:01:00", blind())], None),
            ("lines lost", vec![("10:00:00", quiet()), ("10:01:00", lost())], None),
            (
                "anew after it",
                vec![("10:00:00", quiet()), ("10:01:00", blind()), ("10:02:00", quiet())],
                Some("10:02:00"),
            ),
            ("a gap", vec![("10:00:00", quiet()), ("10:02:31", quiet())], Some("10:02:31")),
            ("a clock that went back", vec![("10:00:00", quiet()), ("09:00:00", quiet())], Some("09:00:00")),
        ];
        for (name, looks, since) in rows {
            assert_eq!(beat_of(&looks).since, since.map(at), "{name}");
        }
    }

    #[test]
    fn the_newest_use_is_remembered() {
        let open = |open| Sample { open: Some(open), ..quiet() };
        let lines = |lines| Sample { lines, ..quiet() };
        let gpu = |percent| Sample { gpu: Some(percent), ..quiet() };
        type Row = (&'static str, Sample, Option<&'static str>, Option<&'static str>);
        let rows: Vec<Row> = vec![
            ("nothing", quiet(), None, None),
            ("a connection", open(1), Some("10:00:00"), None),
            ("a line", lines(Lines::Counted(1)), None, Some("10:00:00")),
            ("a line where others were lost", lines(Lines::AtLeast(1)), None, Some("10:00:00")),
            ("GPU below", gpu(9), None, None),
            ("GPU at the threshold", gpu(10), None, Some("10:00:00")),
        ];
        for (name, sample, open_at, used_at) in rows {
            let beat = beat_of(&[("10:00:00", sample.clone()), ("10:01:00", quiet())]);
            assert_eq!((beat.open_at, beat.used_at), (open_at.map(at), used_at.map(at)), "{name}");
            let beat = beat_of(&[("10:00:00", sample), ("10:30:00", quiet())]);
            assert_eq!((beat.open_at, beat.used_at), (open_at.map(at), used_at.map(at)), "{name}, across a gap");
        }
    }

    #[test]
    fn a_use_never_lies_in_the_future() {
        let beat = beat_of(&[("10:00:00", Sample { open: Some(1), ..quiet() }), ("09:00:00", quiet())]);
        assert_eq!(beat.open_at, Some(at("09:00:00")));
    }

    #[test]
    fn what_was_counted_goes_out_with_the_next_beat_that_is_written() {
        let sample = |count| Sample { lines: Lines::Counted(count), ..quiet() };
        let (mut memory, beat) = next(&Memory::default(), &sample(2), GPU_USE, at("10:00:00"));
        assert_eq!(beat.counted, Some(2));
        let (unsent, beat) = next(&memory, &sample(1), GPU_USE, at("10:01:00"));
        assert_eq!((beat.counted, beat.used_at), (Some(3), Some(at("10:01:00"))), "the first was not written");
        memory = unsent;
        memory.written();
        let (_, beat) = next(&memory, &sample(0), GPU_USE, at("10:02:00"));
        assert_eq!((beat.counted, beat.used_at), (Some(0), Some(at("10:01:00"))));
    }

    #[test]
    fn news_is_what_a_caller_or_a_rule_would_see() {
        let first = beat_of(&[("10:00:00", quiet())]);
        assert!(is_news(None, &first));
        let rows = [
            ("only later", Beat { at: at("10:00:05"), ..first.clone() }, false),
            ("another GPU figure", Beat { gpu: Some(9), ..first.clone() }, false),
            ("a longer row", Beat { row: 2, ..first.clone() }, true),
            ("not ready", Beat { ready: false, row: 0, ..first.clone() }, true),
            ("a connection", Beat { open: Some(1), ..first.clone() }, true),
            ("a line", Beat { counted: Some(1), ..first.clone() }, true),
            ("blind", Beat { since: None, ..first.clone() }, true),
        ];
        for (name, beat, news) in rows {
            assert_eq!(is_news(Some(&first), &beat), news, "{name}");
        }
    }

    #[test]
    fn memory_is_kept_as_json() {
        let (memory, _) = next(&Memory::default(), &Sample { open: Some(1), ..quiet() }, GPU_USE, at("10:00:00"));
        let text = serde_json::to_string(&memory).unwrap();
        assert_eq!(serde_json::from_str::<Memory>(&text).unwrap(), memory);
    }

    prop_compose! {
        fn any_look()(
            ready: bool, open in proptest::option::of(0_u32..3), lines in 0..3, count in 0_u32..3,
            gpu in proptest::option::of(0_u8..=100), step in -100_i64..400,
        ) -> (Sample, i64) {
            let lines = match lines { 0 => Lines::Off, 1 => Lines::Counted(count), _ => Lines::AtLeast(count) };
            (Sample { ready, open, lines, gpu }, step)
        }
    }

    proptest! {
        #[test]
        fn a_beat_never_claims_more_than_was_seen(looks in proptest::collection::vec(any_look(), 1..40)) {
            let (mut memory, mut now, mut seen): (_, _, Vec<(Instant, Sample)>) =
                (Memory::default(), at("10:00:00"), Vec::new());
            for (sample, step) in looks {
                now += TimeDelta::seconds(step);
                let (after, beat) = next(&memory, &sample, GPU_USE, now);
                memory = after;
                seen.push((now, sample.clone()));

                prop_assert_eq!(beat.ready, beat.row > 0);
                prop_assert_eq!(beat.ready_since.is_some(), beat.ready);
                for time in [beat.ready_since, beat.open_at, beat.used_at, beat.since].into_iter().flatten() {
                    prop_assert!(time <= now);
                }
                // The row is that of the newest looks: each ready, none too far from the one before it.
                let newest: Vec<_> = seen.iter().rev().take(beat.row as usize).collect();
                prop_assert!(newest.iter().all(|(_, sample)| sample.ready));
                prop_assert_eq!(newest.last().map(|(first, _)| *first), beat.ready_since);
                // From `since` on every look is complete and none is too far from the one before it.
                if let Some(since) = beat.since {
                    let mut later: Option<Instant> = None;
                    for (time, sample) in seen.iter().rev() {
                        prop_assert!(sample.is_complete());
                        prop_assert!(later.is_none_or(|later| *time <= later && later - *time <= LONGEST_GAP));
                        later = Some(*time);
                        if *time == since { break; }
                    }
                    prop_assert_eq!(later, Some(since));
                }
                if sample.open.is_some_and(|open| open > 0) {
                    prop_assert_eq!(beat.open_at, Some(now));
                }
            }
        }
    }
}
