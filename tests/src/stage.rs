//! A local AWS with the two built functions on it, seeded with plain API calls.

use crate::local_aws::LocalAws;
use crate::runtime_api::{Function, FunctionSpec, Invocation};
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_cloudwatch::primitives::DateTime as SdkDateTime;
use aws_sdk_cloudwatch::types::{Dimension, MetricDatum};
use aws_sdk_dynamodb::types::{AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType};
use aws_sdk_ec2::config::Credentials;
use aws_sdk_ec2::types::{
    BlockDeviceMapping, EbsBlockDevice, InstanceType, ResourceType, Tag, TagSpecification, VolumeType,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, Utc};
use reveille::config::Config;
use reveille::domain::NodeId;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The ledger's table.
pub const TABLE: &str = "reveille-ledger";
/// The request log that may wake the pool.
pub const LOG_GROUP: &str = "/app/front";
/// The load balancer in the metrics' dimensions.
pub const LOAD_BALANCER: &str = "app/voice/0123456789abcdef";
const REGION: &str = "us-east-1";

/// The stage's budget: more than any test spends unless it wants to.
pub const BUDGET: &str = r#"{"amount": 1000, "currency": "USD", "mail": ["ops@example.com"]}"#;

/// The token that the stage's wake function takes, as the files of `events/wake` carry it.
pub const TOKEN: &str = "reveille-test-token";
/// The stage's `REVEILLE_TOKEN_SHA256`: the name and the hash of [`TOKEN`].
pub const TOKEN_SHA256: &str = r#"{"stage": "30cba0df552d3e97d70ccf969cdf28d2db4b7c7ab183449cad90ba1695f68281"}"#;

/// Anything that goes wrong while the stage is set.
pub type StageResult<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The stage.
#[derive(Debug)]
pub struct Stage {
    /// The local AWS.
    pub aws: LocalAws,
    /// The wake function.
    pub wake: Arc<Function>,
    /// The idle check.
    pub idle: Function,
    /// The uptime alarm.
    pub uptime: Function,
    /// The budget guard.
    pub budget: Function,
    /// The variables both functions have.
    pub vars: BTreeMap<String, String>,
    /// What seeds the local AWS, and an executor's clients in tests.
    pub sdk: SdkConfig,
}

/// The folder of the project.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the project's folder").to_owned()
}

/// A built function of the profile that this program was built in.
///
/// # Errors
/// It is not built; says how.
pub fn binary(name: &str) -> io::Result<PathBuf> {
    let here = std::env::current_exe()?;
    let mut folders = here.ancestors().skip(1).take(2);
    folders.find_map(|folder| Some(folder.join(name)).filter(|path| path.is_file())).ok_or_else(|| {
        io::Error::other(format!("function {name} is not built: run `cargo build --workspace --bins`, or `make test`"))
    })
}

/// The `REVEILLE_POOLS` of the stage: pool `voice`, seen through a load balancer, woken by `/app/front`.
pub fn voice_pools() -> Value {
    let mut voice = pool_behind(LOAD_BALANCER);
    voice["log_groups"] = json!([LOG_GROUP]);
    voice["wake"] = json!({"paths": ["/v1/calls"]});
    json!({"voice": voice})
}

/// A pool whose requests and open calls are seen through this load balancer.
pub fn pool_behind(load_balancer: &str) -> Value {
    let metric = |name: &str| json!({"namespace": "AWS/ApplicationELB", "metric": name, "dimensions": {"LoadBalancer": load_balancer}});
    let signal = |name: &str| {
        let mut signal = metric(name);
        signal["alive"] = metric("HealthyHostCount");
        signal
    };
    json!({"requests": [signal("RequestCount")], "open": [signal("ActiveConnectionCount")]})
}

impl Stage {
    /// Sets the stage with pool `voice` and the default limits.
    ///
    /// # Errors
    /// The local AWS does not start, or a function is not built.
    pub async fn open(now: DateTime<Utc>) -> StageResult<Self> {
        Self::open_with(now, &voice_pools(), &[]).await
    }

