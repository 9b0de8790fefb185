//! DynamoDB: what people want. Wakes, leases and holds, each one update that moves the demand counter, so that no STOP
//! that was decided without it goes through; a renewal moves only what the STOP of its own node depends on.

use super::Aws;
use super::errors::call_error;
use super::expression::Expression;
use super::item::record;
use super::ledger::pool_key;
use crate::domain::{Hold, Instant, Lease, LeaseId, NodeId, PoolName, PoolRecord, Rate, Wake};
use crate::error::CallError;
use crate::run::{Cap, Demanded, LeaseGround, Leased, Waiting, fact_name};
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{ReturnValue, ReturnValuesOnConditionCheckFailure};
use chrono::SubsecRound as _;
use std::collections::BTreeMap;

/// The item after or before a write, or as it is where the condition did not hold.
pub(super) enum Written {
    Done(PoolRecord),
    Not(PoolRecord),
}

/// The minute may end while a wake is counted, but not this often.
const MOST_COUNTS: usize = 4;

impl Aws {
    async fn write(&self, pool: &PoolName, act: &str, expression: Expression) -> Result<Written, CallError> {
        self.write_and_tell(pool, act, expression, ReturnValue::AllNew).await
    }

    /// Tells of the item as it was before the write.
    pub(super) async fn overwrite(
        &self,
        pool: &PoolName,
        act: &str,
        expression: Expression,
    ) -> Result<Written, CallError> {
        self.write_and_tell(pool, act, expression, ReturnValue::AllOld).await
    }

