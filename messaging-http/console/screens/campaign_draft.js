// A campaign that is being made, on one page: who gets it, what, when, and what stands in the way.
import { allowed } from "../lib/api.js";
import { Failed, html, t, useCall, useEffect, useRef, useState } from "../lib/ui.js";
import { Field, Form } from "../lib/form.js";
import { Later } from "../lib/later.js";
import Audience, { AudienceSum, useAudience } from "./campaign_audience.js";
import { Content, Delivery, Test } from "./campaign_content.js";
import { Checks, Timing } from "./campaign_timing.js";

// What was typed and not saved, by campaign: it is there again when somebody comes back.
const drafts = new Map();

export default function CampaignDraft({ campaign, onDone }) {
  const [values, setValues] = useState(() => drafts.get(campaign.id) ?? valuesOf(campaign));
  const [begun, setBegun] = useState(0);
  const [saved, setSaved] = useState(campaign);
  const [savedText, setSavedText] = useState(() => JSON.stringify(bodyOf(valuesOf(campaign))));
  const area = useRef();
  // What is to happen once everything is saved.
  const next = useRef(null);
  const templates = useCall("listTemplates", { query: { channel: campaign.channel, limit: 200 } });
  const audience = useAudience(campaign.channel, values.audience);
  const mayWrite = allowed("updateCampaign");
  const isChanged = JSON.stringify(bodyOf(values)) !== savedText;
  useEffect(() => {
    if (isChanged) drafts.set(campaign.id, values);
    else drafts.delete(campaign.id);
    const warn = (event) => isChanged && event.preventDefault();
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, [values, isChanged]);

  const onSaved = (answer, typed) => {
    setSaved(answer);
    setSavedText(JSON.stringify(bodyOf(typed)));
    next.current?.();
    next.current = null;
  };
  // Whoever schedules means what stands on the page.
  const afterSaving = (then) => {
    if (!isChanged) return then();
    next.current = then;
    return area.current.querySelector("form").requestSubmit();
  };
  const onChange = (typed) => {
    next.current = null;
    setValues(typed);
  };
  const discard = () => {
    setValues(valuesOf(saved));
    setSavedText(JSON.stringify(bodyOf(valuesOf(saved))));
    setBegun(begun + 1);
  };
  const rows = templates.data?.data ?? [];
  return html`<div class="columns" ref=${area}>
    <div class="stack">
      ${mayWrite
        ? html`<${Form} key=${begun} id="updateCampaign" path=${{ id: campaign.id }} initial=${values} body=${bodyOf} onChange=${onChange} onDone=${onSaved} done=${t("Saved")}
            extra=${isChanged && html`<span class="muted">${t("Not saved yet.")}</span>
              <button type="button" class="quiet" onClick=${discard}>${t("Discard changes")}</button>`}>
            <${Field} name="name" label=${t("Name")} dir="auto" required />
            <${Audience} />
            ${templates.error && html`<${Failed} error=${templates.error} retry=${templates.reload} />`}
            <${Content} channel=${campaign.channel} templates=${rows} />
            <${Test} templates=${rows} estimate=${audience.data?.audience_estimate} />
            <${Delivery} channel=${campaign.channel} />
          </${Form}>`
        : html`<p class="notice">${t("This campaign is a draft. Your role may look at it, not change it.")}</p>
          <${Later} load=${() => import("./campaign_facts.js")} campaign=${campaign} />`}
    </div>
    <div class="stack">
      <${AudienceSum} of=${audience} />
      <${Checks} values=${values} campaign=${saved} templates=${rows} audience=${audience} />
      ${allowed("scheduleCampaign") && html`<${Timing} campaign=${campaign} estimate=${audience.data} isChanged=${isChanged} afterSaving=${afterSaving} onDone=${onDone} />`}
    </div>
  </div>`;
}

// ---- the campaign as values of a form, and back ----

function valuesOf(campaign) {
  const { name, template_id, subject_override, from_name, from_email, reply_to, audience, kind, variants, settings } = campaign;
  const given = Object.fromEntries(Object.entries(settings).map(([member, value]) => [member, value ?? undefined]));
  return {
    name, template_id, audience, kind, variants, settings: given,
    subject_override: subject_override ?? "", from_name: from_name ?? "", from_email: from_email ?? "", reply_to: reply_to ?? "",
    test_first: kind === "ab_test" && Boolean(settings.ab_test),
  };
}

// Members that stand in the body replace what was there; null takes it away.
function bodyOf(values) {
  const { name, template_id, audience, settings, kind } = values;
  const isTest = kind === "ab_test";
  const text = (value) => value || null;
  return {
    name, template_id: text(template_id), audience, kind,
    subject_override: text(values.subject_override), from_name: text(values.from_name), from_email: text(values.from_email), reply_to: text(values.reply_to),
    // A form writes into lists by index, which makes objects of them.
    variants: isTest ? Object.values(values.variants).map((one) => ({ name: one.name, weight: one.weight ?? 1, subject: text(one.subject), template_id: text(one.template_id) })) : [],
    settings: {
      utm: present(settings.utm), quiet_hours: present(settings.quiet_hours), frequency_cap: capOf(settings.frequency_cap),
      rate_limit: settings.rate_limit ?? null, ab_test: isTest && values.test_first ? present(settings.ab_test) ?? {} : null,
    },
  };
}

function present(object) {
  const pairs = Object.entries(object ?? {}).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return pairs.length ? Object.fromEntries(pairs) : null;
}

// What happens when the cap is reached says nothing without a cap.
function capOf(cap) {
  const given = present(cap);
  if (!given?.per_day && !given?.per_week) return null;
  if (given.when_reached !== "defer") delete given.defer_hours;
  return given;
}
