//! Runs a built function as Lambda does: the Runtime API on loopback, one process per concurrent invocation, warm
//! reuse, true deadlines and the kill at the deadline.
//!
//! Not emulated: the freeze between invocations, the memory limit, extensions and response streaming.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use chrono::{DateTime, Utc};
use serde_json::Value;
use tokio::process::{Child, Command};
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

/// Lambda's limit on a synchronous event and on its answer.
pub(crate) const PAYLOAD_LIMIT: usize = 6_291_556;
/// Lambda's limit on a cold start, up to the first request for an event.
const INIT_LIMIT: Duration = Duration::from_secs(10);
pub(crate) const REGION: &str = "us-east-1";
/// The account that the local AWS uses too.
const ACCOUNT: &str = "123456789012";
/// Written into a process's output by the emulator: all lines of the invocation come before it.
const MARK: &[u8] = b"\0end of invocation\0";

/// What a function is and how it is run.
#[derive(Debug, Clone)]
pub struct FunctionSpec {
    /// The name, as in `AWS_LAMBDA_FUNCTION_NAME`.
    pub name: String,
    /// The built executable.
    pub binary: PathBuf,
    /// The whole environment, beside what Lambda itself sets; a value here wins, except for the Runtime API's address.
    pub env: BTreeMap<String, String>,
    /// The time from handing over an event to the kill.
    pub timeout: Duration,
    /// The memory size that the function is told; it is not enforced.
    pub memory_mb: u32,
    /// The reserved concurrency: how many processes may run at once. With 0, [`Function::invoke`] waits for ever.
    pub max_instances: usize,
}

/// What one invocation gave.
#[derive(Debug)]
pub struct Invocation {
    /// The function's answer, or why there is none.
    pub result: Result<Value, FunctionError>,
    /// The lines on stdout and stderr, in order; those of a cold start count to the invocation that caused it.
    pub logs: Vec<String>,
    /// The time from handing over the event to the answer, without queue and cold start.
    pub duration: Duration,
    /// The time of the cold start, if there was one.
    pub init_duration: Option<Duration>,
    /// The most memory that the process has held so far, in KiB, as Lambda's own report has it; none where the system does
    /// not say, or the process has ended.
    pub max_memory_kib: Option<u64>,
    /// The processor time that the process has taken so far; none as above.
    pub processor: Option<Duration>,
}

/// Why an invocation has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FunctionError {
    /// The function reported an error itself; its process stays warm.
    Unhandled {
        /// The reported `errorType`.
        error_type: String,
        /// The reported `errorMessage`.
        message: String,
    },
    /// The deadline (or the limit on a cold start) passed and the process was killed.
    TimedOut,
    /// The process ended without an answer.
    Exited {
        /// When it ended.
        phase: Phase,
        /// The exit status, or what the runtime said of a failed cold start.
        detail: String,
    },
    /// All instances were busy: status 429.
    Throttled,
}

/// When a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Before it asked for its first event.
    Init,
    /// While it had an event.
    Invoke,
}

impl fmt::Display for FunctionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unhandled { error_type, message } => write!(f, "function failed with {error_type}: {message}"),
            Self::TimedOut => f.write_str("function timed out and was killed"),
            Self::Exited { phase: Phase::Init, detail } => write!(f, "function ended in its cold start: {detail}"),
            Self::Exited { phase: Phase::Invoke, detail } => write!(f, "function ended without an answer: {detail}"),
            Self::Throttled => f.write_str("function throttled: all instances are busy"),
        }
    }
}

impl std::error::Error for FunctionError {}

/// A function that can be invoked; dropping it kills its processes.
#[derive(Debug)]
pub struct Function {
    spec: FunctionSpec,
    slots: Semaphore,
    idle: Mutex<Vec<Process>>,
    log: Log,
    kill: Arc<Notify>,
}

impl Function {
    /// Takes the function up; a process is started by the first invocation.
    ///
    /// # Errors
    /// The binary does not exist.
    pub fn start(mut spec: FunctionSpec) -> io::Result<Self> {
        spec.binary = spec.binary.canonicalize().map_err(|e| {
            io::Error::new(e.kind(), format!("find the binary {} of {} failed: {e}", spec.binary.display(), spec.name))
        })?;
        let slots = Semaphore::new(spec.max_instances);
        Ok(Self { slots, spec, idle: Mutex::default(), log: Log::default(), kill: Arc::default() })
    }

    /// Invokes the function, waiting in line while all instances are busy.
    pub async fn invoke(&self, payload: &Value) -> Invocation {
        let _slot = self.slots.acquire().await.expect("the semaphore is never closed");
        self.run(payload).await
    }