    async fn write_and_tell(
        &self,
        pool: &PoolName,
        act: &str,
        expression: Expression,
        told: ReturnValue,
    ) -> Result<Written, CallError> {
        let request = expression
            .on(self.update(pool_key(pool)))
            .return_values(told)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        match request.send().await {
            Ok(answer) => Ok(Written::Done(record(answer.attributes.unwrap_or_default()))),
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(not)) => {
                    Ok(Written::Not(record(not.item().cloned().unwrap_or_default())))
                }
                _ => Err(call_error(act.to_owned(), &error)),
            },
        }
    }

    /// Refused by a closed gate, by a caller who asks too often, and by nothing else: demand never loses. The first wake
    /// of a minute begins the count anew; the others count on.
    pub(super) async fn record_demand(
        &self,
        pool: &PoolName,
        node: Option<&NodeId>,
        wake: &Wake,
        cap: Option<&Cap>,
        waiting: &Waiting,
    ) -> Result<Demanded, CallError> {
        let act = format!("record demand of pool {pool}");
        let mut counted_on: Option<i64> = None;
        for _ in 0..MOST_COUNTS {
            let mut expression = demand(node, wake, waiting)?;
            if let Some(cap) = cap {
                count(&mut expression, cap, wake.at, counted_on)?;
            }
            let item = match self.write(pool, &act, expression).await? {
                Written::Done(item) => return Ok(Demanded::Recorded(item)),
                Written::Not(item) => item,
            };
            if item.closed_gate(wake.at).is_some() {
                return Ok(Demanded::Refused(item));
            }
            let rate = item.rate.unwrap_or_default();
            let is_over =
                |cap: &&Cap| rate.all >= cap.all || rate.by.get(&cap.caller).is_some_and(|count| *count >= cap.each);
            if rate.minute >= minute(wake.at) && cap.filter(is_over).is_some() {
                return Ok(Demanded::TooMany);
            }
            counted_on = Some(rate.minute).filter(|known| *known >= minute(wake.at));
        }
        // The count is beside the point: somebody wants a node.
        match self.write(pool, &act, demand(node, wake, waiting)?).await? {
            Written::Done(item) => Ok(Demanded::Recorded(item)),
            Written::Not(item) => Ok(Demanded::Refused(item)),
        }
    }

    /// Given if what it was decided on still stands: the node's claim, room, an open gate.
    pub(super) async fn give_lease(
        &self,
        pool: &PoolName,
        node: &NodeId,
        id: &LeaseId,
        lease: &Lease,
        ground: &LeaseGround,
    ) -> Result<Leased, CallError> {
        let (leases, id) = (fact_name("leases", node), id.as_str());
        let mut expression = Expression::default();
        open_gate(&mut expression, lease.at)?;
        same_claim(&mut expression, node, ground)?;
        expression.count(&["demand"])?;
        expression.set(&[&fact_name("leased", node)], &lease.at)?;
        let map = expression.path(&[&leases]);
        if ground.is_first {
            expression.set(&[&leases], &BTreeMap::from([(id, lease)]))?;
            let zero = expression.value(&0)?;
            expression.only_if(format!("attribute_not_exists({map}) OR size({map}) = {zero}"));
        } else {
            expression.set(&[&leases, id], lease)?;
            let own = expression.path(&[&leases, id]);
            let over = u32::try_from(ground.over.len()).unwrap_or(u32::MAX);
            let room = expression.value(&ground.most.saturating_add(over))?;
            expression.only_if(format!("size({map}) < {room} AND attribute_not_exists({own})"));
            for over in &ground.over {
                // One of this name is never given: what is set must not be removed too.
                if over.as_str() != id {
                    expression.remove(&[&leases, over.as_str()]);
                }
                let until = expression.path(&[&leases, over.as_str(), "until"]);
                let now = expression.value(&whole(lease.at))?;
                expression.only_if(format!("{until} <= {now}"));
            }
        }
        if ground.was_waiting {
            expression.remove(&[&waiting_name(id)]);
        }
        self.leased(pool, format!("lease node {node}"), expression).await
    }

    /// Renewed if it is live and this caller's.
    pub(super) async fn renew_lease(
        &self,
        pool: &PoolName,
        node: &NodeId,
        id: &LeaseId,
        lease: &Lease,
    ) -> Result<Leased, CallError> {
        let leases = fact_name("leases", node);
        let mut expression = Expression::default();
        expression.set(&[&leases, id.as_str(), "until"], &lease.until)?;
        expression.set(&[&fact_name("leased", node)], &lease.at)?;
        let (by, until) =
            (expression.path(&[&leases, id.as_str(), "by"]), expression.path(&[&leases, id.as_str(), "until"]));
        let (own, now) = (expression.value(&lease.by)?, expression.value(&whole(lease.at))?);
        expression.only_if(format!("{by} = {own} AND {until} > {now}"));
        self.leased(pool, format!("renew a lease of node {node}"), expression).await
    }

    /// Ended if it is this caller's.
    pub(super) async fn end_lease(
        &self,
        pool: &PoolName,
        node: &NodeId,
        id: &LeaseId,
        by: &str,
        at: Instant,
    ) -> Result<Leased, CallError> {
        let leases = fact_name("leases", node);
        let mut expression = Expression::default();
        expression.remove(&[&leases, id.as_str()]);
        expression.set(&[&fact_name("leased", node)], &at)?;
        let (holder, own) = (expression.path(&[&leases, id.as_str(), "by"]), expression.value(&by)?);
        expression.only_if(format!("{holder} = {own}"));
        self.leased(pool, format!("end a lease of node {node}"), expression).await
    }

    /// Written only where it waits, so that no item is made for it.
    pub(super) async fn stop_waiting(&self, pool: &PoolName, id: &LeaseId) -> Result<(), CallError> {
        let name = waiting_name(id.as_str());
        let mut expression = Expression::default();
        expression.remove(&[&name]);
        let path = expression.path(&[&name]);
        expression.only_if(format!("attribute_exists({path})"));
        self.write(pool, "end a wait", expression).await.map(|_| ())
    }

    async fn leased(&self, pool: &PoolName, act: String, expression: Expression) -> Result<Leased, CallError> {
        Ok(match self.write(pool, &act, expression).await? {
            Written::Done(item) => Leased::Done(item),
            Written::Not(item) => Leased::Moved(item),
        })
    }

    /// An operator's hold, or its end; the item before it.
    pub(super) async fn set_hold(
        &self,
        pool: &PoolName,
        node: &NodeId,
        hold: Option<&Hold>,
    ) -> Result<PoolRecord, CallError> {
        let name = fact_name("hold", node);
        let mut expression = Expression::default();
        expression.count(&["demand"])?;
        match hold {
            Some(hold) => expression.set(&[&name], hold)?,
            None => expression.remove(&[&name]),
        }
        match self.overwrite(pool, &format!("hold node {node}"), expression).await? {
            Written::Done(before) | Written::Not(before) => Ok(before),
        }
    }
}

