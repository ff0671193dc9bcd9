//! An HTTP service on axum: orders that come together get their IDs in one take and go into
//! PostgreSQL in one COPY, and each request is answered once its order is there.
//! `DATABASE_URL=postgres://... cargo run --bin axum_copy`

use std::error::Error;
use std::pin::pin;

use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{Request, StatusCode};
use axum::routing::post;
use axum::{Json, Router};
use futures_util::future::join_all;
use ringflake::lease::{History, OpenOptions, open};
use ringflake::{CachedGenerator, Id, Layout, Secret};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, NoTls};
use tower::ServiceExt;

/// The most orders in one COPY.
const BATCH: usize = 1_000;

type Failure = Box<dyn Error + Send + Sync>;

#[derive(Deserialize)]
struct NewOrder {
    article: String,
}

/// The ID is a string in JSON, which JavaScript keeps whole.
#[derive(Deserialize, Serialize)]
struct Placed {
    id: Id,
}

/// An order on its way to the database, and who waits for it.
struct Pending {
    order: NewOrder,
    placed: oneshot::Sender<Result<Id, String>>,
}

async fn place_order(
    State(orders): State<mpsc::Sender<Pending>>,
    Json(order): Json<NewOrder>,
) -> Result<Json<Placed>, (StatusCode, String)> {
    let unavailable = |reason: String| (StatusCode::SERVICE_UNAVAILABLE, reason);
    let (placed, answer) = oneshot::channel();
    let pending = Pending { order, placed };
    orders
        .send(pending)
        .await
        .map_err(|_| unavailable("the writer has ended".into()))?;
    let answer = answer
        .await
        .map_err(|_| unavailable("the writer has ended".into()))?;
    answer.map(|id| Json(Placed { id })).map_err(unavailable)
}

/// Writes whatever has come since the last COPY.
async fn write(ids: CachedGenerator, client: Client, mut orders: mpsc::Receiver<Pending>) {
    let mut batch = Vec::with_capacity(BATCH);
    while orders.recv_many(&mut batch, BATCH).await > 0 {
        let written = copy(&ids, &client, &batch).await;
        // An order whose request was cancelled meanwhile is there all the same.
        match written {
            Ok(ids) => {
                for (pending, id) in batch.drain(..).zip(ids) {
                    let _ = pending.placed.send(Ok(id));
                }
            }
            Err(error) => {
                for pending in batch.drain(..) {
                    let _ = pending.placed.send(Err(error.to_string()));
                }
            }
        }
    }
}

async fn copy(
    ids: &CachedGenerator,
    client: &Client,
    batch: &[Pending],
) -> Result<Vec<Id>, Failure> {
    let ids = ids.take_vec(batch.len())?;
    let sink = client
        .copy_in("COPY orders (id, article) FROM STDIN BINARY")
        .await?;
    let mut writer = pin!(BinaryCopyInWriter::new(sink, &[Type::INT8, Type::TEXT]));
    for (id, pending) in ids.iter().zip(batch) {
        writer.as_mut().write(&[id, &pending.order.article]).await?;
    }
    writer.finish().await?;
    Ok(ids)
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let url = std::env::var("DATABASE_URL")?;

    // Node leases from the database that the orders are in.
    let builder = CachedGenerator::builder(Layout::RANDFLAKE)
        // A service reads its own with `Secret::from_file`.
        .secret(Secret::from_bytes(*b"only an example."))
        .lease_store(open(&url, &OpenOptions::new())?)
        .namespace("axum-orders")
        .init_if_new(History::New);
    // Waits for the store.
    let ids = tokio::task::spawn_blocking(|| builder.build()).await??;

    let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
    tokio::spawn(connection);
    let table = "CREATE TABLE IF NOT EXISTS orders (id BIGINT PRIMARY KEY, article TEXT NOT NULL)";
    client.batch_execute(table).await?;

    let (orders, pending) = mpsc::channel(10 * BATCH);
    let writer = tokio::spawn(write(ids.clone(), client, pending));
    let service = Router::new()
        .route("/orders", post(place_order))
        .with_state(orders);

    // A service would `axum::serve(listener, service)`; this asks it itself, 3,000 times at once.
    let answers = (0..3_000).map(|number| {
        let order = format!(r#"{{"article":"tea no. {number}"}}"#);
        let request = Request::post("/orders").header("content-type", "application/json");
        let request = request.body(Body::from(order));
        let service = service.clone();
        async move { Ok::<_, Failure>(service.oneshot(request?).await?) }
    });
    let mut placed = Vec::new();
    for answer in join_all(answers).await {
        let answer = answer?;
        assert_eq!(answer.status(), StatusCode::OK);
        let body = to_bytes(answer.into_body(), 1_000).await?;
        placed.push(serde_json::from_slice::<Placed>(&body)?.id);
    }

    // The writer ends with the last sender, and all that was answered is in the table.
    drop(service);
    writer.await?;
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
    tokio::spawn(connection);
    let rows = client
        .query(
            "SELECT id, article FROM orders WHERE id = ANY($1)",
            &[&placed],
        )
        .await?;
    assert_eq!(rows.len(), 3_000);
    let first: Id = rows[0].get("id");
    println!(
        "3,000 orders, of which {first} is {:?}",
        rows[0].get::<_, &str>("article")
    );
    println!("made on node {}", ids.inspect(first)?.node);
    Ok(())
}
