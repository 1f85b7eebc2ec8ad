//! Test cases that every store must pass.
//!
//! Public functions over `&dyn Store`, one file per aggregate; a case wants an empty store. A backend runs all of them
//! with a few lines in its tests:
//!
//! ```text
//! mod one_handle { messaging_conformance::conformance_tests!(super::open); }
//! mod two_handles { messaging_conformance::conformance_tests!(super::open_two_handles); }
//! messaging_conformance::race_tests!(open_twice);
//! messaging_conformance::blob_conformance_tests!(open_blobs);
//! messaging_conformance::upload_conformance_tests!(open_uploads);
//! ```
//!
//! where `open()` is a future of [`Opened`], or of an `Option` of one: with `None` the cases are skipped. The cases of
//! [`BlobStore`](messaging_core::ports::BlobStore) and [`Uploads`](messaging_core::ports::Uploads) stand alone, for
//! implementations from elsewhere.
//!
//! **Two handles.** A database that several processes may open runs every case once more over
//! [`TwoHandles`](two_handles::TwoHandles): rows written through one handle are read through the other. Jobs are
//! claimed and ended through the first, because all jobs of a lane are claimed by one process. A backend that allows no
//! second handle leaves these lines out. [`races`] has the cases in which two handles work at the same moment;
//! [`Twice::claims`] states whether jobs are claimed through both.
//!
//! To add a case: write it, and name it in [`conformance_tests!`](crate::conformance_tests), or in the macro of its port.

pub mod accounts;
pub mod attempts;
pub mod audiences;
pub mod audit_logs;
pub mod automation_answers;
pub mod automation_notes;
pub mod automation_runs;
mod automation_samples;
pub mod automations;
pub mod blobs;
pub mod campaign_messages;
pub mod campaigns;
pub mod channels;
#[cfg(feature = "postgres")]
pub mod cluster;
pub mod commit;
pub mod contacts;
pub mod counters;
pub mod custom_fields;
pub mod domain_reports;
pub mod events;
pub mod every_call;
pub mod fresh_file;
pub mod images;
pub mod imports;
pub mod installation;
pub mod ip_pools;
pub mod jobs;
pub mod keys;
pub mod lanes;
pub mod listings;
pub mod lists;
pub mod longest_texts;
pub mod memory_files;
pub mod messages;
pub mod news;
pub mod operator_queue;
pub mod product_events;
pub mod provider_links;
#[cfg(feature = "postgres")]
pub mod proxy;
pub mod races;
pub mod redaction;
pub mod replies;
pub mod request_logs;
pub mod sample;
pub mod sandbox;
pub mod search;
pub mod second_factors;
pub mod segments;
pub mod sending_domains;
pub mod sign_ins;
pub mod site_counters;
pub mod soft_bounces;
pub mod sources;
pub mod sts_policies;
pub mod suppressions;
pub mod templates;
pub mod two_handles;
pub mod uploads;
pub mod urls;
pub mod webhooks;
pub mod workspace_ends;

use std::any::Any;
use std::sync::Arc;

use messaging_core::changes::{Changes, Write};
use messaging_core::ports::store::{CommitError, PageRequest, Priority, Slice, Store, StoreError};

/// A store for one case.
#[derive(Debug)]
pub struct Opened {
    /// The store, empty.
    pub store: Arc<dyn Store>,
    /// Value that must be kept as long as the store, such as a temporary directory.
    pub keep: Box<dyn Any + Send>,
}

/// A database opened twice, for the cases of [`races`].
#[derive(Debug)]
pub struct Twice {
    /// The handle through which jobs are claimed, over an empty database.
    pub first: Arc<dyn Store>,
    /// A second handle of the same database.
    pub second: Arc<dyn Store>,
    /// True if jobs may be claimed through the second handle as well.
    pub claims: bool,
    /// Value that must be kept as long as the handles, such as a temporary directory.
    pub keep: Box<dyn Any + Send>,
}

impl Twice {
    /// Returns one store whose calls alternate between the two handles.
    pub fn alternating(self) -> Opened {
        Opened { store: Arc::new(two_handles::TwoHandles::new(self.first, self.second)), keep: self.keep }
    }
}

