//! DynamoDB: the ledger protocol of the design, one expression an operation.

use super::Aws;
use super::demand::Written;
use super::errors::{call_error, malformed, whole};
use super::expression::Expression;
use super::item::{Item, UNTOLD, attribute, fact, from_attribute, record};
use crate::domain::{
    AlertKey, Beat, Claim, ClaimAnswer, Fault, Gate, GateKeeper, Instant, Launch, NodeId, PoolName, PoolRecord, RunId,
};
use crate::error::CallError;
use crate::policy::{KEPT, STALE_LOOK};
use crate::run::{AlertClaimed, BudgetNote, Claimed, Fact, History, Permit, fact_name};
use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::operation::update_item::{UpdateItemError, UpdateItemOutput};
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes, ReturnValue, ReturnValuesOnConditionCheckFailure};
use chrono::{SecondsFormat, SubsecRound as _};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// BatchGetItem takes at most 100 keys.
const MOST_KEYS: usize = 100;
/// An update's expression takes at most 4 KiB and 300 operators. Facts are attributes of their own: what is written in parts
/// is as good as what is written at once.
const MOST_SET: usize = 100;
/// Keys that DynamoDB did not process are asked for again so often; then the read has failed.
const MOST_ROUNDS: usize = 5;

fn text(value: impl Into<String>) -> AttributeValue {
    AttributeValue::S(value.into())
}

fn number(value: impl ToString) -> AttributeValue {
    AttributeValue::N(value.to_string())
}

pub(super) fn pool_key(pool: &PoolName) -> Item {
    Item::from([("pk".to_owned(), text(format!("pool#{pool}"))), ("sk".to_owned(), text("-"))])
}

/// Where a node's beat stands.
pub(super) fn beat_key(node: &NodeId) -> Item {
    Item::from([("pk".to_owned(), text(format!("beat#{node}"))), ("sk".to_owned(), text("-"))])
}

impl Aws {
    pub(super) fn update(&self, key: Item) -> UpdateItemFluentBuilder {
        self.dynamodb.update_item().table_name(&self.table).set_key(Some(key))
    }

    /// One consistent batch read; a pool without an item has an empty record.
    pub(super) async fn read_ledger(
        &self,
        pools: &BTreeSet<PoolName>,
    ) -> Result<BTreeMap<PoolName, PoolRecord>, CallError> {
        let mut records: BTreeMap<PoolName, PoolRecord> =
            pools.iter().map(|pool| (pool.clone(), PoolRecord::default())).collect();
        for (pool, item) in self.read_items("read ledger", "pool#", pools.iter().map(pool_key).collect()).await? {
            if let Ok(pool) = PoolName::new(pool) {
                records.insert(pool, record(item));
            }
        }
        Ok(records)
    }

    /// One consistent batch read; a beat that cannot be read counts as absent.
    pub(super) async fn read_beats(&self, nodes: &BTreeSet<NodeId>) -> Result<BTreeMap<NodeId, Beat>, CallError> {
        let mut beats = BTreeMap::new();
        for (node, mut item) in self.read_items("read beats", "beat#", nodes.iter().map(beat_key).collect()).await? {
            let beat = item.remove("beat").and_then(from_attribute);
            match NodeId::new(node).ok().zip(beat) {
                Some((node, beat)) => drop(beats.insert(node, beat)),
                None => tracing::warn!("a beat cannot be read"),
            }
        }
        Ok(beats)
    }

    /// The items of these keys that there are, each with what stands behind the prefix of its key.
    async fn read_items(&self, act: &str, prefix: &str, keys: Vec<Item>) -> Result<Vec<(String, Item)>, CallError> {
        let mut found = Vec::new();
        for chunk in keys.chunks(MOST_KEYS) {
            let mut keys = chunk.to_vec();
            for round in 0.. {
                if keys.is_empty() {
                    break;
                }
                if round == MOST_ROUNDS {
                    return Err(malformed(act, "keys were left unprocessed"));
                }
                keys = self.read_batch(act, prefix, keys, &mut found).await?;
            }
        }
        Ok(found)
    }

