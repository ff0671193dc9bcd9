//! A picture with what it shows in words and in numbers.

use std::fmt;

use super::escape::Escaped;
use super::table::Table;

/// One section of the page.
pub(super) struct Figure {
    pub(super) title: &'static str,
    pub(super) text: String,
    /// Where nothing was measured there is none.
    pub(super) picture: Option<String>,
    pub(super) table: Table,
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { title, text, .. } = self;
        writeln!(f, "<section>\n<h2>{}</h2>", Escaped(title))?;
        if let Some(picture) = &self.picture {
            writeln!(f, "<figure>\n{picture}")?;
            writeln!(f, "<figcaption>{}</figcaption>\n</figure>", Escaped(text))?;
        } else {
            writeln!(f, "<p>{}</p>", Escaped(text))?;
        }
        writeln!(
            f,
            "<details><summary>The numbers</summary>\n{}</details>\n</section>",
            self.table
        )
    }
}
