//! How each event shows: its mark in the picture and what it means.

use maud::{Markup, html};

/// How one event shows.
#[derive(Debug)]
pub(super) struct Kind {
    /// The word in the day's events.
    pub(super) name: &'static str,
    /// An SVG path about (0, 0), 12 units across. Drawn rather than written, as not every font has these signs. Empty
    /// where another lane already shows it: demand and leases as calls and pre-warms, noise as bars, launches and arrivals as
    /// bands.
    pub(super) path: &'static str,
    /// Half the width it needs in a row of marks.
    pub(super) half: f64,
    /// The style class of the mark.
    pub(super) class: &'static str,
    /// What it says, for the legend.
    pub(super) meaning: &'static str,
}

const HALF: f64 = 7.5;
const CROSS: &str = "M-5-5 5 5M5-5-5 5";
const ARROWS: &str = "M-6.5 0-2.5-4.5V-1.5H2.5V-4.5L6.5 0 2.5 4.5V1.5H-2.5V4.5Z";
const PADLOCK: &str = "M-5-1H5V6.5H-5ZM-3.7-1V-3A3.7 3.7 0 0 1 3.7-3V-1H2V-3A2 2 0 0 0-2-3V-1Z";
/// Its shackle is lifted on one side.
const PADLOCK_OPEN: &str = "M-5-1H5V6.5H-5ZM-3.7-1V-3.5A3.7 3.7 0 0 1 3.7-3.5H2A2 2 0 0 0-2-3.5V-1Z";
const RING_WITH_TICK: &str = "M0-5.5A5.5 5.5 0 1 1 0 5.5 5.5 5.5 0 1 1 0-5.5ZM-2.7 0-.7 2.4 2.9-2.2";
const EYE: &str = "M-6.5 0C-3.5-5 3.5-5 6.5 0 3.5 5-3.5 5-6.5 0ZM0-1.5A1.5 1.5 0 1 1 0 1.5 1.5 1.5 0 1 1 0-1.5Z";
const EYE_STRUCK: &str = "M-6.5 0C-3.5-5 3.5-5 6.5 0 3.5 5-3.5 5-6.5 0ZM-5 5.5 5-5.5";
const PERSON: &str = "M0-6.5A3 3 0 1 1 0-.5 3 3 0 1 1 0-6.5ZM-6 6C-6-1 6-1 6 6Z";

/// Every event of the day's vocabulary.
pub(super) const KINDS: [Kind; 26] = [
    Kind { name: "demand", path: "", half: HALF, class: "", meaning: "somebody wants a node" },
    Kind { name: "noise", path: "", half: HALF, class: "", meaning: "lines that wake nothing" },
    Kind { name: "start", path: "M0-6 6 5H-6Z", half: HALF, class: "m-start", meaning: "start asked for" },
    Kind { name: "start_failed", path: CROSS, half: HALF, class: "m-failed", meaning: "start failed" },
    Kind { name: "launched", path: "", half: HALF, class: "", meaning: "a launch was seen" },
    Kind { name: "running", path: "", half: HALF, class: "", meaning: "EC2 runs it" },
    Kind { name: "ready", path: "", half: HALF, class: "", meaning: "it serves" },
    Kind { name: "unready", path: "M-5-3 0 4 5-3", half: HALF, class: "m-failed", meaning: "not ready any more" },
    Kind { name: "leased", path: "", half: HALF, class: "", meaning: "a call began" },
    Kind { name: "lease_ended", path: "", half: HALF, class: "", meaning: "a call is over" },
    Kind { name: "idle_mark", path: "M0-5V5", half: 1.6, class: "m-idle", meaning: "idle noted" },
    Kind { name: "stop", path: "M-5-5H5V5H-5Z", half: HALF, class: "m-stop", meaning: "stop asked for" },
    Kind { name: "stop_failed", path: CROSS, half: HALF, class: "m-failed", meaning: "stop failed" },
    Kind { name: "stopped", path: "", half: HALF, class: "", meaning: "it is off" },
    Kind { name: "ended", path: "", half: HALF, class: "", meaning: "a launch is over" },
    Kind { name: "resized", path: ARROWS, half: HALF, class: "m-resized", meaning: "instance type changed" },
    Kind {
        name: "gate_closed",
        path: PADLOCK,
        half: HALF,
        class: "m-gate-closed",
        meaning: "gate closed: no wake is taken",
    },
    Kind { name: "gate_opened", path: PADLOCK_OPEN, half: HALF, class: "m-gate-opened", meaning: "gate opened" },
    Kind {
        name: "budget_repaired",
        path: RING_WITH_TICK,
        half: HALF,
        class: "m-repaired",
        meaning: "AWS budget made again",
    },
    Kind { name: "blind", path: EYE_STRUCK, half: HALF, class: "m-blind", meaning: "cannot tell whether it is used" },
    Kind { name: "sees_again", path: EYE, half: HALF, class: "m-sees", meaning: "can tell again" },
    Kind {
        name: "alert",
        path: "M-2.5-6.5H2.5L1.3 2H-1.3ZM-1.8 3.4H1.8V7H-1.8Z",
        half: HALF,
        class: "m-alert",
        meaning: "alert",
    },
    Kind {
        name: "refused",
        path: "M0-5A5 5 0 1 1 0 5 5 5 0 1 1 0-5ZM-3.5-3.5 3.5 3.5",
        half: HALF,
        class: "m-refused",
        meaning: "refused",
    },
    Kind { name: "person", path: PERSON, half: HALF, class: "m-person", meaning: "a person acted" },
    Kind { name: "held", path: PERSON, half: HALF, class: "m-person", meaning: "held by a person" },
    Kind { name: "released", path: PERSON, half: HALF, class: "m-person", meaning: "a hold ended" },
];

/// A word nobody told the report about: marked, so that it is not overlooked.
const UNKNOWN: Kind = Kind {
    name: "unknown",
    path: "M-3.5-2.5C-3.5-7.5 3.5-7.5 3.5-2.5 3.5 0 0 0 0 2.5M0 5V6.5",
    half: HALF,
    class: "m-unknown",
    meaning: "an event this report does not know",
};

/// How the event of this name shows.
pub(super) fn kind(name: &str) -> &'static Kind {
    KINDS.iter().find(|kind| kind.name == name).unwrap_or(&UNKNOWN)
}

/// A mark by itself, in a line of text; nothing for an event without one.
pub(super) fn inline_mark(kind: &Kind) -> Markup {
    html! {
        @if !kind.path.is_empty() {
            svg.inline viewBox="-8 -8 16 16" aria-hidden="true" { path class=(kind.class) d=(kind.path) {} }
        }
    }
}
