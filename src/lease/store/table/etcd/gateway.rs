//! Calls of etcd's JSON gateway, on one member after another.

use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use ureq::Agent;
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};

use super::config::Config;
use super::verdict;
use crate::lease::store::connect::deadline::Deadline;
use crate::lease::store::connect::tls::{TlsContents, TlsFiles};
use crate::lease::store::connect::url::Host;
use crate::lease::store::options::Hidden;
use crate::lease::store::table::failure::Failure;

/// A connection that was idle for longer is not used again.
const IDLE: Duration = Duration::from_secs(1);

/// No listing of a namespace that this store accepts is longer.
const LONGEST_REPLY: u64 = 256 << 20;

/// The members of a cluster.
pub(super) struct Gateway {
    config: Config,
    /// None until the first call, and after one that failed.
    client: Option<Client>,
    /// The member that answered last.
    current: usize,
    token: Option<String>,
}

/// The HTTP client with its connections, and the files that it was made with.
struct Client {
    agent: Agent,
    files: Option<TlsContents>,
}

impl Client {
    fn new(files: Option<TlsContents>) -> Result<Self, String> {
        let mut builder = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            // A proxy of the environment is meant for the web.
            .proxy(None)
            // A middlebox may have dropped an idle connection, and then no reply arrives.
            .max_idle_age(IDLE)
            .user_agent(concat!("ringflake/", env!("CARGO_PKG_VERSION")));
        if let Some(files) = &files {
            builder = builder.tls_config(tls_config(files)?);
        }
        Ok(Self {
            agent: builder.build().into(),
            files,
        })
    }
}

/// How the HTTP client is set up for TLS.
fn tls_config(files: &TlsContents) -> Result<TlsConfig, String> {
    fn owned<T: AsRef<[u8]>>(ders: &[T]) -> Vec<Certificate<'static>> {
        let certificate = |der: &T| Certificate::from_der(der.as_ref()).to_owned();
        ders.iter().map(certificate).collect()
    }
    let own = match (files.identity()?, &files.identity) {
        (Some((chain, _)), Some((_, key))) => {
            let key = PrivateKey::from_pem(key).map_err(|error| error.to_string())?;
            Some(ClientCert::new_with_certs(&owned(&chain), key))
        }
        _ => None,
    };
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&owned(&files.roots()?)))
        .client_cert(own)
        .build())
}

/// A reply, and the member's time at the start of the second that it was sent
/// in, in milliseconds since 1970.
#[derive(Clone, Debug)]
pub(super) struct Reply<T> {
    pub(super) body: T,
    pub(super) date_ms: Option<u64>,
}

impl Gateway {
    pub(super) fn new(config: Config, start_with: usize) -> Self {
        Self {
            client: None,
            current: start_with % config.hosts.len().max(1),
            config,
            token: None,
        }
    }

    /// The member that the next call goes to first.
    pub(super) fn member(&self) -> Option<&Host> {
        self.config.hosts.get(self.current)
    }

    /// Asks something that changes nothing: one member after another, twice over,
    /// until one answers.
    ///
    /// # Errors
    /// The last member's; a refused login at once.
    pub(super) fn ask<T: DeserializeOwned>(
        &mut self,
        path: &str,
        body: &Value,
        deadline: &Deadline,
    ) -> Result<Reply<T>, Failure> {
        let members = self.config.hosts.len();
        let mut last = None;
        // The second time for connections that a member closed while they were
        // idle, and for members that were just starting.
        for attempt in 0..2 * members {
            // So that one that hangs leaves time for the others.
            let share = match deadline.share(members - attempt % members) {
                Ok(share) => share,
                Err(over) => return Err(last.unwrap_or(Failure::not_done(over))),
            };
            match self.call(path, body, &share) {
                Ok(reply) => return Ok(reply),
                // The others would say the same.
                Err(denied @ Failure::Denied(_)) => return Err(denied),
                Err(failure) => {
                    last = Some(failure);
                    self.pass_on();
                }
            }
        }
        Err(last.unwrap_or_else(|| Failure::not_done("there is no member to ask")))
    }

    /// Sends something that changes the cluster: once, to the member that
    /// answered last.
    ///
    /// # Errors
    /// [`Failure`]; the next call goes to another member.
    pub(super) fn send_once<T: DeserializeOwned>(
        &mut self,
        path: &str,
        body: &Value,
        deadline: &Deadline,
    ) -> Result<Reply<T>, Failure> {
        self.call(path, body, deadline)
            .inspect_err(|_| self.pass_on())
    }

    /// The next call goes to the next member, on a connection of its own.
    fn pass_on(&mut self) {
        self.client = None;
        self.current = (self.current + 1) % self.config.hosts.len().max(1);
    }

    /// Calls the current member, logging in before where that is needed.
    fn call<T: DeserializeOwned>(
        &mut self,
        path: &str,
        body: &Value,
        deadline: &Deadline,
    ) -> Result<Reply<T>, Failure> {
        self.prepare().map_err(Failure::not_done)?;
        let fresh = self.token.is_none();
        self.log_in(deadline)?;
        match self.post(path, body, deadline) {
            // Tokens expire, and the request had no effect.
            Err(Failure::Again(_)) if !fresh => {
                self.token = None;
                self.log_in(deadline)?;
                self.post(path, body, deadline)
            }
            other => other,
        }
    }

