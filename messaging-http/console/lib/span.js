// A span of whole days, as the URL names it: the last `days`, or `from` one day `to` another.
import { dayOf, laterDay, startOf, t } from "./ui.js";

export const SPANS = [["7", "Last 7 days"], ["30", "Last 30 days"], ["90", "Last 90 days"], ["365", "Last 365 days"]];

const BY_HOUR_DAYS = 2;
const LONGEST_DAYS = 366;

/**
 * `{ from, to, before, first, last, days, interval }`: the span of days of the workspace, and where the one of the same
 * length before it begins.
 */
export function spanOf({ days, from, to }) {
  const wanted = SPANS.some(([known]) => known === days) ? Number(days) : 30;
  const last = to || dayOf(Date.now());
  const first = from || laterDay(last, 1 - (to ? 30 : wanted));
  const length = Math.round((Date.parse(last) - Date.parse(first)) / 86400000) + 1;
  if (!(length > 0)) return { fault: t("The first day must not be after the last one.") };
  if (length > LONGEST_DAYS) return { fault: t("At most 366 days can be shown at once.") };
  const [begin, end, before] = [first, laterDay(last, 1), laterDay(first, -length)].map((day) => startOf(day).toISOString());
  return { from: begin, to: end, before, first, last, days: length, interval: length <= BY_HOUR_DAYS ? "hour" : "day" };
}
