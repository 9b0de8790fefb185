//! Tests of the emulator.

use super::*;
use serde_json::json;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn echo() -> FunctionSpec {
    let test = std::env::current_exe().unwrap();
    FunctionSpec {
        name: "echo".into(),
        // Beside this test's own directory; `cargo test` builds the examples, `cargo test --lib` alone does not.
        binary: test.ancestors().nth(2).unwrap().join("examples/echo"),
        env: BTreeMap::new(),
        timeout: seconds(5),
        memory_mb: 128,
        max_instances: 1,
    }
}

fn started(spec: FunctionSpec) -> Function {
    Function::start(spec).expect("cargo test builds examples/echo.rs")
}

fn pid(invocation: &Invocation) -> u64 {
    invocation.result.as_ref().expect("an answer")["pid"].as_u64().expect("a pid")
}

fn runs(pid: u64) -> bool {
    let asked = std::process::Command::new("sh").args(["-c", &format!("kill -0 {pid}")]).output();
    asked.unwrap().status.success()
}

async fn ends(pid: u64) -> bool {
    for _ in 0..200 {
        if !runs(pid) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

#[test]
fn a_missing_binary_is_named_at_the_start() {
    let error = Function::start(FunctionSpec { binary: "no/such/file".into(), ..echo() }).unwrap_err();
    assert!(error.to_string().contains("no/such/file of echo"), "{error}");
}

#[tokio::test]
async fn hands_over_the_event_with_a_true_deadline() {
    let function = started(echo());
    let before = real_now().timestamp_millis();
    let answer = function.invoke(&json!({"n": 7})).await.result.unwrap();
    let after = real_now().timestamp_millis();
    assert_eq!(answer["event"], json!({"n": 7}));
    assert_eq!(answer["arn"], "arn:aws:lambda:us-east-1:123456789012:function:echo");
    let deadline = answer["deadline_ms"].as_i64().unwrap();
    assert!((before + 5_000..=after + 5_000).contains(&deadline), "{before} {deadline} {after}");
}

#[tokio::test]
async fn sets_only_lambdas_environment_and_the_given_one() {
    let env = BTreeMap::from([("MINE".into(), "1".into()), ("AWS_REGION".into(), "eu-west-1".into())]);
    let answer = started(FunctionSpec { env, ..echo() }).invoke(&json!({})).await.result.unwrap();
    let environment = answer["environment"].as_object().unwrap();
    assert_eq!(environment["MINE"], "1");
    assert_eq!(environment["AWS_REGION"], "eu-west-1", "a given value wins");
    assert_eq!(environment["AWS_LAMBDA_LOG_GROUP_NAME"], "/aws/lambda/echo");
    assert!(answer["arn"].as_str().unwrap().contains(":eu-west-1:"), "{}", answer["arn"]);
    assert!(!environment.contains_key("AWS_EXECUTION_ENV"));
    assert!(!environment.contains_key("PATH"), "nothing of the test's own environment");
}

#[tokio::test]
async fn reuses_the_warm_process_until_it_is_killed() {
    let function = started(echo());
    let cold = function.invoke(&json!({})).await;
    let warm = function.invoke(&json!({})).await;
    assert_eq!(pid(&cold), pid(&warm));
    assert!(cold.init_duration.is_some() && warm.init_duration.is_none());
    function.kill_idle();
    let fresh = function.invoke(&json!({})).await;
    assert_ne!(pid(&warm), pid(&fresh));
    assert!(fresh.init_duration.is_some());
}

#[tokio::test]
async fn a_reported_error_is_passed_on_and_the_process_stays_warm() {
    let function = started(echo());
    let before = pid(&function.invoke(&json!({})).await);
    let failed = function.invoke(&json!({"do": "fail"})).await;
    assert!(
        matches!(&failed.result, Err(FunctionError::Unhandled { message, .. }) if message == "the disk is full"),
        "{failed:?}"
    );
    assert_eq!(pid(&function.invoke(&json!({})).await), before);
}

#[tokio::test]
async fn kills_the_process_at_the_deadline() {
    let function = started(FunctionSpec { timeout: Duration::from_millis(300), ..echo() });
    let before = pid(&function.invoke(&json!({})).await);
    let late = function.invoke(&json!({"do": "sleep", "ms": 60_000})).await;
    assert_eq!(late.result, Err(FunctionError::TimedOut));
    assert!((300..2_000).contains(&late.duration.as_millis()), "{:?}", late.duration);
    assert!(!runs(before));
    assert_ne!(pid(&function.invoke(&json!({})).await), before);
}

#[tokio::test]
async fn a_crash_is_told_from_an_error_and_the_next_process_is_fresh() {
    let function = started(echo());
    let crashed = function.invoke(&json!({"do": "exit"})).await.result;
    assert_eq!(crashed, Err(FunctionError::Exited { phase: Phase::Invoke, detail: "exit status: 3".into() }));
    assert!(function.invoke(&json!({})).await.result.is_ok());
}

#[tokio::test]
async fn an_end_in_the_cold_start_is_told_from_a_crash() {
    let env = BTreeMap::from([("EXIT_IN_INIT".into(), "4".into())]);
    let invocation = started(FunctionSpec { env, ..echo() }).invoke(&json!({})).await;
    let expected = FunctionError::Exited { phase: Phase::Init, detail: "exit status: 4".into() };
    assert_eq!(invocation.result, Err(expected));
    assert!(invocation.logs[0].starts_with("started as "), "{:?}", invocation.logs);
}

#[tokio::test]
async fn an_answer_above_lambdas_limit_is_an_error() {
    let result = started(echo()).invoke(&json!({"do": "grow"})).await.result;
    assert!(
        matches!(&result, Err(FunctionError::Unhandled { error_type, .. }) if error_type.contains("SizeTooLarge")),
        "{result:?}"
    );
}

#[tokio::test]
async fn waits_in_line_while_all_instances_are_busy() {
    let function = started(echo());
    let nap = json!({"do": "sleep", "ms": 200});
    let (first, second) = tokio::join!(function.invoke(&nap), function.invoke(&nap));
    assert_eq!(pid(&first), pid(&second), "one instance served both");
}

#[tokio::test]
async fn runs_up_to_max_instances_at_once_and_throttles_beyond() {
    let function = started(FunctionSpec { max_instances: 2, ..echo() });
    let nap = json!({"do": "sleep", "ms": 200});
    let (first, second, third) =
        tokio::join!(function.invoke_now(&nap), function.invoke_now(&nap), function.invoke_now(&nap));
    assert_ne!(pid(&first), pid(&second));
    assert_eq!(third.result, Err(FunctionError::Throttled));
}

#[tokio::test]
async fn each_invocation_has_its_own_lines_in_order() {
    let function = started(echo());
    let first = function.invoke(&json!({"do": "print"})).await.logs;
    assert!(first[0].starts_with("started as "), "{first:?}");
    assert_eq!(first[1..], ["to stdout", "to stderr", "without a line end"]);
    assert!(function.invoke(&json!({})).await.logs.is_empty());
    let third = function.invoke(&json!({"do": "print"})).await.logs;
    assert_eq!(third, first[1..]);
    assert_eq!(function.logs(), [first, third].concat());
}

#[tokio::test]
async fn dropping_the_function_ends_its_processes() {
    let function = started(echo());
    let pid = pid(&function.invoke(&json!({})).await);
    assert!(runs(pid));
    drop(function);
    assert!(ends(pid).await);
}

#[tokio::test]
async fn giving_up_an_invocation_ends_its_process_and_frees_its_slot() {
    let function = started(echo());
    let pid = pid(&function.invoke(&json!({})).await);
    let nap = json!({"do": "sleep", "ms": 60_000});
    tokio::time::timeout(Duration::from_millis(100), function.invoke(&nap)).await.unwrap_err();
    assert!(ends(pid).await);
    assert!(function.invoke_now(&json!({})).await.result.is_ok());
}
