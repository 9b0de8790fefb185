//! Every message that people can get, as it arrives: `docs/messages.md` is written from here by `make reference`.

#![expect(clippy::unwrap_used, reason = "a test may panic, and its helpers too")]

mod support;
mod support_rules;

use reveille::decide::budget::{BudgetPolicy, Enforce};
use reveille::domain::{Gate, GateKeeper, Noise, Usd};
use reveille::run::{AlertKind, BudgetRun, Context, UptimeRun};
use reveille::world::World;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use support::*;
use support_rules::{beat, beats, ready_by_beat, unready};

type Scene = (&'static str, fn() -> World);

fn gpu_1() -> Node {
    node("i-0a1b2c3d").named("gpu-1")
}

fn running() -> Node {
    gpu_1().running_since("09:00").ready_since("09:01")
}

fn gpu() -> reveille::domain::NodeId {
    id("i-0a1b2c3d")
}

/// Somebody wants the node, and EC2 says this.
fn refused_start(code: &'static str) -> World {
    let mut world = fleet("10:00", [gpu_1()]);
    fail(&mut world, "start", code);
    prewarm(&mut world);
    world
}

fn no_capacity() -> World {
    refused_start("InsufficientInstanceCapacity")
}

fn no_quota() -> World {
    refused_start("VcpuLimitExceeded")
}

fn not_allowed() -> World {
    refused_start("UnauthorizedOperation")
}

fn unknown_code() -> World {
    refused_start("SomethingNew")
}

fn fallen_back() -> World {
    let mut world = fleet("10:00", [gpu_1()]);
    world.fall_back(&gpu(), state_reason("Client.InternalError"));
    prewarm(&mut world);
    tick_at(&mut world, "10:05");
    world
}

fn never_ready() -> World {
    let mut world = fleet("10:00", [gpu_1()]);
    world.checks = minutes(6000);
    prewarm(&mut world);
    ticks(&mut world, "10:05", "10:15");
    world
}

fn ready_no_more() -> World {
    let mut world = fleet("10:00", [gpu_1().running_since("09:50").ready_since("09:52")]);
    for clock in ["10:00", "10:05", "10:10"] {
        world.set_now(at(clock));
        let since = beat("09:52").since;
        beats(&mut world, "i-0a1b2c3d", reveille::domain::Beat { since, ..unready(clock) });
        ready_by_beat().tick(&mut world);
    }
    world
}

fn refused_stop(code: &'static str) -> World {
    let mut world = fleet("10:00", [running()]);
    world.refuse_stop(&gpu(), code);
    ticks(&mut world, "10:00", "10:05");
    world
}

fn protected() -> World {
    refused_stop("OperationNotPermitted")
}

fn spot() -> World {
    refused_stop("UnsupportedOperation")
}

fn drain_waits() -> World {
    let mut world = fleet("10:00", [running()]);
    let reason = "the budget of $200.00 for 2026-11 is spent ($201.12)".to_owned();
    let gate = Gate { by: GateKeeper::Budget, since: at("09:00"), reason, amount: None, until: None, drain: true };
    world.record(&voice()).gate = Some(gate);
    open_call(&mut world, "i-0a1b2c3d", "09:30", "10:00");
    tick(&mut world);
    world
}

fn blind_and_seeing_again() -> World {
    let mut world = fleet("10:00", [running().without_proof_of_life()]);
    ticks(&mut world, "10:00", "11:05");
    prove_life(&mut world, "i-0a1b2c3d", "11:05", "12:00");
    ticks(&mut world, "11:10", "11:35");
    world
}

fn noise() -> World {
    let mut world = fleet("10:00", [gpu_1()]);
    let noise = Noise {
        lines: 7,
        prewarms: 1,
        at: at("09:00"),
        line_times: vec![at("09:00"); 7],
        launched_at: at("08:00"),
        until: at("24:00"),
    };
    world.record(&voice()).nodes.entry(gpu()).or_default().noise = Some(noise);
    tick(&mut world);
    world
}

fn lost_ledger() -> World {
    let mut world = fleet("10:00", [running()]);
    fail(&mut world, "read_ledger", "ResourceNotFoundException");
    tick(&mut world);
    world
}

fn unknown_pool() -> World {
    let mut world = fleet("10:00", [running().in_pool("vioce")]);
    tick(&mut world);
    world
}

fn no_node() -> World {
    let mut world = fleet("10:00", [gpu_1().gone()]);
    prewarm(&mut world);
    world
}

fn look_at_uptime(world: &mut World) {
    let ctx = context(world);
    world.drive(&mut UptimeRun::new(ctx));
}

fn vanished() -> World {
    let mut world = fleet("10:00", [running()]);
    tick(&mut world);
    world.forget(&gpu());
    world.set_now(at("10:15"));
    look_at_uptime(&mut world);
    world
}

fn long_day() -> World {
    let mut world = fleet("21:00", [gpu_1().running_since("00:30")]);
    look_at_uptime(&mut world);
    world
}

fn uptime_unread() -> World {
    let mut world = fleet("10:00", [running()]);
    fail(&mut world, "history", "AccessDeniedException");
    fail(&mut world, "samples", "AccessDenied");
    look_at_uptime(&mut world);
    world
}

fn budget(enforce: Enforce, amount: i64) -> BudgetPolicy {
    BudgetPolicy {
        name: "reveille".to_owned(),
        amount: Usd::from_micro(amount * 1_000_000),
        actual: vec![50, 80, 100],
        forecast: vec![100],
        enforce,
        mail: Vec::new(),
        units: vec![("calls".to_owned(), Usd::from_micro(30_000))],
    }
}

fn guard(world: &mut World, budget: &BudgetPolicy) {
    let ctx: Context = context(world);
    world.drive(&mut BudgetRun::new(ctx, budget.clone()));
}

/// Up since the morning before, and the month's amount is this.
fn spent(enforce: Enforce, amount: i64, clock: &str) -> World {
    let mut seen = running().seen();
    seen.launched_at = Some(at("00:00") - minutes(20 * 60));
    let mut world = fleet(clock, []);
    world.add_node(seen);
    guard(&mut world, &budget(enforce, amount));
    world
}

fn half() -> World {
    spent(Enforce::Alert, 40, "05:00")
}

fn forecast() -> World {
    let mut world = spent(Enforce::Alert, 30, "05:00");
    world.published.retain(|alert| alert.subject.contains("forecast"));
    world
}

fn all_spent(enforce: Enforce) -> World {
    let mut world = spent(enforce, 20, "05:00");
    world.published.retain(|alert| {
        let spent = alert.subject.contains("100 %") && alert.subject.contains("spent");
        spent || alert.subject.contains("gate")
    });
    world
}

fn gated() -> World {
    all_spent(Enforce::Gate)
}

fn drained() -> World {
    all_spent(Enforce::Stop)
}

fn opened() -> World {
    let mut world = spent(Enforce::Gate, 20, "05:00");
    world.published.clear();
    world.set_now(at("06:00"));
    guard(&mut world, &budget(Enforce::Gate, 200));
    world
}

fn edited() -> World {
    let mut world = fleet("10:00", [gpu_1()]);
    let policy = budget(Enforce::Alert, 200);
    (0..2).for_each(|_| guard(&mut world, &policy));
    world.budgets.get_mut("reveille").unwrap().amount = "5000".to_owned();
    guard(&mut world, &policy);
    world
}

fn in_euros() -> World {
    let mut world = fleet("10:00", [gpu_1()]);
    let policy = budget(Enforce::Alert, 200);
    guard(&mut world, &policy);
    world.budgets.get_mut("reveille").unwrap().unit = "EUR".to_owned();
    guard(&mut world, &policy);
    world
}

fn unpriced() -> World {
    let mut seen = running().seen();
    seen.instance_type = Some(instance_type("t3.large"));
    let mut world = fleet("10:00", []);
    world.add_node(seen);
    guard(&mut world, &budget(Enforce::Alert, 200));
    world
}

fn budget_unread() -> World {
    let mut world = fleet("10:00", [gpu_1()]);
    fail(&mut world, "budget", "AccessDeniedException");
    guard(&mut world, &budget(Enforce::Alert, 200));
    world
}

const SCENES: [Scene; 27] = [
    ("A node was up for too long in a day", long_day),
    ("Neither source of a day's uptime can be read", uptime_unread),
    ("Half of the budget is spent", half),
    ("The forecast reaches the amount", forecast),
    ("The budget is spent, and closes the gate", gated),
    ("The budget is spent, and drains the nodes", drained),
    ("The amount was raised, and the gate opens", opened),
    ("A drained node still has a call after an hour", drain_waits),
    ("No capacity", no_capacity),
    ("A quota", no_quota),
    ("A START that fell back: the KMS key", fallen_back),
    ("A START that is not allowed", not_allowed),
    ("A code nobody has classed", unknown_code),
    ("A node that does not become ready", never_ready),
    ("A node that is not ready any more", ready_no_more),
    ("Stop protection", protected),
    ("A one-time spot node", spot),
    ("Signals unknown, for longer, and known again", blind_and_seeing_again),
    ("A source that wakes for nothing", noise),
    ("The ledger cannot be read", lost_ledger),
    ("AWS's budget cannot be read", budget_unread),
    ("A running node in a pool nobody configured", unknown_pool),
    ("A running node that is no longer listed", vanished),
    ("A wake for a pool without a node", no_node),
    ("The AWS budget was edited by hand", edited),
    ("The AWS budget is in another currency", in_euros),
    ("Something has no price", unpriced),
];

fn page() -> (String, BTreeSet<AlertKind>) {
    let mut page = String::from(
        "# Messages\n\nGenerated by `make reference`: every message that people can get, as it arrives, with its attributes for machines.\nThe attribute `key` is the same for the same matter.\n",
    );
    let mut kinds = BTreeSet::new();
    for (title, scene) in SCENES {
        let world = scene();
        assert!(!world.published.is_empty(), "{title}: nobody was told");
        writeln!(page, "\n## {title}\n").unwrap();
        for alert in &world.published {
            kinds.insert(alert.kind);
            let body = alert.body.replace("refused by the in-memory world", "(what AWS says of it)");
            writeln!(page, "**{}**\n\n```\n{body}```\n", alert.subject).unwrap();
            let attributes: Vec<String> =
                alert.attributes.iter().map(|(name, value)| format!("`{name}={value}`")).collect();
            writeln!(page, "`kind={}` {}\n", alert.kind.as_str(), attributes.join(" ")).unwrap();
        }
    }
    (page.trim_end().to_owned() + "\n", kinds)
}

/// What could not be told when it happened is told by the next tick, whatever function it was and whether it has passed by
/// then: nothing else is lost than what finds no ledger to be kept in.
#[test]
fn every_message_that_could_not_be_sent_is_sent_by_the_next_tick() {
    for (title, scene) in SCENES {
        let wanted: BTreeSet<_> = scene().published.into_iter().map(|alert| alert.key).collect();
        for call in ["publish", "claim_alert", "mark_published"] {
            let mut world = in_foul_weather(call, scene);
            world.heal();
            world.set_now(world.now() + minutes(5));
            let outcome = tick(&mut world);
            let told: BTreeSet<_> = world.published.iter().map(|alert| alert.key.clone()).collect();
            assert!(
                told.is_superset(&wanted),
                "{title}: {call} failed, and these were never told: {:?}",
                wanted.difference(&told)
            );
            assert!(outcome.unrecorded.is_none(), "{title}, {call}");
            assert!(
                world.record(&voice()).untold.is_empty() && world.record(&pool("batch")).untold.is_empty(),
                "{title}, {call}"
            );
        }
    }
}

#[test]
fn a_message_that_was_kept_is_sent_once() {
    let mut world = in_foul_weather("publish", no_capacity);
    world.heal();
    ticks(&mut world, "10:05", "11:00");
    let of_start = world.published.iter().filter(|alert| alert.kind == AlertKind::StartFailed).count();
    assert_eq!((of_start, starts(&world).len()), (1, 1), "though the START of the next tick went through");
}

#[test]
fn an_outage_of_the_topic_keeps_no_more_than_an_item_can_hold() {
    let mut world = fleet("00:00", [running().in_pool("vioce")]);
    let (nodes, hours) = (30, 30);
    for n in 0..nodes {
        world.add_node(node(&format!("i-{n}")).in_pool("vioce").running_since("00:00").seen());
    }
    fail_times(&mut world, "publish", "InternalError", u32::MAX);
    for hour in 0..hours {
        world.set_now(at("00:00") + minutes(60 * hour));
        assert!(tick(&mut world).unrecorded.is_some(), "and it shows at every tick");
    }
    assert_eq!(world.record(&pool("batch")).untold.len(), 20);
}

#[test]
fn the_page_of_messages_has_every_kind_and_is_the_code_s_own() {
    let (page, kinds) = page();
    assert_eq!(kinds, AlertKind::ALL.iter().copied().collect(), "each kind is met");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs/messages.md");
    #[expect(clippy::disallowed_methods, reason = "a switch of this test, not of the product")]
    let update = std::env::var_os("UPDATE").is_some();
    if update {
        std::fs::write(&path, &page).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "docs/messages.md does not say what the code says: run `make reference`");
}
