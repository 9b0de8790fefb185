//! Lines of a file, plain or gzip, one at a time and never more than so many bytes of one.

use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

/// What a gzip file begins with.
const GZIP: [u8; 2] = [0x1f, 0x8b];

pub(super) struct Lines {
    input: Box<dyn BufRead + Send>,
    longest: u64,
    number: u64,
    line: Vec<u8>,
}

/// One line, without its end.
pub(super) struct Line<'a> {
    /// From 1.
    pub(super) number: u64,
    pub(super) text: &'a [u8],
    /// It is longer than may be read: the rest was passed over.
    pub(super) is_cut: bool,
}

impl Lines {
    /// A line longer than `longest` bytes is cut there.
    pub(super) fn open(path: &Path, longest: usize) -> io::Result<Self> {
        let mut file = BufReader::new(File::open(path)?);
        let is_gzip = file.fill_buf()?.starts_with(&GZIP);
        let input: Box<dyn BufRead + Send> =
            if is_gzip { Box::new(BufReader::new(MultiGzDecoder::new(file))) } else { Box::new(file) };
        Ok(Self { input, longest: u64::try_from(longest).unwrap_or(u64::MAX), number: 0, line: Vec::new() })
    }

    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.line.clear();
        let read = self.input.by_ref().take(self.longest).read_until(b'\n', &mut self.line)?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        let is_cut = !self.line.ends_with(b"\n") && self.pass_over()?;
        let text = self.line.trim_ascii();
        let text = if self.number == 1 { text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text) } else { text };
        Ok(Some(Line { number: self.number, text, is_cut }))
    }

    /// The number of the line that was read last.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Reads on to the line's end; whether anything stood there.
    fn pass_over(&mut self) -> io::Result<bool> {
        let mut any = false;
        loop {
            let buffer = self.input.fill_buf()?;
            let (length, end) = (buffer.len(), buffer.iter().position(|byte| *byte == b'\n'));
            any |= end.unwrap_or(length) > 0;
            self.input.consume(end.map_or(length, |end| end + 1));
            if end.is_some() || length == 0 {
                return Ok(any);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write as _;

    fn read(name: &str, content: &[u8], longest: usize) -> Vec<(u64, String, bool)> {
        let path = std::env::temp_dir().join(format!("reveille-lines-{}-{name}", std::process::id()));
        std::fs::write(&path, content).unwrap();
        let mut lines = Lines::open(&path, longest).unwrap();
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push((line.number, String::from_utf8_lossy(line.text).into_owned(), line.is_cut));
        }
        std::fs::remove_file(&path).unwrap();
        all
    }

    fn line(number: u64, text: &str, is_cut: bool) -> (u64, String, bool) {
        (number, text.to_owned(), is_cut)
    }

    #[test]
    fn reads_unix_and_windows_lines_and_a_last_one_without_an_end() {
        let lines = read("ends", b"\xef\xbb\xbfa\r\nb\n\nc", 100);
        assert_eq!(lines, [line(1, "a", false), line(2, "b", false), line(3, "", false), line(4, "c", false)]);
        assert_eq!(read("empty", b"", 100), []);
    }

    #[test]
    fn knows_gzip_by_its_first_bytes_and_reads_every_member() {
        let mut packed = Vec::new();
        for part in ["a\nb", "c\n"] {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(part.as_bytes()).unwrap();
            packed.extend(encoder.finish().unwrap());
        }
        assert_eq!(read("gzip", &packed, 100), [line(1, "a", false), line(2, "bc", false)]);
    }

    #[test]
    fn an_endless_line_is_cut_and_the_next_one_is_read() {
        let lines = read("endless", format!("{}\nnext\n", "x".repeat(100_000)).as_bytes(), 10);
        assert_eq!(lines, [line(1, "xxxxxxxxxx", true), line(2, "next", false)]);
        assert_eq!(read("just", b"0123456789\nnext", 10)[0], line(1, "0123456789", false), "it fits");
    }
}
