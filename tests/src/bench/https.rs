//! The local AWS behind TLS on loopback, one port a service, as each service of AWS has a host of its own: what a function
//! pays for handshakes is real. It notes how long the local AWS thought about each request, which is nobody's own time.

use crate::stage::StageResult;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::response::Parts;
use axum::http::{Request, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SanType};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{TlsAcceptor, rustls};

/// The services as the variables `AWS_ENDPOINT_URL_…` name them.
const SERVICES: [&str; 6] = ["BUDGETS", "CLOUDWATCH", "CLOUDWATCH_LOGS", "DYNAMODB", "EC2", "SNS"];

/// Where the roots of this machine are; Lambda's own image holds about as many.
const SYSTEM_ROOTS: [&str; 2] = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/// The terminator; it listens until it is dropped.
#[derive(Debug)]
pub(crate) struct Https {
    ports: BTreeMap<&'static str, Port>,
    roots: PathBuf,
    /// The throw-away root alone.
    one_root: PathBuf,
    thought: Thought,
    kept: Kept,
}

/// The local AWS's own answers to DescribeInstances, by what was asked: it takes longer over a thousand nodes than the SDK
/// waits. Off until it is asked for.
#[derive(Debug, Clone, Default)]
struct Kept(Arc<Mutex<Option<Answers>>>);

#[derive(Debug, Default)]
struct Answers {
    given: usize,
    asking: usize,
    answers: BTreeMap<Bytes, (Parts, Bytes)>,
}

#[derive(Debug)]
struct Port {
    address: SocketAddr,
    tasks: [JoinHandle<()>; 2],
}

impl Drop for Port {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// From when to when the local AWS had a request.
#[derive(Debug, Clone, Default)]
struct Thought(Arc<Mutex<Vec<(Instant, Instant)>>>);

impl Https {
    /// Puts `upstream`, such as `http://127.0.0.1:4000`, behind TLS; the roots to trust are written into `folder`.
    pub(crate) async fn open(upstream: &str, folder: &Path) -> StageResult<Self> {
        let (config, ca) = certificates()?;
        let (roots, one_root) = (folder.join("roots.pem"), folder.join("one-root.pem"));
        std::fs::write(&one_root, &ca)?;
        let system = SYSTEM_ROOTS.iter().find_map(|path| std::fs::read_to_string(path).ok());
        let system = system.ok_or("no bundle of root certificates under /etc/ssl/certs or /etc/pki/tls/certs")?;
        std::fs::write(&roots, system + "\n" + &ca)?;
        let (thought, kept) = (Thought::default(), Kept::default());
        let mut ports = BTreeMap::new();
        for service in SERVICES {
            let front = Front {
                upstream: upstream.to_owned(),
                client: Client::builder(TokioExecutor::new()).build_http(),
                thought: thought.clone(),
                kept: kept.clone(),
            };
            ports.insert(service, serve(TlsAcceptor::from(Arc::clone(&config)), front).await?);
        }
        Ok(Self { ports, roots, one_root, thought, kept })
    }

    /// What a function or its peer needs to find and to trust it.
    pub(crate) fn vars(&self) -> BTreeMap<String, String> {
        let roots = self.roots.display().to_string();
        let urls = self
            .ports
            .iter()
            .map(|(service, port)| (format!("AWS_ENDPOINT_URL_{service}"), format!("https://{}", port.address)));
        urls.chain([("SSL_CERT_FILE".to_owned(), roots.clone()), ("AWS_CA_BUNDLE".to_owned(), roots)]).collect()
    }

    /// The variable by which a function trusts one root and no other.
    pub(crate) fn one_root(&self) -> (String, String) {
        ("SSL_CERT_FILE".to_owned(), self.one_root.display().to_string())
    }

    /// From now on each DescribeInstances is asked of the local AWS once.
    pub(crate) fn keep_descriptions(&self, keep: bool) {
        *locked(&self.kept.0) = keep.then(Answers::default);
    }

