//! Code as it is recommended, put into functions so that it is compiled.

use std::error::Error;

use ringflake::Secret;

type Outcome = Result<ringflake::CachedGenerator, Box<dyn Error>>;

pub(super) fn with_all(secret: Secret) -> Outcome {
    use ringflake::{CachedGenerator, Layout, ScheduledFill, StaticLease, ThresholdFill};
    use std::time::Duration;

    let layout = Layout::RANDFLAKE;
    let ids = CachedGenerator::builder(layout)
        .secret(&secret)
        .lease(StaticLease::assume_unique(layout, 0..28))
        .capacity(1 << 17)
        .threshold_fill(ThresholdFill::percent(50))
        .scheduled_fill(
            ScheduledFill::every(Duration::from_secs(10)).max_age(Duration::from_secs(60)),
        )
        .producers(1)
        .build()?;
    Ok(ids)
}

pub(super) fn with_minimum(secret: Secret) -> Outcome {
    use ringflake::{CachedGenerator, Layout, StaticLease, ThresholdFill};

    let layout = "28/20/15@2020-01-01T00:00:00Z/1s".parse::<Layout>()?;
    let ids = CachedGenerator::builder(layout)
        .secret(&secret)
        .lease(StaticLease::assume_unique(layout, 4..5))
        .capacity(512)
        .threshold_fill(ThresholdFill::adaptive())
        .producers(1)
        .build()?;
    Ok(ids)
}
