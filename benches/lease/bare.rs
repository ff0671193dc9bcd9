//! The least that a renewal costs on this server: one guarded update of the same row.

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, NoTls};

use ringflake::lease::{Namespace, Renew};

use crate::{Outcome, Renewer};

/// Compares nothing but the mark. Needs no lock, since nothing else is compared.
const EXTEND: &str = r#"
    UPDATE ringflake
    SET value = replace(value, lpad($2::text, 20, '0'), lpad($3::text, 20, '0')), rank = $3
    WHERE key = $1 AND rank = $2"#;

/// A connection.
pub(crate) struct Bare {
    runtime: Runtime,
    client: Client,
}

impl Bare {
    pub(crate) fn connect(url: &str) -> Outcome<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (client, connection) = runtime.block_on(tokio_postgres::connect(url, NoTls))?;
        runtime.spawn(connection);
        Ok(Self { runtime, client })
    }
}

impl Renewer for Bare {
    fn renew(&mut self, space: &Namespace, renew: &Renew) -> Outcome<u64> {
        let key = format!("{}/block/{:020}", space.name(), renew.block.index());
        let known_end = i64::try_from(renew.known_end)?;
        let new_end = i64::try_from(renew.new_end)?;
        let client = &self.client;
        let updated = self.runtime.block_on(client.execute_typed(
            EXTEND,
            &[
                (&key, Type::TEXT),
                (&known_end, Type::INT8),
                (&new_end, Type::INT8),
            ],
        ))?;
        assert_eq!(updated, 1, "{key} is not as expected");
        Ok(renew.new_end)
    }
}
