// A span of whole days, as the URL names it: the last `days`, or `from` one day `to` another.
import { t } from "./ui.js";

export const SPANS = [["7", "Last 7 days"], ["30", "Last 30 days"], ["90", "Last 90 days"], ["365", "Last 365 days"]];

const BY_HOUR_DAYS = 2;
const LONGEST_DAYS = 366;

/** `{ from, to, before, days, interval }`: the span, and where the one of the same length before it begins. */
export function spanOf({ days, from, to }) {
  const tomorrow = new Date();
  tomorrow.setHours(24, 0, 0, 0);
  let begin = new Date(tomorrow);
  let end = tomorrow;
  if (from || to) {
    end = to ? new Date(`${to}T00:00`) : tomorrow;
    if (to) end.setDate(end.getDate() + 1);
    begin = from ? new Date(`${from}T00:00`) : new Date(end);
    if (!from) begin.setDate(begin.getDate() - 30);
  } else {
    begin.setDate(begin.getDate() - (SPANS.some(([known]) => known === days) ? Number(days) : 30));
  }
  const length = Math.round((end - begin) / 86400000);
  if (!(length > 0)) return { fault: t("The first day must not be after the last one.") };
  if (length > LONGEST_DAYS) return { fault: t("At most 366 days can be shown at once.") };
  const before = new Date(begin);
  before.setDate(before.getDate() - length);
  return {
    from: begin.toISOString(), to: end.toISOString(), before: before.toISOString(), days: length,
    interval: length <= BY_HOUR_DAYS ? "hour" : "day",
  };
}
