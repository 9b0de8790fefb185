//! The lines of a large batch at a glance: what is noise, as most of them are, is told from the JSON text in which a line
//! stands, without unescaping it and without taking it apart.
//!
//! Taken are combined lines as nginx and Apache write them, and of these the ones that are noise for their agent, method or
//! path. Whatever else a line is, it is left to [`Filter::read`] and [`Filter::judge`]; a property test holds the glance to
//! what these say.

use super::filter::{Filter, KnownAgents, NoiseReason};
use memchr::memchr2;
use wide::u8x16;

/// Quotes around request, referer and agent.
const QUOTES: usize = 6;
/// Bytes that are looked at together: the bits of a number.
const BLOCK: usize = 64;
/// A longer line is cut before it is read.
const LONGEST: usize = 16 * 1024;

impl Filter {
    /// Why the line does not wake, and how long the text is with its closing quote. `text` begins behind the opening quote of
    /// a JSON string, and may go on behind its end. `None`: look at the line itself.
    pub(crate) fn glance(&self, text: &[u8], known: &mut KnownAgents) -> Option<(NoiseReason, usize)> {
        let quotes = Quotes::find(&text[..text.len().min(LONGEST)])?;
        let (head, request) = (quotes.before(0)?, quotes.before(1)?);
        // Status and sizes, then the referer.
        if !begins_with_status(quotes.before(2)?) || !self.may_glance(head) {
            return None;
        }
        let method = request.iter().take_while(|b| b.is_ascii_uppercase()).count();
        let (method, target) = request.split_at(method);
        let target = target.strip_prefix(b" ").filter(|target| target.first() == Some(&b'/'))?;
        if method.is_empty() {
            return None;
        }
        if let Some(reason) = self.target_noise(method, target) {
            return Some((reason, quotes.length));
        }
        // The agent follows the referer at once.
        let agent = Some(quotes.before(5)?).filter(|_| quotes.before(4) == Some(b" "))?;
        let reason = self.known_agent_noise(if agent == b"-" { b"" } else { agent }, known)??;
        Some((reason, quotes.length))
    }
}

/// The quotes of the log line in a JSON string.
struct Quotes<'a> {
    text: &'a [u8],
    /// Where the first of them stand; each has its backslash before it.
    at: [usize; QUOTES],
    found: usize,
    /// How long the string is with the quote that closes it.
    length: usize,
}

impl<'a> Quotes<'a> {
    /// `None` where something else is escaped up to the last quote that counts. A block at a time: what is left of the text has
    /// to be that much longer than the line.
    fn find(text: &'a [u8]) -> Option<Self> {
        let (mut at, mut found, mut after_escape) = ([0; QUOTES], 0, 0);
        for (n, block) in text.as_chunks::<BLOCK>().0.iter().enumerate() {
            let (escapes, quotes) = (places(block, b'\\'), places(block, b'"'));
            let escaped = escapes << 1 | after_escape;
            after_escape = escapes >> (BLOCK - 1);
            // The first of these is a quote that is not escaped, or something else that is. What stands before it is sound.
            let odd = escaped ^ quotes;
            let mut sound = quotes & odd.wrapping_sub(1) & !odd;
            while sound != 0 && found < QUOTES {
                at[found] = BLOCK * n + sound.trailing_zeros() as usize;
                found += 1;
                sound &= sound - 1;
            }
            if odd != 0 {
                let place = BLOCK * n + odd.trailing_zeros() as usize;
                let length = match at.last() {
                    _ if text[place] == b'"' => place + 1,
                    Some(last) if found == QUOTES => last + 1 + end_of_text(&text[last + 1..])?,
                    Some(_) | None => return None,
                };
                return Some(Self { text, at, found, length });
            }
        }
        None
    }

    /// What stands between the quote of this number, from 0, and the one before it.
    fn before(&self, number: usize) -> Option<&'a [u8]> {
        let from = number.checked_sub(1).map_or(0, |earlier| self.at[earlier] + 1);
        (number < self.found).then(|| &self.text[from..self.at[number] - 1])
    }
}

/// Where the byte stands in the block, a bit for each place.
fn places(block: &[u8; BLOCK], byte: u8) -> u64 {
    let parts = block.as_chunks().0.iter();
    let bits = parts.map(|part| u64::from(u8x16::new(*part).simd_eq(u8x16::splat(byte)).to_bitmask()));
    bits.rev().fold(0, |places, bits| places << 16 | bits)
}

/// ` 200 `, and whatever ends with a blank.
fn begins_with_status(text: &[u8]) -> bool {
    match text {
        [b' ', a, b, c, b' ', ..] => [a, b, c].into_iter().all(u8::is_ascii_digit) && text.last() == Some(&b' '),
        _ => false,
    }
}

