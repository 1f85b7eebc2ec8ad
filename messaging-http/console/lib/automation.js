// What is said about automations: kinds of steps and triggers, a sentence for each step, for each line of a run's
// history, and the names behind the ids.
import { allowed, call } from "./api.js";
import { absolute, countedWord, locale, percent, t, useEffect, useState, words } from "./ui.js";

/** The kinds of steps: `[kind, name, what it does, group]`. */
export const KINDS = [
  ["send", "Send", "a message from a template", "Messages"],
  ["wait", "Wait", "for a time, or until one", "Time"],
  ["wait_event", "Wait for an event", "and go another way if it does not come", "Time"],
  ["condition", "Condition", "one way if the contact fits, another if not", "Ways"],
  ["split", "Split", "share contacts among several ways by chance", "Ways"],
  ["exit", "Exit", "the run ends here", "Ways"],
  ["update_contact", "Update contact", "set attributes, language, time zone, tags", "Contact"],
  ["add_tag", "Add a tag", "", "Contact"],
  ["remove_tag", "Remove a tag", "", "Contact"],
  ["add_to_list", "Add to a list", "", "Contact"],
  ["remove_from_list", "Remove from a list", "", "Contact"],
  ["webhook", "Call a webhook", "send data to another program", "Other"],
];

/** The name of a kind of step. */
export function kindName(kind) {
  return t(KINDS.find(([id]) => id === kind)?.[1] ?? words(kind));
}

/** The kinds of triggers: `[kind, name]`. */
export const TRIGGERS = [
  ["event", "a product event comes"], ["contact_created", "a contact is created"], ["list_added", "a contact joins a list"],
  ["segment_enter", "a contact enters a segment"], ["segment_exit", "a contact leaves a segment"],
  ["date", "a date of the contact is near"], ["message_event", "something happens to a message"], ["manual", "your program calls it"],
];

/** What may happen to a message. */
export const MESSAGE_EVENTS = [
  ["delivered", "is delivered"], ["open", "is opened"], ["click", "is clicked"],
  ["bounce", "bounces"], ["complaint", "is reported as spam"], ["unsubscribe", "leads to an unsubscribe"],
];

const UNITS = { seconds: ["second", "seconds"], minutes: ["minute", "minutes"], hours: ["hour", "hours"], days: ["day", "days"], weeks: ["week", "weeks"], months: ["month", "months"] };

/** `2 hours`. */
function durationText(duration) {
  if (!duration?.value || !UNITS[duration.unit]) return "…";
  const [one, many] = UNITS[duration.unit];
  return `${duration.value} ${countedWord(duration.value, one, many)}`;
}

/** The days of a week, 1 being Monday. */
export function weekday(day) {
  return new Intl.DateTimeFormat(locale(), { weekday: "short", timeZone: "UTC" }).format(new Date(Date.UTC(2024, 0, day)));
}

const OPERATORS = {
  eq: "is", neq: "is not", in: "is one of", not_in: "is none of", gt: "is over", gte: "is at least", lt: "is under", lte: "is at most",
  exists: "is there", not_exists: "is not there",
};

/** A filter in a few words. */
export function filterText(filter, names = {}) {
  if (!filter) return "…";
  const inner = (one) => (one?.and || one?.or ? `(${filterText(one, names)})` : filterText(one, names));
  if (filter.and) return filter.and.map(inner).join(` ${t("and")} `);
  if (filter.or) return filter.or.map(inner).join(` ${t("or")} `);
  if (filter.not) return t("not ({what})", { what: filterText(filter.not, names) });
  const value = filter.value_from ?? (filter.value === undefined ? "" : typeof filter.value === "string" ? filter.value : JSON.stringify(filter.value));
  const compared = () => `${t(OPERATORS[filter.op] ?? words(filter.op))} ${value}`.trim();
  switch (filter.type) {
    case "contact": return `${words(filter.field)} ${compared()}`;
    case "attribute": return `${filter.key} ${compared()}`;
    case "tag": return `${t({ has_any: "has one of the tags", has_all: "has all tags", has_none: "has none of the tags" }[filter.op] ?? "tags")} ${(filter.values ?? []).join(", ")}`;
    case "list": case "segment": return t(filter.op === "not_member" ? "is not in {name}" : "is in {name}", { name: names[filter.id] ?? filter.id });
    case "consent": return t("consent {channel} {value}", { channel: words(filter.channel), value });
    case "suppression": return t("suppressed {channel} {value}", { channel: filter.channel, value });
    case "event": return t("{name} came{count}{when}", { name: filter.name || "…", count: countText(filter.count), when: whenText(filter.within) });
    case "message": return t("a message {event}{count}{when}", { event: t(MESSAGE_EVENTS.find(([id]) => id === filter.event)?.[1] ?? filter.event ?? "…"), count: countText(filter.count), when: whenText(filter.within) });
    default: return Object.keys(filter).length ? JSON.stringify(filter) : t("every contact");
  }
}

