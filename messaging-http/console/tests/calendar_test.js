import { laterMonth, timeOf, weeksOf } from "../screens/campaign_calendar.js";
import { equal } from "./check.js";

export function months_follow_one_another_over_the_years() {
  equal([laterMonth("2026-12", 1), laterMonth("2026-01", -1), laterMonth("2026-11", 0), laterMonth("2024-01", 13)], ["2027-01", "2025-12", "2026-11", "2025-02"]);
}

export function a_month_is_whole_weeks_that_begin_as_they_do_here() {
  for (const [month, first, begin, end, weeks] of [
    ["2026-11", 1, "2026-10-26", "2026-12-06", 6],
    ["2026-11", 7, "2026-11-01", "2026-12-05", 5],
    ["2027-02", 1, "2027-02-01", "2027-02-28", 4],
    ["2028-02", 6, "2028-01-29", "2028-03-03", 5],
  ]) {
    const found = weeksOf(month, first);
    equal([found.length, found[0][0], found.at(-1)[6], found.every((week) => week.length === 7)], [weeks, begin, end, true]);
  }
}

export function a_campaign_stands_where_it_began_or_will_begin() {
  const [began, planned] = ["2026-01-02T00:00:00.000Z", "2026-01-01T00:00:00.000Z"];
  for (const [campaign, expected] of [
    [{ status: "scheduled", started_at: null, scheduled_at: planned }, planned],
    [{ status: "sent", started_at: began, scheduled_at: planned }, began],
    [{ status: "cancelled", started_at: null, scheduled_at: null }, undefined],
    [{ status: "draft", started_at: null, scheduled_at: planned }, undefined],
  ]) equal(timeOf(campaign), expected);
}
