//! The AWS budget, and the note of what it was made with.

use crate::bench::{Bench, is_refused, morning, voice};
use crate::local::Local;
use reveille::decide::budget::{Basis, BudgetPolicy, Enforce};
use reveille::domain::{PoolName, Usd};
use reveille::error::{CallError, ErrorClass};
use reveille::run::{BudgetNote, BudgetSeen, Call, Notice, notices, take_budget, take_budget_note, take_recorded};
use std::collections::BTreeSet;

fn usd(text: &str) -> Usd {
    Usd::parse(text).expect("an amount")
}

/// What a month may cost.
pub(crate) fn month() -> BudgetPolicy {
    BudgetPolicy {
        name: "reveille".to_owned(),
        amount: usd("20"),
        actual: vec![50, 80, 100],
        forecast: vec![100],
        enforce: Enforce::Gate,
        mail: vec!["ops@example.com".to_owned(), "money@example.com".to_owned()],
        units: Vec::new(),
    }
}

fn notice(basis: Basis, percent: u32) -> Notice {
    Notice { basis, percent }
}

fn pools() -> BTreeSet<PoolName> {
    BTreeSet::from([voice(), PoolName::new("batch").expect("a pool")])
}

async fn read(bench: &mut impl Bench, name: &str) -> Option<BudgetSeen> {
    take_budget(Some(bench.answer(&Call::ReadBudget { name: name.to_owned() }).await)).expect("read the budget")
}

/// The budget of the month as AWS shows it.
async fn shown(bench: &mut impl Bench) -> BudgetSeen {
    read(bench, &month().name).await.expect("a budget")
}

async fn write(bench: &mut impl Bench, call: Call) -> Result<(), CallError> {
    take_recorded(Some(bench.answer(&call).await))
}

async fn create(bench: &mut impl Bench, budget: BudgetPolicy) {
    write(bench, Call::CreateBudget { budget, pools: pools() }).await.expect("a budget that is made");
}

/// Before AWS has counted there is no figure, or one of nothing.
fn is_nothing(figure: Option<Usd>) -> bool {
    figure.is_none_or(|spent| spent == Usd::ZERO)
}

pub(crate) async fn a_budget_that_is_made_is_read_back(bench: &mut impl Bench) {
    assert_eq!(read(bench, "reveille").await, None, "before it is made");
    create(bench, month()).await;
    let seen = shown(bench).await;
    assert_eq!((seen.amount.as_str(), seen.unit.as_str()), ("20.00", "USD"));
    let expected = [(Basis::Actual, 50), (Basis::Actual, 80), (Basis::Actual, 100), (Basis::Forecast, 100)];
    assert_eq!(seen.notices, expected.into_iter().map(|(basis, percent)| notice(basis, percent)).collect());
    assert!(is_nothing(seen.actual) && seen.forecast.is_none(), "{seen:?}");
    assert_eq!(read(bench, "reveille-other").await, None, "another name is another budget");
}

pub(crate) async fn an_amount_is_read_back_to_the_micro_dollar(bench: &mut impl Bench) {
    for (name, amount, plain) in
        [("whole", "200", "200.00"), ("cents", "12.5", "12.50"), ("micro", "0.000001", "0.000001")]
    {
        create(bench, BudgetPolicy { name: name.to_owned(), amount: usd(amount), ..month() }).await;
        let seen = read(bench, name).await.expect(name);
        assert_eq!((seen.amount.as_str(), Usd::parse(&seen.amount)), (plain, Ok(usd(amount))), "{name}");
    }
}

pub(crate) async fn a_budget_without_mail_has_no_notices(bench: &mut impl Bench) {
    create(bench, BudgetPolicy { mail: Vec::new(), ..month() }).await;
    assert_eq!(shown(bench).await.notices, BTreeSet::new());
}

pub(crate) async fn a_budget_that_somebody_made_meanwhile_is_as_good(bench: &mut impl Bench) {
    create(bench, month()).await;
    let first = shown(bench).await;
    create(bench, BudgetPolicy { amount: usd("300"), actual: vec![10], ..month() }).await;
    assert_eq!(shown(bench).await, first, "it stays as it is");
}

