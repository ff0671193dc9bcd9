//! `ringflake verify`: a live ring at full speed, and every ID checked.

pub(crate) use self::args::VerifyArgs;
pub(crate) use self::flat_out::run;

mod answer;
mod args;
mod flat_out;
mod oracle;
mod tally;
