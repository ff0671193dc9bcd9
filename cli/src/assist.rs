//! When takes make IDs themselves, as it is written: `10%`, or `off`.

use std::str::FromStr;

use anyhow::{Result, bail};
use ringflake::AssistFill;

/// When takes assist, if they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Assist(Option<AssistFill>);

impl Assist {
    pub(crate) fn fill(self) -> Option<AssistFill> {
        self.0
    }
}

impl FromStr for Assist {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "off" {
            return Ok(Self(None));
        }
        let percent = text.strip_suffix('%').map(|text| text.trim_end().parse());
        match percent {
            Some(Ok(percent @ 1..=100)) => Ok(Self(Some(AssistFill::below(percent)))),
            _ => bail!("give a share of a stripe's slots from 1 to 100 %, such as 10%, or off"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assist_is_a_percentage_or_off() {
        let parse = |text: &str| text.parse::<Assist>();
        for text in ["25%", "25 %"] {
            assert_eq!(parse(text).unwrap().fill(), Some(AssistFill::below(25)));
        }
        assert_eq!(parse("off").unwrap().fill(), None);
        for wrong in ["", "%", "10", "0%", "101%", "-5%", "2.5%", "on", "none"] {
            let error = parse(wrong).unwrap_err().to_string();
            assert!(
                error.contains("1 to 100 %, such as 10%"),
                "{wrong}: {error}"
            );
        }
    }
}
