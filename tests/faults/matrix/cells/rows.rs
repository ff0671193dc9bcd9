//! Rows that are put back under running workers, as a hand or a script does it. The
//! server shows nothing of that. What the workers were told is all the evidence that
//! there is, so it matters who asks first: one that was told something since those
//! rows were current, or one that was not.

use std::thread;

use crate::matrix::case::Case;
use crate::matrix::crew::{Crew, Terms};
use crate::matrix::{Outcome, space, worker};

pub(super) const ALL_KNOW: &str = "all who ask know better than the rows that are put back: the \
                                   first of them raises the floor over all that was granted, \
                                   and nothing at all comes twice";
pub(super) const ONE_DOES_NOT: &str = "two who know nothing ask first, and can't be helped; \
                                       once the first who knows has asked, nothing from the \
                                       floor on comes twice";

/// 16 blocks, twice as many as workers: whoever knows nothing of the eight that are
/// held takes these.
pub(super) const TWICE_AS_MANY: u32 = 6;

/// How many ask for the first time when rows were put back.
const NEWCOMERS: u32 = 2;

/// Rows of a moment at which every worker held a block. Since then each has another,
/// which those rows know nothing of.
pub(super) fn put_back(case: &mut Case<'_>) -> Outcome<()> {
    let mut crew = case.crew(terms())?;
    for _ in 0..case.scale.pick(1, 3) {
        let put_back = case.ground.keep_rows(crew.namespace());
        other_blocks(&mut crew)?;
        let before = Before::of(&crew)?;
        put_back()?;
        crew.faults += 1;
        recover(&mut crew, before)?;
    }
    crew.finish()
}

/// Rows of before the first grant.
pub(super) fn put_back_to_the_first(case: &mut Case<'_>) -> Outcome<()> {
    let mut crew = case.idle_crew(terms())?;
    let put_back = case.ground.keep_rows(crew.namespace());
    crew.spawn_all()?;
    let before = Before::of(&crew)?;
    put_back()?;
    crew.faults += 1;
    recover(&mut crew, before)?;
    crew.finish()
}

/// All workers stand still while two others begin with the rows that were put back.
pub(super) fn put_back_for_newcomers(case: &mut Case<'_>) -> Outcome<()> {
    let mut crew = case.crew(terms())?;
    let put_back = case.ground.keep_rows(crew.namespace());
    other_blocks(&mut crew)?;
    let before = Before::of(&crew)?;
    let processes: Vec<i32> = crew.processes().iter().map(|(_, id)| *id).collect();
    case.ground.stop_between_operations(&processes);
    put_back()?;
    crew.faults += 1;
    let numbers: Vec<u32> = (0..NEWCOMERS)
        .map(|n| crate::matrix::crew::WORKERS + n)
        .collect();
    for &number in &numbers {
        crew.spawn(number, None);
    }
    crew.these_serve(&numbers, "with the rows that were put back")?;
    for process in processes {
        // SAFETY: numbers only, of a child that was not waited for.
        unsafe { libc::kill(process, libc::SIGCONT) };
    }
    recover(&mut crew, before)?;
    // Below it are the damage that is documented, and what was right.
    crew.promised_from = crew.floor()?;
    let damage = crew.told().ledger.twice_from(0);
    case.remark(format!(
        "{damage} IDs twice before those who know have asked"
    ));
    crew.finish()
}

/// Each gives up its block for one that was never granted.
pub(super) fn other_blocks(crew: &mut Crew) -> Outcome<()> {
    let had = |told: &crate::matrix::crew::Told, run| told.ledger.grants_of(run).len();
    let runs = crew.runs();
    let before: Vec<usize> = runs.iter().map(|&run| had(&crew.told(), run)).collect();
    crew.order(worker::INVALIDATE);
    crew.wait("every worker has another block", |told| {
        let mut pairs = runs.iter().zip(&before);
        pairs.all(|(&run, &before)| had(told, run) > before)
    })?;
    crew.all_serve("with another block")
}

pub(super) fn terms() -> Terms {
    Terms {
        node_bits: TWICE_AS_MANY,
        ..Terms::default()
    }
}

/// How it stood before the rows were put back.
pub(super) struct Before {
    floor: u64,
    /// How many requests were told of a loss.
    lost: u64,
}

impl Before {
    pub(super) fn of(crew: &Crew) -> Outcome<Self> {
        let (floor, lost) = (crew.floor()?, crew.told().lost);
        Ok(Self { floor, lost })
    }
}

/// The loss is noticed, the floor rises, and all serve from there on, with nobody's
/// help.
pub(super) fn recover(crew: &mut Crew, before: Before) -> Outcome<()> {
    let Before { floor, lost } = before;
    crew.wait("somebody is told what was lost", |told| told.lost > lost)?;
    let raised = crew.floor()?;
    if raised <= floor {
        return Err(format!("the floor was {floor} and is {raised}"));
    }
    crew.all_have_grants_from(raised, "above the floor")?;
    crew.all_serve("once the floor has passed")?;
    // For what was issued ahead of the clock to be met again, if it ever is.
    thread::sleep(space::LEASE_DURATION / 2);
    Ok(())
}
