//! May this call have a lease, and on which node?

use super::Look;
use crate::domain::{Instant, Lease, LeaseId, NodeId, Phase, PoolRecord};
use crate::policy::PoolRules;

/// What becomes of a wish for a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseDecision {
    /// It is live and the caller's own: it is renewed, on the node it is on.
    Renew(NodeId),
    /// It is given on this node.
    Give(NodeId),
    /// It ran out, or its node is gone or was down since: the call may have lost its node and has to take a new lease.
    Ended,
    /// Somebody else holds a lease of this id.
    Foreign,
    /// No new lease while the gate is closed.
    GateClosed,
    /// No ready node has room. Whether a node is ready at all is the wake's answer.
    NoRoom,
}

/// The node that has a lease of this id, live or run out.
pub fn holder<'a>(record: &'a PoolRecord, id: &LeaseId) -> Option<&'a NodeId> {
    record.nodes.iter().find(|(_, node)| node.leases.contains_key(id)).map(|(node, _)| node)
}

/// Decides. A lease that stands is kept on its node whatever the gate says: a call in progress is not cut.
pub fn decide(
    looks: &[Look],
    record: &PoolRecord,
    ask: &LeaseAsk<'_>,
    rules: &PoolRules,
    now: Instant,
) -> LeaseDecision {
    let look_of = |node: &NodeId| looks.iter().find(|look| look.seen.id == *node);
    let is_up = |look: &Look| matches!(look.phase(), Phase::Ready | Phase::Starting);
    // A node that was down since has lost the call, and may not be ready again.
    let is_of_launch = |look: &Look, lease: &Lease| look.seen.launched_at.is_none_or(|at| at <= lease.at);
    if let Some((node, lease)) =
        holder(record, ask.id).and_then(|node| Some((node, record.nodes.get(node)?.leases.get(ask.id)?)))
    {
        return match look_of(node) {
            _ if lease.by != ask.by => LeaseDecision::Foreign,
            Some(look) if lease.is_live(now) && is_up(look) && is_of_launch(look, lease) => {
                LeaseDecision::Renew(node.clone())
            }
            Some(_) | None => LeaseDecision::Ended,
        };
    }
    if ask.renews {
        return LeaseDecision::Ended;
    }
    if record.closed_gate(now).is_some() {
        return LeaseDecision::GateClosed;
    }
    // The fullest that still has room: the emptier one can sleep sooner.
    let meant = looks.iter().filter(|look| ask.target.is_none_or(|id| *id == look.seen.id));
    let open = meant.filter(|look| look.phase() == Phase::Ready && rules.has_room(look.record.calls(now)));
    let best = open.max_by_key(|look| (look.record.calls(now), std::cmp::Reverse(look.seen.id.clone())));
    best.map_or(LeaseDecision::NoRoom, |look| LeaseDecision::Give(look.seen.id.clone()))
}

/// Who asks for what.
#[derive(Debug, Clone, Copy)]
pub struct LeaseAsk<'a> {
    /// The lease.
    pub id: &'a LeaseId,
    /// The caller's class.
    pub by: &'a str,
    /// Only an existing one is meant: nothing new is given.
    pub renews: bool,
    /// For a new one: a named node, or any of the pool.
    pub target: Option<&'a NodeId>,
}
