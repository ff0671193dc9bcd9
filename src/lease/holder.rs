//! The holder of a block.

use std::fmt;

/// The process that asked for a block, for the listing. No rule depends on it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Holder {
    host: String,
    instance: String,
}

impl Holder {
    /// The longest name of a host or of an instance, in bytes.
    pub const MAX_BYTES: usize = 64;

    /// A process: the machine or pod that it runs on, and what distinguishes it
    /// from others there, such as a port or a process number.
    ///
    /// Each is cut to [`MAX_BYTES`](Self::MAX_BYTES).
    pub fn new(host: impl Into<String>, instance: impl Into<String>) -> Self {
        fn cut(mut text: String) -> String {
            // A text that is shorter has its last boundary at its end.
            let end = (0..=Holder::MAX_BYTES).rfind(|&end| text.is_char_boundary(end));
            text.truncate(end.unwrap_or(0));
            text
        }
        Self {
            host: cut(host.into()),
            instance: cut(instance.into()),
        }
    }

    /// This process: the variable `HOSTNAME` or, without one, the kernel's name for the
    /// machine, and the process number. The host is empty where neither can be had.
    ///
    /// Generators with a lease store name this holder unless another one is set.
    ///
    /// # Examples
    /// ```
    /// use ringflake::lease::Holder;
    ///
    /// let holder = Holder::this_process();
    /// assert_eq!(holder.instance(), std::process::id().to_string());
    /// ```
    pub fn this_process() -> Self {
        let kernel = || std::fs::read_to_string("/proc/sys/kernel/hostname");
        let host = std::env::var("HOSTNAME").or_else(|_| kernel());
        let host = host.unwrap_or_default();
        Self::new(host.trim_end(), std::process::id().to_string())
    }

    /// The machine or pod.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// What distinguishes the process from others there.
    pub fn instance(&self) -> &str {
        &self.instance
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.instance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_of_holders_are_cut_between_characters() {
        let holder = Holder::new("é".repeat(40), format!("x{}", "é".repeat(40)));
        assert_eq!(holder.host(), "é".repeat(32));
        assert_eq!(holder.instance(), format!("x{}", "é".repeat(31)));
    }
}
