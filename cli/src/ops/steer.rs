//! What is done: a wake, a hold and its end, a gate. Each is asked of the wake function by an invocation, so that it is done
//! under the function's own rights, by its own clock and code, and stands in its log; an operator needs no right to start a
//! node or to write to the ledger. A START that an operator's own rights did not allow would be noted as the node's fault, and
//! keep it from everybody for a quarter of an hour.

use super::fault::{Fault, line};
use super::session::{Reach, Session};
use super::show;
use chrono::TimeDelta;
use reveille::domain::Instant;
use reveille::operator::{Ask, Asked, LONGEST_GATE, LONGEST_HOLD, Meant};
use serde_json::Value;

const FUNCTION: &str = "wake";

/// The answer of the function.
#[derive(Debug)]
pub(crate) struct Reply {
    status: u64,
    body: Value,
}

/// `2h`, `90m`, `1h 30m`, `3d`.
///
/// # Errors
/// It is no time.
pub(crate) fn duration(text: &str) -> Result<TimeDelta, String> {
    let parsed = humantime::parse_duration(text).ok().and_then(|time| TimeDelta::from_std(time).ok());
    parsed.ok_or_else(|| "has to be a time such as 2h, 90m or 3d".to_owned())
}

/// Wakes; the text says what a caller is told.
///
/// # Errors
/// The gate is closed, no node can be started now, or AWS refused.
pub(crate) async fn wake(reach: &Reach, meant: Meant) -> Result<String, Fault> {
    let session = Session::open(reach).await?;
    let meant = checked(&session, meant)?;
    let reply = ask(&session, Ask::Wake(meant)).await?;
    let state = reply.body["state"].as_str().unwrap_or_default();
    let text = reply.woken(state);
    match (reply.status, state) {
        (200 | 202, _) => Ok(reply.said(reach, text)),
        (_, "unknown") => Err(Fault::Aws(text)),
        _ => Err(Fault::No(text)),
    }
}

/// # Errors
/// It has no end or no note, or the node is not there.
pub(crate) async fn hold(
    reach: &Reach,
    meant: Meant,
    lasts: Option<TimeDelta>,
    note: Option<String>,
) -> Result<String, Fault> {
    let seconds = lasts.filter(|lasts| *lasts > TimeDelta::zero() && *lasts <= LONGEST_HOLD);
    let seconds = seconds.and_then(|lasts| u32::try_from(lasts.num_seconds()).ok()).filter(|seconds| *seconds > 0);
    let seconds = seconds.ok_or_else(|| {
        Fault::Usage("a hold needs an end, or it is forgotten: add --for 2h (31 days at most)".to_owned())
    })?;
    let note = why(note)?;
    let session = Session::open(reach).await?;
    let meant = checked(&session, meant)?;
    let reply = order(&session, Ask::Hold { meant, seconds, note }).await?;
    let text = reply.held(&session);
    Ok(reply.said(reach, text))
}

/// # Errors
/// There was no hold, or the node is not there.
pub(crate) async fn release(reach: &Reach, meant: Meant) -> Result<String, Fault> {
    let session = Session::open(reach).await?;
    let meant = checked(&session, meant)?;
    let reply = order(&session, Ask::Release(meant)).await?;
    let (node, by_tag) = (reply.word("node"), reply.body["held_by_tag"] == true);
    let tag = if by_tag { "; its tag reveille:keep-until holds it still: remove the tag" } else { "" };
    if reply.body["was"].is_object() {
        return Ok(
            reply.said(reach, format!("the hold of {node} is over; it was {}{tag}\n", reply.hold_before(&session)))
        );
    }
    Err(Fault::No(format!("{node} had no hold{tag}")))
}