    /// Sets the stage with these pools and further variables.
    ///
    /// # Errors
    /// As [`Stage::open`].
    pub async fn open_with(now: DateTime<Utc>, pools: &Value, more: &[(&str, &str)]) -> StageResult<Self> {
        let aws = LocalAws::start_at(&root(), now).await?;
        let sdk = sdk_config(aws.endpoint()).await;
        create_table(&sdk).await?;
        let topic_arn = create_topic(&sdk).await?;
        let mut vars = BTreeMap::from([
            ("AWS_ENDPOINT_URL".to_owned(), aws.endpoint().to_owned()),
            ("AWS_REGION".to_owned(), REGION.to_owned()),
            ("AWS_DEFAULT_REGION".to_owned(), REGION.to_owned()),
            ("REVEILLE_CLOCK_URL".to_owned(), format!("{}/local-aws/clock", aws.endpoint())),
            ("REVEILLE_POOLS".to_owned(), pools.to_string()),
            ("REVEILLE_TABLE".to_owned(), TABLE.to_owned()),
            ("REVEILLE_ALERT_TOPIC_ARN".to_owned(), topic_arn),
            ("REVEILLE_BUDGET".to_owned(), BUDGET.to_owned()),
            ("REVEILLE_ACCESS".to_owned(), "token".to_owned()),
            ("REVEILLE_TOKEN_SHA256".to_owned(), TOKEN_SHA256.to_owned()),
        ]);
        vars.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let wake = Arc::new(function("wake", &vars, 16)?);
        let idle = function("idle-check", &vars, 2)?;
        let uptime = function("uptime-alarm", &vars, 1)?;
        let budget = function("budget-guard", &vars, 1)?;
        Ok(Self { aws, wake, idle, uptime, budget, vars, sdk })
    }

    /// A function of its own with further variables; an empty value takes one away.
    ///
    /// # Errors
    /// It is not built.
    pub fn function_with(&self, name: &str, more: &[(&str, &str)]) -> io::Result<Function> {
        let mut vars = self.vars.clone();
        vars.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        function(name, &vars, 1)
    }

    /// Deploys the budget guard anew with another budget.
    ///
    /// # Errors
    /// It is not built.
    pub fn give_budget(&mut self, budget: &str) -> io::Result<()> {
        self.vars.insert("REVEILLE_BUDGET".to_owned(), budget.to_owned());
        self.budget = self.function_with("budget-guard", &[])?;
        Ok(())
    }

    /// Makes it an empty account again, at the time it began with, and clears away what the async runtime of an earlier
    /// test has left: the clients' connections. The functions are of no use in another runtime than their own.
    ///
    /// # Errors
    /// The local AWS refused.
    pub async fn reset(&mut self) -> StageResult<()> {
        self.aws.reset().await;
        self.sdk = sdk_config(self.aws.endpoint()).await;
        create_table(&self.sdk).await?;
        create_topic(&self.sdk).await?;
        Ok(())
    }

    /// The configuration that the functions read.
    pub fn config(&self) -> Config {
        Config::from_vars(&self.vars).expect("the stage's variables are valid")
    }

    /// Launches a node and, unless it is to run, stops it; the virtual clock moves by a few minutes.
    ///
    /// # Errors
    /// The local AWS refused.
    pub async fn add_node(&self, name: &str, pool: &str, running: bool) -> StageResult<NodeId> {
        let ec2 = aws_sdk_ec2::Client::new(&self.sdk);
        let tag = |key: &str, value: &str| Tag::builder().key(key).value(value).build();
        let tags = TagSpecification::builder()
            .resource_type(ResourceType::Instance)
            .tags(tag("Name", name))
            .tags(tag("reveille:pool", pool))
            .build();
        let launched = ec2
            .run_instances()
            .image_id("ami-12c6146b")
            .instance_type(InstanceType::G6Xlarge)
            .block_device_mappings(root_volume())
            .min_count(1)
            .max_count(1)
            .tag_specifications(tags)
            .send()
            .await?;
        let id =
            launched.instances().first().and_then(|instance| instance.instance_id()).ok_or("no instance")?.to_owned();
        self.pass(chrono::TimeDelta::minutes(2)).await;
        if !running {
            ec2.stop_instances().instance_ids(&id).send().await?;
            self.pass(chrono::TimeDelta::minutes(2)).await;
        }
        Ok(NodeId::new(id)?)
    }

    /// Launches so many nodes of one pool at once; they are pending.
    ///
    /// # Errors
    /// The local AWS refused.
    pub async fn launch(&self, pool: &str, nodes: i32) -> StageResult<()> {
        let tag = Tag::builder().key("reveille:pool").value(pool).build();
        let tags = TagSpecification::builder().resource_type(ResourceType::Instance).tags(tag).build();
        let launch = aws_sdk_ec2::Client::new(&self.sdk).run_instances().image_id("ami-12c6146b");
        let launch = launch.instance_type(InstanceType::G6Xlarge).block_device_mappings(root_volume());
        launch.min_count(nodes).max_count(nodes).tag_specifications(tags).send().await?;
        Ok(())
    }