    /// Invokes the function, or answers [`FunctionError::Throttled`] while all instances are busy.
    pub async fn invoke_now(&self, payload: &Value) -> Invocation {
        match self.slots.try_acquire() {
            Ok(_slot) => self.run(payload).await,
            Err(_) => Invocation::without_process(FunctionError::Throttled),
        }
    }

    /// Kills the warm processes: the next invocation is a cold start.
    pub fn kill_idle(&self) {
        locked(&self.idle).clear();
    }

    /// Kills the processes that hold an event now.
    pub fn kill_busy(&self) {
        self.kill.notify_waiters();
    }

    /// Gives all lines that all processes have written.
    pub fn logs(&self) -> Vec<String> {
        locked(&self.log).clone()
    }

    async fn run(&self, payload: &Value) -> Invocation {
        let mut process = match self.warm() {
            Some(process) => process,
            None => match Process::spawn(&self.spec, Arc::clone(&self.log), Arc::clone(&self.kill)).await {
                Ok(process) => process,
                Err(e) => {
                    let detail = format!("run {} failed: {e}", self.spec.binary.display());
                    return Invocation::without_process(FunctionError::Exited { phase: Phase::Init, detail });
                }
            },
        };
        let invocation = process.invoke(payload, self.spec.timeout).await;
        if process.ready {
            locked(&self.idle).push(process);
        }
        invocation
    }

    /// The warm process used last, past those that died while idle.
    fn warm(&self) -> Option<Process> {
        let mut idle = locked(&self.idle);
        while let Some(mut process) = idle.pop() {
            if matches!(process.child.try_wait(), Ok(None)) {
                return Some(process);
            }
        }
        None
    }
}

impl Invocation {
    fn without_process(error: FunctionError) -> Self {
        Self {
            result: Err(error),
            logs: Vec::new(),
            duration: Duration::ZERO,
            init_duration: None,
            max_memory_kib: None,
            processor: None,
        }
    }
}

type Log = Arc<Mutex<Vec<String>>>;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One process with its own Runtime API address.
#[derive(Debug)]
struct Process {
    child: Child,
    spawned: Instant,
    /// It has asked for an event and holds none.
    ready: bool,
    events: mpsc::Sender<Event>,
    reports: mpsc::UnboundedReceiver<Report>,
    output: PipeWriter,
    lines: mpsc::UnboundedReceiver<Vec<String>>,
    kill: Arc<Notify>,
    _api: LocalServer,
}