function countText(count) {
  if (!count) return "";
  const sign = { gte: "≥", lte: "≤", eq: "=" }[count.op] ?? "";
  return t(" ({sign} {number} times)", { sign, number: count.value });
}

function whenText(within) {
  if (!within) return "";
  if (within.since_entry) return ` ${t("since the start")}`;
  if (within.last) return ` ${t("in the last {time}", { time: durationText(within.last) })}`;
  return "";
}

/** What an event or message leaf waits for. */
function happening(on, names = {}) {
  if (on?.type === "message") return t("a message {what}", { what: t(MESSAGE_EVENTS.find(([id]) => id === on.event)?.[1] ?? "…") });
  const where = (on?.where ?? []).map(({ property, op, value, value_from: from }) => `${property} ${t(OPERATORS[op] ?? words(op))} ${from ?? value ?? ""}`);
  return `${on?.name || "…"}${where.length ? ` (${where.join(", ")})` : ""}`;
}

/** What a step does, in a few words. */
export function nodeText({ kind, config = {} }, names = {}) {
  const named = (id, what) => (id ? names[id] ?? id : what);
  switch (kind) {
    case "send": return named(config.template_id, t("no template yet"));
    case "wait":
      if (config.until) return t("until {time}{days}", { time: config.until.time || "…", days: config.until.weekdays?.length ? ` (${config.until.weekdays.map(weekday).join(", ")})` : "" });
      if (config.until_attribute) {
        const { key, offset, direction } = config.until_attribute;
        return offset?.value ? t("until {duration} {direction} {key}", { duration: durationText(offset), direction: t(direction ?? "after"), key: key || "…" }) : t("until {key}", { key: key || "…" });
      }
      return durationText(config.duration);
    case "wait_event": return t("{what}, at most {time}", { what: happening(config.on, names), time: durationText(config.timeout) });
    case "condition": return filterText(config.filter, names);
    case "split": return shares(config).map(({ name, share }) => `${name} ${percent(share)}`).join(", ") || "…";
    case "update_contact": return [...Object.keys(config.attributes ?? {}), config.locale && t("language"), config.timezone && t("time zone"),
      ...(config.tags_add ?? []).map((tag) => `+${tag}`), ...(config.tags_remove ?? []).map((tag) => `−${tag}`)].filter(Boolean).join(", ") || "…";
    case "add_tag": case "remove_tag": return config.tag || "…";
    case "add_to_list": case "remove_from_list": return named(config.list_id, t("no list yet"));
    case "webhook": return `${config.method ?? "POST"} ${config.url || "…"}`;
    case "exit": return config.reason ?? "";
    default: return "";
  }
}

/** The ways of a split with their shares of 1. */
export function shares({ branches = [] }) {
  const total = branches.reduce((sum, { weight }) => sum + (weight || 0), 0);
  return branches.map(({ name, weight }) => ({ name, share: total ? (weight || 0) / total : 0 }));
}

/** What a branch is taken for. */
export function branchText(node, name) {
  const fixed = { yes: t("If yes"), no: t("If no"), error: t("If the call fails"), event: t("If it happens"), next: t("Then") };
  if (node?.kind === "split") {
    const { share } = shares(node.config ?? {}).find((one) => one.name === name) ?? {};
    return `${name} (${percent(share)})`;
  }
  if (name === "timeout") return t("If not within {time}", { time: durationText(node?.config?.timeout) });
  return fixed[name] ?? name;
}

/** What enters a contact. */
export function triggerText({ kind, config = {} } = {}, names = {}) {
  switch (kind) {
    case "event": return t("When {what} comes", { what: happening({ type: "event", ...config }) });
    case "contact_created": return t("When a contact is created");
    case "list_added": return t("When a contact joins {list}", { list: names[config.list_id] ?? t("a list") });
    case "segment_enter": return t("When a contact enters {segment}", { segment: names[config.segment_id] ?? t("a segment") });
    case "segment_exit": return t("When a contact leaves {segment}", { segment: names[config.segment_id] ?? t("a segment") });
    case "date": return t("At {time}, {days} {attribute}", {
      time: config.time ?? "09:00", attribute: config.attribute || "…",
      days: !config.offset_days ? t("on the day of") : config.offset_days < 0 ? t("{number} days before", { number: -config.offset_days }) : t("{number} days after", { number: config.offset_days }),
    });
    case "message_event": return t("When {what}", { what: happening({ type: "message", ...config }) });
    case "manual": return t("When your program calls it");
    default: return t("No start chosen yet");
  }
}

