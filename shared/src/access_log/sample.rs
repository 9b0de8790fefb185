//! Text of a log as it may be shown in another one.

/// Longest text that is shown, in characters.
const SHOWN_CHARS: usize = 200;

/// What stands for something that is not shown.
const MASK: &str = "…";

/// Letters and digits in a row that are taken for a token; few words are as long.
const TOKEN_CHARS: usize = 20;

/// Names whose value, behind `=` or `:`, is one word or one quoted text.
const ONE_WORD: [&str; 6] = ["token", "key", "password", "passwd", "secret", "signature"];
/// Names whose value, behind `:` or `=`, runs to the next quote: a scheme and a credential, or several cookies.
const WHOLE: [&str; 2] = ["authorization", "cookie"];

/// Path or text without its query, control characters escaped, at most 200 characters.
pub(crate) fn shown(text: &str) -> String {
    escaped(before_query(text))
}

/// A line of an unknown format: as [`shown`], and what looks like a secret or a person masked with `…`. Masked are values
/// of names such as `token` and `password`, what follows `bearer`, e-mail addresses and runs of 20 characters that are
/// no words. Rather too much: the sample has to show the format, not the line.
pub(crate) fn sample(text: &str) -> String {
    let text = without_values(before_query(text));
    let text = masked(&text, |c| c.is_alphanumeric() || "._%+-@".contains(c), is_address);
    let text = masked(&text, |c| c.is_ascii_alphanumeric() || "+/_=.-%".contains(c), is_token);
    escaped(&text)
}

fn before_query(text: &str) -> &str {
    text.split('?').next().unwrap_or_default()
}

fn escaped(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars().take(SHOWN_CHARS) {
        if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown.chars().take(SHOWN_CHARS).collect()
}

/// Masks the runs of such characters that are secret.
fn masked(text: &str, is_part: impl Fn(char) -> bool, is_secret: impl Fn(&str) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let run = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
        let taken = if run.is_empty() { &rest[..first.len_utf8()] } else { run };
        shown.push_str(if is_secret(run) { MASK } else { taken });
        rest = &rest[taken.len()..];
    }
    shown
}

fn is_address(run: &str) -> bool {
    run.split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty())
}

/// Long and of letters and digits, or with a long row of them without any mark between.
fn is_token(run: &str) -> bool {
    let has = |test: fn(&u8) -> bool| run.as_bytes().iter().any(test);
    let is_mixed = run.len() >= TOKEN_CHARS && has(u8::is_ascii_alphabetic) && has(u8::is_ascii_digit);
    is_mixed || run.split(|c: char| !c.is_ascii_alphanumeric()).any(|row| row.len() >= TOKEN_CHARS)
}

/// Masks what follows a name of a secret.
fn without_values(text: &str) -> String {
    // Small letters of ASCII only, so that places stay the same.
    let lower = text.to_ascii_lowercase();
    let mut shown = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        let (kept, skipped) = value_at(&lower[at..]).unwrap_or((next.len_utf8(), 0));
        shown.push_str(&text[at..at + kept]);
        shown.push_str(if skipped > 0 { MASK } else { "" });
        at += kept + skipped;
    }
    shown
}

/// Lengths of a name with its separator, and of the value behind it, if the text begins with such a name.
fn value_at(text: &str) -> Option<(usize, usize)> {
    let begins = |names: &[&str]| names.iter().find(|name| text.starts_with(**name)).map(|name| name.len());
    let (kept, to_quote) = match (begins(&ONE_WORD), begins(&WHOLE), begins(&["bearer"])) {
        (Some(name), _, _) => (name + separator(&text[name..])?, false),
        (None, Some(name), _) => (name + separator(&text[name..])?, true),
        (None, None, bearer) => (bearer? + blanks(&text[bearer?..])?, false),
    };
    let to_quote = to_quote || text[..kept].ends_with(['"', '\'']);
    let is_end = |c: char| matches!(c, '"' | '\'') || (!to_quote && c.is_whitespace());
    let value = text[kept..].find(is_end).unwrap_or(text.len() - kept);
    (value > 0).then_some((kept, value))
}

fn blanks(text: &str) -> Option<usize> {
    Some(text.len() - text.trim_start().len()).filter(|blanks| *blanks > 0)
}

