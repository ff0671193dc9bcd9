//! etcd. Its clock can't be set, since its runtime asks the kernel by itself; what counts is
//! the date of its replies, and that is set on the way.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::PutBack;
use super::served::Server;
use crate::matrix::{Outcome, text};
use ringflake_kit::proxy::{Fault, Proxy};
use ringflake_kit::server::{Etcd, Reachable as _};

impl Server for Etcd {
    fn set_clock(&self, proxy: &Proxy, ahead: i64) {
        proxy.set(match ahead {
            0 => Fault::None,
            ahead => Fault::Dates { ahead },
        });
    }

    /// Keys and values as a client reads them, put back in one transaction.
    fn keep_rows(&self, namespace: &str) -> PutBack {
        let port = self.port();
        let prefix = format!("ringflake/{namespace}");
        let keys = json!({
            "key": STANDARD.encode(format!("{prefix}/")),
            // '0' comes after '/'.
            "range_end": STANDARD.encode(format!("{prefix}0")),
        });
        let call = move |what: &str, body: &Value| -> Outcome<Value> {
            let url = format!("http://127.0.0.1:{port}/v3/kv/{what}");
            let mut reply = ureq::post(url).send(body.to_string()).map_err(text)?;
            let reply = reply.body_mut().read_to_string().map_err(text)?;
            serde_json::from_str(&reply).map_err(text)
        };
        let pairs = move || -> Outcome<Vec<(Value, Value)>> {
            let reply = call("range", &keys)?;
            let none = Vec::new();
            let kvs = reply["kvs"].as_array().unwrap_or(&none);
            let pair = |kv: &Value| (kv["key"].clone(), kv["value"].clone());
            Ok(kvs.iter().map(pair).collect())
        };
        let kept = pairs().unwrap();
        Box::new(move || {
            // No key may be changed twice in a transaction.
            let is_kept = |key: &Value| kept.iter().any(|(known, _)| known == key);
            let added = pairs()?.into_iter().filter(|(key, _)| !is_kept(key));
            let delete = |(key, _)| json!({ "request_delete_range": { "key": key } });
            let put = |(key, value): &(Value, Value)| json!({ "request_put": { "key": key, "value": value } });
            let changes: Vec<Value> = added.map(delete).chain(kept.iter().map(put)).collect();
            call("txn", &json!({ "success": changes })).map(drop)
        })
    }

    fn damage(&self, namespace: &str, block: u64) {
        let key = format!("ringflake/{namespace}/block/{block:020}");
        self.put_all(&[key], "{");
    }
}