    /// A person starts the node in the console.
    ///
    /// # Errors
    /// EC2 refused.
    pub async fn start_by_hand(&self, node: &NodeId) -> StageResult<()> {
        aws_sdk_ec2::Client::new(&self.sdk).start_instances().instance_ids(node.as_str()).send().await?;
        Ok(())
    }

    /// EC2's own word for the node's state.
    ///
    /// # Errors
    /// The local AWS refused.
    pub async fn state(&self, node: &NodeId) -> StageResult<String> {
        let ec2 = aws_sdk_ec2::Client::new(&self.sdk);
        let found = ec2.describe_instances().instance_ids(node.as_str()).send().await?;
        let instance = found.reservations().iter().flat_map(|reservation| reservation.instances()).next();
        let name = instance.and_then(|instance| instance.state()).and_then(|state| state.name());
        Ok(name.ok_or("no such node")?.as_str().to_owned())
    }

    /// Moves the clock on and returns the EC2 events on the way; nobody is told of them.
    pub async fn pass(&self, time: chrono::TimeDelta) -> Vec<Value> {
        let now = self.aws.now().await;
        self.aws.set_clock(now + time).await
    }

    /// Moves the clock on and gives each EC2 event to the wake function, as its rule does.
    pub async fn pass_with_events(&self, time: chrono::TimeDelta) -> Vec<Invocation> {
        let mut invocations = Vec::new();
        for event in self.pass(time).await {
            invocations.push(self.wake.invoke(&event).await);
        }
        invocations
    }

    /// Points of the pool's load balancer, each at the start of its minute.
    ///
    /// # Errors
    /// The local AWS refused.
    pub async fn put_points(&self, points: &[(&str, DateTime<Utc>, f64)]) -> StageResult<()> {
        self.put_points_of(LOAD_BALANCER, points).await
    }

    /// Points of another load balancer.
    ///
    /// # Errors
    /// The local AWS refused.
    pub async fn put_points_of(&self, balancer: &str, points: &[(&str, DateTime<Utc>, f64)]) -> StageResult<()> {
        let dimension = Dimension::builder().name("LoadBalancer").value(balancer).build();
        let data = points.iter().map(|(metric, at, value)| {
            MetricDatum::builder()
                .metric_name(*metric)
                .timestamp(SdkDateTime::from_secs(at.timestamp()))
                .value(*value)
                .dimensions(dimension.clone())
                .build()
        });
        let cloudwatch = aws_sdk_cloudwatch::Client::new(&self.sdk);
        cloudwatch
            .put_metric_data()
            .namespace("AWS/ApplicationELB")
            .set_metric_data(Some(data.collect()))
            .send()
            .await?;
        Ok(())
    }

    /// The load balancer's proof of life for every minute from `from` to now.
    ///
    /// # Errors
    /// The local AWS refused.
    pub async fn prove_alive(&self, from: DateTime<Utc>) -> StageResult<()> {
        let now = self.aws.now().await;
        let minutes = (now - from).num_minutes().max(1);
        let points: Vec<_> =
            (0..minutes).map(|minute| ("HealthyHostCount", from + chrono::TimeDelta::minutes(minute), 1.0)).collect();
        for some in points.chunks(500) {
            self.put_points(some).await?;
        }
        Ok(())
    }

    /// One scheduled run of the idle check.
    pub async fn tick(&self) -> Invocation {
        self.idle.invoke(&json!({"version": "0", "id": "e-1", "detail-type": "Scheduled Event", "source": "aws.events", "detail": {}})).await
    }

    /// One scheduled run of the uptime alarm.
    pub async fn look_at_uptime(&self) -> Invocation {
        self.uptime.invoke(&json!({})).await
    }

    /// One scheduled run of the budget guard.
    pub async fn look_at_budget(&self) -> Invocation {
        self.budget.invoke(&json!({})).await
    }

    /// `POST /wake` with this body; the status and the answer.
    pub async fn prewarm(&self, body: &Value) -> (u16, Value, Invocation) {
        self.request("POST", "/wake", body).await
    }

    /// `GET /status`.
    pub async fn status(&self) -> (u16, Value, Invocation) {
        self.request("GET", "/status", &Value::Null).await
    }

    /// A request to the function URL, with the stage's token.
    pub async fn request(&self, method: &str, path: &str, body: &Value) -> (u16, Value, Invocation) {
        let invocation = self.wake.invoke(&url_event(method, path, body)).await;
        let (status, answer) = http_answer(&invocation);
        (status, answer, invocation)
    }

