// Suppressions: addresses that are not written to, why, and the message that put them here.
import { allowed } from "../lib/api.js";
import { Cause, liftText } from "../lib/cause.js";
import { channelName, CHANNELS, reasonName, REASONS, Written } from "../lib/contacts.js";
import { FirstFocus, keepFocus } from "../lib/focus.js";
import { Field, Form } from "../lib/form.js";
import { changeQuery, href } from "../lib/route.js";
import { Filters, filtersOf, List, Table } from "../lib/table.js";
import { Action, announce, confirm, Empty, Head, html, t, Time, useState } from "../lib/ui.js";

const FILTERS = ["address", "channel", "reason"];
const choices = (pairs) => pairs.map(([value, text]) => [value, t(text)]);

export default function Suppressions({ query }) {
  const [changes, setChanges] = useState(0);
  const changed = () => setChanges((n) => n + 1);
  const isNew = query.new && allowed("createSuppression");
  const columns = [
    { label: t("Address"), cell: (row) => html`<${Written}>${row.address}</${Written}>` },
    { label: t("Channel"), cell: (row) => html`<span class="nowrap">${channelName(row.channel)}</span>` },
    { label: t("Reason"), cell: (row) => html`<span><span class="nowrap">${reasonName(row.reason)}</span>${row.detail && html` <span class="muted">${row.detail.replaceAll("_", " ")}</span>`}</span>` },
    { label: t("Since"), cell: (row) => html`<${Time} at=${row.created_at} />` },
    { label: t("Cause"), wide: true, cell: (row) => html`<${Cause} suppression=${row} />` },
  ];
  return html`
    <${Head} title=${t("Suppressions")} text=${t("Addresses that get nothing more, so that your mail keeps arriving elsewhere.")}>
      ${allowed("createSuppression") && !isNew && html`<a class="button primary" href=${href("suppressions", { ...query, new: 1 })}>${t("New suppression")}</a>`}
    </${Head}>
    ${isNew && html`<${New} onDone=${changed} />`}
    <${Filters} fields=${[
      { name: "address", label: t("Address") },
      { name: "channel", label: t("Channel"), options: choices(CHANNELS) },
      { name: "reason", label: t("Reason"), options: choices(REASONS) },
    ]}><p class="help">${t("Type the whole address.")}</p></${Filters}>
    <${List} id="listSuppressions" args=${{ query: filtersOf(query, FILTERS) }} reloads=${changes} filters=${FILTERS} caption=${t("Suppressions")}
      words=${["address", "addresses"]} nameOf=${(row) => row.address}
      columns=${columns}
      actions=${allowed("deleteSuppression") && ((row) => html`<${Action} id="deleteSuppression" className="small" args=${{ path: { id: row.id } }}
        done=${t("The address is off the list")} onDone=${() => { changed(); keepFocus(); }}
        before=${() => confirm({ title: t("Take the address off the list?"), text: liftText(row), action: t("Take off the list") })}>
        ${t("Delete")}<span class="sr"> ${row.address}</span></${Action}>`)}
      empty=${html`<${Nothing} isNew=${isNew} />`} />
    <details><summary>${t("What lands here, and what it stops")}</summary><${Meanings} /></details>`;
}

function Meanings() {
  return html`<div class="stack"><${Table} caption=${t("Reasons")} rows=${REASONS} columns=${[
      { label: t("Reason"), cell: ([, name]) => t(name) },
      { label: t("Means"), wide: true, cell: ([, , meaning]) => t(meaning) },
      { label: t("Transactional"), cell: ([value]) => (value === "unsubscribe" ? t("Sent") : t("Not sent")) },
      { label: t("Marketing"), cell: () => t("Not sent") },
    ]} />
    <p>${t("Bounces for good and complaints come here by themselves, and so does an address that refused messages five times in a row without one arriving. So do the recipients of marketing who unsubscribe.")}</p></div>`;
}

function New({ onDone }) {
  const close = () => changeQuery({ new: null });
  const saved = (one) => {
    announce(t("{address} is on the list: {reason}", { address: one.address, reason: reasonName(one.reason) }));
    close();
    onDone();
  };
  return html`<section class="card" aria-labelledby="new"><h2 id="new">${t("New suppression")}</h2>
    <${Form} id="createSuppression" initial=${{ channel: "email", reason: "manual" }} onDone=${saved}
      extra=${html`<button type="button" onClick=${close}>${t("Cancel")}</button>`}>
      <div class="row-of-fields">
        <${Field} name="channel" label=${t("Channel")} kind="select" options=${choices(CHANNELS)} />
        <${Field} name="address" label=${t("Address")} dir="auto" autocomplete="off" help=${t("An email address, or a phone number like +14155550123")} />
        <${Field} name="reason" label=${t("Reason")} kind="select" options=${choices(REASONS)} />
      </div>
      <p class="help">${t("From now on nothing is sent to the address; with the reason Unsubscribe, only marketing is held back. If the address is listed already, the graver reason counts.")}</p>
      <${FirstFocus} />
    </${Form}></section>`;
}

function Nothing({ isNew }) {
  const text = t("Addresses land here by themselves when messages to them bounce for good, when somebody reports spam, and when somebody unsubscribes.");
  if (isNew || !allowed("createSuppression")) return html`<${Empty} title=${t("No address is suppressed")} text=${text} />`;
  return html`<${Empty} title=${t("No address is suppressed")} text=${text} action=${t("New suppression")} href=${href("suppressions", { new: 1 })}
    example=${"messaging suppression create --channel email --address ann@example.com --reason manual"} />`;
}
