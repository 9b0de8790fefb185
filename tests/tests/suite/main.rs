//! One suite for both worlds: the in-memory one of tests, soak and planner, and the executor over AWS. Each law is written
//! once and runs in both, as `in_memory::LAW` and as `local_aws::LAW`, each time in a world of its own.

mod bench;
mod laws;
mod local;
mod memory;

macro_rules! hold_in_both_worlds {
    ($($room:ident { $($law:ident,)* })*) => {
        mod in_memory {
            $($(
                #[tokio::test]
                async fn $law() {
                    crate::laws::$room::$law(&mut crate::memory::InMemory::open()).await;
                }
            )*)*
        }

        mod local_aws {
            $($(
                #[tokio::test]
                async fn $law() {
                    crate::laws::$room::$law(&mut crate::local::Local::open().await).await;
                }
            )*)*
        }
    };
}

hold_in_both_worlds! {
    nodes {
        describe_shows_every_node_with_the_tag_as_it_is,
        describe_shows_the_nodes_of_the_pools_asked_for,
        a_start_goes_through_pending_to_running_and_moves_the_launch_time,
        a_stop_goes_through_stopping_to_stopped_and_says_when_and_why,
        a_start_answers_the_state_before,
        a_stop_answers_the_state_before,
        a_node_is_ready_once_it_runs_and_its_status_checks_pass,
        a_start_that_falls_back_ends_stopped_with_its_reason,
        force_ends_a_hanging_stop,
        force_does_not_lengthen_a_stop_that_is_nearly_over,
        a_protected_node_refuses_to_stop_for_good,
        a_one_time_spot_node_is_seen_as_one_and_refuses_to_stop_for_good,
        a_terminated_node_is_gone_and_neither_starts_nor_stops,
        a_node_that_never_was_is_not_found,
    }
    ledger {
        an_empty_ledger_reads_as_zero_records,
        demand_moves_its_counter_and_answers_the_new_item,
        a_wake_of_a_named_node_is_kept_beside_the_pools_own,
        fifty_demands_at_once_count_fifty,
        claims_are_conditional,
        one_of_twenty_claims_at_once_is_granted,
        a_stop_is_claimed_only_where_demand_has_not_moved,
        a_start_is_claimed_however_demand_moves,
        an_answer_is_recorded_in_the_claim_and_moves_the_claim_counter,
        an_answer_without_a_fault_leaves_the_fault_that_stands,
        an_answer_to_a_claim_of_another_run_changes_nothing,
        facts_written_one_by_one_and_at_once_do_not_undo_each_other,
        facts_are_removed_one_by_one_and_at_once,
        a_write_of_no_fact_or_of_one_fact_twice_is_refused,
    }
    faults {
        refusals_are_classed_and_none_is_taken_for_an_effect,
        a_server_error_leaves_open_whether_the_node_was_started,
        an_answer_that_is_lost_leaves_the_effect_there,
        start_and_stop_are_sent_once_whatever_fails,
        every_call_that_fails_says_so_in_an_answer_of_its_own_kind,
        a_write_whose_answer_is_lost_stands,
    }
    activity {
        requests_are_summed_and_gauges_take_the_highest_by_the_minute,
        an_empty_series_is_complete,
        the_span_begins_with_its_first_minute_and_ends_before_its_last,
        metrics_of_one_call_are_told_apart_by_their_dimensions,
    }
    alerts {
        an_alert_is_claimed_once,
        an_alert_that_was_claimed_and_not_published_is_claimed_again_later,
        an_alert_that_was_published_is_never_claimed_again,
        an_alert_arrives_as_it_was_written,
        a_run_tells_a_person_once_in_a_subject_that_sns_takes,
    }
}
