//! Text of a log as it may be shown in another one.

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Longest text that is shown, in characters.
const SHOWN_CHARS: usize = 200;

/// What stands for something that is not shown.
const MASK: &str = "…";

/// Signs of a kind in a row that are shown; longer ones as three and [`MASK`]. A year stays a year.
const RUN_CHARS: usize = 4;

/// Objects in objects that are shown with their keys, the outermost counted.
const DEPTH: usize = 2;

/// Keys of one object that are shown.
const KEYS: usize = 30;
/// Longest key that is shown.
const KEY_CHARS: usize = 40;
/// Digits in a key that is shown; with more it is taken for a number of a person or a call.
const KEY_DIGITS: usize = 3;

/// Path or text without its query, control characters escaped, at most 200 characters.
pub(crate) fn shown(text: &str) -> String {
    let mut shown = String::new();
    before_query(text).chars().take(SHOWN_CHARS).for_each(|c| push_harmless(&mut shown, c));
    shown.chars().take(SHOWN_CHARS).collect()
}

/// Shape of a line of an unknown format, at most 200 characters. It shows which format that is and nothing of what the
/// line says: such a line may be anything, also what someone said.
///
/// Of a JSON object the keys, with the kind of each value. Of other text the punctuation and blanks, `a` for a letter
/// and `9` for a digit, up to the first `?`. `…` stands for what is left out.
pub fn sample(text: &str) -> String {
    let shape = shape_of_object(text).unwrap_or_else(|| shape_of_text(text));
    if shape.chars().count() <= SHOWN_CHARS {
        return shape;
    }
    shape.chars().take(SHOWN_CHARS - 1).chain(MASK.chars()).collect()
}

fn before_query(text: &str) -> &str {
    text.split('?').next().unwrap_or_default()
}

fn push_harmless(shown: &mut String, c: char) {
    if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
}

fn shape_of_text(text: &str) -> String {
    let mut shape = String::new();
    let (mut last, mut run) = (None, 0);
    let before = before_query(text);
    for c in before.chars() {
        let sign = sign(c);
        run = if last == Some(sign) { run + 1 } else { 1 };
        last = Some(sign);
        if !sign.is_ascii_alphanumeric() || run <= RUN_CHARS {
            push_harmless(&mut shape, sign);
        } else if run == RUN_CHARS + 1 {
            shape.pop();
            shape.push_str(MASK);
        }
    }
    match text.len() - before.len() {
        0 => shape,
        1 => shape + "?",
        _ => shape + "?" + MASK,
    }
}

/// Not ASCII is always `a`: there is no end of signs that mean something.
fn sign(c: char) -> char {
    match c {
        '0'..='9' => '9',
        _ if c.is_ascii_alphabetic() || !c.is_ascii() => 'a',
        _ => c,
    }
}

/// `None` if the text is no JSON object or breaks off before the first value.
fn shape_of_object(text: &str) -> Option<String> {
    let text = text.trim_start();
    let json = text.starts_with('{').then(|| without_escapes(text))?;
    let mut reader = serde_json::Deserializer::from_str(&json);
    let mut shape = String::new();
    let read = Kind { shape: &mut shape, depth: 0 }.deserialize(&mut reader);
    match (read, reader.end()) {
        (Ok(()), Ok(())) => {}
        (Ok(()), Err(_)) => shape.extend([" ", MASK]),
        (Err(_), _) if shape == "{" => return None,
        (Err(_), _) => shape.extend([if shape.ends_with([' ', '{']) { "" } else { ", " }, MASK]),
    }
    Some(shape)
}

/// Makes JSON of raw control characters and of escapes that it does not know. No text of a value is shown, so it does
/// not matter which character an escape stands for; a key with one is not shown.
fn without_escapes(text: &str) -> String {
    let mut json = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                chars.next();
                json.push_str(r"\\");
            }
            _ if c.is_control() => json.push(' '),
            _ => json.push(c),
        }
    }
    json
}

/// A name of a field, not what someone said, called or dialled: `@` only in front (`@timestamp`), few digits.
fn is_shown_key(key: &str) -> bool {
    let name = key.strip_prefix('@').unwrap_or(key);
    (1..=KEY_CHARS).contains(&key.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
        && name.bytes().filter(u8::is_ascii_digit).count() <= KEY_DIGITS
}

/// Writes the kind of a value, and of an object its keys. What was read before the text breaks off stays written.
struct Kind<'s> {
    shape: &'s mut String,
    /// Objects around it.
    depth: usize,
}

