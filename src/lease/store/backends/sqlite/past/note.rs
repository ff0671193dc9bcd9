//! The note in a lock file, as text.
//!
//! | line | says |
//! |---|---|
//! | `note in the file inode 7, born 123` | first: which file the note was written in |
//! | `leases.db is the file inode 8, born 456` | which file was made; the last such line counts |
//! | `2 records` | how many namespaces `leases.db` has at least |
//! | `secret 0123...` | a secret with this mark was drawn here |
//! | `secret 0123... is used elsewhere` | and is no longer one of this place's own |
//! | `another was lost` | something that was recorded once may be missing |
//!
//! Lines are only added, each before what it announces is done, and synced. One
//! without its end was cut short by a crash, when nothing had been done yet: it
//! counts for nothing, and is overwritten. A line that is none of these was written
//! by another version, or by hand; its meaning is not known.

use std::collections::BTreeSet;

const WRITTEN_IN: &str = "note in the file ";
const STORE: &str = "leases.db is the file ";
const RECORDS: &str = " records";
const SECRET: &str = "secret ";
const ELSEWHERE: &str = " is used elsewhere";
const LOST: &str = "another was lost";

/// The contents of a note.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Note {
    /// The file that it was written in.
    pub(super) written_in: Option<String>,
    /// The file of leases.
    pub(super) store: Option<String>,
    pub(super) records: u64,
    /// Marks of secrets that were drawn here, and of those that are used elsewhere. What
    /// was said last counts.
    pub(super) secrets: BTreeSet<String>,
    pub(super) elsewhere: BTreeSet<String>,
    /// Whether something may be missing, or something is not understood.
    pub(super) lost: bool,
    /// Bytes of whole lines.
    pub(super) len: usize,
    /// Bytes in all.
    pub(super) found: usize,
}

/// A line to be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    WrittenIn(&'a str),
    Store(&'a str),
    Records(u64),
    Secret(&'a str),
    SecretElsewhere(&'a str),
    Lost,
}

impl Note {
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let mut note = Self {
            found: bytes.len(),
            ..Self::default()
        };
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            let Some(line) = line.strip_suffix(b"\n") else {
                break;
            };
            note.len += line.len() + 1;
            note.add(&String::from_utf8_lossy(line));
        }
        note
    }

    fn add(&mut self, line: &str) {
        let is_first = self.written_in.is_none();
        if let Some(file) = line.strip_prefix(WRITTEN_IN).filter(|_| is_first) {
            self.written_in = Some(file.to_owned());
        } else if let Some(file) = line.strip_prefix(STORE) {
            self.store = Some(file.to_owned());
        } else if let Some(Ok(records)) = line.strip_suffix(RECORDS).map(str::parse) {
            self.records = records;
        } else if let Some(secret) = line.strip_prefix(SECRET) {
            let (mark, from, to) = match secret.strip_suffix(ELSEWHERE) {
                Some(mark) => (mark, &mut self.secrets, &mut self.elsewhere),
                None => (secret, &mut self.elsewhere, &mut self.secrets),
            };
            from.remove(mark);
            to.insert(mark.to_owned());
        } else {
            self.lost = true;
        }
    }
}

impl Line<'_> {
    pub(super) fn text(&self) -> String {
        match self {
            Self::WrittenIn(file) => format!("{WRITTEN_IN}{file}\n"),
            Self::Store(file) => format!("{STORE}{file}\n"),
            Self::Records(records) => format!("{records}{RECORDS}\n"),
            Self::Secret(mark) => format!("{SECRET}{mark}\n"),
            Self::SecretElsewhere(mark) => format!("{SECRET}{mark}{ELSEWHERE}\n"),
            Self::Lost => format!("{LOST}\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_read_up_to_a_line_that_was_cut_short() {
        let mut text = String::new();
        let mut note = Note::default();
        let set = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        type Step<'a> = (Line<'a>, &'a dyn Fn(&mut Note));
        let steps: [Step<'_>; 9] = [
            (Line::WrittenIn("here"), &|note| {
                note.written_in = Some("here".into())
            }),
            (Line::Store("a"), &|note| note.store = Some("a".into())),
            (Line::Store("b"), &|note| note.store = Some("b".into())),
            (Line::Records(7), &|note| note.records = 7),
            (Line::Secret("1"), &|note| note.secrets = set(&["1"])),
            (Line::Secret("2"), &|note| note.secrets = set(&["1", "2"])),
            (Line::SecretElsewhere("1"), &|note| {
                (note.secrets, note.elsewhere) = (set(&["2"]), set(&["1"]));
            }),
            (Line::Secret("1"), &|note| {
                (note.secrets, note.elsewhere) = (set(&["1", "2"]), set(&[]));
            }),
            // A second first line is none.
            (Line::WrittenIn("there"), &|note| note.lost = true),
        ];
        for (line, change) in steps {
            let whole = text.len();
            text += &line.text();
            for cut in whole..text.len() {
                note.found = cut;
                assert_eq!(
                    Note::parse(&text.as_bytes()[..cut]),
                    note,
                    "{line:?} cut to {cut}"
                );
            }
            change(&mut note);
            (note.len, note.found) = (text.len(), text.len());
            assert_eq!(Note::parse(text.as_bytes()), note, "{line:?}");
        }
        for strange in [&b"another was lost\n"[..], b"\xff\n", b"x records\n", b"\n"] {
            assert!(Note::parse(strange).lost, "{strange:?}");
        }
    }
}