/// # Errors
/// It has no note, or the pool is not there.
pub(crate) async fn close(
    reach: &Reach,
    pool: Option<String>,
    lasts: Option<TimeDelta>,
    drain: bool,
    note: Option<String>,
) -> Result<String, Fault> {
    let note = why(note)?;
    let fits = |lasts: &TimeDelta| *lasts > TimeDelta::zero() && *lasts <= LONGEST_GATE;
    let seconds = lasts.map(|lasts| u32::try_from(lasts.num_seconds()).ok().filter(|s| *s > 0 && fits(&lasts)));
    let seconds = match seconds {
        Some(None) => {
            let rule = "--for has to be a time such as 2h, 400 days at most; without it a person has to open the gate";
            return Err(Fault::Usage(rule.to_owned()));
        }
        Some(seconds) => seconds,
        None => None,
    };
    let session = Session::open(reach).await?;
    let pool = Some(session.pool(pool.as_deref())?.to_string());
    let reply = order(&session, Ask::CloseGate { pool, seconds, drain, note }).await?;
    let text = reply.closed(&session);
    Ok(reply.said(reach, text))
}

/// # Errors
/// It has no note, or the pool is not there.
pub(crate) async fn open(reach: &Reach, pool: Option<String>, note: Option<String>) -> Result<String, Fault> {
    let note = why(note)?;
    let session = Session::open(reach).await?;
    let pool = Some(session.pool(pool.as_deref())?.to_string());
    let reply = order(&session, Ask::OpenGate { pool, note }).await?;
    let was = match reply.body["was"]["by"].as_str() {
        None => "it was open",
        Some("budget") => {
            "the budget had closed it, and closes it again within the hour unless the amount in REVEILLE_BUDGET is raised"
        }
        Some(_) => "a person had closed it; on a spent budget it is closed again within the hour",
    };
    let text = format!("the gate of pool {} is open; {was}\n", reply.word("pool"));
    Ok(reply.said(reach, text))
}

fn why(note: Option<String>) -> Result<String, Fault> {
    let note = note.filter(|note| !note.trim().is_empty());
    note.ok_or_else(|| Fault::Usage("say why, for the next person: add --note \"demonstration at 15:00\"".to_owned()))
}

/// Names the pool where no node is named, so that a mistake is told before anything is asked.
fn checked(session: &Session, meant: Meant) -> Result<Meant, Fault> {
    match (&meant.node, &meant.pool) {
        (Some(_), Some(_)) => Err(Fault::Usage("name a node or a pool, not both".to_owned())),
        (Some(_), None) => Ok(meant),
        (None, pool) => Ok(Meant { pool: Some(session.pool(pool.as_deref())?.to_string()), node: None }),
    }
}

async fn ask(session: &Session, ask: Ask) -> Result<Reply, Fault> {
    session.sure()?;
    let asked = Asked { by: session.by().await?, ask };
    asked.check().map_err(|(field, rule)| Fault::Usage(format!("{field}: {rule}")))?;
    let answer = session.functions.ask(FUNCTION, &asked, &session.region).await?;
    let body = answer["body"].as_str().and_then(|body| serde_json::from_str(body).ok());
    match (answer["statusCode"].as_u64(), body) {
        (Some(status), Some(body)) => Reply { status, body }.unless_it_is_a_mistake(&answer),
        _ => Err(Fault::Aws("the wake function gave no answer that can be read".to_owned())),
    }
}

async fn order(session: &Session, what: Ask) -> Result<Reply, Fault> {
    let reply = ask(session, what).await?;
    if reply.status == 200 {
        return Ok(reply);
    }
    Err(Fault::Aws(format!(
        "it may be done or not ({}): look with `reveille status`, and say it again",
        line(reply.body["code"].as_str().unwrap_or("unknown"))
    )))
}

