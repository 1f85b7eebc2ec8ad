// When a draft is sent, and what stands in the way: what can be seen beforehand, and what the server refuses, each with
// the place where it is put right.
import { allowed, call, idempotencyKey } from "../lib/api.js";
import { about, absolute, announce, Badge, confirm, Failed, html, momentOf, offsetOf, relative, t, useCall, useId, useState, zone } from "../lib/ui.js";
import { href } from "../lib/route.js";

const FIRST_ZONE = "+14:00";
const LAST_ZONE = "-12:00";
const TIME = { dateStyle: "medium", timeStyle: "short" };

export function Timing({ campaign, estimate, isChanged, afterSaving, onDone }) {
  const id = useId();
  const [at, setAt] = useState("");
  const [byZone, setByZone] = useState(false);
  const [refusal, setRefusal] = useState(null);
  const [busy, setBusy] = useState(false);

  const schedule = (body, said) => afterSaving(async () => {
    setBusy(true);
    setRefusal(null);
    try {
      const answer = await call("scheduleCampaign", { path: { id: campaign.id }, body, key: idempotencyKey() });
      announce(said);
      onDone(answer);
    } catch (error) {
      setRefusal(error);
      announce(error.message, { fault: true });
    } finally {
      setBusy(false);
    }
  });
  const later = (event) => {
    event.preventDefault();
    schedule({ ...(at && { at: withOffset(at) }), ...(byZone && { by_timezone: true }) }, t("Scheduled"));
  };
  const now = async () => {
    const people = estimate === undefined ? t("everybody in the audience") : t("{number} people", { number: about(estimate.audience_estimate, estimate.exact) });
    const text = t("Sending to {people} begins now. What is sent cannot be taken back; you can pause what is not sent yet.", { people });
    if (await confirm({ title: t("Send now?"), text, action: t("Send now") })) schedule({ send_now: true }, t("Sending begins"));
  };
  return html`<section class="card" aria-labelledby="${id}-title" id="timing" tabindex="-1">
    <h2 id="${id}-title">${t("When")}</h2>
    ${refusal && html`<${Refusal} error=${refusal} />`}
    <form class="form" novalidate onSubmit=${later} data-operation="scheduleCampaign">
      <div class="field"><label for="${id}-at">${t("Date and time")}</label>
        <input id="${id}-at" type="datetime-local" value=${at} aria-describedby="${id}-zone" onInput=${(event) => setAt(event.target.value)} />
        <p class="help" id="${id}-zone">${t("By the clock of the workspace ({zone}).", { zone: zone() })}</p></div>
      <div class="field check"><label><input type="checkbox" checked=${byZone} onChange=${(event) => setByZone(event.target.checked)} />
        <span>${t("At this time of day where each recipient lives")}</span></label></div>
      ${byZone && at && html`<${AroundTheWorld} at=${at} />`}
      ${isChanged && html`<p class="help">${t("Your changes are saved first.")}</p>`}
      <div class="actions"><button type="submit" class="primary" disabled=${busy}>${t("Schedule")}</button>
        <button type="button" disabled=${busy} onClick=${now}>${t("Send now")}</button></div>
    </form>
  </section>`;
}

// The clock on the wall with the offset of the workspace's zone at that moment, which the server keeps for by_timezone.
function withOffset(local) {
  const minutes = offsetOf(momentOf(local));
  const two = (value) => String(Math.trunc(Math.abs(value))).padStart(2, "0");
  return `${local}:00${minutes < 0 ? "-" : "+"}${two(minutes / 60)}:${two(minutes % 60)}`;
}

// The same clock time comes first in UTC+14 and last in UTC−12, 26 hours later.
function AroundTheWorld({ at }) {
  const first = new Date(`${at}:00${FIRST_ZONE}`);
  const last = new Date(`${at}:00${LAST_ZONE}`);
  const line = (time) => `${absolute(time, TIME)} (${relative(time)})`;
  const isLate = first < Date.now();
  return html`<div class="notice ${isLate ? "warning" : ""}">
    <p><strong>${t("First here:")}</strong> ${t("Kiribati (UTC+14), {time} by the clock of the workspace", { time: line(first) })}</p>
    <p><strong>${t("Last there:")}</strong> ${t("west of Samoa (UTC−12), {time} by the clock of the workspace", { time: line(last) })}</p>
    ${isLate && html`<p>${t("In some time zones this time has passed: recipients there get it at once.")}</p>`}
    <p>${t("Contacts without a time zone count as in the workspace's.")}</p></div>`;
}

// ---- refusals and their cures ----

const CURES = {
  audience_empty: ["Choose a list or a segment", "audience"],
  schedule_time_required: ["Choose a date and time, or send now", "timing"],
  schedule_in_past: ["Choose a later time", "timing"],
  sender_missing: ["Name a sender's address", "content"],
  sender_domain_not_verified: ["See which DNS record is missing", null, "domains"],
  channel_not_configured: ["Set the channel up", null, "channels"],
};
const PLACES = { template_id: "content", audience: "audience", variants: "test", settings: "delivery", at: "timing", by_timezone: "timing" };