/// A blob store or a place for uploads, for one case.
#[derive(Debug)]
pub struct OpenedPort<P: ?Sized> {
    /// The blob store or the place for uploads, empty.
    pub port: Arc<P>,
    /// Value that must be kept as long as the port, such as a temporary directory.
    pub keep: Box<dyn Any + Send>,
}

/// Commits in the foreground.
pub async fn commit(
    store: &dyn Store,
    writes: impl IntoIterator<Item = Write, IntoIter: Send> + Send,
) -> Result<(), CommitError> {
    store.commit(writes.into_iter().collect::<Changes>(), Priority::Foreground).await
}

/// Commits writes that must succeed.
pub async fn put(store: &dyn Store, writes: impl IntoIterator<Item = Write, IntoIter: Send> + Send) {
    commit(store, writes).await.expect("commits");
}

/// Commits writes that must be a conflict.
pub async fn refuse(store: &dyn Store, writes: impl IntoIterator<Item = Write, IntoIter: Send> + Send) {
    let outcome = commit(store, writes).await;
    assert!(matches!(outcome, Err(CommitError::Conflict)), "a conflict is expected, this came: {outcome:?}");
}

/// Commits writes that must be refused because a claim is not held.
pub async fn refuse_claim(store: &dyn Store, writes: impl IntoIterator<Item = Write, IntoIter: Send> + Send) {
    let outcome = commit(store, writes).await;
    assert!(matches!(outcome, Err(CommitError::LeaseLost)), "a lost claim is expected, this came: {outcome:?}");
}

/// The first page with `limit` items.
pub fn first(limit: usize) -> PageRequest {
    PageRequest { after: None, limit }
}

/// Follows a listing from page to page to its end. `between` is run after every page, to interfere.
pub async fn all_pages<T>(
    limit: usize,
    fetch: impl AsyncFn(PageRequest) -> Result<Slice<T>, StoreError>,
    between: impl AsyncFn(),
) -> Vec<T> {
    let mut page = first(limit);
    let mut all = Vec::new();
    loop {
        let slice = fetch(page).await.expect("a page");
        assert!(slice.items.len() <= limit, "{} items where {limit} were asked for", slice.items.len());
        all.extend(slice.items);
        match slice.next {
            None => return all,
            next => page.after = next,
        }
        between().await;
    }
}

