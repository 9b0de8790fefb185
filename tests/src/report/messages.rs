//! The messages of the day, as they arrived.

use super::{Clock, Day, Event, Message};
use chrono::TimeDelta;
use maud::{Markup, html};

/// An alert and its message are of one run; the topic's time is a little later than the log line's.
const NEAR: TimeDelta = TimeDelta::minutes(1);

/// The day's messages in order of time.
pub(super) struct Messages<'a>(Vec<&'a Message>);

impl<'a> Messages<'a> {
    pub(super) fn of(day: &'a Day) -> Self {
        let mut messages: Vec<&Message> = day.messages.iter().collect();
        messages.sort_by_key(|message| message.at);
        Self(messages)
    }

    /// The name of the message an alert is about: of this subject, the nearest one within a minute.
    pub(super) fn of_alert(&self, event: &Event) -> Option<String> {
        let apart = |message: &Message| message.at.signed_duration_since(event.at).abs();
        let of_subject = self.0.iter().enumerate().filter(|(_, message)| message.subject == event.reason);
        let (n, message) = of_subject.min_by_key(|(_, message)| apart(message))?;
        (event.event == "alert" && apart(message) <= NEAR).then(|| name(n))
    }

    pub(super) fn section(&self, clock: Clock) -> Markup {
        html! {
            section aria-labelledby="messages" {
                h2 id="messages" { "Messages (" (self.0.len()) ")" }
                @if self.0.is_empty() { p { "No message was sent." } }
                @for (n, message) in self.0.iter().enumerate() { (shown(n, message, clock)) }
            }
        }
    }
}

fn name(n: usize) -> String {
    format!("message-{}", n + 1)
}

fn shown(n: usize, message: &Message, clock: Clock) -> Markup {
    html! {
        details.message open[n == 0] {
            summary {
                time datetime=(message.at.to_rfc3339()) { (clock.second(message.at)) }
                " " span.subject { (message.subject) }
            }
            // The name is inside, so that a link to it opens a closed message. HTML drops a line end that begins a
            // `pre`: it gets one that is not the body's.
            pre id=(name(n)) { "\n" (message.body) }
        }
    }
}
