//! What every function has at hand: configuration, clients and the clock.

use super::deadline::time_left;
use super::{Aws, Clock, ClockFault};
use crate::config::{Config, ConfigFaults, environment};
use crate::domain::{Instant, RunId};
use crate::run::{Context, Outcome, Run};
use crate::telemetry;
use std::io::Write as _;
use std::time::{Duration, Instant as Moment};

/// A function's standing parts, made once a cold start.
#[derive(Debug, Clone)]
pub struct Controller {
    /// The valid configuration.
    pub config: Config,
    /// The executor.
    pub aws: Aws,
    clock: Clock,
}

impl Controller {
    /// Reads the environment and makes the clients.
    ///
    /// # Errors
    /// Every fault of the configuration at once.
    pub async fn start() -> Result<Self, ConfigFaults> {
        let vars = environment();
        let config = Config::from_vars(&vars)?;
        let aws = Aws::from_vars(&vars, &config);
        Ok(Self { aws, clock: Clock::new(config.clock_url.as_deref()), config })
    }

    /// The context of one run.
    ///
    /// # Errors
    /// The virtual clock does not answer.
    pub async fn context(&self, request_id: &str, deadline_ms: u64) -> Result<Context, ClockFault> {
        Ok(Context {
            run: RunId(request_id.to_owned()),
            now: self.clock.now().await?,
            time_out: time_left(deadline_ms),
            policy: self.config.policy.clone(),
            pools: self.config.pool_policies(),
            prices: self.config.prices.clone(),
        })
    }

    /// Drives a run to its end before Lambda's deadline.
    pub async fn drive(&self, run: &mut impl Run, deadline_ms: u64) -> Outcome {
        self.aws.drive(run, time_left(deadline_ms)).await
    }

    /// Drives one scheduled run to its end and writes its lines to the log.
    ///
    /// # Errors
    /// The run could not do its job, something could not be written, or nobody could be told: the failure has to show in the
    /// function's error metric. What could be done was.
    pub async fn scheduled<R: Run>(
        &self,
        function: &str,
        request_id: &str,
        deadline_ms: u64,
        run: impl FnOnce(Context) -> R,
    ) -> Result<Outcome, Box<dyn std::error::Error + Send + Sync>> {
        let started = Moment::now();
        let context = self.context(request_id, deadline_ms).await?;
        let now = context.now;
        let outcome = self.drive(&mut run(context), deadline_ms).await;
        self.log(function, now, &outcome, started.elapsed());
        match outcome.blind.as_ref().or(outcome.unrecorded.as_ref()) {
            Some(error) => Err(error.clone().into()),
            None => Ok(outcome),
        }
    }

    /// Writes the lines of one run to the log, and each failure with its code: nobody else logs what ends a run.
    pub fn log(&self, function: &str, now: Instant, outcome: &Outcome, took: Duration) {
        let mut out = std::io::stdout().lock();
        for line in telemetry::lines(function, now, outcome, took) {
            // A log that cannot be written has nobody to be told.
            let _ = writeln!(out, "{line}");
        }
        for error in &outcome.failed {
            tracing::warn!(code = %error.code, class = ?error.class, "{error}");
        }
        if let Some(error) = outcome.blind.as_ref().or(outcome.unrecorded.as_ref()) {
            tracing::error!(code = %error.code, class = ?error.class, "{error}");
        }
    }
}
