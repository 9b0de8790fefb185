//! What every command needs: credentials and region as the AWS tools take them, the settings of the deployment, the time.

use super::aws::{Functions, whoami};
use super::fault::{Fault, line};
use aws_config::{Region, SdkConfig};
use aws_sdk_ec2::config::ProvideCredentials as _;
use clap::Args;
use reveille::aws::{Aws, Clock, sdk_loader};
use reveille::config::{CLOCK, Config, ConfigFaults, POOLS, REGION, environment};
use reveille::domain::{Instant, PoolName, RunId};
use reveille::operator::CLASS;
use reveille::run::Context;
use std::collections::BTreeMap;

const NAME_HELP: &str = "The deployment, `reveille` if not given: its settings are read from the function NAME-idle-check, unless this shell has REVEILLE_POOLS";

/// Which deployment is meant, and how it is reached.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Where")]
pub(crate) struct Reach {
    #[arg(long, help = NAME_HELP)]
    pub(crate) name: Option<String>,
    /// The region; else AWS_REGION, or the profile's
    #[arg(long)]
    pub(crate) region: Option<String>,
    /// The profile of the AWS tools; else AWS_PROFILE
    #[arg(long)]
    pub(crate) profile: Option<String>,
    /// Prints JSON instead of tables
    #[arg(long)]
    pub(crate) json: bool,
}

/// Whoever operates it, at one instant.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) name: String,
    pub(crate) region: String,
    pub(crate) sdk: SdkConfig,
    pub(crate) functions: Functions,
    pub(crate) config: Config,
    pub(crate) aws: Aws,
    clock: Clock,
    pub(crate) now: Instant,
    /// The settings are this shell's, and no deployment is named: what is looked at may not be what is asked.
    is_ambiguous: bool,
}

impl Reach {
    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or("reveille")
    }
}

/// The connection before the settings are read.
pub(crate) struct Connection {
    pub(crate) sdk: SdkConfig,
    pub(crate) region: String,
    pub(crate) functions: Functions,
    shell: BTreeMap<String, String>,
}

impl Connection {
    /// # Errors
    /// There is no region, or there are no credentials.
    pub(crate) async fn open(reach: &Reach) -> Result<Self, Fault> {
        let mut loader = sdk_loader();
        if let Some(region) = &reach.region {
            loader = loader.region(Region::new(region.clone()));
        }
        if let Some(profile) = &reach.profile {
            loader = loader.profile_name(profile);
        }
        let sdk = loader.load().await;
        let region = sdk.region().map(|region| region.as_ref().to_owned()).ok_or_else(|| {
            Fault::Usage("no region: give --region, set AWS_REGION, or name a profile that has one".to_owned())
        })?;
        let provider = sdk.credentials_provider().ok_or_else(|| no_credentials(reach, NOTHING_FOUND))?;
        provider.provide_credentials().await.map_err(|error| no_credentials(reach, &chain(&error)))?;
        let functions = Functions::new(&sdk, reach.name());
        Ok(Self { sdk, region, functions, shell: environment() })
    }

    /// The variables of the settings: of this shell if it has pools, else of the deployed function.
    ///
    /// # Errors
    /// The function is not there or may not be read.
    pub(crate) async fn variables(&self) -> Result<BTreeMap<String, String>, Fault> {
        let mut variables = if self.shell.contains_key(POOLS) {
            self.shell.clone()
        } else {
            let mut deployed = self.functions.settings(&self.region).await?;
            deployed.extend(self.shell.get_key_value(CLOCK).map(|(name, url)| (name.clone(), url.clone())));
            deployed
        };
        variables.insert(REGION.to_owned(), self.region.clone());
        Ok(variables)
    }
}

impl Session {
    /// # Errors
    /// No region, no credentials, no such deployment, or settings that are wrong.
    pub(crate) async fn open(reach: &Reach) -> Result<Self, Fault> {
        let connection = Connection::open(reach).await?;
        let config = Config::from_vars(&connection.variables().await?)?;
        Self::with(connection, reach, config).await
    }

    pub(crate) async fn with(connection: Connection, reach: &Reach, config: Config) -> Result<Self, Fault> {
        let Connection { sdk, region, functions, shell } = connection;
        let is_ambiguous = shell.contains_key(POOLS) && reach.name.is_none();
        let clock = Clock::new(config.clock_url.as_deref());
        let now = clock.now().await.map_err(|fault| Fault::Aws(fault.to_string()))?;
        let aws = Aws::with(&sdk, &config);
        Ok(Self { name: reach.name().to_owned(), region, sdk, functions, config, aws, clock, now, is_ambiguous })
    }

    /// Looks at the clock again.
    ///
    /// # Errors
    /// The virtual clock does not answer.
    pub(crate) async fn look_at_the_clock(&mut self) -> Result<(), Fault> {
        self.now = self.clock.now().await.map_err(|fault| Fault::Aws(fault.to_string()))?;
        Ok(())
    }

    /// The context of a run that only looks.
    pub(crate) fn context(&self) -> Context {
        Context {
            run: RunId("reveille-cli".to_owned()),
            now: self.now,
            time_out: chrono::TimeDelta::seconds(60),
            policy: self.config.policy.clone(),
            pools: self.config.pool_policies(),
            prices: self.config.prices.clone(),
        }
    }

    /// The pool that is meant.
    ///
    /// # Errors
    /// None is named and there are several, or there is none of that name.
    pub(crate) fn pool(&self, named: Option<&str>) -> Result<PoolName, Fault> {
        let known = || self.config.pools.keys().map(PoolName::as_str).collect::<Vec<_>>().join(", ");
        match named {
            Some(name) => {
                let found = self.config.pools.keys().find(|pool| pool.as_str() == name);
                found.cloned().ok_or_else(|| Fault::Usage(format!("no pool {:?}; there is {}", line(name), known())))
            }
            None => self
                .config
                .default_pool
                .clone()
                .ok_or_else(|| Fault::Usage(format!("there are several pools: name one with --pool ({})", known()))),
        }
    }

    /// # Errors
    /// It is not sure which deployment is meant.
    pub(crate) fn sure(&self) -> Result<(), Fault> {
        if !self.is_ambiguous {
            return Ok(());
        }
        let wake = self.functions.full_name("wake");
        Err(Fault::Usage(format!(
            "REVEILLE_POOLS is set in this shell: unset it, or give --name if {wake} has these pools"
        )))
    }

    /// Who asks, by the role or user that AWS knows him by.
    ///
    /// # Errors
    /// AWS does not say.
    pub(crate) async fn by(&self) -> Result<String, Fault> {
        Ok(format!("{CLASS}{}", whoami(&self.sdk).await?))
    }
}

impl From<Vec<String>> for Fault {
    fn from(faults: Vec<String>) -> Self {
        ConfigFaults(faults).into()
    }
}

/// What the SDK says where it has looked everywhere.
const NOTHING_FOUND: &str = "no credentials found in chain";

fn no_credentials(reach: &Reach, why: &str) -> Fault {
    let of_profile =
        reach.profile.as_ref().map_or_else(String::new, |profile| format!(" for profile {}", line(profile)));
    let why = if why.contains(NOTHING_FOUND) { String::new() } else { format!(" ({})", line(why)) };
    Fault::Usage(format!(
        "no AWS credentials{of_profile}{why}: sign in as for the aws command (aws sso login), or set AWS_PROFILE or the keys"
    ))
}

/// The error and what it says of its causes.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut texts = vec![error.to_string()];
    let mut next = error.source();
    while let Some(source) = next {
        texts.push(source.to_string());
        next = source.source();
    }
    texts.dedup();
    texts.join(": ")
}
