//! Replies that are lost on the way, while what was asked for is done.

use crate::matrix::Outcome;
use crate::matrix::case::Case;
use crate::matrix::crew::Terms;
use crate::matrix::proxy::{After, Fault, Then};

/// One after the other: the connection ends, or stays open and silent.
pub(super) fn lost(case: &mut Case<'_>) -> Outcome<()> {
    let mut crew = case.crew(Terms::default())?;
    let proxy = case.ground.proxy().expect("there is something between");
    for round in 0..case.scale.pick(20, 100) {
        let before = proxy.lost();
        proxy.set(Fault::LoseReplies {
            after: After::Requests(round % 7),
            then: [Then::Close, Then::Hang][round as usize % 2],
        });
        crew.wait("a reply is lost", |_| proxy.lost() > before)?;
        proxy.set(Fault::None);
        crew.faults += proxy.lost() - before;
    }
    crew.all_serve("with all replies")?;
    crew.finish()
}
