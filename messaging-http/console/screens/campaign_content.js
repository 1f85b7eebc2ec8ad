// What a campaign sends: template and sender, variants that are tested against each other, and limits.
import { dialog, html, number, t } from "../lib/ui.js";
import { Field, useFaults, useForm } from "../lib/form.js";
import { href } from "../lib/route.js";

const MOST_VARIANTS = 5;
const USUAL = { test_percent: 20, wait_minutes: 240, winner_metric: "open_rate" };
const LETTERS = ["A", "B", "C", "D", "E"];

export function Content({ channel, templates }) {
  const [values] = useForm();
  const template = templates.find(({ id }) => id === values.template_id);
  const inTemplate = (member) => (template?.[member] ? t("Empty: {text}, as in the template.", { text: template[member] }) : t("Empty: as in the template."));
  return html`<fieldset id="content" tabindex="-1"><legend>${t("Content")}</legend>
    <${Field} name="template_id" label=${t("Template")} kind="select" required options=${templates.map(({ id, name }) => [id, name])} />
    ${template && html`<div class="actions"><button type="button" class="small" onClick=${() => preview(template)}>${t("Preview")}</button>
      <a class="button small" href=${href(`templates/${template.id}`)}>${t("Edit the template")}</a></div>`}
    ${["email", "push"].includes(channel) && html`<${Field} name="subject_override" label=${channel === "push" ? t("Title") : t("Subject")} dir="auto" help=${inTemplate("subject")} />`}
    ${channel === "email" && html`<details open=${Boolean(values.from_email || values.from_name || values.reply_to) || undefined}><summary>${t("Sender")}</summary><div class="form">
      <div class="row-of-fields">
        <${Field} name="from_name" label=${t("Sender's name")} dir="auto" help=${inTemplate("from_name")} />
        <${Field} name="from_email" label=${t("Sender's address")} kind="email" help=${inTemplate("from_email")} /></div>
      <${Field} name="reply_to" label=${t("Reply to")} kind="email" /></div></details>`}
  </fieldset>`;
}

async function preview(template) {
  const { default: TemplatePreview } = await import("./template_preview.js");
  return dialog(() => html`<${TemplatePreview} template=${template} isAlone />`, { title: t("Preview of {name}", { name: template.name }), wide: true });
}

// ---- variants ----

export function Test({ templates, estimate }) {
  const [values, change] = useForm();
  const faults = useFaults("variants").filter(({ pointer }) => pointer === "/variants");
  const isTest = values.kind === "ab_test";
  const variants = Object.values(values.variants ?? {});
  const toggle = (event) => {
    change("kind", event.target.checked ? "ab_test" : "regular");
    if (event.target.checked && variants.length < 2) change("variants", [{ name: "A", weight: 1 }, { name: "B", weight: 1 }]);
  };
  const testFirst = (event) => {
    change("test_first", event.target.checked);
    if (event.target.checked && !values.settings.ab_test) change("settings.ab_test", USUAL);
  };
  const add = () => change("variants", [...variants, { name: LETTERS.find((letter) => !variants.some(({ name }) => name === letter)), weight: 1 }]);
  return html`<fieldset id="test" tabindex="-1"><legend>${t("A/B test")}</legend>
    <div class="field check"><label><input type="checkbox" checked=${isTest} onChange=${toggle} /> <span>${t("Send different variants and compare them")}</span></label></div>
    ${isTest && html`
      <p class="help">${t("Whatever a variant leaves empty is as above.")}</p>
      ${faults.map(({ message }) => html`<p class="fault-text">${message}</p>`)}
      ${variants.map((variant, nth) => html`<div class="card" key=${nth} role="group" aria-label=${t("Variant {name}", { name: variant.name ?? nth + 1 })}>
        <div class="row-of-fields">
          <${Field} name="variants.${nth}.name" label=${t("Variant")} />
          <${Field} name="variants.${nth}.weight" label=${t("Weight")} kind="number" min="0" step="any" help=${share(variants, nth)} /></div>
        <${Field} name="variants.${nth}.subject" label=${t("Subject of {name}", { name: variant.name ?? "" })} dir="auto" />
        <${Field} name="variants.${nth}.template_id" label=${t("Template of {name}", { name: variant.name ?? "" })} kind="select" optional options=${templates.map(({ id, name }) => [id, name])} />
        ${variants.length > 2 && html`<button type="button" class="small" onClick=${() => change("variants", variants.filter((_, other) => other !== nth))}>${t("Remove {name}", { name: variant.name ?? "" })}</button>`}
      </div>`)}
      ${variants.length < MOST_VARIANTS && html`<div><button type="button" class="small" onClick=${add}>${t("Add a variant")}</button></div>`}
      <div class="field check"><label><input type="checkbox" checked=${values.test_first} onChange=${testFirst} />
        <span>${t("Test on a part first, then send the best one to everybody else")}</span></label></div>
      ${values.test_first && html`<${FirstPart} estimate=${estimate} />`}`}
  </fieldset>`;
}