/// Makes a test of every case of a store, for stores opened by the named function, which answers a future of
/// [`Opened`](crate::Opened).
#[macro_export]
macro_rules! conformance_tests {
    ($open:path) => {
        $crate::conformance_tests! { $open;
            accounts: users_round_trip, email_is_unique, sessions_begin_and_end,
                sessions_are_listed_by_user, tickets_are_taken_once, identities_are_linked_once, the_operator_lists_everybody,
                memberships_list_both_ways,
                invitations_are_listed_apart, owners_are_counted, listings_are_exact_while_rows_are_inserted, other_workspaces_are_not_there;
            attempts: attempts_round_trip, old_attempts_are_forgotten,
                attempts_dated_in_the_future_are_passed_over, only_the_last_attempts_are_kept;
            audiences: each_verdict_is_found, a_bot_on_viber_sends_to_its_users, verdicts_are_those_of_filters_and_rules,
                the_first_of_those_with_an_address_gets_it, sets_round_trip, the_sets_of_a_contact_are_found,
                taken_addresses_are_found, recipients_are_read_by_number, a_removed_campaign_lets_its_audience_go,
                other_workspaces_are_not_there;
            audit_logs: entries_round_trip, each_log_is_a_chain_of_its_own, a_changed_row_is_found, every_filter_narrows,
                listing_is_exact_while_rows_are_inserted, a_crowd_makes_one_chain, old_rows_go_and_leave_an_anchor,
                a_refused_commit_records_nothing;
            automation_answers: spans_are_those_of_acceptance, whoever_is_gone_matches_nothing,
                answers_are_those_of_memory;
            automation_notes: each_cause_makes_its_notes_in_order, events_that_enter_nobody_make_no_note, who_is_on_the_way_hears_what_its_version_waits_for,
                a_paused_automation_hears_for_its_runs_alone, events_of_messages_are_told_but_for_machines,
                notes_are_taken_once, notes_make_jobs_due, notes_know_how_deep_they_are, moves_of_segments_are_told,
                a_commit_that_is_refused_tells_nobody,
                suppressions_of_attributes_are_told_when_changes_are_followed;
            automation_runs: runs_round_trip, a_run_changes_with_its_revision, due_runs_come_in_their_order_by_share,
                runs_are_listed_by_state_contact_and_node, steps_and_messages_are_kept_with_a_run, the_first_wait_of_a_run_is_told,
                entries_change_with_their_revision, entries_of_a_day_are_counted,
                a_commit_expects_how_often_somebody_has_entered, dates_fire_once,
                counts_follow_the_runs, a_job_is_due_when_its_run_is, runs_of_a_merged_contact_go_on,
                runs_of_an_erased_contact_are_deleted, ended_runs_are_forgotten, other_workspaces_are_not_there;
            automations: automations_round_trip, listing_is_exact_while_rows_are_inserted,
                versions_are_kept_while_runs_name_them, what_active_automations_need_is_held,
                what_open_runs_need_is_held, begun_automations_are_found_in_every_workspace,
                the_state_of_an_automation_is_expected, a_removed_automation_lets_its_rows_go,
                other_workspaces_are_not_there;
            blobs: blobs_without_a_commit_are_settled, an_abandoned_blob_is_named_by_no_commit;
            campaign_messages: messages_wait_in_the_order_of_their_time, a_waiting_message_is_taken_once,
                a_page_of_messages_is_one_write, messages_without_content_are_like_others,
                messages_are_found_by_outcome, listing_is_exact_while_rows_are_inserted,
                the_message_to_a_contact_is_found, other_workspaces_are_not_there;
            campaigns: campaigns_round_trip, listing_is_exact_while_rows_are_inserted,
                open_campaigns_are_found_in_every_workspace, archived_campaigns_are_ordered_by_their_beginning,
                what_open_campaigns_name_is_held, the_domains_of_open_campaigns_are_held,
                what_is_gone_cannot_be_held, progress_changes_with_its_revision, the_state_of_a_campaign_is_expected,
                a_removed_campaign_lets_its_rows_go, other_workspaces_are_not_there, sends_change_with_their_revision,
                a_revision_of_sends_is_met_once, stale_sends_are_forgotten, sends_of_other_workspaces_are_not_there;
            channels: settings_come_and_go;
            commit: dropped_changes_leave_nothing, a_failing_write_takes_the_others_with_it,
                a_revision_is_used_once, absent_means_absent, commits_are_observed_once_and_refusals_never, conflicts_in_a_crowd_hurt_nobody_else,
                nothing_is_a_fine_commit, a_closed_store_takes_nothing;
            contacts: contacts_round_trip, a_contact_changes_with_its_revision, identifiers_are_unique,
                contacts_are_put_in_order, identifiers_change_hands_in_one_commit, a_removed_contact_leaves_nothing, every_filter_narrows,
                listing_is_exact_while_rows_are_inserted, a_page_goes_on_after_its_last_contact_is_gone,
                one_of_many_gets_an_address, other_workspaces_are_not_there;
            counters: totals_and_series_are_sums, what_conflicts_counts_nothing, counts_of_a_crowd_add_up,
                a_series_is_of_a_span, links_are_counted_by_variant_and_number, a_removed_campaign_has_no_counts,
                events_are_counted_by_name, contacts_of_events_are_counted_once, other_workspaces_are_not_there,
                whatever_happens_counters_equal_a_recount;
            site_counters: counts_of_a_site_add_up, old_counts_of_sites_are_forgotten, a_refused_commit_counts_nothing;
            custom_fields: fields_round_trip, key_is_unique_in_its_workspace,
                listing_is_exact_while_rows_are_inserted, other_workspaces_are_not_there;
            domain_reports: a_report_counts_once, messages_are_summed_by_source_and_result,
                unverified_reports_are_counted_apart, rows_of_tls_reports_are_listed,
                the_oldest_go_where_a_report_says_so, old_reports_are_forgotten,
                a_deleted_domain_takes_its_reports_along;
            events: events_are_logged_in_the_order_of_commits, a_position_of_a_time_divides_the_log,
                old_entries_are_forgotten, a_workspace_is_followed_until_a_time;
            images: images_round_trip, octets_are_stored_once_in_a_workspace, images_are_listed_by_pages,
                templates_are_found_by_a_text, other_workspaces_are_not_there;
            imports: imports_round_trip, refused_rows_come_back_in_order, old_refused_rows_are_forgotten,
                listing_is_exact_while_rows_are_inserted, other_workspaces_are_not_there;
            installation: the_check_value_of_the_key_is_kept_once, a_secret_key_is_switched_to_once_all_hold_it, the_name_is_changed_by_whoever_knows_it,
                a_fence_is_moved_by_whoever_knows_it, the_newest_of_what_was_put_aside_is_kept, sealed_secrets_are_found_with_their_places;
            jobs: a_claimed_job_is_finished_once, a_lane_that_is_woken_is_due, a_refused_commit_wakes_no_lane,
                a_lane_gets_one_job_of_a_kind_that_is_needed_once,
                what_is_not_due_is_not_claimed,
                two_claimers_never_get_one_job, an_expired_lease_is_claimed_again, a_foreign_token_is_refused,
                a_rescheduled_job_comes_back,
                a_saved_job_stays_claimed_and_comes_back_as_saved, a_held_claim_is_confirmed, a_failed_commit_keeps_the_lease, next_due_knows_jobs_and_leases,
                what_a_wrong_clock_dated_is_dated_anew, what_is_in_work_when_the_clock_is_set_back_stays_so,
                jobs_are_counted, the_jobs_of_lanes_are_counted, jobs_are_listed_by_kind_and_removed, queues_are_summed_up;
            ip_pools: pools_round_trip, names_of_pools_are_unique_in_their_workspace, shared_pools_are_there_for_everybody,
                all_pools_are_listed_in_order, listing_is_exact_while_rows_are_inserted, other_workspaces_are_not_there,
                addresses_are_granted_and_revoked;
            keys: keys_round_trip, a_key_is_found_by_secret_and_prefix, prefix_is_unique, last_use_is_listed,
                uses_are_kept_by_operation, keys_are_found_before_they_end,
                listing_is_exact_while_rows_are_inserted, other_workspaces_are_not_there;
            lanes: a_busy_lane_does_not_delay_others, lanes_take_turns, senders_take_turns_within_one_limit, a_lane_gives_no_more_than_allowed,
                a_lane_may_have_a_share_of_its_own,
                held_lanes_are_left_alone, a_lane_let_go_is_claimed_at_once,
                a_job_added_to_a_leased_lane_is_claimed, an_empty_lane_is_forgotten,
                background_work_takes_part, transactional_work_goes_first_and_bulk_work_goes_on,
                workspaces_take_turns_by_weight, withheld_lanes_are_left_alone_until_they_are_let_go;
            listings: a_forged_key_stays_in_its_workspace;
            lists: public_lists_are_found, subscriptions_are_kept_under_their_revision, subscriptions_are_listed_by_status,
                filters_find_a_status_on_a_list, forms_round_trip, lists_round_trip, members_are_counted, both_must_be_there_to_join,
                a_removed_list_lets_its_members_go, listing_is_exact_while_rows_are_inserted,
                other_workspaces_are_not_there;
            messages: messages_round_trip, status_moves_with_its_revision, holds_and_milestones_move, contents_are_forgotten_when_settled,
                contents_dated_in_the_future_are_passed_over,
                events_are_ordered_by_time, every_filter_narrows, filters_combine,
                listing_is_narrowed_to_recipient_template_and_time,
                listing_is_exact_while_rows_are_inserted, other_workspaces_are_not_there;
            news: commits_are_told_by_topic, work_that_notes_make_due_is_told;
            operator_queue: a_suspension_stays_until_it_is_lifted, suspended_lanes_are_left_alone_until_they_are_let_go,
                lanes_are_summed_up_by_pages, jobs_are_read_after_a_place, named_jobs_are_made_due;
            product_events: events_round_trip, what_events_name_is_looked_up, the_first_name_found_is_enough,
                a_unique_id_counts_for_seven_days, unique_ids_are_unique_in_a_crowd, a_contact_must_be_there,
                merged_events_move_in_slices, the_way_of_merged_events_is_followed,
                erased_events_go_in_slices, unique_ids_are_forgotten,
                unique_ids_dated_in_the_future_are_passed_over,
                listing_is_exact_while_rows_are_inserted, other_workspaces_are_not_there;
            provider_links: a_name_leads_to_its_message, several_names_lead_to_their_messages,
                a_message_has_the_newest_of_its_names, other_accounts_are_not_there,
                old_names_go_when_new_ones_come, what_came_in_is_noted_once;
            redaction: a_message_is_attributed_anew, a_redacted_message_names_nobody,
                messages_are_found_by_recipient, messages_are_found_by_whom_they_copy,
                an_erased_copy_leaves_the_message, a_message_is_expected_at_its_revision;
            request_logs: requests_round_trip, every_filter_narrows, listing_is_exact_while_rows_are_inserted,
                the_newest_of_an_id_is_shown, bodies_are_forgotten_apart, old_requests_and_those_beyond_go,
                other_workspaces_are_not_there;
            replies: replies_round_trip, a_live_reply_is_not_replaced, an_expired_reply_is_replaced,
                reply_and_effect_appear_together, expired_replies_and_sessions_are_forgotten,
                replies_dated_in_the_future_are_passed_over;
            sandbox: captures_round_trip, a_large_source_comes_back, a_later_capture_replaces,
                only_the_newest_are_kept, listing_is_exact_while_rows_are_inserted,
                other_workspaces_are_not_there;
            search: contacts_are_found_by_a_piece_of_text, a_search_of_contacts_combines_with_filters,
                a_note_is_followed_once, messages_are_found_by_a_piece_of_text,
                a_search_of_messages_goes_through_all_blocks, erased_messages_are_not_found;
            second_factors: factors_round_trip, factors_of_everybody_are_listed, recovery_codes_are_good_once,
                codes_of_a_sign_in_are_counted, what_is_over_is_forgotten, factors_go_with_their_user;
            segments: segments_round_trip, listing_is_exact_while_rows_are_inserted,
                the_interest_is_that_of_all_dynamic_segments, members_are_calculated_and_counted,
                a_calculation_goes_through_everybody, every_kind_of_change_is_followed,
                new_contacts_join_dynamic_segments_alone, changes_are_followed_a_few_at_a_time, a_lost_claim_moves_nobody,
                a_removed_segment_lets_its_members_go, the_largest_filters_are_evaluated,
                other_workspaces_are_not_there, kept_members_are_those_who_match;
            sending_domains: domains_round_trip, name_is_unique_in_its_workspace, a_deleted_name_is_free,
                a_name_is_found_in_every_workspace, all_domains_are_listed_by_name,
                listing_is_exact_while_rows_are_inserted, other_workspaces_are_not_there;
            sign_ins: failures_of_an_email_count, failures_of_a_network_count, failures_of_a_site_count, failures_of_an_account_slow_it, a_crowd_of_attempts_is_counted,
                old_and_future_failures_are_forgotten;
            soft_bounces: a_streak_grows_and_ends, a_length_is_counted_from_once, others_have_their_own;
            sources: sources_of_a_node_are_told_while_it_lives, what_is_kept_of_sources_comes_back, paths_round_trip,
                the_busiest_paths_of_a_day_come_first, old_paths_are_forgotten_unless_they_are_stopped;
            longest_texts: the_longest_address_is_suppressed, the_longest_names_of_deliveries_are_kept,
                the_longest_names_of_contacts_and_events_are_kept;
            suppressions: suppressions_round_trip, addresses_of_several_channels_are_looked_up,
                address_is_unique_per_channel, suppressions_are_found_by_id_and_deleted, every_filter_narrows,
                listing_is_exact_while_rows_are_inserted, other_workspaces_are_not_there;
            sts_policies: policies_are_kept_by_domain, expired_policies_go;
            urls: urls_round_trip_and_are_stored_once, targets_that_name_somebody_are_removed,
                other_workspaces_are_not_there;
            templates: versions_round_trip, removed_templates_go_later,
                listing_is_exact_while_rows_are_inserted, versions_are_listed, other_workspaces_are_not_there;
            webhooks: webhooks_round_trip, the_state_of_a_webhook_is_expected, listing_is_exact_while_rows_are_inserted,
                other_workspaces_are_not_there, failures_begin_once_and_end, deliveries_round_trip, deliveries_of_a_message_are_found,
                the_backlog_is_in_order, replays_find_what_they_repeat, backlogs_are_given_up, deliveries_expire_and_are_forgotten;
            workspace_ends: workspaces_under_deletion_are_told, what_was_put_aside_goes_with_its_owner,
                remembered_answers_go_with_the_workspace, a_workspace_is_removed_alone_and_its_id_stays_taken,
                a_user_is_removed_with_what_opens_something;
        }
    };
    ($open:path; $($module:ident: $($case:ident),+;)+) => {$(
        mod $module {$(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let opened = $open().await;
                let Some(opened) = Option::<$crate::Opened>::from(opened) else { return };
                $crate::$module::$case(&*opened.store).await;
                opened.store.close().await;
            }
        )+}
    )+};
}

