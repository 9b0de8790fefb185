//! What stands between a function and one service: it lets through, or it accepts and never answers.

use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// How a service behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    Answers,
    /// It takes the request and says nothing.
    Hangs,
    /// It begins its answer, and goes on with one byte a second.
    Drips,
    /// It closes the connection in the middle of its answer.
    BreaksOff,
}

const HALF_AN_ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 4000\r\n\r\n{\"";

/// A port on loopback in front of the local AWS.
pub(crate) struct Front {
    address: String,
    manner: Arc<Mutex<Manner>>,
    task: JoinHandle<()>,
}

impl Front {
    pub(crate) async fn of(upstream: &str) -> Self {
        let upstream = upstream.strip_prefix("http://").expect("a plain URL").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("bound"));
        let manner = Arc::new(Mutex::new(Manner::Answers));
        let shared = Arc::clone(&manner);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, upstream.clone(), Arc::clone(&shared)));
            }
        });
        Self { address, manner, task }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Connections that are open already behave so too.
    pub(crate) fn set(&self, manner: Manner) {
        *self.manner.lock().expect("nothing panics with the lock") = manner;
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Carries one connection; what fails here shows as a connection that ended.
async fn carry(mut client: TcpStream, upstream: String, manner: Arc<Mutex<Manner>>) {
    let Ok(mut server) = TcpStream::connect(upstream).await else { return };
    let (mut asked, mut answered) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        tokio::select! {
            Ok(n) = client.read(&mut asked) => {
                let now = *manner.lock().expect("nothing panics with the lock");
                match now {
                    _ if n == 0 => return,
                    Manner::Answers => if server.write_all(&asked[..n]).await.is_err() { return },
                    Manner::Hangs => {}
                    Manner::Drips => return drip(client).await,
                    Manner::BreaksOff => return drop(client.write_all(HALF_AN_ANSWER).await),
                }
            }
            Ok(n) = server.read(&mut answered) => {
                if n == 0 || client.write_all(&answered[..n]).await.is_err() {
                    return;
                }
            }
            else => return,
        }
    }
}

/// Until the other side has had enough.
async fn drip(mut client: TcpStream) {
    let mut second = tokio::time::interval(Duration::from_secs(1));
    let mut sent = client.write_all(HALF_AN_ANSWER).await;
    while sent.is_ok() {
        second.tick().await;
        sent = client.write_all(b" ").await;
    }
}
