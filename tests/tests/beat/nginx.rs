//! A real nginx on loopback, as on a node, with a small server behind it that holds calls open.

use reveille_tests::stage::root;
use std::fs;
use std::net::{SocketAddr, TcpListener as Reserved};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A folder of one test; it goes with it.
#[derive(Debug)]
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("reveille-nginx-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// nginx, and what stands behind it.
#[derive(Debug)]
pub(crate) struct Nginx {
    child: Child,
    address: SocketAddr,
    ready: Arc<AtomicBool>,
    folder: Folder,
}

impl Nginx {
    /// Starts it with a model that is ready or not.
    pub(crate) async fn start(is_ready: bool) -> Self {
        let ready = Arc::new(AtomicBool::new(is_ready));
        let upstream = serve(ready.clone()).await;
        let folder = Folder::new();
        // A port that was free a moment ago may be taken now.
        for _ in 0..5 {
            let address = Reserved::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            fs::write(folder.0.join("nginx.conf"), configuration(&folder.0, address, upstream)).unwrap();
            let mut child = launch(&folder.0);
            if answers(&mut child, address).await {
                return Self { child, address, ready, folder };
            }
            child.kill().ok();
            child.wait().ok();
        }
        panic!("nginx does not start: {}", fs::read_to_string(folder.0.join("error.log")).unwrap_or_default());
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.folder.0.join("access.log")
    }

    /// The model is ready from now on, or not any more.
    pub(crate) fn set_ready(&self, is_ready: bool) {
        self.ready.store(is_ready, Ordering::SeqCst);
    }

    /// A connection whose request has been read, with the first bytes of its answer where it gets any.
    pub(crate) async fn request(&self, path: &str, headers: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: node\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        if path != "/v1/poll" {
            let mut some = [0; 4096];
            assert!(stream.read(&mut some).await.unwrap() > 0, "{path} was answered");
        }
        stream
    }

    /// A short request, once its line is in the log.
    pub(crate) async fn logged(&self, headers: &str) {
        let before = self.lines();
        self.request("/v1/short", headers).await;
        until("nginx writes its log", async || (self.lines() > before).then_some(())).await;
    }

    /// Lines in the log now.
    pub(crate) fn lines(&self) -> usize {
        fs::read_to_string(self.log()).unwrap_or_default().lines().count()
    }

    /// logrotate by rename: when it returns, nginx writes to the new file. It is asked by `headers`.
    pub(crate) async fn rotate(&self, headers: &str) {
        fs::rename(self.log(), self.folder.0.join("access.log.1")).unwrap();
        self.signal("-USR1");
        until("nginx writes to a new log", async || {
            self.request("/v1/short", headers).await;
            (self.lines() > 0).then_some(())
        })
        .await;
    }

    fn signal(&self, signal: &str) {
        let pid = fs::read_to_string(self.folder.0.join("nginx.pid")).unwrap_or_default();
        Command::new("kill").args([signal, pid.trim()]).stderr(Stdio::null()).status().ok();
    }

    /// It is gone; its ports refuse.
    pub(crate) fn stop(&mut self) {
        // Asked to end, as workers outlive a master that was killed.
        self.signal("-TERM");
        self.child.wait().ok();
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Asks again and again, for up to 30 seconds.
pub(crate) async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let wait = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait).await.unwrap_or_else(|_| panic!("{what}: not within 30 s"))
}

fn launch(folder: &Path) -> Child {
    let nginx = root().join(".tools/nginx/nginx");
    assert!(nginx.is_file(), "no nginx: run `sh tests/debian.sh nginx`, or `make test`");
    Command::new(nginx)
        .arg("-p")
        .arg(folder)
        .args(["-c", "nginx.conf", "-e", "error.log"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

async fn answers(child: &mut Child, address: SocketAddr) -> bool {
    until("nginx starts or ends", async || {
        if child.try_wait().unwrap().is_some() {
            return Some(false);
        }
        TcpStream::connect(address).await.is_ok().then_some(true)
    })
    .await
}

/// Every path lies in the test's folder. One worker, so that a line in a new log says that the old one is closed.
fn configuration(folder: &Path, address: SocketAddr, upstream: SocketAddr) -> String {
    // Workers of a root's nginx would run as nobody, who may not enter the folder.
    let id = Command::new("id").arg("-u").output().unwrap().stdout;
    let user = if id == b"0\n" { "user root;" } else { "" };
    let folder = folder.display();
    format!(
        r#"
        {user}
        daemon off;
        worker_processes 1;
        pid {folder}/nginx.pid;
        events {{ worker_connections 256; }}
        http {{
            client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
            uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
            access_log {folder}/access.log combined;
            keepalive_timeout 600;
            server {{
                listen {address};
                location = /connections {{ stub_status; access_log off; }}
                location = /ready {{ proxy_pass http://{upstream}; }}
                location /v1/ {{
                    proxy_pass http://{upstream};
                    proxy_http_version 1.1;
                    proxy_set_header Upgrade $http_upgrade;
                    proxy_set_header Connection $http_connection;
                    proxy_buffering off;
                    proxy_read_timeout 600;
                }}
            }}
        }}
        "#
    )
}

/// The model: `/ready` as it is set, `/v1/stream` begins an answer, `/v1/live` switches protocols, `/v1/poll` says nothing,
/// and each of the three then holds; what else is asked is answered at once.
async fn serve(ready: Arc<AtomicBool>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, ready.clone()));
        }
    });
    address
}

async fn answer(mut stream: TcpStream, ready: Arc<AtomicBool>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8_lossy(&head);
    let path = head.split_whitespace().nth(1).unwrap_or_default();
    let short = |status| (format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"), false);
    let (text, holds) = match path {
        "/ready" if ready.load(Ordering::SeqCst) => short("200 OK"),
        "/ready" => short("503 Service Unavailable"),
        "/v1/stream" => ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n".to_owned(), true),
        "/v1/live" => {
            ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n".to_owned(), true)
        }
        "/v1/poll" => (String::new(), true),
        _ => short("200 OK"),
    };
    stream.write_all(text.as_bytes()).await.ok();
    if holds {
        // Until the caller goes.
        stream.read_u8().await.ok();
    }
}