    /// Reads these keys; the keys that are left.
    async fn read_batch(
        &self,
        act: &str,
        prefix: &str,
        keys: Vec<Item>,
        found: &mut Vec<(String, Item)>,
    ) -> Result<Vec<Item>, CallError> {
        let wanted = KeysAndAttributes::builder().set_keys(Some(keys)).consistent_read(true).build();
        let wanted = wanted.map_err(|error| malformed(act, error))?;
        let sent = self.dynamodb.batch_get_item().request_items(&self.table, wanted).send().await;
        let mut answer = sent.map_err(|error| call_error(act, &error))?;
        let items = answer.responses.take().unwrap_or_default().remove(&self.table).unwrap_or_default();
        for item in items {
            let name = item.get("pk").and_then(|pk| pk.as_s().ok()).and_then(|pk| pk.strip_prefix(prefix));
            found.extend(name.map(str::to_owned).map(|name| (name, item)));
        }
        let left = answer.unprocessed_keys.take().unwrap_or_default().remove(&self.table);
        Ok(left.map(|left| left.keys).unwrap_or_default())
    }

    /// A person's word is unconditional. The budget's is conditional on no person holding the gate; where one does, nothing is
    /// written, and there is no answer. Else it is the item before the write.
    pub(super) async fn set_gate(
        &self,
        pool: &PoolName,
        by: GateKeeper,
        gate: Option<&Gate>,
        now: Instant,
    ) -> Result<Option<PoolRecord>, CallError> {
        let mut expression = Expression::default();
        expression.count(&["claims"])?;
        match gate {
            Some(gate) => expression.set(&["gate"], gate)?,
            None => expression.remove(&["gate"]),
        }
        if by == GateKeeper::Budget {
            let (gate, keeper, until) =
                (expression.path(&["gate"]), expression.path(&["gate", "by"]), expression.path(&["gate", "until"]));
            let (budget, now) = (expression.value(&GateKeeper::Budget)?, expression.value(&now.trunc_subsecs(0))?);
            expression.only_if(format!("attribute_not_exists({gate}) OR {keeper} = {budget} OR {until} <= {now}"));
        }
        Ok(match self.overwrite(pool, &format!("set the gate of pool {pool}"), expression).await? {
            Written::Done(before) => Some(before),
            Written::Not(_) => None,
        })
    }

    /// Ended launches first: where the second write is lost, the next run writes both again, and the same launch written
    /// twice counts once.
    pub(super) async fn note_launches(
        &self,
        pool: &PoolName,
        ended: &[(NodeId, Launch)],
        newest: &[(NodeId, Launch)],
    ) -> Result<(), CallError> {
        for (node, launch) in ended {
            self.put_history(pool, node, launch).await?;
        }
        for some in newest.chunks(MOST_SET) {
            self.note_newest(pool, some).await?;
        }
        Ok(())
    }

    async fn note_newest(&self, pool: &PoolName, newest: &[(NodeId, Launch)]) -> Result<(), CallError> {
        let act = format!("write launches of pool {pool}");
        let mut request = self.update(pool_key(pool));
        let mut set = Vec::new();
        for (n, (node, launch)) in newest.iter().enumerate() {
            set.push(format!("#l{n} = :l{n}"));
            request = request
                .expression_attribute_names(format!("#l{n}"), fact_name("launch", node))
                .expression_attribute_values(
                    format!(":l{n}"),
                    attribute(launch).map_err(|error| malformed(&act, error))?,
                );
        }
        let sent = request.update_expression(format!("SET {}", set.join(", "))).send().await;
        sent.map(|_| ()).map_err(|error| call_error(act, &error))
    }