    /// A subscription batch with these lines, all at the present instant.
    pub async fn log_lines(&self, group: &str, lines: &[String]) -> Invocation {
        let at = self.aws.now().await.timestamp_millis();
        let events: Vec<Value> = lines
            .iter()
            .enumerate()
            .map(|(n, line)| json!({"id": format!("{n:056}"), "timestamp": at, "message": line}))
            .collect();
        self.wake.invoke(&log_batch(group, &events)).await
    }
}

/// A request to the function URL as Lambda hands it over, with the stage's token.
pub fn url_event(method: &str, path: &str, body: &Value) -> Value {
    let body = if body.is_null() { Value::Null } else { json!(body.to_string()) };
    json!({"version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": "",
        "headers": {"content-type": "application/json", "authorization": format!("Bearer {TOKEN}")},
        "requestContext": {"http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1", "userAgent": "app"}},
        "body": body, "isBase64Encoded": false})
}

/// Status and JSON body of a function-URL answer; 0 where the function failed.
pub fn http_answer(invocation: &Invocation) -> (u16, Value) {
    let Ok(reply) = &invocation.result else { return (0, Value::Null) };
    let status = reply["statusCode"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(0);
    let body = reply["body"].as_str().and_then(|body| serde_json::from_str(body).ok()).unwrap_or(Value::Null);
    (status, body)
}

/// A subscription batch as Lambda gets it: base64 around gzip around JSON, its fields in the order of CloudWatch Logs.
pub fn log_batch(group: &str, events: &[Value]) -> Value {
    let events: Vec<String> = events.iter().map(in_order).collect();
    let batch = format!(
        r#"{{"messageType":"DATA_MESSAGE","owner":"000000000000","logGroup":{},"logStream":"front-1","subscriptionFilters":["reveille"],"logEvents":[{}]}}"#,
        json!(group),
        events.join(",")
    );
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(batch.as_bytes()).expect("writing to memory cannot fail");
    json!({"awslogs": {"data": STANDARD.encode(gzip.finish().expect("writing to memory cannot fail"))}})
}

/// The text of an event: id, time and message, then whatever else it has.
fn in_order(event: &Value) -> String {
    const FIRST: [&str; 3] = ["id", "timestamp", "message"];
    let Some(fields) = event.as_object() else { return event.to_string() };
    let first = FIRST.into_iter().filter_map(|name| fields.get_key_value(name));
    let rest = fields.iter().filter(|(name, _)| !FIRST.contains(&name.as_str()));
    let texts: Vec<String> = first.chain(rest).map(|(name, value)| format!("{}:{value}", json!(name))).collect();
    format!("{{{}}}", texts.join(","))
}

/// What a GPU node starts faster from than from gp3's free 3,000 operations and 125 MiB a second.
fn root_volume() -> BlockDeviceMapping {
    let volume = EbsBlockDevice::builder().volume_type(VolumeType::Gp3).volume_size(100).iops(4000).throughput(250);
    BlockDeviceMapping::builder().device_name("/dev/sda1").ebs(volume.build()).build()
}

async fn sdk_config(endpoint: &str) -> SdkConfig {
    aws_config::defaults(BehaviorVersion::latest())
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .endpoint_url(endpoint)
        .region(Region::new(REGION))
        .credentials_provider(Credentials::new("local", "local", None, None, "stage"))
        .load()
        .await
}

async fn create_topic(sdk: &SdkConfig) -> StageResult<String> {
    let topic = aws_sdk_sns::Client::new(sdk).create_topic().name("reveille-alerts").send().await?;
    Ok(topic.topic_arn().ok_or("no topic")?.to_owned())
}

async fn create_table(sdk: &SdkConfig) -> StageResult<()> {
    let key = |name: &str, kind: KeyType| KeySchemaElement::builder().attribute_name(name).key_type(kind).build();
    let text =
        |name: &str| AttributeDefinition::builder().attribute_name(name).attribute_type(ScalarAttributeType::S).build();
    aws_sdk_dynamodb::Client::new(sdk)
        .create_table()
        .table_name(TABLE)
        .billing_mode(BillingMode::PayPerRequest)
        .key_schema(key("pk", KeyType::Hash)?)
        .key_schema(key("sk", KeyType::Range)?)
        .attribute_definitions(text("pk")?)
        .attribute_definitions(text("sk")?)
        .send()
        .await?;
    Ok(())
}

fn function(name: &str, vars: &BTreeMap<String, String>, max_instances: usize) -> io::Result<Function> {
    Function::start(FunctionSpec {
        name: name.to_owned(),
        binary: binary(name)?,
        env: vars.clone(),
        timeout: Duration::from_secs(30),
        memory_mb: 128,
        max_instances,
    })
}
