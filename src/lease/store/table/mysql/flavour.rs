//! Which of the two servers it is.

/// A server that is supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flavour {
    /// MySQL 8.0 or later.
    MySql,
    /// MariaDB 10.6 or later.
    MariaDb,
}

impl Flavour {
    /// The server that calls its version this.
    pub(super) fn of(version: &str) -> Result<Self, String> {
        let mut numbers = version
            .split(|c: char| !c.is_ascii_digit())
            .map(|digits| digits.parse::<u32>().unwrap_or(0));
        let number = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        let (flavour, oldest) = if version.to_ascii_lowercase().contains("mariadb") {
            (Self::MariaDb, (10, 6))
        } else {
            (Self::MySql, (8, 0))
        };
        if number >= oldest {
            return Ok(flavour);
        }
        Err(format!(
            "the server has version {version:?}: MariaDB 10.6 or MySQL 8.0 is needed"
        ))
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::MySql => "MySQL",
            Self::MariaDb => "MariaDB",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_as_the_servers_print_them() {
        for (version, flavour) in [
            ("10.11.19-MariaDB-0+deb12u1", Some(Flavour::MariaDb)),
            ("10.5.29-MariaDB", None),
            ("8.0.36", Some(Flavour::MySql)),
            ("5.7.44", None),
            ("", None),
        ] {
            assert_eq!(Flavour::of(version).ok(), flavour, "{version}");
        }
        assert!(Flavour::of("5.7.44").unwrap_err().contains("5.7.44"));
    }
}