/// How long the rest of a JSON string is with its closing quote, if it has one and its escapes are plain ones.
fn end_of_text(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some(at + 1);
        }
        if !matches!(text.get(at + 1)?, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') {
            return None;
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access_log::Verdict;
    use crate::log_batch::Text;
    use proptest::prelude::*;
    use proptest::sample::select;
    use serde::Deserialize as _;

    fn filter(spec: &str) -> Filter {
        Filter::new(serde_json::from_str(spec).unwrap()).unwrap()
    }

    fn filters() -> Vec<Filter> {
        let specs = [
            r#"{"paths": ["/v1/"]}"#,
            r#"{"paths": ["/v1/", "/é"], "format": "combined", "ignore_agents": ["curl"], "methods": ["POST"]}"#,
            r#"{"paths": ["/v1/"], "format": "common"}"#,
            r#"{"paths": ["/v1 H"], "format": "auto"}"#,
            r#"{"paths": ["/v1\u00a0"]}"#,
            r#"{"paths": ["/\ufffd"]}"#,
        ];
        specs.map(filter).to_vec()
    }

    /// As the whole line is judged: the JSON string is unescaped first.
    fn judged(filter: &Filter, text: &[u8]) -> Option<Verdict> {
        let quoted = [b"\"", text].concat();
        let mut json = serde_json::Deserializer::from_slice(&quoted);
        let line = Text::deserialize(&mut json).ok()?.0;
        filter.read(&line).map(|line| filter.judge(&line))
    }

    const USUAL: &str = r#"192.0.2.7 - - [30/Nov/2026:09:00:00 +0000] \"GET /x?q HTTP/1.1\" 200 5 \"-\" \"kube-probe/1.30\"","a":"b, and what follows in the batch is longer than a block of sixty-four bytes"#;

    #[test]
    fn noise_is_told_with_its_reason_and_length() {
        let usual = |from: &str, to: &str| USUAL.replace(from, to);
        let rows = [
            ("path", USUAL.to_owned(), Some(NoiseReason::Path)),
            ("method", usual("GET", "HEAD"), Some(NoiseReason::Method)),
            ("health check", usual("/x", "/v1/x"), Some(NoiseReason::HealthCheck)),
            ("crawler", usual("/x", "/v1/x").replace("kube-probe", "Googlebot"), Some(NoiseReason::Crawler)),
            ("fields behind", usual("1.30\\\"", "1.30\\\" \\\"10.0.0.1\\\" 0.003\\n"), Some(NoiseReason::Path)),
            ("no agent", usual(" \\\"kube-probe/1.30\\\"", ""), Some(NoiseReason::Path)),
            ("an agent with an escape, another path", usual("kube-probe", "\\\\x16"), None),
            ("a call", usual("kube-probe/1.30", "-").replace("/x", "/v1/"), None),
            ("the counted path", usual("/x", "/v1/").replace("kube-probe", "a").replace("200", "404"), None),
            ("an escape", usual("/x", "/\\\\x16"), None),
            ("a quote by number", usual("/x", "/\\u0022"), None),
            ("an escape that is none", usual("1.30\\\"", "1.30\\\" \\q"), None),
            ("no status", usual("200", "-"), None),
            ("another format", usual("192.0.2.7", "https"), None),
            ("JSON", usual("192.0.2.7", "{"), None),
            ("no path", usual("/x", "*"), None),
            ("cut", USUAL[..90].to_owned(), None),
        ];
        for (name, text, reason) in rows {
            let seen = filters()[0].glance(text.as_bytes(), &mut KnownAgents::default());
            let length = || text.find(r#"","a":"b"#).unwrap() + 1;
            assert_eq!(seen, reason.map(|reason| (reason, length())), "{name}");
        }
    }

    proptest! {
        #[test]
        fn a_glance_says_what_the_whole_line_says(
            head in select(vec![
                "192.0.2.7 - - [30/Nov/2026:09:00:00 +0000] ", "h - - [30/Nov/2026:09:00:00 +0000] ", "", " ", "{", "https ",
                "h2 2026-11-30T09:00:00Z ", "é - [x] ", r"\t", r"a\u005b[1] ", "www.h:80 [30/Nov/2026:09:00:00 +0100] ",
            ]),
            request in select(vec![
                "GET /x?q HTTP/1.1", "GET /v1/a HTTP/1.1", "HEAD /v1/a HTTP/1.1", "get /x HTTP/1.1", "POST /", "GET /v1 HTTP/1.1",
                "GET http://h/v1/ HTTP/1.1", "GET * HTTP/1.1", "-", "", r"\\x16\\x03", " GET /x", "GET /é HTTP/1.1", "GET  /x",
                "GET /x ", r"GET /v\u0031/ HTTP/1.1", "PRI-X /a", r"GET /\u0022 200 \u0022", "A /x", "GET /\u{fffd}", "GET /v1\u{a0}",
            ]),
            gap in select(vec![" ", "", "  ", r"\t"]),
            status in select(vec!["200", "404", "-", "000", "20", "2000", "200x", "abc"]),
            size in select(vec![" 5 ", " - ", " ", "", " 5", " 5 0.1 ", " \u{a0} "]),
            referer in select(vec!["-", "http://r/", "", r"a\\b", r"\u0022", "é"]),
            agent in select(vec![
                "-", "", "curl/8", "kube-probe/1", "Googlebot/2", "okhttp/4.9", "é", r"a\\\u0022b", "a", "Acme",
            ]),
            behind in select(vec!["", r" \u0022a", " 0.003", r" \n", " 12ms", r" \q", r#" \"10.0.0.1\""#, r" \\"]),
            spoilt in proptest::option::of((0..200_usize, any::<u8>())),
            cut in proptest::option::of(0..200_usize),
        ) {
            let q = r#"\""#;
            let line = format!(r#"{head}{q}{request}{q}{gap}{status}{size}{q}{referer}{q} {q}{agent}{q}{behind}"}}, and what follows in the batch is longer than a block of sixty-four bytes"#);
            let mut text = line.into_bytes();
            if let Some((place, byte)) = spoilt && let Some(old) = text.get_mut(place) {
                *old = byte;
            }
            text.truncate(cut.unwrap_or(usize::MAX));
            for filter in filters() {
                if let Some((reason, length)) = filter.glance(&text, &mut KnownAgents::default()) {
                    prop_assert_eq!(judged(&filter, &text[..length]), Some(Verdict::Noise(reason)));
                }
            }
        }
    }
}
