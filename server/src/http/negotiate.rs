//! The type of an answer, chosen from `Accept`.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

use super::problem::{Kind, Problem};

/// The form of an answer with IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseFormat {
    Json,
    Text,
    /// 8 little-endian bytes an ID.
    Binary,
}

impl ResponseFormat {
    /// The first is preferred where the client does not care.
    pub(super) const ALL: [Self; 3] = [Self::Json, Self::Text, Self::Binary];

    pub(super) const fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Text => "text/plain",
            Self::Binary => "application/octet-stream",
        }
    }

    /// As `Content-Type` has it.
    pub(super) const fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; charset=utf-8",
            Self::Json | Self::Binary => self.media_type(),
        }
    }

    /// The shape that the client prefers.
    pub(super) fn accepted(headers: &HeaderMap) -> Result<Self, Problem> {
        choose(headers, &Self::ALL.map(Self::media_type))
            .map(|at| Self::ALL[at])
            .ok_or_else(|| not_acceptable(&Self::ALL.map(Self::media_type)))
    }
}

/// Refuses a client that does not accept the only format.
pub(super) fn require(headers: &HeaderMap, offered: &'static str) -> Result<(), Problem> {
    match choose(headers, &[offered]) {
        Some(_) => Ok(()),
        None => Err(not_acceptable(&[offered])),
    }
}

fn not_acceptable(offered: &[&str]) -> Problem {
    let offered = offered.join(", ");
    let detail =
        format!("Accept admits none of {offered}: send one of these, */*, or no Accept at all");
    Problem::new(Kind::NOT_ACCEPTABLE, detail)
}

/// Which of the offered types the client prefers: by quality, then one that it names before
/// one that it only admits, then by order.
fn choose(headers: &HeaderMap, offered: &[&str]) -> Option<usize> {
    let ranges: Vec<Range<'_>> = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(Range::read)
        .collect();
    if !headers.contains_key(ACCEPT) {
        return Some(0);
    }
    let score = |media_type: &str| {
        let of_range = |range: &Range<'_>| Some((range.precision(media_type)?, range.quality));
        // The most precise range decides on the quality.
        let (precision, quality) = ranges.iter().filter_map(of_range).max()?;
        (quality > 0).then_some((quality, precision))
    };
    let scored = offered.iter().enumerate();
    let scored = scored.filter_map(|(at, media_type)| Some((score(media_type)?, at)));
    let best = scored.max_by_key(|&(score, at)| (score, std::cmp::Reverse(at)))?;
    Some(best.1)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range<'a> {
    name: &'a str,
    /// In thousandths.
    quality: u16,
}

impl<'a> Range<'a> {
    /// What can't be read admits nothing.
    fn read(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let name = parts.next().filter(|name| name.contains('/'))?;
        let mut quality = 1000;
        for part in parts {
            if let Some((name, value)) = part.split_once('=')
                && name.trim().eq_ignore_ascii_case("q")
            {
                quality = thousandths(value.trim())?;
            }
        }
        Some(Self { name, quality })
    }

    /// How precisely it names this type: none if it does not at all.
    fn precision(&self, media_type: &str) -> Option<u8> {
        let (family, _) = media_type.split_once('/')?;
        if self.name.eq_ignore_ascii_case(media_type) {
            return Some(2);
        }
        match self.name.split_once('/')? {
            ("*", "*") => Some(0),
            (own, "*") if own.eq_ignore_ascii_case(family) => Some(1),
            _ => None,
        }
    }
}

/// 0 to 1 with up to three digits behind the point.
fn thousandths(text: &str) -> Option<u16> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if part.len() > 3 || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part: u16 = format!("{part:0<3}").parse().ok()?;
    match (whole, part) {
        ("0", part) => Some(part),
        ("1", 0) => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn accepting(value: &str) -> Option<ResponseFormat> {
        let value = HeaderValue::from_str(value).unwrap();
        let headers = HeaderMap::from_iter([(ACCEPT, value)]);
        ResponseFormat::accepted(&headers).ok()
    }

    #[test]
    fn the_answer_is_json_unless_another_is_preferred() {
        use ResponseFormat::{Binary, Json, Text};
        assert_eq!(ResponseFormat::accepted(&HeaderMap::new()), Ok(Json));
        #[rustfmt::skip]
        let table = [
            ("*/*", Some(Json)),
            ("text/*", Some(Text)),
            ("TEXT/plain", Some(Text)),
            ("application/*", Some(Json)),
            ("application/octet-stream", Some(Binary)),
            ("application/octet-stream, */*", Some(Binary)),
            ("*/*, text/plain;q=0.9", Some(Json)),
            ("application/json;q=0, */*", Some(Text)),
            ("text/plain; q=0.5, application/octet-stream ;Q=0.75", Some(Binary)),
            ("what is this, text/plain", Some(Text)),
            ("text/plain;charset=utf-8", Some(Text)),
            ("text/plain;q=1, application/json;q=0.999", Some(Text)),
            ("text/plain;q=1.000, application/json;q=0.999", Some(Text)),
            ("", None),
            ("image/png", None),
            ("text/html", None),
            ("*/*;q=0", None),
            ("json", None),
            ("*/*;q=2", None),
            ("*/json", None),
            // No numbers of RFC 9110.
            ("*/*;q=0.1234", None),
            ("*/*;q=0.+1", None),
            ("*/*;q=1.001", None),
        ];
        for (value, format) in table {
            assert_eq!(accepting(value), format, "{value}");
        }
    }

    proptest! {
        #[test]
        fn a_type_is_never_chosen_that_is_not_admitted(
            qualities in proptest::array::uniform3(0_u16..=1000),
        ) {
            let each = ResponseFormat::ALL.iter().zip(qualities);
            let value: Vec<String> = each
                .map(|(shape, q)| format!("{};q={}.{:03}", shape.media_type(), q / 1000, q % 1000))
                .collect();
            let best = *qualities.iter().max().unwrap();
            let chosen = accepting(&value.join(","));
            let at = chosen.map(|chosen| ResponseFormat::ALL.iter().position(|shape| *shape == chosen).unwrap());
            prop_assert_eq!(chosen.is_some(), best > 0);
            if let Some(at) = at {
                prop_assert_eq!(qualities[at], best);
            }
        }
    }
}