function Refusal({ error }) {
  if (error.status !== 422 && error.status !== 409) return html`<${Failed} error=${error} />`;
  const causes = error.violations.length ? error.violations : [error];
  return html`<div class="notice fault" role="alert"><p><strong>${t("Not yet:")}</strong></p>
    <ul>${causes.map((cause) => html`<li>${cause.message} <${Cure} of=${cureOf(cause)} /></li>`)}</ul></div>`;
}

function cureOf({ code, pointer }) {
  if (CURES[code]) return CURES[code];
  const place = PLACES[pointer?.split("/")[1]];
  return place && ["Go there", place];
}

function Cure({ of }) {
  if (!of) return null;
  const [text, place, path] = of;
  return path ? html`<a href=${href(path)}>${t(text)}</a>` : html`<button type="button" class="link" onClick=${() => goTo(place)}>${t(text)}</button>`;
}

function goTo(place) {
  const target = document.getElementById(place);
  target?.scrollIntoView({ block: "start" });
  target?.querySelectorAll("details").forEach((part) => { part.open = true; });
  (target?.querySelector("input, select, textarea") ?? target)?.focus();
}

// ---- what can be seen beforehand ----

export function Checks({ values, campaign, templates, audience }) {
  const isMail = campaign.channel === "email";
  const domains = useCall(isMail && allowed("listSendingDomains") && "listSendingDomains", { query: { limit: 200 } });
  const channels = useCall(!isMail && allowed("listChannels") && "listChannels");
  const checks = [
    ...audienceChecks(values, audience), ...contentChecks(values, campaign, templates),
    ...(domains.data ? senderChecks(values, templates, domains.data.data) : []), ...(channels.data ? channelChecks(campaign, channels.data.data) : []),
  ];
  return html`<section class="card" aria-labelledby="checks"><h2 id="checks">${t("Checks")}</h2>
    <ul class="plain checks">${checks.map(([status, text, cure]) => html`<li><${Badge} status=${status}>${t(WORDS[status])}</${Badge}> <span><span dir="auto">${text}</span> <${Cure} of=${cure} /></span></li>`)}</ul></section>`;
}

const WORDS = { ok: "OK", warning: "Note", fault: "Missing" };

function audienceChecks({ audience: { list_ids: lists, segment_ids: segments } }, { data }) {
  if (!lists.length && !segments.length) return [["fault", t("No list or segment is chosen."), CURES.audience_empty]];
  if (!data) return [];
  return data.audience_estimate > 0
    ? [["ok", t("{number} people get it.", { number: about(data.audience_estimate, data.exact) })]]
    : [["fault", t("Nobody would get it."), ["Change the audience", "audience"]]];
}

function contentChecks(values, campaign, templates) {
  const used = new Set([values.template_id, ...(values.kind === "ab_test" ? Object.values(values.variants).map((one) => one.template_id) : [])].filter(Boolean));
  const shown = templates.filter(({ id }) => used.has(id));
  // That a footer is added to it says more than that there is no link.
  const footed = new Set((campaign.warnings ?? []).map(({ template_id: id }) => id));
  const found = shown.flatMap(({ id, name, warnings, variables }) => [
    ...warnings.filter(({ code }) => code !== "no_unsubscribe_link" || !footed.has(id)).map(({ message }) => ["warning", `${name}: ${message}`, ["Open the template", null, `templates/${id}`]]),
    ...(variables.length ? [["warning", t("{name} asks for {variables}: taken from each contact's attributes, else left empty.", { name, variables: variables.join(", ") }), ["Open the template", null, `templates/${id}`]]] : []),
  ]);
  for (const { message, template_id: id } of campaign.warnings ?? []) found.push(["warning", message, ["Open the template", null, `templates/${id}`]]);
  if (!used.size) return [["fault", t("No template is chosen."), ["Choose one", "content"]]];
  return found.length || !shown.length ? found : [["ok", t("The template has no faults.")]];
}

function senderChecks(values, templates, domains) {
  const verified = domains.filter(({ status }) => status === "verified").map(({ domain }) => domain);
  const from = values.from_email || templates.find(({ id }) => id === values.template_id)?.from_email;
  const host = from?.split("@")[1]?.toLowerCase();
  if (!from) {
    return verified.length === 1
      ? [["ok", t("From {domain}, your only verified domain.", { domain: verified[0] })]]
      : [["fault", verified.length ? t("Neither campaign nor template names a sender.") : t("No domain is verified."), verified.length ? CURES.sender_missing : CURES.sender_domain_not_verified]];
  }
  return verified.some((domain) => host === domain || host?.endsWith(`.${domain}`))
    ? [["ok", t("From {from}; the domain is verified.", { from })]]
    : [["fault", t("{domain} is not verified.", { domain: host ?? from }), CURES.sender_domain_not_verified]];
}

function channelChecks({ channel }, channels) {
  const found = channels.find((one) => one.channel === channel);
  return found?.configured ? [["ok", t("The channel is set up.")]] : [["fault", t("The channel is not set up."), CURES.channel_not_configured]];
}
