//! Every ID that a test has read, and what must be true of all.

use std::ops::RangeInclusive;

use ringflake::{Cipher, Layout, Local, Secret};
use ringflake_kit::home::Home;
use ringflake_kit::unix_ms;

/// How far ahead of the clock an ID may lie: the horizon of a data directory, and a second
/// for what is cut off. What a store grants here is less.
const AHEAD_MS: u64 = 121_000;

pub(crate) struct Marks {
    cipher: Cipher,
    began_ms: u64,
    ids: Vec<u64>,
}

impl Marks {
    /// Of a namespace whose IDs are all made with this secret, and since `home` was made.
    pub(crate) fn new(home: &Home, secret: &Secret) -> Self {
        Self {
            cipher: Cipher::sparx64(secret),
            began_ms: home.began_ms,
            ids: Vec::new(),
        }
    }

    /// Of `orders` in the data directory, which a server has begun.
    pub(crate) fn local(home: &Home) -> Self {
        let local = Local::new("orders").in_directory(home.data_dir());
        let secret = local.secret(&Layout::RANDFLAKE).unwrap();
        Self::new(home, &secret.expect("it is encrypted"))
    }

    pub(crate) fn add(&mut self, ids: Vec<u64>) {
        self.ids.extend(ids);
    }

    pub(crate) fn count(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn latest_ms(&self) -> u64 {
        let raws = self.ids.iter().map(|id| self.cipher.decrypt(*id));
        let latest = Layout::RANDFLAKE.unpack(raws.max().unwrap());
        latest.unwrap().unix_ms
    }

    /// Where the clocks were right: no ID came twice, and all are of this test's time.
    #[track_caller]
    pub(crate) fn check(&mut self) {
        let times = self.began_ms - 2000..=unix_ms() + AHEAD_MS;
        self.check_within(times);
    }

    #[track_caller]
    pub(crate) fn check_within(&mut self, unix_ms: RangeInclusive<u64>) {
        let mut raws: Vec<_> = self.ids.iter().map(|id| self.cipher.decrypt(*id)).collect();
        raws.sort_unstable();
        let twice: Vec<_> = raws.windows(2).filter(|two| two[0] == two[1]).collect();
        let first = twice.first().map(|two| Layout::RANDFLAKE.unpack(two[0]));
        assert_eq!(
            twice.len(),
            0,
            "IDs came twice of {}, such as {first:?}",
            raws.len()
        );
        for raw in raws {
            let parts = Layout::RANDFLAKE.unpack(raw).unwrap();
            assert!(
                unix_ms.contains(&parts.unix_ms),
                "{parts:?} is not of {unix_ms:?}"
            );
        }
    }
}