/// The attribute of a call that waits.
fn waiting_name(id: &str) -> String {
    format!("wait#{id}")
}

fn minute(at: Instant) -> i64 {
    at.timestamp().div_euclid(60)
}

fn demand(node: Option<&NodeId>, wake: &Wake, waiting: &Waiting) -> Result<Expression, CallError> {
    let name = match node {
        Some(node) => fact_name("wake", node),
        None if wake.source.is_log() => "line_wake".to_owned(),
        None => "wake".to_owned(),
    };
    let mut expression = Expression::default();
    open_gate(&mut expression, wake.at)?;
    expression.count(&["demand"])?;
    expression.set(&[&name], wake)?;
    if let Some((id, until)) = &waiting.call {
        expression.set(&[&waiting_name(id.as_str())], until)?;
    }
    // One that asks again waits anew: what is set must not be removed too.
    let over = waiting.over.iter().filter(|id| waiting.call.as_ref().is_none_or(|(call, _)| call != *id));
    over.for_each(|id| expression.remove(&[&waiting_name(id.as_str())]));
    Ok(expression)
}

/// Ends are whole seconds, and so is what they are compared with, because DynamoDB compares texts.
fn whole(at: Instant) -> Instant {
    at.trunc_subsecs(0)
}

/// A gate whose end has passed is open.
fn open_gate(expression: &mut Expression, at: Instant) -> Result<(), CallError> {
    let (gate, until) = (expression.path(&["gate"]), expression.path(&["gate", "until"]));
    let now = expression.value(&whole(at))?;
    expression.only_if(format!("attribute_not_exists({gate}) OR {until} <= {now}"));
    Ok(())
}

fn same_claim(expression: &mut Expression, node: &NodeId, ground: &LeaseGround) -> Result<(), CallError> {
    let claim = fact_name("claim", node);
    let condition = match &ground.claim {
        None => format!("attribute_not_exists({})", expression.path(&[&claim])),
        Some((run, kind)) => {
            let (of, what) = (expression.path(&[&claim, "run"]), expression.path(&[&claim, "kind"]));
            let (run, kind) = (expression.value(run)?, expression.value(kind)?);
            format!("{of} = {run} AND {what} = {kind}")
        }
    };
    expression.only_if(condition);
    Ok(())
}

/// Counts the wake in the minute that is being counted, or begins the next one.
fn count(expression: &mut Expression, cap: &Cap, at: Instant, counted_on: Option<i64>) -> Result<(), CallError> {
    let known = expression.path(&["rate", "minute"]);
    let Some(minute_known) = counted_on else {
        let rate = expression.path(&["rate"]);
        let (minute, by) = (minute(at), BTreeMap::from([(cap.caller.clone(), 1)]));
        expression.set(&["rate"], &Rate { minute, all: 1, by })?;
        let minute = expression.value(&minute)?;
        expression.only_if(format!("attribute_not_exists({rate}) OR {known} < {minute}"));
        return Ok(());
    };
    expression.count(&["rate", "all"])?;
    expression.count(&["rate", "by", &cap.caller])?;
    let (all, own) = (expression.path(&["rate", "all"]), expression.path(&["rate", "by", &cap.caller]));
    let (minute, most, each) =
        (expression.value(&minute_known)?, expression.value(&cap.all)?, expression.value(&cap.each)?);
    expression.only_if(format!("{known} = {minute} AND {all} < {most}"));
    expression.only_if(format!("attribute_not_exists({own}) OR {own} < {each}"));
    Ok(())
}
