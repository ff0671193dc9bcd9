//! A model on sqlx with two faces: its key in PostgreSQL is sorted by time, so that the index
//! stays small and a day is a range; outside it has another ID, which says nothing.
//! `DATABASE_URL=postgres://... cargo run --bin sqlx_two_faces`

use std::error::Error;
use std::time::{Duration, SystemTime};

use ringflake::lease::{History, OpenOptions, open};
use ringflake::{CachedGenerator, Facade, Id, Layout, PublicId, Secret};
use serde::Serialize;
use sqlx::PgPool;

type Failure = Box<dyn Error + Send + Sync>;

/// Positive as a `BIGINT`, so that the database sorts as the time does.
const LAYOUT: Layout = Layout::POSITIVE;

/// A row. Its key stays inside.
#[derive(sqlx::FromRow)]
struct Invoice {
    id: Id,
    cents: i64,
}

/// What a customer sees. The compiler keeps the two kinds of ID apart.
#[derive(Serialize)]
struct InvoiceView {
    id: PublicId,
    cents: i64,
}

struct Invoices {
    pool: PgPool,
    ids: CachedGenerator,
    face: Facade,
}

impl Invoices {
    async fn issue(&self, cents: i64) -> Result<InvoiceView, Failure> {
        let invoice = Invoice {
            id: self.ids.take()?,
            cents,
        };
        sqlx::query("INSERT INTO invoices (id, cents) VALUES ($1, $2)")
            .bind(invoice.id)
            .bind(invoice.cents)
            .execute(&self.pool)
            .await?;
        Ok(self.view(&invoice))
    }

    /// By the ID that a customer sent. One that was made up opens to some key, which no row
    /// has.
    async fn find(&self, public: PublicId) -> Result<Option<InvoiceView>, Failure> {
        let row: Option<Invoice> = sqlx::query_as("SELECT id, cents FROM invoices WHERE id = $1")
            .bind(self.face.open(public))
            .fetch_optional(&self.pool)
            .await?;
        Ok(row.map(|invoice| self.view(&invoice)))
    }

    /// Those of a window of time, without a column for the time.
    async fn between(&self, from: SystemTime, to: SystemTime) -> Result<Vec<Invoice>, Failure> {
        let Some(window) = LAYOUT.ids_between(from..to) else {
            return Ok(Vec::new());
        };
        let sql = "SELECT id, cents FROM invoices WHERE id BETWEEN $1 AND $2 ORDER BY id";
        Ok(sqlx::query_as(sql)
            .bind(window.start())
            .bind(window.end())
            .fetch_all(&self.pool)
            .await?)
    }

    fn view(&self, invoice: &Invoice) -> InvoiceView {
        InvoiceView {
            id: self.face.seal(invoice.id),
            cents: invoice.cents,
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let url = std::env::var("DATABASE_URL")?;
    let builder = CachedGenerator::builder(LAYOUT)
        .plain()
        // One ring, whose IDs come in the order of their making.
        .stripes(1)
        .lease_store(open(&url, &OpenOptions::new())?)
        .namespace("invoices")
        .init_if_new(History::New);
    // Waits for the store.
    let ids = tokio::task::spawn_blocking(|| builder.build()).await??;
    // A service reads its own with `Secret::from_file`. It must stay the same for ever.
    let secret = Secret::from_bytes(*b"only an example.");
    let invoices = Invoices {
        pool: PgPool::connect(&url).await?,
        ids,
        face: Facade::new(&secret, "invoices")?,
    };
    sqlx::query(
        "CREATE TABLE IF NOT EXISTS invoices (id BIGINT PRIMARY KEY, cents BIGINT NOT NULL)",
    )
    .execute(&invoices.pool)
    .await?;

    let mut views = Vec::new();
    for cents in 1..=100 {
        views.push(invoices.issue(cents).await?);
    }
    println!("{}", serde_json::to_string(&views[0])?);

    let found = invoices.find(views[41].id).await?;
    assert_eq!(found.map(|invoice| invoice.cents), Some(42));
    assert!(invoices.find(PublicId::from_u64(4_711)).await?.is_none());

    // IDs are made ahead of time: up to the borrow limit after now.
    let now = SystemTime::now();
    let hour = Duration::from_secs(3_600);
    let rows = invoices.between(now - hour, now + hour).await?;
    assert!(rows.len() >= 100 && rows.is_sorted_by_key(|invoice| invoice.id));
    assert!(
        invoices
            .between(now - 3 * hour, now - 2 * hour)
            .await?
            .is_empty()
    );
    println!(
        "{} invoices within an hour of now, by their keys alone",
        rows.len()
    );
    Ok(())
}