/// An event as `/next` hands it over.
#[derive(Debug)]
struct Event {
    headers: [(&'static str, String); 4],
    payload: String,
}

/// What a process told its Runtime API.
#[derive(Debug)]
enum Report {
    AsksForEvent,
    Answer(Result<Value, FunctionError>),
    InitError(String),
}

impl Process {
    async fn spawn(spec: &FunctionSpec, log: Log, kill: Arc<Notify>) -> io::Result<Self> {
        let (events, handed_over) = mpsc::channel(1);
        let (reported, reports) = mpsc::unbounded_channel();
        let environment = environment(spec);
        let arn = format!("arn:aws:lambda:{}:{ACCOUNT}:function:{}", environment["AWS_REGION"], spec.name);
        let api =
            LocalServer::start(runtime_api(Api { arn, events: handed_over.into(), reports: reported }), 0).await?;
        let (pipe, output) = io::pipe()?;
        let (batches, lines) = mpsc::unbounded_channel();
        // A thread, so that reading never waits for the runtime that a full pipe may be blocking.
        std::thread::spawn(move || read_lines(pipe, &log, &batches));
        let spawned = Instant::now();
        let child = Command::new(&spec.binary)
            .current_dir(task_root(spec))
            .env_clear()
            .envs(environment)
            .env("AWS_LAMBDA_RUNTIME_API", api.address().to_string())
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?)
            .kill_on_drop(true)
            .spawn()?;
        Ok(Self { child, spawned, ready: false, events, reports, output, lines, kill, _api: api })
    }

    async fn invoke(&mut self, payload: &Value, timeout: Duration) -> Invocation {
        let cold = !self.ready;
        let init = self.initialise(self.spawned + INIT_LIMIT).await;
        let handed_over = Instant::now();
        let result = match init {
            Ok(()) => self.answer(payload, timeout).await,
            Err(error) => Err(error),
        };
        let duration = handed_over.elapsed();
        let (max_memory_kib, processor) =
            (self.child.id().and_then(max_memory_kib), self.child.id().and_then(processor));
        if !self.ready && (result.is_ok() || matches!(result, Err(FunctionError::Unhandled { .. }))) {
            // What it writes until it asks again belongs to this invocation; if it never does, it is not used again.
            self.ready = matches!(timeout_at(handed_over + timeout, self.report()).await, Ok(Ok(Report::AsksForEvent)));
        }
        if !self.ready {
            self.child.kill().await.ok();
        }
        let init_duration = cold.then_some(handed_over - self.spawned);
        Invocation { result, logs: self.lines_so_far().await, duration, init_duration, max_memory_kib, processor }
    }

    /// Waits until the process asks for its first event.
    async fn initialise(&mut self, limit: Instant) -> Result<(), FunctionError> {
        if self.ready {
            return Ok(());
        }
        let detail = match timeout_at(limit, self.report()).await {
            Ok(Ok(Report::AsksForEvent)) => {
                self.ready = true;
                return Ok(());
            }
            Ok(Ok(Report::InitError(detail)) | Err(detail)) => detail,
            Ok(Ok(Report::Answer(_))) => "it answered before it had an event".into(),
            Err(_) => return Err(FunctionError::TimedOut),
        };
        Err(FunctionError::Exited { phase: Phase::Init, detail })
    }

    async fn answer(&mut self, payload: &Value, timeout: Duration) -> Result<Value, FunctionError> {
        let deadline = Instant::now() + timeout;
        self.ready = false;
        // Not received only if the process is gone, which the report then says.
        self.events.send(Event::new(payload, timeout)).await.ok();
        match timeout_at(deadline, self.report()).await {
            Ok(Ok(Report::Answer(result))) => result,
            Ok(Ok(Report::AsksForEvent)) => {
                self.ready = true;
                Err(unhandled("Runtime.NoAnswer", "it asked for an event while it had one"))
            }
            Ok(Ok(Report::InitError(detail)) | Err(detail)) => {
                Err(FunctionError::Exited { phase: Phase::Invoke, detail })
            }
            Err(_) => Err(FunctionError::TimedOut),
        }
    }

    /// The next report, or how the process ended.
    async fn report(&mut self) -> Result<Report, String> {
        tokio::select! {
            // A report sent just before the end counts.
            biased;
            Some(report) = self.reports.recv() => Ok(report),
            // Whoever hears of an end without an answer kills the process.
            () = self.kill.notified() => Err("killed".to_owned()),
            status = self.child.wait() => Err(status.map_or_else(|e| e.to_string(), |status| status.to_string())),
        }
    }

    async fn lines_so_far(&mut self) -> Vec<String> {
        let mark = [MARK, b"\n"].concat();
        self.output.write_all(&mark).expect("the reader lives as long as this end of the pipe");
        self.lines.recv().await.unwrap_or_default()
    }
}

/// Linux: the high-water mark of what is resident.
fn max_memory_kib(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix(" kB")?.parse().ok()
}

/// Linux: what the scheduler has counted for the threads that live, in nanoseconds; `stat` counts in hundredths of a second.
fn processor(process: u32) -> Option<Duration> {
    let mut threads = std::fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let nanoseconds = threads.try_fold(0, |sum, thread| {
        let counted = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        Some(sum + counted.split_whitespace().next()?.parse::<u64>().ok()?)
    })?;
    Some(Duration::from_nanos(nanoseconds))
}

impl Event {
    fn new(payload: &Value, timeout: Duration) -> Self {
        let now_ms = u64::try_from(real_now().timestamp_millis()).expect("the clock is past 1970");
        let timeout_ms = u64::try_from(timeout.as_millis()).expect("a timeout is minutes at most");
        Self {
            headers: [
                ("lambda-runtime-aws-request-id", request_id()),
                ("lambda-runtime-deadline-ms", (now_ms + timeout_ms).to_string()),
                ("lambda-runtime-trace-id", format!("Root=1-{:08x}-{:024x};Sampled=0", now_ms / 1000, now_ms)),
                ("content-type", "application/json".into()),
            ],
            payload: payload.to_string(),
        }
    }
}

/// The real clock: a deadline is compared with it by the function, whatever the virtual time.
#[expect(clippy::disallowed_methods, reason = "deadlines use the real clock")]
pub(crate) fn real_now() -> DateTime<Utc> {
    Utc::now()
}

/// An id in the form of Lambda's, new with each call.
pub(crate) fn request_id() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    format!("00000000-0000-4000-8000-{:012x}", COUNT.fetch_add(1, Ordering::Relaxed))
}

fn task_root(spec: &FunctionSpec) -> &Path {
    spec.binary.parent().expect("a canonical path of a file has a parent")
}