    /// Keyed by its end, so that all launches that reach into a month are found without those before.
    async fn put_history(&self, pool: &PoolName, node: &NodeId, launch: &Launch) -> Result<(), CallError> {
        let act = format!("write a launch of node {node}");
        let ended = launch.ended_at.unwrap_or(launch.seen_at);
        let sent = self
            .dynamodb
            .put_item()
            .table_name(&self.table)
            .item("pk", text(format!("hist#{pool}")))
            .item("sk", text(format!("{}#{node}", sortable(ended))))
            .item("node", text(node.as_str()))
            .item("launch", attribute(launch).map_err(|error| malformed(&act, error))?)
            .item("expires_at", number((ended + KEPT).timestamp()))
            .send()
            .await;
        sent.map(|_| ()).map_err(|error| call_error(act, &error))
    }

    /// One query a pool, pages to their end.
    pub(super) async fn read_history(&self, pools: &BTreeSet<PoolName>, from: Instant) -> Result<History, CallError> {
        let mut history = History::new();
        for pool in pools {
            let mut pages = self
                .dynamodb
                .query()
                .table_name(&self.table)
                .consistent_read(true)
                .key_condition_expression("pk = :pk AND sk >= :from")
                .expression_attribute_values(":pk", text(format!("hist#{pool}")))
                .expression_attribute_values(":from", text(sortable(from)))
                .into_paginator()
                .send();
            let (launches, mut more) = (history.entry(pool.clone()).or_default(), false);
            while let Some(page) = pages.next().await {
                let page = page.map_err(|error| call_error("read history", &error))?;
                more = page.last_evaluated_key.is_some();
                launches.extend(page.items.unwrap_or_default().into_iter().filter_map(history_entry));
            }
            whole("read history", more)?;
        }
        Ok(history)
    }

    /// What is kept of the AWS budget; nothing is kept of one that was never seen.
    pub(super) async fn read_budget_note(&self, name: &str) -> Result<BudgetNote, CallError> {
        let sent = self
            .dynamodb
            .get_item()
            .table_name(&self.table)
            .set_key(Some(budget_key(name)))
            .consistent_read(true)
            .send()
            .await;
        let answer = sent.map_err(|error| call_error("read the budget's note", &error))?;
        let note = answer.item.and_then(|mut item| item.remove("note"));
        Ok(note.and_then(from_attribute).unwrap_or_default())
    }

    /// Keeps it.
    pub(super) async fn note_budget(&self, name: &str, note: &BudgetNote) -> Result<(), CallError> {
        let act = "note the budget";
        let sent = self
            .update(budget_key(name))
            .update_expression("SET #note = :note")
            .expression_attribute_names("#note", "note")
            .expression_attribute_values(":note", attribute(note).map_err(|error| malformed(act, error))?)
            .send()
            .await;
        sent.map(|_| ()).map_err(|error| call_error(act, &error))
    }

