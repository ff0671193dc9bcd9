//! Whether ringflake is ahead of its peers.

use crate::case::{Case, Runs, median, rounded};
use crate::contestants::{HANDLE, TAKE, UUID_V4};
use crate::peer::Peer;

/// Selects the peers to compare with.
type IsPeer = fn(&Peer) -> bool;

const COMPARISONS: [(&str, IsPeer); 2] = [
    (TAKE, |peer| peer.name == UUID_V4),
    (HANDLE, |peer| peer.is_shared && peer.bits == 64),
];

/// Prints the sustained speed of each against that of its peers: the medians, the median
/// of the ratios of each round, and the lowest of these.
pub(crate) fn print_table(cases: &[Case]) {
    println!("| sustained | threads | M IDs/s | peer | M IDs/s | ratio | lowest | verdict |");
    println!("|---|---:|---:|---|---:|---:|---:|---|");
    for (name, is_peer) in COMPARISONS {
        for ours in cases.iter().filter(|case| case.peer.name == name) {
            for theirs in cases.iter().filter(|case| is_peer(&case.peer)) {
                print_rows(ours, theirs);
            }
        }
    }
    println!();
}

fn print_rows(ours: &Case, theirs: &Case) {
    for (our_runs, their_runs) in ours.runs.iter().zip(&theirs.runs) {
        let Some((our_runs, their_runs)) = our_runs.as_ref().zip(their_runs.as_ref()) else {
            continue;
        };
        let ratios = ratios(our_runs, their_runs);
        let ratio = median(&ratios);
        let verdict = match (ours.is_sound() && theirs.is_sound(), ratio > 1.0) {
            (false, _) => "**not unique**",
            (true, true) => "ahead",
            (true, false) => "**behind**",
        };
        println!(
            "| {} | {} | {} | {} | {} | {} | {} | {verdict} |",
            ours.peer.name,
            our_runs.threads,
            rounded(median(&our_runs.sustained)),
            theirs.peer.name,
            rounded(median(&their_runs.sustained)),
            rounded(ratio),
            rounded(ratios.iter().copied().fold(f64::INFINITY, f64::min)),
        );
    }
}

/// Ours to theirs, in each round.
fn ratios(ours: &Runs, theirs: &Runs) -> Vec<f64> {
    let pairs = ours.sustained.iter().zip(&theirs.sustained);
    pairs.map(|(ours, theirs)| ours / theirs).collect()
}
