//! Nothing of what clients send or are sent goes into a log.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ringflake_kit::events::{Fields, OnEvent};

use super::served::{Tokens, serve};

#[test]
fn no_token_and_no_id_is_logged() {
    let log = Arc::new(Mutex::new(String::new()));
    let text = Arc::clone(&log);
    let subscriber = OnEvent(move |event: &tracing::Event<'_>| {
        let line = format!("{} {}\n", event.metadata().target(), Fields::of(event));
        text.lock().unwrap().push_str(&line);
    });
    // For the threads of the front.
    tracing::subscriber::set_global_default(subscriber).expect("the only one of these tests");
    let served = serve(|setup| setup.rights = Arc::new(Tokens(true)));
    let mut wire = served.connect();
    let take = ["authorization: Bearer take", "x-secret: hidden-in-a-field"];
    let ids = wire.post("/v1/ids?namespace=orders&count=20&format=fixed", &take);
    let id = ids.json()["ids"][0].as_str().unwrap().to_owned();
    let path = format!("/v1/ids/{id}?namespace=orders&format=fixed");
    let inspect = "authorization: Bearer inspect";
    assert_eq!(wire.request("GET", &path, &[inspect], "").status, 200);
    let wrong = "authorization: Bearer hidden-in-a-token";
    assert_eq!(wire.request("GET", &path, &[wrong], "").status, 401);
    wire.send("this is hidden-in-a-line\r\n\r\n");
    assert_eq!(wire.reply().status, 400);
    assert!(served.end(Duration::from_secs(60)));

    let log = log.lock().unwrap();
    assert!(
        !log.is_empty(),
        "something is logged, so that this shows something"
    );
    for secret in [&*id, "hidden-in", "Bearer"] {
        assert!(!log.contains(secret), "{secret}");
    }
}
