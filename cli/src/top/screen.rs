//! What is drawn.

use std::collections::VecDeque;
use std::time::Instant;

use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Sparkline, Table, TableState};

use super::figures::{Figures, Reading, Snapshot};
use crate::units;

/// Looks that the curve keeps.
const KEPT: usize = 512;

/// Everything that is known, and which namespace is chosen.
#[derive(Debug)]
pub(super) struct Screen {
    target: String,
    last: Option<Snapshot>,
    before: Option<Snapshot>,
    /// Why the last look failed.
    failure: Option<String>,
    /// The first one until another is chosen, or while it is missing.
    chosen: Option<String>,
    /// IDs a second of the chosen one, the newest first.
    rates: VecDeque<u64>,
}

const HEADS: [&str; 9] = [
    "NAMESPACE",
    "IDS/S",
    "FILL",
    "LEVEL",
    "BORROWED",
    "OF",
    "LEASED FOR",
    "FILLS/S",
    "FAILED/S",
];

impl Screen {
    pub(super) fn new(target: String) -> Self {
        Self {
            target,
            last: None,
            before: None,
            failure: None,
            chosen: None,
            rates: VecDeque::new(),
        }
    }

    /// Takes in what a look came to. One that failed leaves the figures as they were.
    pub(super) fn take(&mut self, reading: Reading) {
        match reading {
            Ok(snapshot) => {
                self.failure = None;
                self.before = self.last.replace(snapshot);
                let name = self.chosen_name();
                if name != self.chosen {
                    self.choose(name);
                }
                let rate = self
                    .chosen_name()
                    .map_or(0.0, |name| self.rate(&name, Figures::issued));
                self.rates.push_front(rate as u64);
                self.rates.truncate(KEPT);
            }
            Err(why) => self.failure = Some(why),
        }
    }

    /// Does what a key asks for; says whether that is the end.
    pub(super) fn press(&mut self, key: KeyCode, modifiers: KeyModifiers) -> bool {
        let at = self.chosen_at();
        let at = match key {
            KeyCode::Char('q') | KeyCode::Esc => return true,
            KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => return true,
            KeyCode::Up | KeyCode::Char('k') => at.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => at + 1,
            _ => return false,
        };
        if let Some(name) = self.name_at(at)
            && self.chosen.as_ref() != Some(&name)
        {
            self.choose(Some(name));
        }
        false
    }

    fn choose(&mut self, name: Option<String>) {
        self.chosen = name;
        // The curve is of another one.
        self.rates.clear();
    }

    /// The row of the chosen one, or the first.
    fn chosen_at(&self) -> usize {
        let chosen = || {
            let names = &self.last.as_ref()?.namespaces;
            names
                .keys()
                .position(|name| Some(name) == self.chosen.as_ref())
        };
        chosen().unwrap_or(0)
    }

    fn name_at(&self, at: usize) -> Option<String> {
        let names = &self.last.as_ref()?.namespaces;
        names.keys().nth(at).cloned()
    }

    fn chosen_name(&self) -> Option<String> {
        self.name_at(self.chosen_at())
    }

    fn rate(&self, name: &str, of: impl Fn(&Figures) -> f64) -> f64 {
        let last = self.last.as_ref();
        last.map_or(0.0, |last| last.rate(self.before.as_ref(), name, of))
    }

