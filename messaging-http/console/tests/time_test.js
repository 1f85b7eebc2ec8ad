import { bytes, duration, number, percent, relative } from "../lib/ui.js";
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
  equal([number(1234567), number(undefined)], ["1,234,567", "0"]);
  equal([percent(0.5), percent(0.012), percent(0), percent(undefined)], ["50%", "1.2%", "0%", "0%"]);
  equal([bytes(0), bytes(999), bytes(1500), bytes(2500000), bytes(3e12)], ["0 B", "999 B", "1.5 KB", "2.5 MB", "3 TB"]);
}
