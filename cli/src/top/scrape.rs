//! Asking a process for its metrics.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, HOST, HeaderValue};
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::{Builder, Runtime};
use tokio_rustls::TlsConnector;

use super::exposition;
use super::figures::Snapshot;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long an answer may be.
const MOST_BYTES: usize = 16 << 20;

/// Where metrics are, unless the target says otherwise.
const PATH: &str = "/metrics";

/// Which process to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Url(Uri),
    Unix(PathBuf),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const ALLOWED: &str = "give http://HOST:PORT, https://HOST:PORT or unix:PATH";
        if let Some(path) = text.strip_prefix("unix:") {
            // As in unix:///run/x.
            let path = path.strip_prefix("//").unwrap_or(path);
            return match path.is_empty() {
                true => Err(format!("there is no path: {ALLOWED}")),
                false => Ok(Self::Unix(path.into())),
            };
        }
        let uri: Uri = text
            .parse()
            .map_err(|error| format!("{error}: {ALLOWED}"))?;
        let is_known = matches!(uri.scheme_str(), Some("http" | "https"));
        match (is_known, uri.authority()) {
            (true, Some(authority)) if !authority.as_str().contains('@') => Ok(Self::Url(uri)),
            (true, Some(_)) => Err("give the token as --token-file, and not in the URL".to_owned()),
            _ => Err(ALLOWED.to_owned()),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(uri) => write!(f, "{}", uri.authority().map_or("", |it| it.as_str())),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

/// The first token in a file that nobody else may read.
pub(super) fn read_token(path: &Path) -> Result<HeaderValue> {
    let contents = ringflake::lease::read_private_file(path)?;
    let lines = contents
        .split(|&byte| byte == b'\n')
        .map(<[u8]>::trim_ascii);
    let mut tokens = lines.filter(|line| !line.is_empty() && !line.starts_with(b"#"));
    let token = tokens
        .next()
        .with_context(|| format!("there is no token in {}", path.display()))?;
    let mut value = HeaderValue::from_bytes(&[b"Bearer ", token].concat())
        .with_context(|| format!("the token in {} has odd characters", path.display()))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Asks one process.
#[derive(Debug)]
pub(super) struct Scraper {
    target: Target,
    token: Option<HeaderValue>,
    tls: Option<Arc<ClientConfig>>,
    runtime: Runtime,
}

/// What a connection is made of.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

impl Scraper {
    pub(super) fn new(
        target: Target,
        token: Option<HeaderValue>,
        ca: Option<&Path>,
    ) -> Result<Self> {
        let needs_tls = matches!(&target, Target::Url(uri) if uri.scheme_str() == Some("https"));
        let tls = needs_tls.then(|| roots(ca)).transpose()?.map(|roots| {
            let config = ClientConfig::builder().with_root_certificates(roots);
            Arc::new(config.with_no_client_auth())
        });
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self {
            target,
            token,
            tls,
            runtime,
        })
    }

    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    /// What the process says now.
    pub(super) fn scrape(&self) -> Result<Snapshot> {
        let text = self.runtime.block_on(async {
            let answer = tokio::time::timeout(PATIENCE, self.ask()).await;
            answer.unwrap_or_else(|_| Err(anyhow!("no answer within {} s", PATIENCE.as_secs())))
        });
        let text = text.with_context(|| format!("{} can't be watched", self.target))?;
        let snapshot = Snapshot::new(Instant::now(), exposition::samples(&text));
        Ok(snapshot)
    }

    async fn ask(&self) -> Result<String> {
        let stream = self.connect().await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let answer = async {
            let answer = sender.send_request(self.request()?).await?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), MOST_BYTES).collect().await;
            let body = body.map_err(|error| anyhow!(error))?.to_bytes();
            match status {
                StatusCode::OK => Ok(String::from_utf8_lossy(&body).into_owned()),
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => bail!(
                    "it shows its metrics to those who have the token of the role admin: give \
                     the file that holds it as --token-file"
                ),
                other => bail!("it answers {other}"),
            }
        };
        tokio::pin!(answer);
        tokio::select! {
            answer = &mut answer => answer,
            // It ends with its last answer, which is there then.
            ended = connection => match ended {
                Ok(()) => answer.await,
                Err(error) => Err(error.into()),
            },
        }
    }

    fn request(&self) -> Result<Request<Empty<Bytes>>> {
        let (path, host) = match &self.target {
            Target::Url(uri) => {
                let path = uri.path_and_query().map_or("/", |it| it.as_str());
                let path = if path == "/" { PATH } else { path };
                (path, uri.authority().map_or("localhost", |it| it.as_str()))
            }
            Target::Unix(_) => (PATH, "localhost"),
        };
        let mut request = Request::get(path)
            .header(HOST, host)
            .header(ACCEPT, "text/plain");
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, token.clone());
        }
        Ok(request.body(Empty::new())?)
    }

    async fn connect(&self) -> Result<Box<dyn Stream>> {
        let uri = match &self.target {
            Target::Unix(path) => return Ok(Box::new(UnixStream::connect(path).await?)),
            Target::Url(uri) => uri,
        };
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        let usual = if self.tls.is_some() { 443 } else { 80 };
        let stream = TcpStream::connect((host, uri.port_u16().unwrap_or(usual))).await?;
        let Some(tls) = &self.tls else {
            return Ok(Box::new(stream));
        };
        let name = ServerName::try_from(host.to_owned())?;
        let connector = TlsConnector::from(Arc::clone(tls));
        Ok(Box::new(connector.connect(name, stream).await?))
    }
}

/// Whose word counts.
fn roots(ca: Option<&Path>) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    match ca {
        Some(path) => {
            let cannot = || format!("no certificates from {}", path.display());
            for certificate in CertificateDer::pem_file_iter(path).with_context(cannot)? {
                roots.add(certificate.with_context(cannot)?)?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    match roots.is_empty() {
        true => bail!("there is no certificate to trust: give some with --ca"),
        false => Ok(roots),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_url_or_a_socket() {
        let target = |text: &str| text.parse::<Target>();
        for text in ["unix:/run/x.sock", "unix:///run/x.sock"] {
            assert_eq!(target(text), Ok(Target::Unix("/run/x.sock".into())));
        }
        for (text, shown) in [
            ("http://127.0.0.1:7464", "127.0.0.1:7464"),
            ("https://[::1]:1/own/path", "[::1]:1"),
        ] {
            assert_eq!(target(text).unwrap().to_string(), shown);
        }
        for wrong in ["", "unix:", "/run/x.sock", "127.0.0.1:7464", "ftp://host"] {
            let error = target(wrong).unwrap_err();
            assert!(error.contains("http://HOST:PORT"), "{wrong}: {error}");
        }
        let error = target("http://token@host").unwrap_err();
        assert!(error.contains("--token-file") && !error.contains("token@"));
    }
}
