//! The grid of capacities and thresholds, with the recommended one marked.

use anyhow::Result;
use plotters::prelude::*;

use super::canvas::{Area, Format, Hint, beside, centred, label, picture};
use super::figure::Figure;
use super::palette::{CLEAN, Colour, FEW, INK, LEFT_OUT, MANY, PAPER, QUIET, SLOW};
use crate::threshold::Threshold;
use crate::tune::outcome::Outcome;
use crate::tune::setting::Setting;
use crate::tune::trial::Trial;
use crate::units::{bytes, grouped, tight, time};

/// Empties of which there are more than this share of the takes are many.
const MANY_SHARE: f64 = 1e-3;

/// All configurations.
pub(super) struct Grid<'a> {
    outcome: &'a Outcome,
    /// In ascending order.
    capacities: Vec<usize>,
    thresholds: Vec<Threshold>,
}

impl<'a> Grid<'a> {
    pub(super) fn new(outcome: &'a Outcome) -> Self {
        Self {
            outcome,
            capacities: outcome.capacities(),
            thresholds: outcome.thresholds(),
        }
    }

    pub(super) fn figure(&self) -> Result<Figure> {
        let title = "Capacities and thresholds";
        let text = self.text();
        let height = |_| 40 + 40 * self.thresholds.len() as u32 + 66;
        let draw = |area: &Area<'_>, format| self.draw(area, format);
        let picture = match self.capacities.is_empty() {
            true => None,
            false => Some(picture(["grid", title, &text], height, draw)?),
        };
        let head = "capacity, memory, threshold, ran for, takes, empties, lowest level, remark";
        Ok(Figure {
            title,
            text,
            picture,
            head: head.split(", ").collect(),
            rows: self
                .settings(&self.capacities)
                .map(|(_, it)| self.row(it))
                .collect(),
        })
    }

    /// Each of them, with its column and its row.
    fn settings(&self, capacities: &[usize]) -> impl Iterator<Item = ((usize, usize), Setting)> {
        capacities
            .iter()
            .enumerate()
            .flat_map(|(column, &capacity)| {
                let thresholds = self.thresholds.iter().enumerate();
                thresholds.map(move |(row, &threshold)| {
                    let setting = Setting::new(capacity, threshold);
                    ((column, row), setting)
                })
            })
    }

    /// The recommended one, if it is in the grid.
    fn recommended(&self) -> Option<Setting> {
        let recommended = self.outcome.findings.recommended;
        recommended.filter(|setting| self.capacities.contains(&setting.capacity))
    }

    /// Its latency that the goal is about, in seconds, if there is a goal, and whether it
    /// was kept.
    fn goal(&self, trial: &Trial) -> Option<(f64, bool)> {
        let goal = self.outcome.goal.as_ref()?;
        Some((trial.latency_at(goal.share), trial.keeps(goal)))
    }

    fn text(&self) -> String {
        let recommended = match self.recommended() {
            Some(setting) => format!(
                "The frame marks the recommended one: {setting} ({}).",
                bytes(setting.bytes()),
            ),
            None => match self.outcome.findings.recommended {
                Some(setting) => format!("The recommended one did not run: {setting}."),
                None => "None could be recommended.".to_owned(),
            },
        };
        format!(
            "Each cell is a configuration, with the number of takes that found its ring empty, or \
             with the latency by which it missed the goal; those with a dash did not run. \
             {recommended}"
        )
    }

    /// The capacities that a picture has room for: all, or those around the recommended one.
    fn columns(&self, format: Format) -> &[usize] {
        let most = format.choose(11, 6);
        let all = &self.capacities;
        let place = |setting: Setting| all.iter().position(|&it| it == setting.capacity);
        let middle = self.recommended().and_then(place);
        let middle = middle.unwrap_or(all.len() / 2);
        let first = middle.saturating_sub(most / 2);
        let first = first.min(all.len().saturating_sub(most));
        &all[first..all.len().min(first + most)]
    }

    fn draw(&self, area: &Area<'_>, format: Format) -> Result<Vec<Hint>> {
        let (left, top, bottom) = (format.choose(96, 72), 36, 66);
        let (width, height) = area.dim_in_pixel();
        let capacities = self.columns(format);
        let columns = capacities.len().max(1) as f64;
        let rows = self.thresholds.len().max(1) as f64;
        let cell_width = (f64::from(width) - f64::from(left) - 8.0) / columns;
        let cell_height = (f64::from(height) - f64::from(top + bottom)) / rows;
        let corner = |column: f64, row: f64| {
            let x = f64::from(left) + column * cell_width;
            let y = f64::from(top) + row * cell_height;
            (x as i32, y as i32)
        };

        let quiet = || centred(QUIET.drawn());
        let head = format.choose("threshold, capacity in slots", "capacity in slots");
        area.draw(&Text::new(head, (left, 2), label()))?;
        for (column, &capacity) in capacities.iter().enumerate() {
            let (x, _) = corner(column as f64 + 0.5, 0.0);
            let name = match format {
                Format::Wide => grouped(capacity as u64),
                Format::Narrow => binary(capacity),
            };
            area.draw(&Text::new(name, (x, top - 9), quiet()))?;
        }
        for (row, threshold) in self.thresholds.iter().enumerate() {
            let (_, y) = corner(0.0, row as f64 + 0.5);
            area.draw(&Text::new(threshold.to_string(), (left / 2, y), quiet()))?;
        }
        let mut hints = Vec::new();
        for ((column, row), setting) in self.settings(capacities) {
            let (x, y) = corner(column as f64, row as f64);
            let (right, below) = corner(column as f64 + 1.0, row as f64 + 1.0);
            let corners = [(x + 1, y + 1), (right - 1, below - 1)];
            let (colour, face) = self.face(setting);
            area.draw(&Rectangle::new(corners, colour.drawn().filled()))?;
            let middle = ((x + right) / 2, (y + below) / 2);
            write_face(area, &face, middle, format)?;
            if self.recommended() == Some(setting) {
                frame(area, corners)?;
            }
            hints.push(Hint {
                part: [x, y, right, below],
                text: self.tell(setting),
            });
        }
        key(area, height as i32 - bottom + 12, format)?;
        Ok(hints)
    }

