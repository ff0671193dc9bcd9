//! A service as it runs in production: it starts while its store may be away, tells the load
//! balancer when it can serve, exports its figures, and releases its nodes when it ends.
//! `DATABASE_URL=postgres://... cargo run --bin production`

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use metrics_exporter_prometheus::PrometheusBuilder;
use ringflake::lease::{History, OpenOptions, open};
use ringflake::metrics::Publisher;
use ringflake::{CachedGenerator, Layout, Secret, Shutdown};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

type Failure = Box<dyn Error + Send + Sync>;

async fn order(State(ids): State<CachedGenerator>) -> Result<String, (StatusCode, String)> {
    let id = ids.take();
    // One line: the reason, and what to do.
    let unavailable = |error| (StatusCode::SERVICE_UNAVAILABLE, format!("{error}"));
    id.map(|id| id.to_string()).map_err(unavailable)
}

/// For the load balancer. Not for liveness: a restart brings no store back.
async fn ready(State(ids): State<CachedGenerator>) -> StatusCode {
    match ids.is_ready() {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// Serves until `stop`; a service awaits SIGTERM there.
async fn serve(
    url: &str,
    listener: TcpListener,
    stop: oneshot::Receiver<()>,
) -> Result<(), Failure> {
    // A service reads its own with `Secret::from_file`.
    let secret = Secret::from_bytes(*b"only an example.");
    let ids = CachedGenerator::builder(Layout::RANDFLAKE)
        .secret(&secret)
        .lease_store(open(url, &OpenOptions::new())?)
        .namespace("production-orders")
        // Of a new namespace only. The runbook says what to do once it is lost.
        .init_if_new(History::New)
        .build_detached()?;

    let recorder = PrometheusBuilder::new().install_recorder()?;
    let publisher = Publisher::new(&ids).with_labels([("namespace", "production-orders")]);
    let publisher = Arc::new(publisher);
    let figures = async move || {
        publisher.publish();
        recorder.render()
    };

    let routes = Router::new()
        .route("/orders", post(order))
        .route("/readyz", get(ready))
        .route("/metrics", get(figures))
        .with_state(ids.clone());
    axum::serve(listener, routes)
        .with_graceful_shutdown(async { _ = stop.await })
        .await?;

    let patience = Duration::from_secs(5);
    let released = tokio::task::spawn_blocking(move || ids.shutdown(patience)).await?;
    assert_eq!(released, Shutdown::Released);
    Ok(())
}

/// Sends a request, and returns the response with its header.
async fn ask(address: &str, request: &str) -> Result<String, Failure> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("{request} HTTP/1.0\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    Ok(response)
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let url = std::env::var("DATABASE_URL")?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    let (end, stop) = oneshot::channel();
    let service = tokio::spawn(async move { serve(&url, listener, stop).await });

    // What the load balancer does, a client, and Prometheus.
    while !ask(&address, "GET /readyz").await?.contains("200 OK") {
        if service.is_finished() {
            return service.await?;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let response = ask(&address, "POST /orders").await?;
    println!("order {}", response.lines().last().unwrap_or_default());
    assert!(response.contains("200 OK"), "{response}");
    let figures = ask(&address, "GET /metrics").await?;
    assert!(figures.contains("ringflake_capacity{"), "{figures}");

    end.send(()).map_err(|()| "the service has ended")?;
    service.await?
}