/// Makes a test of every case of two handles, for databases opened by the named function, which answers a future of
/// [`Twice`](crate::Twice).
#[macro_export]
macro_rules! race_tests {
    ($open:path) => {
        $crate::race_tests! { $open; races: one_of_two_commits_conflicts, a_reply_is_remembered_once,
            an_outcome_and_an_erasure_do_not_pass_each_other,
            a_job_that_is_needed_once_is_there_once, a_job_that_ends_leaves_one_that_was_needed,
            contacts_that_change_while_a_segment_is_made_are_followed, nobody_joins_or_acts_after_they_are_gone,
            a_status_and_its_membership_agree, the_log_is_read_without_a_gap_while_both_write, a_listing_is_exact_while_the_other_writes,
            notes_of_both_writers_are_worked_off_once, blobs_are_kept_or_abandoned, jobs_are_claimed_once, what_a_campaign_names_is_held_or_gone,
            a_waiting_message_is_released_once, nothing_is_released_after_a_pause, a_place_under_a_cap_is_taken_once; }
    };
    ($open:path; $module:ident: $($case:ident),+;) => {
        mod $module {$(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let twice = $open().await;
                let Some(twice) = Option::<$crate::Twice>::from(twice) else { return };
                $crate::$module::$case(&twice).await;
                twice.second.close().await;
                twice.first.close().await;
            }
        )+}
    };
}