function share(variants, nth) {
  const sum = variants.reduce((total, { weight }) => total + (Number(weight) || 0), 0);
  return sum > 0 ? t("{share} % of the test", { share: number(Math.round(((variants[nth].weight || 0) / sum) * 100)) }) : "";
}

function FirstPart({ estimate }) {
  const [values] = useForm();
  const { test_percent: part, winner_metric: metric } = values.settings.ab_test ?? {};
  const tested = estimate && part ? Math.round((estimate * part) / 100) : null;
  return html`
    <div class="row-of-fields">
      <${Field} name="settings.ab_test.test_percent" label=${t("Test with (per cent)")} kind="number" min="1" max="90"
        help=${tested === null ? t("Of all recipients, 1 to 90.") : t("About {tested} people; {rest} get the winner.", { tested: number(tested), rest: number(estimate - tested) })} />
      <${Field} name="settings.ab_test.wait_minutes" label=${t("Wait (minutes)")} kind="number" min="1" max="10080" help=${t("From the last message of the test. A day is 1440.")} />
    </div>
    <${Field} name="settings.ab_test.winner_metric" label=${t("The winner is")} kind="select"
      options=${[["open_rate", t("the most opened")], ["click_rate", t("the most clicked")], ["manual", t("chosen by a person")]]} />
    ${metric && metric !== "manual" && html`<div class="row-of-fields">
      <${Field} name="settings.ab_test.min_probability" label=${t("Only if at least this probable")} kind="number" min="0.5" max="0.99" step="0.01"
        help=${t("0.5 to 0.99. Left empty, the highest rate wins.")} />
      <${Field} name="settings.ab_test.otherwise" label=${t("Otherwise")} kind="select" optional
        options=${[["manual", t("a person decides")], ["first", t("the first variant is sent")]]} /></div>`}`;
}

// ---- limits ----

export function Delivery({ channel }) {
  const [{ settings }] = useForm();
  const isSet = Boolean(settings.quiet_hours || settings.frequency_cap || settings.rate_limit || settings.utm);
  return html`<fieldset id="delivery" tabindex="-1"><legend>${t("Delivery")}</legend>
    <details open=${isSet || undefined}><summary>${t("Quiet hours, limits, link tags")}</summary><div class="form">
      <div class="row-of-fields">
        <${Field} name="settings.quiet_hours.start" label=${t("Quiet from")} kind="time" />
        <${Field} name="settings.quiet_hours.end" label=${t("Quiet until")} kind="time" /></div>
      <p class="help">${t("By the clock of each recipient. What falls into these hours waits until they end.")}</p>
      <div class="row-of-fields">
        <${Field} name="settings.frequency_cap.per_day" label=${t("At most a day")} kind="number" min="1" />
        <${Field} name="settings.frequency_cap.per_week" label=${t("At most a week")} kind="number" min="1" /></div>
      <p class="help">${t("Marketing messages to one person on this channel, of all campaigns and automations.")}</p>
      ${(settings.frequency_cap?.per_day || settings.frequency_cap?.per_week) && html`<div class="row-of-fields">
        <${Field} name="settings.frequency_cap.when_reached" label=${t("Whoever has had that many")} kind="select" optional
          options=${[["suppress", t("does not get this one")], ["defer", t("gets it later")]]} />
        ${settings.frequency_cap.when_reached === "defer" && html`<${Field} name="settings.frequency_cap.defer_hours" label=${t("At most so many hours later")} kind="number" min="1" max="168" />`}</div>`}
      <${Field} name="settings.rate_limit" label=${t("Messages a minute")} kind="number" help=${t("Left empty, as fast as the receiving servers take them.")} />
      ${channel === "email" && html`<div class="row-of-fields">
        <${Field} name="settings.utm.source" label="utm_source" /><${Field} name="settings.utm.medium" label="utm_medium" /><${Field} name="settings.utm.campaign" label="utm_campaign" /></div>
        <p class="help">${t("Added to links that lack them.")}</p>`}
    </div></details></fieldset>`;
}
