//! The meaning of the error codes of MySQL and MariaDB. Both document them; where they
//! share a number it has one meaning.

use crate::lease::store::table::failure::{Failure, Stage, Verdict};

/// The verdict on an error with this code.
pub(super) fn verdict(code: u16, stage: Stage) -> Verdict {
    match code {
        // A deadlock, or a Galera node that was overruled: rolled back, at the
        // commit too. A lock that was not to be had in time: the caller rolls
        // back what is left.
        // So does that of a row that was changed since the snapshot (MariaDB).
        1213 | 1205 | 1020 => Failure::Again,
        // Refused before it was begun: a table is missing; a privilege is; the
        // server is read-only, or logs statements.
        1146 => Failure::NoTable,
        1044 | 1045 | 1142 | 1143 | 1227 | 1290 | 1665 | 1792 | 1836 => Failure::NotDone,
        // A column is missing or takes other values, a row is missing that
        // another one names, a check fails, a table is not what it says.
        1034 | 1054 | 1264 | 1265 | 1364 | 1366 | 1406 | 1452 | 3819 | 4025 => Failure::rejected,
        _ => stage.verdict(),
    }
}

/// Whether a row has the key already.
pub(super) fn is_duplicate(code: u16) -> bool {
    matches!(code, 1062 | 1586)
}

/// Whether an index could not be created because it is there.
pub(super) fn is_there(code: u16) -> bool {
    code == 1061
}

/// Whether a login was refused: a wrong password, or none; a database or a host that is not the
/// user's; an expired password; a locked account (MySQL, MariaDB).
pub(super) fn is_denial(code: u16) -> bool {
    matches!(code, 1044 | 1045 | 1130 | 1698 | 1862 | 3118 | 4151)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::store::table::failure::name_of;

    #[test]
    fn codes_mean_what_the_manuals_say() {
        use Stage::{Before, Commit};

        for (code, name, before, commit) in [
            (1213, "ER_LOCK_DEADLOCK", "Again", "Again"),
            (1146, "ER_NO_SUCH_TABLE", "NoTable", "NoTable"),
            (1045, "ER_ACCESS_DENIED_ERROR", "NotDone", "NotDone"),
            (1054, "ER_BAD_FIELD_ERROR", "Refused", "Refused"),
            (1053, "ER_SERVER_SHUTDOWN", "NotDone", "Unknown"),
            (1180, "ER_ERROR_DURING_COMMIT", "NotDone", "Unknown"),
            (1317, "ER_QUERY_INTERRUPTED", "NotDone", "Unknown"),
        ] {
            for (stage, expected) in [(Before, before), (Commit, commit)] {
                assert_eq!(name_of(verdict(code, stage)), expected, "{name} {stage:?}");
            }
        }
    }
}