    /// Conditional on the counters; a lost claim brings the item as it is now.
    pub(super) async fn claim(
        &self,
        pool: &PoolName,
        node: &NodeId,
        permit: Permit,
        leased: Option<Instant>,
        claim: &Claim,
    ) -> Result<Claimed, CallError> {
        let act = format!("claim node {node}");
        let mut request = self
            .update(pool_key(pool))
            .update_expression("SET #claims = if_not_exists(#claims, :zero) + :one, #claim = :claim")
            .expression_attribute_names("#claims", "claims")
            .expression_attribute_names("#claim", fact_name("claim", node))
            .expression_attribute_values(":zero", number(0))
            .expression_attribute_values(":one", number(1))
            .expression_attribute_values(":claims", number(permit.claims))
            .expression_attribute_values(":claim", attribute(claim).map_err(|error| malformed(&act, error))?)
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let mut condition = unmoved("claims", permit.claims);
        if let Some(demand) = permit.demand {
            condition = format!("{condition} AND {}", unmoved("demand", demand));
            request = request
                .expression_attribute_names("#demand", "demand")
                .expression_attribute_values(":demand", number(demand))
                .expression_attribute_names("#leased", fact_name("leased", node));
            match leased {
                None => condition.push_str(" AND attribute_not_exists(#leased)"),
                Some(at) => {
                    condition.push_str(" AND #leased = :leased");
                    let at = attribute(&at).map_err(|error| malformed(&act, error))?;
                    request = request.expression_attribute_values(":leased", at);
                }
            }
        }
        match request.condition_expression(condition).send().await {
            Ok(answer) => Ok(Claimed::Granted(record(answer.attributes.unwrap_or_default()))),
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(lost)) => {
                    Ok(Claimed::Lost(record(lost.item().cloned().unwrap_or_default())))
                }
                _ => Err(call_error(act, &error)),
            },
        }
    }

    /// Conditional on the claim being this run's still; where it is not, somebody knows better and nothing is written.
    pub(super) async fn record_answer(
        &self,
        pool: &PoolName,
        node: &NodeId,
        run: &RunId,
        answer: &ClaimAnswer,
        fault: Option<&Fault>,
    ) -> Result<(), CallError> {
        let act = format!("record the answer for node {node}");
        let value = |value| attribute(value).map_err(|error| malformed(&act, error));
        let mut set = "SET #claims = if_not_exists(#claims, :zero) + :one, #claim.#answer = :answer".to_owned();
        let mut request = self
            .update(pool_key(pool))
            .condition_expression("#claim.#run = :run")
            .expression_attribute_names("#claims", "claims")
            .expression_attribute_names("#claim", fact_name("claim", node))
            .expression_attribute_names("#answer", "answer")
            .expression_attribute_names("#run", "run")
            .expression_attribute_values(":zero", number(0))
            .expression_attribute_values(":one", number(1))
            .expression_attribute_values(":run", text(&run.0))
            .expression_attribute_values(":answer", value(answer)?);
        if let Some(fault) = fault {
            set.push_str(", #fault = :fault");
            request = request
                .expression_attribute_names("#fault", fact_name("fault", node))
                .expression_attribute_values(":fault", attribute(fault).map_err(|error| malformed(&act, error))?);
        }
        written_or_not_ours(act, request.update_expression(set).send().await).map(|_| ())
    }

    /// All facts of a pool, in one update but for very many; each is an attribute of its own.
    pub(super) async fn write_facts(&self, pool: &PoolName, facts: &[(NodeId, Fact)]) -> Result<(), CallError> {
        let mut parts = facts.chunks(MOST_SET);
        // Nothing to write is a mistake, which DynamoDB names.
        self.write_some_facts(pool, parts.next().unwrap_or_default()).await?;
        for part in parts {
            self.write_some_facts(pool, part).await?;
        }
        Ok(())
    }

    async fn write_some_facts(&self, pool: &PoolName, facts: &[(NodeId, Fact)]) -> Result<(), CallError> {
        let act = format!("write facts of pool {pool}");
        let (mut set, mut remove) = (Vec::new(), Vec::new());
        let mut request = self.update(pool_key(pool));
        for (n, (node, one)) in facts.iter().enumerate() {
            let (kind, value) = fact(one).map_err(|error| malformed(&act, error))?;
            request = request.expression_attribute_names(format!("#f{n}"), fact_name(kind, node));
            match value {
                Some(value) => {
                    set.push(format!("#f{n} = :f{n}"));
                    request = request.expression_attribute_values(format!(":f{n}"), value);
                }
                None => remove.push(format!("#f{n}")),
            }
        }
        let part = |word: &str, list: &[String]| {
            if list.is_empty() { String::new() } else { format!("{word} {} ", list.join(", ")) }
        };
        let expression = format!("{}{}", part("SET", &set), part("REMOVE", &remove));
        let sent = request.update_expression(expression.trim_end()).send().await;
        sent.map(|_| ()).map_err(|error| call_error(act, &error))
    }

    /// One that was claimed a while ago and never marked is claimed again.
    pub(super) async fn claim_alert(&self, key: &AlertKey, at: Instant) -> Result<AlertClaimed, CallError> {
        let sent = self
            .dynamodb
            .put_item()
            .table_name(&self.table)
            .item("pk", text(&key.0))
            .item("sk", text("-"))
            .item("claimed_at", number(at.timestamp()))
            .item("expires_at", number((at + KEPT).timestamp()))
            .condition_expression(
                "attribute_not_exists(pk) OR (attribute_not_exists(published) AND claimed_at <= :stale)",
            )
            .expression_attribute_values(":stale", number((at - STALE_LOOK).timestamp()))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .send()
            .await;
        match sent {
            Ok(_) => Ok(AlertClaimed::Mine),
            Err(error) => match error.as_service_error() {
                Some(PutItemError::ConditionalCheckFailedException(taken)) => {
                    let published = taken.item().is_some_and(|item| item.contains_key("published"));
                    Ok(if published { AlertClaimed::Published } else { AlertClaimed::Another })
                }
                _ => Err(call_error(format!("claim {}", key.0), &error)),
            },
        }
    }

    /// Keeps a message with its pool, or takes it away; moves no counter.
    pub(super) async fn keep_untold(
        &self,
        pool: &PoolName,
        key: &AlertKey,
        kept: Option<&str>,
    ) -> Result<(), CallError> {
        let request = self
            .update(pool_key(pool))
            .update_expression(if kept.is_some() { "SET #untold = :text" } else { "REMOVE #untold" })
            .expression_attribute_names("#untold", format!("{UNTOLD}{}", key.0))
            .set_expression_attribute_values(kept.map(|kept| HashMap::from([(":text".to_owned(), text(kept))])));
        request.send().await.map(|_| ()).map_err(|error| call_error(format!("keep {}", key.0), &error))
    }

    /// Notes that an alert went out.
    pub(super) async fn mark_published(&self, key: &AlertKey) -> Result<(), CallError> {
        let item = Item::from([("pk".to_owned(), text(&key.0)), ("sk".to_owned(), text("-"))]);
        let sent = self
            .update(item)
            .update_expression("SET published = :yes")
            .expression_attribute_values(":yes", AttributeValue::Bool(true))
            .send()
            .await;
        sent.map(|_| ()).map_err(|error| call_error(format!("mark {} published", key.0), &error))
    }
}