pub(crate) async fn a_new_amount_clears_the_figures_and_keeps_the_notices(bench: &mut impl Bench) {
    create(bench, month()).await;
    bench.set_figures("reveille", "18.25", Some("31.5")).await;
    let raised = BudgetPolicy { amount: usd("40"), actual: vec![10], forecast: Vec::new(), ..month() };
    let note = BudgetNote { amount: Some(usd("40")), ..BudgetNote::default() };
    let call = Call::SetBudgetAmount { budget: raised, pools: pools(), note: note.clone() };
    write(bench, call).await.expect("a new amount");
    assert_eq!(noted(bench, "reveille").await, note, "noted once it is set");
    let seen = shown(bench).await;
    assert_eq!((seen.amount.as_str(), seen.unit.as_str()), ("40.00", "USD"));
    assert!(is_nothing(seen.actual) && seen.forecast.is_none(), "{seen:?}");
    assert_eq!(seen.notices, notices(&month()));
}

pub(crate) async fn missing_notices_are_made_and_those_that_are_there_are_as_good(bench: &mut impl Bench) {
    create(bench, BudgetPolicy { actual: vec![50], forecast: Vec::new(), ..month() }).await;
    assert_eq!(shown(bench).await.notices, BTreeSet::from([notice(Basis::Actual, 50)]));
    bench.set_figures("reveille", "3", None).await;
    for again in [false, true] {
        let call = Call::CreateNotices { budget: month(), notices: notices(&month()) };
        write(bench, call).await.expect("notices");
        let seen = shown(bench).await;
        assert_eq!((seen.notices, seen.actual), (notices(&month()), Some(usd("3"))), "again: {again}");
    }
    let none = Call::CreateNotices { budget: month(), notices: BTreeSet::new() };
    write(bench, none).await.expect("no notice is no trouble");
}

pub(crate) async fn a_budget_that_is_gone_takes_neither_amount_nor_notices(bench: &mut impl Bench) {
    let rows = [
        ("an amount", Call::SetBudgetAmount { budget: month(), pools: pools(), note: BudgetNote::default() }),
        ("notices", Call::CreateNotices { budget: month(), notices: notices(&month()) }),
    ];
    for (name, call) in rows {
        let refused = write(bench, call).await;
        assert!(is_refused(refused.clone(), ErrorClass::NotFound, "NotFoundException"), "{name}: {refused:?}");
    }
    assert_eq!(read(bench, "reveille").await, None);
}

pub(crate) async fn the_figures_of_aws_are_told_as_they_are(bench: &mut impl Bench) {
    create(bench, month()).await;
    for (name, actual, forecast) in [
        ("no forecast in the first weeks", "3.00", None),
        ("both", "12.345678", Some("31.5")),
        ("over the amount", "25", Some("1234.5")),
        ("a new month", "0", None),
    ] {
        bench.set_figures("reveille", actual, forecast).await;
        let seen = shown(bench).await;
        assert_eq!((seen.actual, seen.forecast), (Some(usd(actual)), forecast.map(usd)), "{name}");
        assert_eq!((seen.amount.as_str(), seen.notices), ("20.00", notices(&month())), "{name}");
    }
}

/// The world has no finer amounts.
pub(crate) async fn decimals_behind_a_micro_dollar_are_cut(bench: &mut Local) {
    create(bench, month()).await;
    bench.set_figures("reveille", "3.12345678", Some("9.9999999")).await;
    let seen = shown(bench).await;
    assert_eq!((seen.actual, seen.forecast), (Some(usd("3.123456")), Some(usd("9.999999"))));
}

async fn noted(bench: &mut impl Bench, name: &str) -> BudgetNote {
    take_budget_note(Some(bench.answer(&Call::ReadBudgetNote { name: name.to_owned() }).await)).expect("read the note")
}

pub(crate) async fn the_note_of_a_budget_is_read_back_by_its_name(bench: &mut impl Bench) {
    assert_eq!(noted(bench, "reveille").await, BudgetNote::default());
    for amount in ["20", "12.345678", "40"] {
        let note = BudgetNote {
            amount: Some(usd(amount)),
            pools: [voice()].into(),
            shown: Some(("2026-11".to_owned(), usd("3.5"))),
            since: Some(morning()),
        };
        write(bench, Call::NoteBudget { name: "reveille".to_owned(), note: note.clone() }).await.expect("a note");
        assert_eq!(noted(bench, "reveille").await, note, "the newest");
    }
    assert_eq!(noted(bench, "another").await, BudgetNote::default());
    assert_eq!(read(bench, "reveille").await, None, "a note makes no budget");
}