/// Length of `=` or `:` with the quotes, blanks, backslashes and brackets around it.
fn separator(text: &str) -> Option<usize> {
    let is_around = |c: char| matches!(c, '"' | '\'' | '\\' | '[') || c.is_whitespace();
    let after = text.trim_start_matches(is_around).strip_prefix(['=', ':'])?;
    Some(text.len() - after.trim_start_matches(is_around).len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_sample_shows_the_format_and_no_secret() {
        let rows = [
            ("words", "Listening on 0.0.0.0:80", "Listening on 0.0.0.0:80"),
            ("query", "GET /v1/a?key=abc HTTP/1.1", "GET /v1/a"),
            ("control characters", "a\nb\u{1b}[0m", "a\\nb\\u{1b}[0m"),
            ("time and address", "2026-11-30T09:00:00Z 192.0.2.7", "2026-11-30T09:00:00Z 192.0.2.7"),
            ("token", "id AKIAIOSFODNN7EXAMPLE0 end", "id … end"),
            ("uuid", "id=1b4e28ba-2fa1-11d2-883f-0016d3cca427", "…"),
            ("base64", "(dGhpcyBpcyBhIHNlY3JldCAx+/==)", "(…)"),
            ("letters only", "x AbCdEfGhIjKlMnOpQrSt", "x …"),
            ("a long path of words", "/var/log/containers/front/access", "/var/log/containers/front/access"),
            ("19 characters", "abcdefghi0123456789", "abcdefghi0123456789"),
            ("token=", "token=abc user=jo", "token=… user=jo"),
            ("any case, in a name", "API_KEY=abc X-Secret=def", "API_KEY=… X-Secret=…"),
            ("password in quotes", r#"password="my pass" x"#, r#"password="…" x"#),
            ("JSON", r#"{"password": "a b", "n": 1}"#, r#"{"password": "…", "n": 1}"#),
            ("JSON in JSON", r#"{"log":"{\"token\":\"ab\"}"}"#, r#"{"log":"{\"token\":\"…"}"}"#),
            ("bearer", "got Bearer abc.def x", "got Bearer … x"),
            ("bearer and more blanks", "got BEARER \t abc x", "got BEARER \\t … x"),
            ("list", r#"{"token":["abc"]}"#, r#"{"token":["…"]}"#),
            ("header", r#""Authorization: Basic am86cHc=" 200"#, r#""Authorization: …" 200"#),
            ("header to the end", "authorization: Digest a=b, c=d", "authorization: …"),
            ("cookies", r#"Cookie: a=b; c=d" x"#, r#"Cookie: …" x"#),
            ("mail", "mail from jo.do+x@example.org now", "mail from … now"),
            ("mail in brackets", "<jö@example>", "<…>"),
            ("user and password in a URL", "postgres://jo:pw@db/x", "postgres://jo:…/x"),
            ("the word alone", "no key found, token expired", "no key found, token expired"),
            ("nothing behind it", "token= ", "token= "),
        ];
        for (name, text, expected) in rows {
            assert_eq!(sample(text), expected, "{name}");
        }
    }

    #[test]
    fn what_is_shown_is_short_and_harmless() {
        let rows =
            [("query", "GET /a?key=secret", "GET /a"), ("control characters", "a\nb\u{1b}[0m", "a\\nb\\u{1b}[0m")];
        for (name, text, expected) in rows {
            assert_eq!(shown(text), expected, "{name}");
        }
        assert_eq!(shown(&"é\n".repeat(300)).chars().count(), SHOWN_CHARS);
        assert_eq!(sample(&"é\n".repeat(300)).chars().count(), SHOWN_CHARS);
    }

    #[test]
    fn a_token_at_the_cut_is_not_shown_in_part() {
        let text = format!("{} AKIAIOSFODNN7EXAMPLE0", "é ".repeat(95));
        assert!(!sample(&text).contains("AKIA"));
    }

    proptest! {
        #[test]
        fn no_token_of_24_characters_ever_shows(
            before in ".{0,40}", token in "[A-Za-z0-9]{24}", after in ".{0,40}", mark in r#"[ "'=:/,;@.\\-]"#,
        ) {
            let shown = sample(&format!("{before}{mark}{token}{mark}{after}"));
            prop_assert!(!shown.contains(&token));
            prop_assert!(!shown.contains(&token[..12]), "a part of it: {shown}");
        }

        #[test]
        fn no_text_makes_it_panic_or_long(text in ".{0,300}") {
            prop_assert!(sample(&text).chars().count() <= SHOWN_CHARS);
        }
    }
}
