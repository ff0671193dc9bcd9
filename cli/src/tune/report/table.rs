//! Tables, each in a box of its own that scrolls.

use std::fmt;

use super::escape::Escaped;

/// The numbers behind a picture. The first column names the row.
#[derive(Clone, Debug)]
pub(super) struct Table {
    title: String,
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(title: &str, head: &[&str], rows: Vec<Vec<String>>) -> Self {
        Self {
            title: title.to_owned(),
            head: head.iter().map(|&name| name.to_owned()).collect(),
            rows,
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let title = Escaped(&self.title);
        // The box can be scrolled with the keyboard, so it can be reached with it.
        writeln!(
            f,
            "<div class=\"box\" tabindex=\"0\" role=\"region\" aria-label=\"{title}, in numbers\">\n\
             <table>\n<caption>{title}, in numbers</caption>\n<thead><tr>"
        )?;
        for name in &self.head {
            write!(f, "<th scope=\"col\">{}</th>", Escaped(name))?;
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
