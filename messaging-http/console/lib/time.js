// Times, numbers and shares as people of the reader's place write them.
import { html, useEffect, useState } from "./ui.js";

const UNITS = [["year", 31536000], ["month", 2592000], ["week", 604800], ["day", 86400], ["hour", 3600], ["minute", 60]];

/** `3 minutes ago`, `in 2 days`. */
export function relative(time, now = Date.now()) {
  const seconds = Math.round((new Date(time).getTime() - now) / 1000);
  const format = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
  const [unit, length] = UNITS.find(([, length]) => Math.abs(seconds) >= length) ?? ["second", 1];
  if (unit === "second" && Math.abs(seconds) < 10) return format.format(0, "second");
  return format.format(Math.trunc(seconds / length), unit);
}

/** The whole time, with its zone. */
export function absolute(time, options = { dateStyle: "medium", timeStyle: "long" }) {
  return new Intl.DateTimeFormat(undefined, options).format(new Date(time));
}

/** `1.2 s`, `3 min`, `2 h`: how long something took. */
export function duration(milliseconds) {
  const number = (value) => new Intl.NumberFormat(undefined, { maximumFractionDigits: value < 10 ? 1 : 0 }).format(value);
  if (milliseconds < 1000) return `${number(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 120) return `${number(seconds)} s`;
  if (seconds < 7200) return `${number(seconds / 60)} min`;
  return seconds < 172800 ? `${number(seconds / 3600)} h` : `${number(seconds / 86400)} d`;
}

/** A number with its separators. */
export function number(value) {
  return new Intl.NumberFormat().format(value ?? 0);
}

/** A share of 1 as per cent. */
export function percent(share) {
  return new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: share && share < 0.1 ? 1 : 0 }).format(share ?? 0);
}

/** Bytes as KB, MB, GB. */
export function bytes(value) {
  const steps = ["B", "KB", "MB", "GB", "TB"];
  const step = Math.min(steps.length - 1, Math.floor(Math.log10(Math.max(1, value)) / 3));
  return `${new Intl.NumberFormat(undefined, { maximumFractionDigits: step ? 1 : 0 }).format(value / 1000 ** step)} ${steps[step]}`;
}

/** A time: relative, and absolute for who looks closer. */
export function Time({ at }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((n) => n + 1), 30000);
    return () => clearInterval(timer);
  }, []);
  if (!at) return html`<span class="muted">–</span>`;
  return html`<time datetime=${at} title=${absolute(at)} tabindex="0" data-absolute=${absolute(at)}>${relative(at)}</time>`;
}
