//! Redis.

use redis::{Client, Connection, RedisResult, cmd, pipe};

use super::PutBack;
use super::served::Server;
use crate::matrix::text;
use ringflake_kit::server::{Reachable as _, Redis};

impl Server for Redis {
    /// `DUMP`, then `RESTORE`, of all keys at once.
    fn keep_rows(&self, namespace: &str) -> PutBack {
        let client = Client::open(self.url()).unwrap();
        let pattern = format!("ringflake:{{{namespace}}}*");
        let keys_of = move |connection: &mut Connection| -> RedisResult<Vec<String>> {
            cmd("KEYS").arg(&pattern).query(connection)
        };
        let mut connection = client.get_connection().unwrap();
        let keys = keys_of(&mut connection).unwrap();
        let mut dump = pipe();
        dump.atomic();
        for key in &keys {
            dump.cmd("DUMP").arg(key);
        }
        let values: Vec<Vec<u8>> = dump.query(&mut connection).unwrap();
        Box::new(move || {
            let mut connection = client.get_connection().map_err(text)?;
            let mut load = pipe();
            load.atomic();
            for key in keys_of(&mut connection).map_err(text)? {
                load.cmd("DEL").arg(key).ignore();
            }
            for (key, value) in keys.iter().zip(&values) {
                let restore = load.cmd("RESTORE").arg(key).arg(0);
                restore.arg(value.as_slice()).arg("REPLACE").ignore();
            }
            load.exec(&mut connection).map_err(text)
        })
    }

    fn damage(&self, namespace: &str, block: u64) {
        let hash = format!("ringflake:{{{namespace}}}");
        self.command(&["HSET", &hash, &format!("block/{block:020}"), "{"]);
    }
}