    pub(super) fn draw(&self, frame: &mut Frame<'_>) {
        let rows = self.last.as_ref().map_or(0, |it| it.namespaces.len());
        let parts = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(1)),
            Constraint::Min(3),
            Constraint::Length(1),
        ]);
        let [head, table, curve, foot] = parts.areas(frame.area());
        frame.render_widget(Paragraph::new(self.head()), head);
        self.draw_table(frame, table);
        self.draw_curve(frame, curve);
        let keys = Line::from("up, down: choose   q: end").style(Modifier::DIM);
        frame.render_widget(Paragraph::new(keys), foot);
    }

    fn head(&self) -> Line<'_> {
        let version = self.last.as_ref().and_then(|it| it.version.as_deref());
        let program = format!("ringflake {} ", version.unwrap_or_default());
        let mut spans = vec![Span::styled(program, Modifier::BOLD)];
        spans.push(Span::from(self.target.as_str()));
        spans.push(Span::from("  "));
        spans.push(match (&self.failure, &self.last) {
            (Some(why), None) => Span::styled(why.as_str(), Color::Red),
            (Some(why), Some(last)) => {
                let age = Instant::now().saturating_duration_since(last.at);
                let since = units::time(age.as_secs_f64());
                Span::styled(format!("{since} old: {why}"), Color::Red)
            }
            (None, None) => Span::from("asking"),
            (None, Some(last)) if last.namespaces.is_empty() => Span::from("no namespace yet"),
            (None, Some(last)) if last.is_ready() => Span::styled("ready", Color::Green),
            (None, Some(_)) => Span::styled("not ready", Color::Red),
        });
        Line::from(spans)
    }

    fn draw_table(&self, frame: &mut Frame<'_>, area: Rect) {
        let Some(last) = &self.last else { return };
        let rows = last.namespaces.iter().map(|(name, it)| self.row(name, it));
        let widths = [
            Constraint::Min(12),
            Constraint::Length(9),
            Constraint::Length(6),
            Constraint::Length(9),
            Constraint::Length(9),
            Constraint::Length(9),
            Constraint::Length(10),
            Constraint::Length(8),
            Constraint::Length(9),
        ];
        let table = Table::new(rows, widths)
            .header(Row::new(HEADS).style(Modifier::DIM))
            .row_highlight_style(Modifier::REVERSED);
        let mut state = TableState::new().with_selected(self.chosen_at());
        frame.render_stateful_widget(table, area, &mut state);
    }

    fn row(&self, name: &str, it: &Figures) -> Row<'static> {
        let rate = |of: fn(&Figures) -> f64| units::short(self.rate(name, of));
        let warn = |text: String, is_bad: bool| {
            let style = if is_bad {
                Style::from(Color::Red)
            } else {
                Style::new()
            };
            Cell::from(text).style(style)
        };
        let near_limit = it.borrow_limit() > 0.0 && it.borrowed() >= 0.9 * it.borrow_limit();
        let shown = if name.is_empty() { "-" } else { name };
        Row::new([
            Cell::from(shown.to_owned()),
            Cell::from(rate(Figures::issued)),
            Cell::from(format!("{:.0} %", 100.0 * it.fill())),
            Cell::from(units::short(it.level())),
            warn(units::time(it.borrowed()), near_limit),
            Cell::from(units::time(it.borrow_limit())),
            // Also while its store can't be reached, and it lives on what it has.
            warn(
                units::time(it.lease_remaining()),
                !it.is_ready() || it.store_failing() > 0.0,
            ),
            Cell::from(rate(Figures::refills)),
            warn(
                rate(Figures::failed_takes),
                self.rate(name, Figures::failed_takes) > 0.0,
            ),
        ])
    }

    fn draw_curve(&self, frame: &mut Frame<'_>, area: Rect) {
        let Some(name) = self.chosen_name() else {
            return;
        };
        let most = self.rates.iter().max().copied().unwrap_or(0);
        let title = format!(" {name}: IDs/s, at most {} ", units::short(most as f64));
        let block = Block::bordered().title(title);
        let width = usize::from(block.inner(area).width);
        // The newest stands at the right.
        let shown = self.rates.iter().take(width).rev().copied();
        let mut rates = vec![0; width - self.rates.len().min(width)];
        rates.extend(shown);
        let curve = Sparkline::default().data(rates).style(Color::Blue);
        frame.render_widget(curve.block(block), area);
    }
}

#[cfg(test)]
mod tests;
