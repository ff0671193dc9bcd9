//! Replies that are lost on the way, while what was asked for is done.

use crate::matrix::crew::{Crew, Terms};
use crate::matrix::ground::Ground;
use crate::matrix::proxy::{After, Fault, Then};
use crate::matrix::report::Row;
use crate::matrix::{Outcome, Scale};

/// One after the other: the connection ends, or stays open and silent.
pub(super) fn lost(ground: &mut dyn Ground, name: &str, scale: Scale) -> Outcome<Row> {
    let mut crew = Crew::start(&ground.direct_url(), &ground.url(), name, Terms::default())?;
    let proxy = ground.proxy().expect("there is something between");
    for round in 0..scale.pick(20, 100) {
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
    crew.finish(ground.kind().name(), name)
}