impl Reply {
    /// What the command line has wrong is no answer.
    fn unless_it_is_a_mistake(self, answer: &Value) -> Result<Self, Fault> {
        if ![400, 404, 409].contains(&self.status) {
            return Ok(self);
        }
        let detail = line(self.body["detail"].as_str().unwrap_or("the order is refused"));
        let nodes: Vec<&str> = answer["nodes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let list = if nodes.is_empty() { String::new() } else { format!(" ({})", nodes.join(", ")) };
        Err(Fault::Usage(format!("{detail}{list}")))
    }

    fn word(&self, name: &str) -> String {
        self.body[name].as_str().unwrap_or("?").to_owned()
    }

    /// The hold, the one that stood beside it, and what it does not do.
    fn held(&self, session: &Session) -> String {
        let node = self.word("node");
        let beside = match self.body["was"].is_object() {
            true => format!("; it was held {}", self.hold_before(session)),
            false => String::new(),
        };
        let but = match self.body["phase"].as_str() {
            Some("stopped") => "; it is stopped, and a hold starts nothing: `reveille wake`",
            Some("stopping") => "; it is going down all the same: `reveille wake` starts it again",
            _ => "",
        };
        format!("{node} is held until {}{beside}{but}\n", time(&self.body["until"], session))
    }

    fn hold_before(&self, session: &Session) -> String {
        let was = &self.body["was"];
        format!("until {}: {}", time(&was["until"], session), line(was["note"].as_str().unwrap_or_default()))
    }

    fn closed(&self, session: &Session) -> String {
        let (pool, gate, was) = (self.word("pool"), &self.body["gate"], &self.body["was"]);
        if was.is_object() && was == gate {
            let why = line(was["reason"].as_str().unwrap_or_default());
            return format!(
                "the gate of pool {pool} stays closed {} as it was: {why}; to change that, open it and close it again\n",
                end(gate, session)
            );
        }
        let before = match was.is_object() {
            true => format!("; it was closed {} before", end(was, session)),
            false => String::new(),
        };
        format!("the gate of pool {pool} is closed {}; callers are told the note{before}\n", end(gate, session))
    }

    fn said(&self, reach: &Reach, text: String) -> String {
        if reach.json { show::json(&self.body) } else { text }
    }

    /// What a caller is told, in a line.
    fn woken(&self, state: &str) -> String {
        let node = self.body["node"].as_str().unwrap_or("a node");
        let seconds = |name: &str| self.body[name].as_i64();
        let ready_in = seconds("ready_in_seconds").map_or_else(String::new, |s| format!(", ready in about {s} s"));
        let again = seconds("retry_after_seconds").map_or_else(String::new, |s| format!(", tried again in {s} s"));
        match state {
            "ready" => format!("{node} is ready at {}\n", self.word("address")),
            "starting" => format!("{node} is starting{ready_in}\n"),
            "stopping_will_start" => format!("{node} is going down and is started as soon as it is down{ready_in}\n"),
            "will_start" => format!("{node} is started by the next run\n"),
            "full" => format!("every ready node is full; one more is started{ready_in}"),
            "gate_closed" => format!("the gate is closed: {}; see `reveille gate open`", line(&self.word("gate"))),
            "no_capacity" => format!("AWS has no machine for {node} now{again}"),
            "fault" => format!("{node} cannot be started ({}){again}", self.word("fault")),
            "no_node" => format!("no node has the tag reveille:pool={}", self.word("pool")),
            "unknown" => format!("AWS could not be asked ({}); the wake may be recorded", self.word("code")),
            _ => line(self.body["detail"].as_str().unwrap_or("the wake is refused")),
        }
    }
}

/// A time that the function has told.
fn time(at: &Value, session: &Session) -> String {
    let at: Option<Instant> = at.as_str().and_then(|at| at.parse().ok());
    let zone = session.config.policy.zone;
    at.map_or_else(|| "?".to_owned(), |at| at.with_timezone(&zone).format("%Y-%m-%d %H:%M %Z").to_string())
}

/// When a closed gate opens.
fn end(gate: &Value, session: &Session) -> String {
    match gate["until"].is_string() {
        true => format!("until {}", time(&gate["until"], session)),
        false => "until a person opens it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_people_write_them() {
        let rows = [("2h", 7200), ("90m", 5400), ("1h 30m", 5400), ("3d", 259_200), ("45s", 45)];
        for (text, seconds) in rows {
            assert_eq!(duration(text), Ok(TimeDelta::seconds(seconds)), "{text}");
        }
        for text in ["", "2", "forever", "-2h", "2 parsecs"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