    /// Waits until one is kept and the local AWS is asked for no other, for three minutes at most.
    pub(crate) async fn kept_one(&self) -> StageResult<()> {
        for _ in 0..180 {
            if locked(&self.kept.0).as_ref().is_some_and(|kept| kept.asking == 0 && !kept.answers.is_empty()) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        Err("the local AWS did not describe the nodes within three minutes".into())
    }

    /// How often one was answered without asking since the last time.
    pub(crate) fn take_kept(&self) -> usize {
        locked(&self.kept.0).as_mut().map_or(0, |kept| std::mem::take(&mut kept.given))
    }

    /// How long at least one request was with the local AWS since the last asking.
    pub(crate) fn take_thought(&self) -> Duration {
        let mut spans = std::mem::take(&mut *locked(&self.thought.0));
        spans.sort();
        let mut until: Option<Instant> = None;
        spans.into_iter().fold(Duration::ZERO, |sum, (from, to)| {
            let from = until.map_or(from, |until| from.max(until));
            until = Some(until.map_or(to, |until| to.max(until)));
            sum + to.saturating_duration_since(from)
        })
    }
}

/// A CA and a certificate for the loopback address, signed by it.
fn certificates() -> StageResult<(Arc<ServerConfig>, String)> {
    let mut ca = CertificateParams::default();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.distinguished_name.push(rcgen::DnType::CommonName, "bench, thrown away");
    let ca_key = KeyPair::generate()?;
    let ca_pem = ca.self_signed(&ca_key)?.pem();
    let issuer = Issuer::new(ca, ca_key);
    let mut params = CertificateParams::default();
    params.subject_alt_names.push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &issuer)?.der().clone();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    Ok((Arc::new(config), ca_pem))
}

async fn serve(acceptor: TlsAcceptor, front: Front) -> io::Result<Port> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let (accepted, connections) = mpsc::unbounded_channel();
    let accepts = tokio::spawn(async move {
        while let Ok((stream, from)) = listener.accept().await {
            let (acceptor, accepted) = (acceptor.clone(), accepted.clone());
            tokio::spawn(async move {
                stream.set_nodelay(true).ok();
                // A client that ends in its handshake shows as a call that failed.
                if let Ok(stream) = acceptor.accept(stream).await {
                    accepted.send((stream, from)).ok();
                }
            });
        }
    });
    let router = Router::new().fallback(forward).with_state(Arc::new(front));
    let serves = tokio::spawn(async move {
        axum::serve(Handshaken { address, connections }, router).await.ok();
    });
    Ok(Port { address, tasks: [accepts, serves] })
}

/// The connections whose handshake is over.
struct Handshaken {
    address: SocketAddr,
    connections: mpsc::UnboundedReceiver<(TlsStream<TcpStream>, SocketAddr)>,
}

impl axum::serve::Listener for Handshaken {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.connections.recv().await {
            Some(connection) => connection,
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

#[derive(Clone)]
struct Front {
    upstream: String,
    client: Client<HttpConnector, Full<Bytes>>,
    thought: Thought,
    kept: Kept,
}

async fn forward(State(front): State<Arc<Front>>, request: Request<Body>) -> Response {
    let (mut head, body) = request.into_parts();
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    let Ok(uri) = Uri::try_from(format!("{}{path}", front.upstream)) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    head.uri = uri;
    head.headers.remove(header::HOST);
    head.headers.remove(header::TRANSFER_ENCODING);
    let Ok(body) = body.collect().await else { return StatusCode::BAD_REQUEST.into_response() };
    let body = body.to_bytes();
    if let Some(kept) = locked(&front.kept.0).as_mut()
        && let Some((head, answer)) = kept.answers.get(&body).cloned()
    {
        kept.given += 1;
        return Response::from_parts(head, Body::from(answer));
    }
    // In a task of its own: it goes on when the client has given up, and the next may have the answer.
    let answered = tokio::spawn(async move { front.ask(Request::from_parts(head, body)).await });
    match answered.await {
        Ok(Some((head, body))) => Response::from_parts(head, Body::from(body)),
        Ok(None) | Err(_) => StatusCode::BAD_GATEWAY.into_response(),
    }
}

impl Front {
    async fn ask(&self, request: Request<Bytes>) -> Option<(Parts, Bytes)> {
        let asked = request.body().clone();
        let describes = asked.starts_with(b"Action=DescribeInstances&");
        if let Some(kept) = locked(&self.kept.0).as_mut().filter(|_| describes) {
            kept.asking += 1;
        }
        let from = Instant::now();
        let answered = async {
            let (head, body) = self.client.request(request.map(Full::new)).await.ok()?.into_parts();
            Some((head, body.collect().await.ok()?.to_bytes()))
        };
        let answered = answered.await;
        locked(&self.thought.0).push((from, Instant::now()));
        if let Some(kept) = locked(&self.kept.0).as_mut().filter(|_| describes) {
            kept.asking = kept.asking.saturating_sub(1);
            let good = answered.clone().filter(|(head, _)| head.status.is_success());
            kept.answers.extend(good.map(|answer| (asked, answer)));
        }
        answered
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
