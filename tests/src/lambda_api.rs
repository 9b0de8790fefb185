//! What the operator's command asks of Lambda: a function's configuration, and an invocation with its answer. Moto would need
//! Docker for the latter. Whatever else Lambda can do is answered 501.

use crate::runtime_api::{Function, FunctionError, LocalServer};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

const ERROR_TYPE: HeaderName = HeaderName::from_static("x-amzn-errortype");
const FUNCTION_ERROR: HeaderName = HeaderName::from_static("x-amz-function-error");

/// One deployed function.
#[derive(Debug, Clone)]
pub struct Deployed {
    /// What runs.
    pub function: Arc<Function>,
    /// Its variables, as somebody reads them who may.
    pub variables: BTreeMap<String, String>,
}

/// The functions, by their names.
#[derive(Debug, Clone, Default)]
pub struct Functions {
    deployed: BTreeMap<String, Deployed>,
    logs: Arc<Mutex<Vec<(String, String)>>>,
    asked: Arc<Mutex<BTreeSet<(String, String)>>>,
    /// So many answers are lost, after the function has run.
    lost: Arc<AtomicU32>,
}

impl Functions {
    /// These.
    pub fn new(deployed: BTreeMap<String, Deployed>) -> Self {
        Self { deployed, ..Self::default() }
    }

    /// The lines that invocations have written since this was asked last, each with its function's name.
    pub fn take_logs(&self) -> Vec<(String, String)> {
        std::mem::take(&mut self.logs.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What was asked of Lambda so far: action and function, as IAM is asked them.
    pub fn asked(&self) -> BTreeSet<(String, String)> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Loses the next answers: the function runs, and whoever asked is told of a fault of Lambda's.
    pub fn lose_answers(&self, count: u32) {
        self.lost.store(count, Ordering::Relaxed);
    }

    fn note(&self, action: &str, name: &str) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.insert((format!("lambda:{action}"), name.to_owned()));
    }
}

/// Serves them until the answer of this is dropped.
///
/// # Errors
/// There is no free port.
pub async fn serve(functions: Functions) -> io::Result<LocalServer> {
    let router = Router::new()
        .route("/2015-03-31/functions/{name}/configuration", get(configuration))
        .route("/2015-03-31/functions/{name}/invocations", post(invoke))
        .fallback(|| async { refused(StatusCode::NOT_IMPLEMENTED, "NotImplemented", "not emulated") })
        .with_state(functions);
    LocalServer::start(router, 0).await
}

async fn configuration(State(functions): State<Functions>, Path(name): Path<String>) -> Response {
    functions.note("GetFunctionConfiguration", &name);
    let Some(deployed) = functions.deployed.get(&name) else { return not_found(&name) };
    let environment = json!({"Variables": deployed.variables});
    axum::Json(json!({"FunctionName": name, "State": "Active", "Environment": environment})).into_response()
}

async fn invoke(State(functions): State<Functions>, Path(name): Path<String>, body: Bytes) -> Response {
    functions.note("InvokeFunction", &name);
    let Some(deployed) = functions.deployed.get(&name) else { return not_found(&name) };
    let Ok(event) = serde_json::from_slice::<Value>(&body) else {
        return refused(StatusCode::BAD_REQUEST, "InvalidRequestContentException", "the payload is no JSON");
    };
    let invocation = deployed.function.invoke(&event).await;
    let lines = invocation.logs.iter().map(|line| (name.clone(), line.clone()));
    functions.logs.lock().unwrap_or_else(PoisonError::into_inner).extend(lines);
    let lose = |left: u32| left.checked_sub(1);
    if functions.lost.fetch_update(Ordering::Relaxed, Ordering::Relaxed, lose).is_ok() {
        return refused(StatusCode::INTERNAL_SERVER_ERROR, "ServiceException", "the answer is lost");
    }
    match invocation.result {
        Ok(answer) => axum::Json(answer).into_response(),
        Err(FunctionError::Throttled) => {
            refused(StatusCode::TOO_MANY_REQUESTS, "TooManyRequestsException", "Rate Exceeded.")
        }
        Err(error) => {
            let body = axum::Json(json!({"errorMessage": error.to_string()}));
            ([(FUNCTION_ERROR, "Unhandled")], body).into_response()
        }
    }
}

fn not_found(name: &str) -> Response {
    let message = format!("Function not found: arn:aws:lambda:us-east-1:123456789012:function:{name}");
    refused(StatusCode::NOT_FOUND, "ResourceNotFoundException", &message)
}

fn refused(status: StatusCode, kind: &'static str, message: &str) -> Response {
    (status, [(ERROR_TYPE, kind)], axum::Json(json!({"Type": "User", "Message": message}))).into_response()
}
