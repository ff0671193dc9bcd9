//! The meaning of PostgreSQL's error codes, which are those of appendix A of its manual.

use crate::lease::store::table::failure::{Failure, Stage, Verdict};

/// The verdict on an error with this SQLSTATE. `fatal` errors end the
/// connection, and so may come at any moment, also behind a commit that was
/// done.
pub(super) fn verdict(code: &str, fatal: bool, stage: Stage) -> Verdict {
    if fatal {
        return stage.verdict();
    }
    match (code, stage) {
        // A deadlock, or a serialization failure: rolled back at any stage.
        ("40P01" | "40001", _) => Failure::Again,
        // A lock was not to be had in time.
        ("55P03", Stage::Before) => Failure::Again,
        ("42P01", Stage::Before) => Failure::NoTable,
        // The text with the number of rows that were kept.
        ("22P02", Stage::Before) => Failure::Short,
        // The ledger's exclusion constraint, another constraint, a missing column, one of another
        // type, a number out of range, damaged pages.
        ("23P01", _) => Failure::rejected,
        (code, Stage::Before)
            if code.starts_with("23")
                || code.starts_with("XX")
                || matches!(code, "22003" | "42703" | "42804" | "42883") =>
        {
            Failure::rejected
        }
        _ => stage.verdict(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::store::table::failure::name_of;

    #[test]
    fn codes_mean_what_the_manual_says() {
        use Stage::{Before, Commit};

        for (code, name, before, commit) in [
            ("40001", "serialization_failure", "Again", "Again"),
            ("40P01", "deadlock_detected", "Again", "Again"),
            ("55P03", "lock_not_available", "Again", "Unknown"),
            ("22P02", "invalid_text_representation", "Short", "Unknown"),
            ("23P01", "exclusion_violation", "Refused", "Refused"),
            ("23514", "check_violation", "Refused", "Unknown"),
            ("42P01", "undefined_table", "NoTable", "Unknown"),
            ("XX001", "data_corrupted", "Refused", "Unknown"),
            ("42501", "insufficient_privilege", "NotDone", "Unknown"),
            ("57014", "query_canceled", "NotDone", "Unknown"),
        ] {
            for (stage, expected) in [(Before, before), (Commit, commit)] {
                assert_eq!(
                    name_of(verdict(code, false, stage)),
                    expected,
                    "{name} {stage:?}"
                );
            }
        }
    }

    #[test]
    fn the_end_of_a_connection_proves_nothing_about_a_commit() {
        // 57P01 is admin_shutdown, which can come while a commit waits for a
        // standby.
        for code in ["57P01", "40001"] {
            assert_eq!(name_of(verdict(code, true, Stage::Before)), "NotDone");
            assert_eq!(name_of(verdict(code, true, Stage::Commit)), "Unknown");
        }
    }
}
