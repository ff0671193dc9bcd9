//! IDs in what people keep them in.

mod diesel;
mod sqlx;
mod tokio_postgres;

/// For the drivers that need one. The servers are started outside of it.
fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap()
}
