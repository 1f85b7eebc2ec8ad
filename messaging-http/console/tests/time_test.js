import { forgetSession, loadSession } from "../lib/api.js";
import { absolute, about, bytes, dayOf, duration, laterDay, momentOf, number, percent, relative, startOf, wallOf } from "../lib/ui.js";
import { equal } from "./check.js";

const NOW = Date.parse("2026-01-31T09:15:00Z");

export function times_are_told_from_now() {
  const told = (time) => relative(time, NOW);
  equal(told("2026-01-31T09:14:57Z"), "now");
  equal(told("2026-01-31T09:14:30Z"), "30 seconds ago");
  equal(told("2026-01-31T09:12:00Z"), "3 minutes ago");
  equal(told("2026-02-02T09:15:00Z"), "in 2 days");
  equal(told("2026-02-02T09:14:40Z"), "in 2 days");
  equal(told("2026-01-30T09:15:00Z"), "yesterday");
  equal(told("2024-01-30T09:15:00Z"), "2 years ago");
}

export function spans_have_the_unit_that_fits() {
  equal([80, 1200, 90000, 200000, 7200000, 400000000].map(duration), ["80 ms", "1.2 s", "90 s", "3.3 min", "2 h", "4.6 d"]);
}

export function numbers_are_read_easily() {
  equal([number(1234567), number(undefined)], ["1,234,567", "–"]);
  equal([percent(0.5), percent(0.012), percent(0), percent(undefined)], ["50%", "1.2%", "0%", "–"]);
  equal([bytes(0), bytes(999), bytes(1500), bytes(2500000), bytes(3e12)], ["0 B", "999 B", "1.5 KB", "2.5 MB", "3 TB"]);
}

export function what_is_estimated_says_so() {
  equal([about(1200, true), about(1200, false), about(undefined, true)], ["1,200", "about 1,200", "–"]);
}

// Runs in a workspace of that zone.
async function inZone(timezone, run) {
  const ask = window.fetch;
  const me = { user: {}, workspaces: [{ workspace_id: "ws_1", timezone, scopes: [], role: "viewer" }] };
  window.fetch = async () => new Response(JSON.stringify(me), { headers: { "Content-Type": "application/json" } });
  await loadSession();
  window.fetch = ask;
  run();
  forgetSession();
}

export async function times_are_those_of_the_workspace() {
  await inZone("Asia/Kolkata", () => {
    equal(wallOf("2026-01-31T18:45:00Z"), "2026-02-01T00:15");
    equal([dayOf("2026-01-31T18:45:00Z"), dayOf("2026-01-31T18:15:00Z", 1)], ["2026-02-01", "2026-02-01"]);
    equal(absolute("2026-01-31T18:45:00Z", { dateStyle: "medium" }), "Feb 1, 2026");
    equal(startOf("2026-02-01").toISOString(), "2026-01-31T18:30:00.000Z");
  });
}

export async function days_with_another_length_begin_and_end_by_the_clock() {
  await inZone("America/New_York", () => {
    const begins = ["2026-03-08", "2026-03-09", "2026-11-01", "2026-11-02"].map((day) => startOf(day).toISOString().slice(0, 16));
    equal(begins, ["2026-03-08T05:00", "2026-03-09T04:00", "2026-11-01T04:00", "2026-11-02T05:00"]);
    // An hour that is left out, and the first of two.
    equal(["2026-03-08T02:30", "2026-11-01T01:30"].map((wall) => momentOf(wall).toISOString().slice(0, 16)), ["2026-03-08T07:30", "2026-11-01T05:30"]);
  });
  // Where midnight itself is left out.
  await inZone("Africa/Cairo", () => equal(wallOf(startOf("2026-04-24")), "2026-04-24T01:00"));
  equal([laterDay("2026-02-28", 1), laterDay("2024-03-01", -1)], ["2026-03-01", "2024-02-29"]);
}
