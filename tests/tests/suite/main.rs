//! One suite for both worlds: the in-memory one of tests, soak and planner, and the executor over AWS. Each law is
//! written once and runs in both, as `in_memory::LAW` and as `local_aws::LAW`, each time in a world of its own. What the
//! in-memory world cannot show is a law of the executor alone, as `executor::LAW`.

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

macro_rules! hold_in_the_executor {
    ($($room:ident { $($law:ident,)* })*) => {
        mod executor {
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
        describe_brings_the_other_tags_of_a_node,
    }
    parts {
        a_stopped_node_takes_another_type_and_starts_as_it,
        a_node_that_is_not_stopped_keeps_its_type,
        a_type_of_a_node_that_never_was_is_not_found,
        a_type_without_capacity_refuses_a_start_in_one_attempt,
        capacity_that_comes_back_starts_the_node,
        a_node_without_capacity_refuses_a_start_whatever_its_type,
        disks_are_told_by_node_as_they_are_billed,
    }
    ledger {
        an_empty_ledger_reads_as_zero_records,
        demand_moves_its_counter_and_answers_the_new_item,
        a_wake_of_a_named_node_is_kept_beside_the_pools_own,
        a_wake_by_a_log_is_kept_beside_a_callers,
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
    demand {
        a_caller_who_wakes_too_often_is_refused_and_the_others_are_not,
        all_callers_together_are_capped_whoever_asks,
        the_next_minute_is_counted_anew,
        a_wake_of_the_minute_before_is_counted_in_the_newer_one,
        wakes_at_once_as_a_minute_ends_are_all_recorded,
        two_hundred_wakes_at_once_are_all_counted,
        caps_are_kept_to_the_wake_however_many_come_at_once,
        lines_of_a_log_are_never_counted,
        a_closed_gate_is_told_before_a_full_count,
        a_wake_keeps_who_asked_for_what_and_when,
        a_call_that_waits_is_kept_until_its_wait_is_cleared,
        a_call_that_asks_again_as_its_wait_is_over_waits,
        a_call_that_is_refused_does_not_wait,
        a_wait_that_cannot_be_read_is_listed_and_hides_nothing,
        a_call_that_hangs_up_waits_no_more_and_changes_nothing_else,
    }
    leases {
        the_first_lease_of_a_node_moves_demand,
        leases_stand_beside_each_other_and_beside_other_facts,
        leases_of_two_nodes_are_told_apart,
        a_node_that_lost_its_last_lease_takes_another,
        a_node_takes_as_many_as_it_has_room_for,
        leases_that_ran_out_are_cleared_as_one_is_given,
        a_node_full_of_leases_that_ran_out_has_room,
        a_hundred_leases_that_ran_out_are_cleared_at_once,
        a_lease_that_was_renewed_meanwhile_is_not_cleared,
        an_id_that_is_there_is_not_given_again,
        a_claim_since_the_look_takes_the_ground_of_a_lease,
        a_closed_gate_gives_no_lease_and_the_item_tells_so,
        a_gate_whose_end_has_passed_gives_leases,
        a_call_that_gets_its_lease_waits_no_longer,
        four_of_twelve_calls_at_once_fit_on_a_node_for_four,
        four_of_twelve_calls_at_once_get_in_with_one_look,
        a_live_lease_is_renewed_by_its_caller,
        a_lease_that_is_not_the_callers_or_not_live_is_not_renewed,
        a_renewal_is_held_to_the_instant_of_the_call,
        a_lease_is_over_within_the_second_of_its_end_for_those_that_follow,
        a_closed_gate_cuts_no_call_in_progress,
        a_claim_keeps_no_lease_from_being_renewed,
        a_lease_loses_a_stop_its_claim,
        a_lease_is_ended_by_its_caller,
        a_lease_that_is_not_the_callers_or_not_there_is_not_ended,
        no_trace_of_a_node_is_left_by_what_changed_nothing,
        leases_of_which_one_cannot_be_read_are_listed_and_none_is_given,
    }
    holds {
        a_hold_is_set_replaced_and_ended_and_each_moves_demand,
        the_end_of_a_hold_that_never_was_leaves_no_trace_of_its_node,
        a_hold_loses_a_stop_its_claim,
        a_hold_stands_beside_the_other_facts,
        a_hold_by_hand_without_a_note_or_an_end_is_listed_until_it_is_replaced,
    }
    beats {
        beats_are_told_by_node_and_those_that_are_not_there_are_left_out,
        a_beat_that_cannot_be_read_is_left_out,
        the_beats_of_a_hundred_and_fifty_nodes_are_read,
    }
    gate {
        a_closed_gate_refuses_every_wake_and_nothing_is_written,
        the_gate_of_one_pool_is_not_another_pools,
        a_gate_is_closed_to_the_second_before_its_end,
        a_gate_takes_wakes_from_its_end_on,
        a_gate_takes_wakes_in_the_very_second_after_its_end,
        the_end_of_a_gate_is_held_to_the_instant_of_the_call,
        a_gate_is_closed_replaced_and_opened_and_each_moves_the_claim_counter,
        a_gate_that_was_opened_takes_wakes_again,
        a_claim_that_was_decided_on_the_gate_before_is_lost,
        a_persons_gate_is_neither_replaced_nor_opened_before_its_end,
        a_person_opens_and_replaces_any_gate,
        a_persons_gate_whose_end_has_passed_is_replaced_and_opened,
    }
    history {
        ended_launches_come_back_from_their_end_on,
        a_launch_that_is_written_twice_counts_once,
        launches_of_two_nodes_that_ended_at_once_are_two,
        each_pool_has_a_history_of_its_own,
        hundreds_of_launches_come_back_whole,
        the_newest_launch_stands_in_the_item_beside_the_other_facts,
        a_history_is_no_part_of_the_item,
    }
    faults {
        refusals_are_classed_and_none_is_taken_for_an_effect,
        a_server_error_leaves_open_whether_the_node_was_started,
        an_answer_that_is_lost_leaves_the_effect_there,
        start_stop_and_resize_are_sent_once_whatever_fails,
        every_call_that_fails_says_so_in_an_answer_of_its_own_kind,
        a_write_whose_answer_is_lost_stands,
    }
    activity {
        requests_are_summed_and_gauges_take_the_highest_by_the_minute,
        an_empty_series_is_complete,
        the_span_begins_with_its_first_minute_and_ends_before_its_last,
        metrics_of_one_call_are_told_apart_by_their_dimensions,
    }
    logs {
        a_counted_line_is_use_and_any_other_proves_life,
        a_group_without_lines_is_read_and_empty,
        the_span_of_a_log_includes_its_start_and_not_its_end,
        a_long_call_that_ended_is_use_from_its_start,
        a_group_that_is_not_there_is_unknown_and_holds_up_no_other,
        logs_of_one_call_are_told_apart_by_their_group,
        two_pools_count_their_own_lines_of_one_log,
        every_page_is_read_also_after_an_empty_one,
        a_log_that_cannot_be_read_is_unknown_and_the_next_is_read,
    }
    samples {
        minutes_of_running_are_counted_by_five,
        nothing_is_counted_while_a_node_is_off,
        a_node_that_runs_is_counted_up_to_now,
        the_span_of_samples_includes_its_start_and_not_its_end,
        a_node_that_never_ran_has_no_samples_and_others_have_theirs,
        a_start_within_a_minute_is_counted_to_a_minute,
    }
    budget {
        a_budget_that_is_made_is_read_back,
        an_amount_is_read_back_to_the_micro_dollar,
        a_budget_without_mail_has_no_notices,
        a_budget_that_somebody_made_meanwhile_is_as_good,
        a_new_amount_clears_the_figures_and_keeps_the_notices,
        missing_notices_are_made_and_those_that_are_there_are_as_good,
        a_budget_that_is_gone_takes_neither_amount_nor_notices,
        the_figures_of_aws_are_told_as_they_are,
        the_note_of_a_budget_is_read_back_by_its_name,
    }
    alerts {
        an_alert_is_claimed_once,
        an_alert_that_was_claimed_and_not_published_is_claimed_again_later,
        an_alert_that_was_published_is_never_claimed_again,
        an_alert_arrives_as_it_was_written,
        a_message_that_is_kept_stands_with_its_pool_until_it_is_taken_away,
        a_run_tells_a_person_once_in_a_subject_that_sns_takes,
    }
}

hold_in_the_executor! {
    parts {
        a_type_that_ec2_does_not_know_is_refused_for_good,
        an_automatic_address_goes_with_a_stop_and_comes_with_a_start,
        an_elastic_address_is_kept_while_the_node_is_stopped,
    }
    history {
        a_history_of_several_pages_comes_back_whole,
    }
    logs {
        a_log_of_too_many_pages_is_use_and_no_proof_of_silence,
    }
    budget {
        decimals_behind_a_micro_dollar_are_cut,
    }
}
