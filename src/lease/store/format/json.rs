//! Flat JSON objects: texts, integers and truth values by name.
//!
//! A JSON crate would burden programs that use no store. This reads what RFC 8259 calls an object, as long as its values are
//! such scalars; it writes such objects in one line.

use std::fmt;
use std::iter::Peekable;
use std::str::Chars;

/// A value of a flat object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::lease) enum Scalar {
    Text(String),
    Integer(i64),
    Truth(bool),
    Null,
}

/// A flat object, in the order in which it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::lease) struct Object(Vec<(String, Scalar)>);

impl Object {
    pub(in crate::lease) fn add(&mut self, name: &str, value: Scalar) {
        self.0.push((name.to_owned(), value));
    }

    /// A number below 2^63, as the writer guarantees.
    pub(in crate::lease) fn add_number(&mut self, name: &str, number: u64) {
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        self.add(name, Scalar::Integer(number));
    }

    pub(in crate::lease) fn add_text(&mut self, name: &str, text: impl Into<String>) {
        self.add(name, Scalar::Text(text.into()));
    }

    pub(in crate::lease) fn get(&self, name: &str) -> Option<&Scalar> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value)
    }

    /// None for what is not a flat object, or has a name twice.
    pub(in crate::lease) fn parse(text: &str) -> Option<Self> {
        let mut parser = Parser(text.chars().peekable());
        let object = parser.object()?;
        parser.skip_space();
        parser.0.peek().is_none().then_some(object)
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (place, (name, value)) in self.0.iter().enumerate() {
            if place > 0 {
                f.write_str(",")?;
            }
            write_text(f, name)?;
            f.write_str(":")?;
            match value {
                Scalar::Text(text) => write_text(f, text)?,
                Scalar::Integer(number) => write!(f, "{number}")?,
                Scalar::Truth(truth) => write!(f, "{truth}")?,
                Scalar::Null => f.write_str("null")?,
            }
        }
        f.write_str("}")
    }
}

fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            '\0'..='\x1f' => write!(f, "\\u{:04x}", u32::from(c))?,
            _ => write!(f, "{c}")?,
        }
    }
    f.write_str("\"")
}

struct Parser<'a>(Peekable<Chars<'a>>);

impl Parser<'_> {
    fn object(&mut self) -> Option<Object> {
        let mut object = Object::default();
        self.sign('{')?;
        self.skip_space();
        if self.0.next_if_eq(&'}').is_some() {
            return Some(object);
        }
        loop {
            self.skip_space();
            let name = self.text()?;
            self.sign(':')?;
            let value = self.scalar()?;
            if object.get(&name).is_some() {
                return None;
            }
            object.0.push((name, value));
            self.skip_space();
            match self.0.next()? {
                ',' => {}
                '}' => return Some(object),
                _ => return None,
            }
        }
    }

    fn scalar(&mut self) -> Option<Scalar> {
        self.skip_space();
        if self.0.peek() == Some(&'"') {
            return self.text().map(Scalar::Text);
        }
        let mut word = String::new();
        while let Some(c) = self
            .0
            .next_if(|c| c.is_ascii_alphanumeric() || "+-.".contains(*c))
        {
            word.push(c);
        }
        match word.as_str() {
            "true" => Some(Scalar::Truth(true)),
            "false" => Some(Scalar::Truth(false)),
            "null" => Some(Scalar::Null),
            // A plus sign and leading zeros are not JSON's.
            word => {
                let number = word.parse::<i64>().ok()?;
                (number.to_string() == word).then_some(Scalar::Integer(number))
            }
        }
    }

    fn text(&mut self) -> Option<String> {
        let mut text = String::new();
        self.0.next_if_eq(&'"')?;
        loop {
            match self.0.next()? {
                '"' => return Some(text),
                '\\' => text.push(self.escaped()?),
                '\0'..='\x1f' => return None,
                c => text.push(c),
            }
        }
    }

    fn escaped(&mut self) -> Option<char> {
        match self.0.next()? {
            c @ ('"' | '\\' | '/') => Some(c),
            'b' => Some('\x08'),
            'f' => Some('\x0c'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'u' => {
                let high = self.unit()?;
                if !(0xd800..0xdc00).contains(&high) {
                    return char::from_u32(high);
                }
                self.0.next_if_eq(&'\\')?;
                self.0.next_if_eq(&'u')?;
                let low = self
                    .unit()?
                    .checked_sub(0xdc00)
                    .filter(|low| *low < 0x400)?;
                char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + low)
            }
            _ => None,
        }
    }

    fn unit(&mut self) -> Option<u32> {
        let mut digit = || self.0.next()?.to_digit(16);
        let digits = [digit()?, digit()?, digit()?, digit()?];
        Some(digits.iter().fold(0, |unit, digit| unit << 4 | digit))
    }

    fn sign(&mut self, sign: char) -> Option<()> {
        self.skip_space();
        self.0.next_if_eq(&sign).map(drop)
    }

    fn skip_space(&mut self) {
        while self
            .0
            .next_if(|c| matches!(c, ' ' | '\t' | '\n' | '\r'))
            .is_some()
        {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::btree_map;
    use proptest::prelude::*;

    use super::*;

    fn scalar() -> impl Strategy<Value = Scalar> {
        prop_oneof![
            any::<String>().prop_map(Scalar::Text),
            any::<i64>().prop_map(Scalar::Integer),
            any::<bool>().prop_map(Scalar::Truth),
            Just(Scalar::Null),
        ]
    }

    proptest! {
        #[test]
        fn objects_are_read_as_they_were_written(
            fields in btree_map(any::<String>(), scalar(), 0..6)
        ) {
            let object = Object(fields.into_iter().collect());
            let text = object.to_string();
            prop_assert!(!text.contains('\n'), "{text}");
            prop_assert_eq!(Object::parse(&text), Some(object));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in any::<String>()) {
            let _ = Object::parse(&text);
        }
    }

    #[test]
    fn foreign_json_is_parsed() {
        let text =
            " { \"a\" : \"\\u00e9\\ud83d\\ude00\\/\\n\" ,\n\"b\":-7, \"c\":true,\"d\":null}\n";
        let object = Object::parse(text).unwrap();
        assert_eq!(object.get("a"), Some(&Scalar::Text("é😀/\n".into())));
        assert_eq!(object.get("b"), Some(&Scalar::Integer(-7)));
        assert_eq!(object.get("c"), Some(&Scalar::Truth(true)));
        assert_eq!(object.get("d"), Some(&Scalar::Null));
        assert_eq!(object.get("e"), None);
        assert_eq!(Object::parse("{ }"), Some(Object::default()));
    }

    #[test]
    fn anything_else_is_rejected() {
        for text in [
            "",
            "{",
            "{}x",
            "[]",
            "7",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{\"a\":[1]}",
            "{\"a\":{}}",
            "{\"a\":01}",
            "{\"a\":+1}",
            "{\"a\":1.5}",
            "{\"a\":1e3}",
            "{\"a\":yes}",
            "{\"a\":\"\\x\"}",
            "{\"a\":\"\\ud800\"}",
            "{\"a\":\"\n\"}",
            "{\"a\":1,\"a\":2}",
            "{\"a\":9223372036854775808}",
            "{a:1}",
        ] {
            assert_eq!(Object::parse(text), None, "{text}");
        }
    }
}