    /// A configuration in a few words.
    fn tell(&self, setting: Setting) -> String {
        let Some(trial) = self.outcome.findings.trial(setting) else {
            let why = self.outcome.why_not_run(setting);
            return format!("{setting}: did not run, since {why}");
        };
        let remark = match self.remark(trial) {
            remark if remark.is_empty() => remark,
            remark => format!("; {remark}"),
        };
        format!(
            "{setting}: {} of {} takes found it empty in {}; lowest level {:.0} %{remark}",
            grouped(trial.not_served()),
            grouped(trial.takes()),
            time(trial.seconds()),
            (100.0 * trial.headroom()).floor(),
        )
    }

    /// The colour, and what is written on it.
    fn face(&self, setting: Setting) -> (Colour, String) {
        let Some(trial) = self.outcome.findings.trial(setting) else {
            return (LEFT_OUT, "-".to_owned());
        };
        match (trial.not_served(), self.goal(trial)) {
            (0, Some((seconds, false))) => (SLOW, time(seconds)),
            (0, _) => (CLEAN, "0".to_owned()),
            (empties, _) => {
                let share = empties as f64 / trial.takes().max(1) as f64;
                let colour = if share > MANY_SHARE { MANY } else { FEW };
                (colour, tight(empties as f64))
            }
        }
    }

    fn row(&self, setting: Setting) -> Vec<String> {
        let mut row = vec![
            grouped(setting.capacity as u64),
            bytes(setting.bytes()),
            setting.threshold.to_string(),
        ];
        if let Some(trial) = self.outcome.findings.trial(setting) {
            row.extend([
                time(trial.seconds()),
                grouped(trial.takes()),
                grouped(trial.not_served()),
                grouped(trial.lowest_level as u64),
                self.remark(trial),
            ]);
        } else {
            row.extend(["-"; 4].map(str::to_owned));
            row.push(format!(
                "did not run: {}",
                self.outcome.why_not_run(setting)
            ));
        }
        row
    }

    fn remark(&self, trial: &Trial) -> String {
        let is_recommended = self.recommended() == Some(trial.setting);
        let mut parts = Vec::from_iter(is_recommended.then(|| "recommended".to_owned()));
        if let Some((seconds, is_kept)) = self.goal(trial) {
            let word = if is_kept { "keeps" } else { "misses" };
            parts.push(format!("{word} the goal with {}", time(seconds)));
        }
        parts.join(", ")
    }
}

/// In the middle of a cell: a word to a line where cells are narrow.
fn write_face(area: &Area<'_>, face: &str, (x, y): (i32, i32), format: Format) -> Result<()> {
    const LINE: i32 = 14;
    let lines: Vec<_> = match format {
        Format::Wide => vec![face],
        Format::Narrow => face.split(' ').collect(),
    };
    let first = y - LINE * (lines.len() as i32 - 1) / 2;
    for (index, line) in lines.into_iter().enumerate() {
        let place = (x, first + LINE * index as i32);
        area.draw(&Text::new(line.to_owned(), place, centred(INK.drawn())))?;
    }
    Ok(())
}

/// Two rectangles, one in the other, so that no colour is needed to see it.
fn frame(area: &Area<'_>, [(x, y), (right, below)]: [(i32, i32); 2]) -> Result<()> {
    for inset in 0..3 {
        let corners = [(x + inset, y + inset), (right - inset, below - inset)];
        area.draw(&Rectangle::new(corners, INK.drawn().stroke_width(1)))?;
    }
    let inner = [(x + 4, y + 4), (right - 4, below - 4)];
    area.draw(&Rectangle::new(inner, PAPER.drawn().stroke_width(1)))?;
    Ok(())
}

/// The legend of the colours.
fn key(area: &Area<'_>, top: i32, format: Format) -> Result<()> {
    let entries = [
        (CLEAN, "no empties"),
        (FEW, "some"),
        (MANY, "over 1 in 1,000"),
        (SLOW, "misses the goal"),
        (LEFT_OUT, "did not run"),
    ];
    let columns = format.choose(5, 2);
    let step = format.choose(170, 172);
    for (index, (colour, name)) in entries.into_iter().enumerate() {
        let x = 8 + step * (index as i32 % columns);
        let y = top + 18 * (index as i32 / columns);
        let corners = [(x, y), (x + 16, y + 14)];
        area.draw(&Rectangle::new(corners, colour.drawn().filled()))?;
        area.draw(&Rectangle::new(corners, QUIET.drawn().stroke_width(1)))?;
        let place = beside(INK.drawn());
        area.draw(&Text::new(name, (x + 22, y + 7), place))?;
    }
    Ok(())
}

/// A power of two as people write it in narrow places.
fn binary(capacity: usize) -> String {
    match capacity.trailing_zeros() {
        20.. => format!("{}Mi", capacity >> 20),
        10.. => format!("{}Ki", capacity >> 10),
        _ => capacity.to_string(),
    }
}