impl Kind<'_> {
    fn is<E: Error>(self, kind: &str) -> Result<(), E> {
        self.shape.push_str(kind);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Kind<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Kind<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        self.is("text")
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        self.is("number")
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        self.is("number")
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        self.is("number")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        self.is("bool")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.is("null")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        self.shape.push_str("list");
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Kind { shape, depth } = self;
        let keys = if depth < DEPTH { KEYS } else { 0 };
        shape.push('{');
        let mut place = 0;
        while let Some(key) = map.next_key::<String>()? {
            if place < keys {
                let before = if place == 0 { "" } else { ", " };
                map.next_value_seed(Field { before, key: &key, value: Kind { shape, depth: depth + 1 } })?;
            } else {
                if place == keys {
                    shape.extend([if place == 0 { "" } else { ", " }, MASK]);
                }
                map.next_value::<IgnoredAny>()?;
            }
            place += 1;
        }
        shape.push('}');
        Ok(())
    }
}

/// A key is written when its colon has been read, not before: without one it is no key.
struct Field<'s> {
    before: &'static str,
    key: &'s str,
    value: Kind<'s>,
}

impl<'de> DeserializeSeed<'de> for Field<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        let shape = &mut *self.value.shape;
        shape.push_str(self.before);
        if is_shown_key(self.key) {
            shape.extend(["\"", self.key, "\""])
        } else {
            shape.push_str(MASK)
        }
        shape.push_str(": ");
        self.value.deserialize(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_sample_of_text_shows_its_shape_alone() {
        let rows = [
            ("nothing", "", ""),
            ("words", "Listening on 0.0.0.0:80", "aaa… aa 9.9.9.9:99"),
            ("a transcript", "Hi, it's Jo: my PIN is 4711!", "aa, aa'a aa: aa aaa aa 9999!"),
            ("basic credentials", "Basic dXNlcjpwYXNz", "aaa… aaa…"),
            ("password", "pwd=hunter2", "aaa=aaa…9"),
            ("telephone", "user=+14155550100", "aaaa=+999…"),
            ("reset link", "/reset/abc123", "/aaa…/aaa999"),
            ("mail", "jo.do@example.org", "aa.aa@aaa….aaa"),
            ("uuid", "1b4e28ba-2fa1-11d2", "9a9a99aa-9aa9-99a9"),
            ("time and address", "2026-11-30T09:00:00.123Z 192.0.2.7", "9999-99-99a99:99:99.999a 999.9.9.9"),
            ("four are shown, five shortened", "abcd abcde 1234 12345", "aaaa aaa… 9999 999…"),
            ("marks in a row stay", "===== a", "===== a"),
            ("logfmt", r#"level=info msg="a b" took=12ms"#, r#"aaa…=aaaa aaa="a a" aaaa=99aa"#),
            (
                "nginx error log",
                "2026/11/30 09:00:00 [error] 7#7: *1 refused",
                "9999/99/99 99:99:99 [aaa…] 9#9: *9 aaa…",
            ),
            ("query", "GET /v1/a?key=abc HTTP/1.1", "aaa /a9/a?…"),
            ("question", "Who?", "aaa?"),
            ("other letters", "é搜索🙂 “x”", "aaaa aaa"),
            ("other digits", "٣٤ ½ ①", "aa a a"),
            ("tab and newline", "GET\t/a\nb", "aaa\\t/a\\na"),
            ("colour", "\u{1b}[32mINFO\u{1b}[0m", "\\u{1b}[99aaa…\\u{1b}[9a"),
            ("an escape that is text", r"a\nb\u{1b}", r"a\aa\a{9a}"),
            ("CSV in quotes", r#""a b","12""#, r#""a a","99""#),
            ("JSON list", r#"[{"pin":4711}]"#, r#"[{"aaa":9999}]"#),
            ("JSON behind a time", r#"09:00 {"pin":4711}"#, r#"99:99 {"aaa":9999}"#),
            ("no JSON", "{GET /v1/a} 200", "{aaa /a9/a} 999"),
            ("Python", "{'user': 'jo'}", "{'aaaa': 'aa'}"),
            ("JSON cut in its first key", r#"{"hunter2"#, r#"{"aaa…9"#),
            ("no colon", r#"{"hunter2" 1}"#, r#"{"aaa…9" 9}"#),
        ];
        for (name, text, expected) in rows {
            assert_eq!(sample(text), expected, "{name}");
        }
    }

    #[test]
    fn a_sample_of_an_object_shows_its_keys_and_kinds() {
        let rows = [
            ("empty", "{}", "{}"),
            (
                "kinds",
                r#"{"level":"info","status":200,"request":{"method":"GET","uri":"/a"},"tags":["a",{"b":1}],"ok":true,"x":null}"#,
                r#"{"level": text, "status": number, "request": {"method": text, "uri": text}, "tags": list, "ok": bool, "x": null}"#,
            ),
            (
                "numbers",
                r#"{"a":-1,"b":1.5e3,"c":"200","d":18446744073709551615}"#,
                r#"{"a": number, "b": number, "c": text, "d": number}"#,
            ),
            (
                "order, twice the same",
                r#" { "b" : 1 , "a" : 2 , "b" : "x" } "#,
                r#"{"b": number, "a": number, "b": text}"#,
            ),
            ("depth 3", r#"{"a":{"b":{"c":1},"d":{}},"e":1}"#, r#"{"a": {"b": {…}, "d": {}}, "e": number}"#),
            (
                "a query is a value",
                r#"{"uri":"/a?key=s","status":200,"a?b":1}"#,
                r#"{"uri": text, "status": number, …: number}"#,
            ),
            (
                "usual keys",
                r#"{"@timestamp":"","X-Request_Id.2":"","httpStatus":1}"#,
                r#"{"@timestamp": text, "X-Request_Id.2": text, "httpStatus": number}"#,
            ),
            (
                "keys that are someone",
                r#"{"jo@example.org":1,"+14155550100":1,"14155550100":1,"my pin":1,"Jörg":1,"":1}"#,
                r#"{…: number, …: number, …: number, …: number, …: number, …: number}"#,
            ),
            ("text with marks of JSON", r#"{"a":"{\"b\":1} \\","c":1}"#, r#"{"a": text, "c": number}"#),
            ("nginx's escaping", r#"{"a":"\x22\xC3 \ud800","c":1}"#, r#"{"a": text, "c": number}"#),
            ("escape in a key", r#"{"a\u0062":1}"#, "{…: number}"),
            ("raw control characters", "{\"a\":\"x\ty\n\",\n\"c\":1}\n", r#"{"a": text, "c": number}"#),
            ("cut in a value", r#"{"a":1,"b":"hunter2"#, r#"{"a": number, "b": …"#),
            ("cut in a key", r#"{"a":1,"hunter2"#, r#"{"a": number, …"#),
            ("cut in an object", r#"{"a":{"b":"x","c""#, r#"{"a": {"b": text, …"#),
            ("cut at its start", r#"{"a":{"#, r#"{"a": {…"#),
            ("cut in a list", r#"{"a":["b","c"#, r#"{"a": list, …"#),
            ("quotes not escaped", r#"{"a":"he said "pin": 4711","b":1}"#, r#"{"a": text, …"#),
            ("more behind it", r#"{"a":1} hunter2"#, r#"{"a": number} …"#),
            ("two", r#"{"a":1}{"b":1}"#, r#"{"a": number} …"#),
        ];
        for (name, text, expected) in rows {
            assert_eq!(sample(text), expected, "{name}");
        }
    }

    #[test]
    fn long_keys_and_many_of_them_are_left_out() {
        let key = |length: usize| "k".repeat(length);
        let row = format!(r#"{{"{}":1,"{}":1}}"#, key(40), key(41));
        assert_eq!(sample(&row), format!(r#"{{"{}": number, …: number}}"#, key(40)));
        let many = |count: usize| format!(r#"{{"o":{{{}}},"z":1}}"#, vec![r#""":null"#; count].join(","));
        let shape = |text: &str| shape_of_object(text).unwrap();
        let thirty = vec!["…: null"; 30].join(", ");
        assert_eq!(shape(&many(30)), format!(r#"{{"o": {{{thirty}}}, "z": number}}"#));
        assert_eq!(shape(&many(32)), format!(r#"{{"o": {{{thirty}, …}}, "z": number}}"#));
    }

    #[test]
    fn a_sample_is_cut_at_200_characters() {
        assert_eq!(sample(&"- ".repeat(100)), "- ".repeat(100));
        assert_eq!(sample(&"- ".repeat(101)), "- ".repeat(100)[..199].to_owned() + "…");
        assert_eq!(sample(&"x".repeat(1 << 20)), "aaa…");
        let deep = format!(r#"{{"a":{}"#, r#"{"a":"#.repeat(100_000));
        assert_eq!(sample(&deep), r#"{"a": {"a": {…, …"#);
    }

    #[test]
    fn what_is_shown_is_short_and_harmless() {
        let rows =
            [("query", "GET /a?key=secret", "GET /a"), ("control characters", "a\nb\u{1b}[0m", "a\\nb\\u{1b}[0m")];
        for (name, text, expected) in rows {
            assert_eq!(shown(text), expected, "{name}");
        }
        assert_eq!(shown(&"é\n".repeat(300)).chars().count(), SHOWN_CHARS);
    }

    /// Without the control characters that are written as escapes.
    fn without_control(shape: &str) -> String {
        let escaped = ('\0'..='\x1f').chain(['\x7f']).map(|c| c.escape_default().to_string());
        escaped.fold(shape.to_owned(), |shape, escape| shape.replace(&escape, ""))
    }

    fn is_masked_or_mark(c: char) -> bool {
        matches!(c, 'a' | '9' | ' ') || c.is_ascii_punctuation()
    }

    /// A key of [`object`], a kind, or masked as text is.
    fn is_word_of_objects(word: &str) -> bool {
        ["said", "object", "same", "list", "text", "number"].contains(&word) || word.chars().all(is_masked_or_mark)
    }

    fn words(shape: &str) -> impl Iterator<Item = &str> {
        shape.split(|c: char| !c.is_alphanumeric())
    }

    /// Fields with given values of text.
    fn object(said: &str, inner: &str, listed: &str) -> String {
        json!({"said": said, "object": {"same": inner}, "list": [listed, {listed: 1}], "number": 1}).to_string()
    }

    proptest! {
        #[test]
        fn of_text_no_letter_but_a_and_no_digit_but_9_shows(
            text in "[^{?].{0,30}|[A-Za-z0-9 =:/+-]{0,30}|[\\PC\n]{0,30}",
        ) {
            prop_assume!(shape_of_object(&text).is_none());
            let rest = without_control(&sample(&text)).replace(MASK, "");
            prop_assert!(rest.chars().all(is_masked_or_mark), "{rest:?}");
        }

        #[test]
        fn texts_with_other_letters_and_digits_have_one_shape(
            text in "[^?{]{0,80}", letter in "[a-zA-Zéß搜]", digit in "[0-9]",
        ) {
            let shape: String = text.chars().map(sign).collect();
            let other = shape.replace('a', &letter).replace('9', &digit);
            prop_assert_eq!(sample(&other), sample(&shape));
        }

        #[test]
        fn objects_with_other_texts_have_one_shape(
            said in ".{0,40}", inner in ".{0,40}", listed in r#"["\\{}:,a-z?]{0,40}"#,
        ) {
            let expected = r#"{"list": list, "number": number, "object": {"same": text}, "said": text}"#;
            prop_assert_eq!(sample(&object(&said, &inner, &listed)), expected);
        }

        #[test]
        fn of_an_object_that_breaks_off_no_text_shows(said in r#"[A-Z0-9"\\é ]{4,20}"#, cut in 0_usize..120) {
            let broken: String = object(&said, &said, &said).chars().take(cut).collect();
            let shape = sample(&broken);
            prop_assert!(words(&shape).all(is_word_of_objects), "{broken} {shape}");
        }

        #[test]
        fn of_objects_that_are_not_well_formed_only_keys_show(
            said in "[A-Z]{4,8}", text in r#"[\[\]{}:,"\\ 1]{0,20}"#, more in r#"[\[\]{}:, \\1]{0,20}"#,
        ) {
            let shape = sample(&format!(r#"{{"said":"{said}{text}{said}{more}"#));
            let key = format!(r#""{said}": "#);
            prop_assert!(words(&shape.replace(&key, "")).all(is_word_of_objects), "{shape}");
        }

        #[test]
        fn no_text_makes_it_panic_or_long(text in r#".{0,300}|\{["a:, {}\[\]0-9\\?]{0,300}"#) {
            prop_assert!(sample(&text).chars().count() <= SHOWN_CHARS);
        }
    }
}
