//! A section of the page: a picture, what it shows in words, and its numbers.

use std::fmt;

use super::escape::Escaped;

/// One section.
pub(super) struct Figure {
    pub(super) title: &'static str,
    pub(super) text: String,
    /// Missing where nothing was measured.
    pub(super) picture: Option<String>,
    /// The names of the columns, of which the first names the row.
    pub(super) head: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (title, text) = (self.title, Escaped(&self.text));
        writeln!(f, "<section>\n<h2>{title}</h2>")?;
        match &self.picture {
            Some(picture) => writeln!(
                f,
                "<figure>\n{picture}\n<figcaption>{text}</figcaption>\n</figure>"
            )?,
            None => writeln!(f, "<p>{text}</p>")?,
        }
        writeln!(f, "<details><summary>The numbers</summary>")?;
        self.write_table(f)?;
        writeln!(f, "</details>\n</section>")
    }
}

impl Figure {
    fn write_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let title = self.title;
        // Whoever scrolls by keyboard has to reach the box first.
        write!(
            f,
            "<div class=\"box\" tabindex=\"0\" role=\"region\" aria-label=\"{title}, in numbers\">\n\
             <table>\n<caption>{title}, in numbers</caption>\n<thead><tr>"
        )?;
        for name in &self.head {
            write!(f, "<th scope=\"col\">{name}</th>")?;
        }
        writeln!(f, "</tr></thead>\n<tbody>")?;
        for row in &self.rows {
            write!(f, "<tr>")?;
            for (index, cell) in row.iter().enumerate() {
                let cell = Escaped(cell);
                match index {
                    0 => write!(f, "<th scope=\"row\">{cell}</th>")?,
                    _ => write!(f, "<td>{cell}</td>")?,
                }
            }
            writeln!(f, "</tr>")?;
        }
        writeln!(f, "</tbody>\n</table>\n</div>")
    }
}