/// What Lambda sets, then what the specification gives. `AWS_EXECUTION_ENV` is left to the latter.
fn environment(spec: &FunctionSpec) -> BTreeMap<String, String> {
    let lambda = [
        ("AWS_LAMBDA_FUNCTION_NAME", spec.name.clone()),
        ("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST".into()),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", spec.memory_mb.to_string()),
        ("AWS_LAMBDA_LOG_GROUP_NAME", format!("/aws/lambda/{}", spec.name)),
        ("AWS_LAMBDA_LOG_STREAM_NAME", format!("[$LATEST]{}", request_id())),
        ("LAMBDA_TASK_ROOT", task_root(spec).display().to_string()),
        ("AWS_REGION", REGION.into()),
        ("AWS_DEFAULT_REGION", REGION.into()),
        ("AWS_ACCESS_KEY_ID", "local".into()),
        ("AWS_SECRET_ACCESS_KEY", "local".into()),
    ];
    let lambda = lambda.into_iter().map(|(name, value)| (name.to_owned(), value));
    lambda.chain(spec.env.clone()).collect()
}

/// Reads a process's output to its end, handing over a batch of lines at each mark.
fn read_lines(pipe: PipeReader, log: &Mutex<Vec<String>>, batches: &mpsc::UnboundedSender<Vec<String>>) {
    let mut batch = Vec::new();
    for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
        // The mark follows a last line that has no end of its own.
        let (text, marked) = line.strip_suffix(MARK).map_or((line.as_slice(), false), |text| (text, true));
        if !(marked && text.is_empty()) {
            let text = String::from_utf8_lossy(text).into_owned();
            locked(log).push(text.clone());
            batch.push(text);
        }
        if marked {
            // Nobody waits for it once the process was dropped.
            batches.send(std::mem::take(&mut batch)).ok();
        }
    }
}

/// The two ends that a process's Runtime API connects.
struct Api {
    arn: String,
    events: tokio::sync::Mutex<mpsc::Receiver<Event>>,
    reports: mpsc::UnboundedSender<Report>,
}

impl Api {
    fn report(&self, report: Report) -> StatusCode {
        // Nobody hears it once the process was given up.
        self.reports.send(report).ok();
        StatusCode::ACCEPTED
    }
}

fn runtime_api(api: Api) -> Router {
    Router::new()
        .route("/2018-06-01/runtime/invocation/next", get(next))
        .route("/2018-06-01/runtime/invocation/{id}/response", post(response))
        .route("/2018-06-01/runtime/invocation/{id}/error", post(error))
        .route("/2018-06-01/runtime/init/error", post(init_error))
        .layer(DefaultBodyLimit::disable())
        .with_state(Arc::new(api))
}

async fn next(State(api): State<Arc<Api>>) -> Response {
    api.report(Report::AsksForEvent);
    match api.events.lock().await.recv().await {
        Some(event) => {
            let arn = [("lambda-runtime-invoked-function-arn", api.arn.clone())];
            (event.headers, arn, event.payload).into_response()
        }
        None => StatusCode::GONE.into_response(),
    }
}

async fn response(State(api): State<Arc<Api>>, body: Bytes) -> StatusCode {
    if body.len() > PAYLOAD_LIMIT {
        let message = format!("the answer has {} bytes, more than {PAYLOAD_LIMIT}", body.len());
        api.report(Report::Answer(Err(unhandled("Function.ResponseSizeTooLarge", &message))));
        return StatusCode::PAYLOAD_TOO_LARGE;
    }
    let answer = serde_json::from_slice(&body);
    api.report(Report::Answer(answer.map_err(|e| unhandled("Runtime.InvalidAnswer", &format!("not JSON: {e}")))))
}

async fn error(State(api): State<Arc<Api>>, body: Bytes) -> StatusCode {
    api.report(Report::Answer(Err(reported_error(&body))))
}

async fn init_error(State(api): State<Arc<Api>>, body: Bytes) -> StatusCode {
    api.report(Report::InitError(reported_error(&body).to_string()))
}

fn unhandled(error_type: &str, message: &str) -> FunctionError {
    FunctionError::Unhandled { error_type: error_type.into(), message: message.into() }
}

fn reported_error(body: &[u8]) -> FunctionError {
    let error: Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |field: &str| error[field].as_str().unwrap_or_default();
    unhandled(text("errorType"), text("errorMessage"))
}

/// A server on a port of the loopback address; it listens until it is dropped.
#[derive(Debug)]
pub struct LocalServer {
    address: SocketAddr,
    task: JoinHandle<io::Result<()>>,
}

impl LocalServer {
    /// Serves on this port, or on a free one for 0; a handler may ask for the caller's address.
    pub(crate) async fn start(router: Router, port: u16) -> io::Result<Self> {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let service = router.into_make_service_with_connect_info::<SocketAddr>();
        let task = tokio::spawn(async move { axum::serve(listener, service).await });
        Ok(Self { address, task })
    }

    /// Gives the address, port included.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[cfg(test)]
#[path = "runtime_api_tests.rs"]
mod tests;