/// A condition that does not hold says that somebody knows better: nothing is written, and nothing is wrong. True where it
/// was written.
fn written_or_not_ours(
    act: String,
    sent: Result<UpdateItemOutput, SdkError<UpdateItemError, HttpResponse>>,
) -> Result<bool, CallError> {
    match sent {
        Ok(_) => Ok(true),
        Err(error) if error.as_service_error().is_some_and(UpdateItemError::is_conditional_check_failed_exception) => {
            Ok(false)
        }
        Err(error) => Err(call_error(act, &error)),
    }
}

fn budget_key(name: &str) -> Item {
    Item::from([("pk".to_owned(), text(format!("budget#{name}"))), ("sk".to_owned(), text("-"))])
}

/// Of one width, so that text sorts as time.
fn sortable(at: Instant) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// One that cannot be read counts as absent: status checks still know the time.
fn history_entry(mut item: Item) -> Option<(NodeId, Launch)> {
    let node = item.remove("node").and_then(|node| NodeId::new(node.as_s().ok()?.as_str()).ok());
    let launch = item.remove("launch").and_then(from_attribute);
    if node.is_none() || launch.is_none() {
        tracing::warn!("a launch in the history cannot be read");
    }
    node.zip(launch)
}

/// The counter still stands where it was read; an absent one stands at zero.
fn unmoved(counter: &str, seen: u64) -> String {
    if seen == 0 {
        format!("(attribute_not_exists(#{counter}) OR #{counter} = :{counter})")
    } else {
        format!("#{counter} = :{counter}")
    }
}
