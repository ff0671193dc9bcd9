//! What the reader has to know before anything else.

use super::outcome::Outcome;
use super::verdict::Reservation;
use crate::units::time;

/// All of it, a sentence each.
pub(super) fn warnings(outcome: &Outcome) -> Vec<String> {
    let mut warnings = Vec::from_iter(outcome.budget.warning());
    if outcome.consumers + outcome.producers > outcome.cores {
        warnings.push(format!(
            "{} consumers and {} producers share {} cores: they delay each other",
            outcome.consumers, outcome.producers, outcome.cores
        ));
    }
    if let (Some(goal), Some(trial)) = (&outcome.goal, outcome.findings.trial_of_recommended())
        && !trial.keeps(goal)
    {
        warnings.push(format!(
            "no ring without empties kept the goal, {goal}: the recommended one had {} at {}",
            time(trial.latency_at(goal.share)),
            goal.name
        ));
    }
    if outcome.is_interrupted {
        warnings.push("the run was interrupted: this is what was measured so far".to_owned());
    }
    let reservations = Reservation::all_of(outcome).into_iter();
    warnings.extend(reservations.filter_map(|it| it.in_words(outcome)));
    warnings
}