/// Makes a test of every case of a blob store, opened by the named function, which answers a future of
/// [`OpenedPort`](crate::OpenedPort).
#[macro_export]
macro_rules! blob_conformance_tests {
    ($open:path) => {
        $crate::port_tests! { $open; blobs: bytes_come_back, removed_blobs_are_gone, pending_blobs_are_found_until_kept,
        old_blobs_are_found_oldest_first, blobs_of_a_workspace_are_found, other_workspaces_are_not_there; }
    };
}

/// Makes a test of every case of a place for uploaded files, opened by the named function, which answers a future of
/// [`OpenedPort`](crate::OpenedPort).
#[macro_export]
macro_rules! upload_conformance_tests {
    ($open:path) => {
        $crate::port_tests! { $open; uploads: a_file_is_read_once_it_is_kept, files_of_an_import_do_not_meet,
        removed_files_are_gone, files_of_a_workspace_are_found, other_workspaces_are_not_there; }
    };
}

/// A module of tests of a port of its own.
#[doc(hidden)]
#[macro_export]
macro_rules! port_tests {
    ($open:path; $module:ident: $($case:ident),+;) => {
        mod $module {$(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let opened = $open().await;
                let Some(opened) = Option::<$crate::OpenedPort<_>>::from(opened) else { return };
                $crate::$module::$case(&*opened.port).await;
            }
        )+}
    };
}
