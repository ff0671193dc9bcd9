//! Numbers as the command line takes them: `1000`, `64k`, `1.5M`.

use std::ops::RangeInclusive;

use anyhow::{Result, bail};

const UNITS: [(char, u64); 3] = [('k', 1_000), ('M', 1_000_000), ('G', 1_000_000_000)];

/// A parser of numbers in `range`. The error of any other text names the range.
pub(crate) fn count<T>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T> + Clone + Send + Sync + 'static
where
    T: TryFrom<u64>,
{
    move |text| {
        let number = whole(text).filter(|number| range.contains(number));
        match number.and_then(|number| T::try_from(number).ok()) {
            Some(number) => Ok(number),
            None => bail!("{}", allowed(&range)),
        }
    }
}

fn allowed(range: &RangeInclusive<u64>) -> String {
    let start = range.start();
    let until = match *range.end() {
        u64::MAX => "on, such as 500, 64k or 1.5M".to_owned(),
        end if end < 1_000_000 => return format!("give a whole number from {start} to {end}"),
        end => format!("to {end}, such as 500, 64k or 1.5M"),
    };
    format!("give a whole number from {start} {until}")
}

/// The whole number that `text` stands for, with or without a unit. `None` if there
/// is none, or none that 64 bits hold.
pub(crate) fn whole(text: &str) -> Option<u64> {
    let unit = UNITS
        .iter()
        .find_map(|&(unit, size)| Some((text.strip_suffix(unit)?, size)));
    let (digits, size) = unit.unwrap_or((text, 1));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let whole = number(whole)?.checked_mul(size)?;
    let tens = 10_u64.checked_pow(fraction.len().try_into().ok()?)?;
    let part = number(fraction)?.checked_mul(size)?;
    // 1.5 k is a whole number, and 1.0005 k is not.
    let part = part.is_multiple_of(tens).then_some(part / tens)?;
    whole.checked_add(part)
}

/// Digits alone: `parse` would take a sign.
fn number(digits: &str) -> Option<u64> {
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_may_have_a_unit_and_a_fraction() {
        for (text, number) in [
            ("0", 0),
            ("1000", 1_000),
            ("64k", 64_000),
            ("1.5M", 1_500_000),
            ("2G", 2_000_000_000),
            ("1.0", 1),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(whole(text), Some(number), "{text}");
        }
        let wrong = "|k|-1|+1|1.5|1.0005k|1 k|1K|1m|0x1|.5k|1.k|1_000|18446744073709551616|\
                     18446744074G|0.00000000000000000000k";
        for wrong in wrong.split('|') {
            assert_eq!(whole(wrong), None, "{wrong}");
        }
    }
}