    /// Sees to an HTTP client that knows the certificates that are in the files now.
    fn prepare(&mut self) -> Result<(), String> {
        let read = self.config.tls.as_ref().map(TlsFiles::read).transpose();
        let made = match (&self.client, read) {
            (Some(client), Ok(files)) if client.files == files => return Ok(()),
            (_, files) => files.and_then(Client::new),
        };
        match (made, &self.client) {
            (Ok(client), _) => self.client = Some(client),
            // Somebody is about to replace the files, and the connection is there.
            (Err(_), Some(_)) => {}
            (Err(reason), None) => return Err(reason),
        }
        Ok(())
    }

    /// # Errors
    /// Never one that leaves the request itself in doubt.
    fn log_in(&mut self, deadline: &Deadline) -> Result<(), Failure> {
        let Some((name, password)) = self.config.login.clone() else {
            return Ok(());
        };
        if self.token.is_some() {
            return Ok(());
        }
        let password = password.get().map_err(Failure::not_done)?;
        let word = password.as_ref().map_or("", Hidden::expose);
        let body = json!({ "name": name, "password": word });
        let reply: Reply<Value> = self
            .post("/v3/auth/authenticate", &body, deadline)
            .map_err(|failure| match failure {
                Failure::Unknown(cause) => Failure::NotDone(cause),
                other => other,
            })?;
        self.token = reply.body["token"].as_str().map(str::to_owned);
        Ok(())
    }

    fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
        deadline: &Deadline,
    ) -> Result<Reply<T>, Failure> {
        let broken = |error: ureq::Error| verdict::of_transport(&error)(error.into());
        let (Some(host), Some(client)) = (self.member(), &self.client) else {
            return Err(Failure::not_done("there is no member to ask"));
        };
        let left = deadline.left().map_err(Failure::not_done)?;
        let scheme = if self.config.tls.is_some() {
            "https"
        } else {
            "http"
        };
        let mut request = client
            .agent
            .post(format!("{scheme}://{host}{path}"))
            .header("content-type", "application/json");
        if let Some(token) = &self.token {
            request = request.header("authorization", token);
        }
        let mut response = request
            .config()
            .timeout_global(Some(left))
            .build()
            .send(body.to_string())
            .map_err(broken)?;
        let status = response.status().as_u16();
        let date_ms = response
            .headers()
            .get("date")
            .and_then(|value| httpdate::parse_http_date(value.to_str().ok()?).ok())
            .and_then(|date| date.duration_since(UNIX_EPOCH).ok())
            .and_then(|since| u64::try_from(since.as_millis()).ok());
        let text = response
            .body_mut()
            .with_config()
            .limit(LONGEST_REPLY)
            .read_to_string()
            .map_err(|error| Failure::Unknown(error.into()))?;
        if status == 200 {
            return match serde_json::from_str(&text) {
                Ok(body) => Ok(Reply { body, date_ms }),
                Err(error) => Err(Failure::Unknown(error.into())),
            };
        }
        Err(refusal(status, &text))
    }
}

/// The failure that a reply with this status stands for.
fn refusal(status: u16, text: &str) -> Failure {
    // etcd 3.4 sends trailers that no HTTP client reads after the text.
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let reply = values.next().and_then(Result::ok).unwrap_or_default();
    match reply["code"].as_u64() {
        Some(code @ 1..) => {
            let message = reply["message"].as_str().unwrap_or_default();
            let verdict = verdict::of_refusal(code, message);
            let text = format!("etcd refused with code {code}: {message}");
            verdict(text.into())
        }
        _ if status == 404 => Failure::not_done(
            "HTTP status 404: the member has no JSON gateway (--enable-grpc-gateway)",
        ),
        _ => {
            let text = format!("HTTP status {status}");
            verdict::of_status(status)(text.into())
        }
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway")
            .field("members", &self.config.hosts)
            .field("user", &self.config.login.as_ref().map(|(user, _)| user))
            .field("tls", &self.config.tls.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_etcds_or_somebody_elses() {
        let text = r#"{"error":"etcdserver: no","message":"etcdserver: no","code":8}trailer"#;
        let timed_out = r#"{"code":14,"message":"timed out"}"#;
        for (status, text, is_unknown, part) in [
            (429, text, false, "etcdserver: no"),
            (503, timed_out, true, "14"),
            (404, "Not Found", false, "gateway"),
            (502, "<html>", true, "502"),
            (500, r#"{"code":0}"#, true, "500"),
            (500, "", true, "500"),
        ] {
            let (unknown, cause) = match refusal(status, text) {
                Failure::Unknown(cause) => (true, cause),
                Failure::NotDone(cause) => (false, cause),
                other => panic!("{other:?}"),
            };
            assert_eq!(unknown, is_unknown, "{status} {text}");
            assert!(cause.to_string().contains(part), "{cause}");
        }
    }
}