// ---- names behind ids ----

const NAMED = [["listTemplates", "templates"], ["listLists", "lists"], ["listSegments", "segments"], ["listCampaigns", "campaigns"]];
const MOST_PAGES = 5;

/** What of `wanted` the workspace has, as the API lists it, and `names`: id → name. */
export function useNames(wanted = ["templates", "lists", "segments", "campaigns"]) {
  const [found, setFound] = useState({ names: {} });
  useEffect(() => {
    const abort = new AbortController();
    const load = async (operation, member) => {
      const rows = [];
      for (let page = 0, cursor; page === 0 || (cursor && page < MOST_PAGES); page += 1) {
        const answer = await call(operation, { query: { limit: 200, cursor }, quiet: true, signal: abort.signal });
        rows.push(...answer.data);
        cursor = answer.next_cursor;
      }
      setFound((old) => ({ ...old, [member]: rows, names: { ...old.names, ...Object.fromEntries(rows.map(({ id, name }) => [id, name])) } }));
    };
    // Without them ids are shown, which is no reason to show nothing.
    for (const [operation, member] of NAMED) if (wanted.includes(member) && allowed(operation)) load(operation, member).catch(() => {});
    return () => abort.abort();
  }, []);
  return found;
}

// ---- history ----

/** A time as people write it, to the minute. */
export const moment = (time) => absolute(time, { dateStyle: "medium", timeStyle: "short" });

const REASONS = {
  no_consent: "the contact did not agree to marketing", suppressed: "the address is on the suppression list", frequency_cap: "the contact got enough messages lately",
  no_address: "the contact has no address for the channel", goal: "the goal was reached", exit_condition: "an exit condition was met", manual: "somebody ended it",
  steps: "more than 1000 steps", depth: "automations caused each other more than 8 times", daily_limit: "entered more than 100 times in a day", node_error: "the step could not do its work",
  exit: "an exit step",
};

/** Why, in words; reasons of the automation's own author stay as they are. */
export function reasonText(reason) {
  return reason ? (REASONS[reason] ? t(REASONS[reason]) : reason) : "";
}

const TONES = { entered: "good", sent: "good", continued: "good", completed: "good", skipped: "warn", refused: "bad", failed: "bad", waiting: "wait", exited: "off", branched: "busy", changed: "good", called: "good" };

/** The tone of a line, for its sign. */
export function toneOf(outcome) {
  return TONES[outcome] ?? "off";
}

/** One line of a history as parts: `{ title, text }`; `node` is the step as the automation has it now, if it still has. */
export function stepText(step, node, names) {
  const { outcome, branch, reason, detail = {} } = step;
  const why = reason && reasonText(reason);
  const what = node ? nodeText(node, names) : "";
  switch (outcome) {
    case "entered": return { title: t("Entered") };
    case "refused": return { title: t("Not let in"), text: why };
    case "sent": return { title: t("Sent: {what}", { what }) };
    case "skipped": return { title: t("Not sent: {what}", { what }), text: why };
    case "waiting": return { title: node?.kind === "wait_event" ? t("Waits for {what}", { what: happening(node.config?.on) }) : node?.kind === "send" ? t("Waits to send {what}", { what }) : t("Waits {what}", { what }),
      text: detail.until && t("until {time}", { time: moment(detail.until) }) };
    case "continued": return { title: branch === "event" ? t("It happened") : branch === "timeout" ? t("It did not happen in time") : t("Went on"), text: why };
    case "branched": return { title: node?.kind === "split" ? t("Drawn: {branch}", { branch }) : branch === "yes" ? t("Condition: yes") : branch === "no" ? t("Condition: no") : t("Went {branch}", { branch }), text: why ?? (node?.kind === "condition" ? what : "") };
    case "changed": return { title: t("{kind}: {what}", { kind: kindName(node?.kind), what }), text: why };
    case "called": return { title: t("Called {what}", { what: node?.config?.url ?? t("the webhook") }), text: branch === "error" ? t("It failed; the run went the way for that.") : why };
    case "completed": return reason === "goal" ? { title: t("Reached the goal") } : { title: t("Came to the end"), text: why };
    case "exited": return { title: t("Left"), text: why };
    case "failed": return { title: t("Failed"), text: why };
    default: return { title: words(outcome), text: why };
  }
}
