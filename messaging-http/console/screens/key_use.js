// What a key was used for, the scopes that it does without, and a new key in its place.
import { absolute, html, t, Time } from "../lib/ui.js";
import { Field, Form } from "../lib/form.js";
import { useFirstFocus } from "../lib/focus.js";

const tags = (scopes) => scopes.map((scope) => html`<code class="tag">${scope === "*" ? t("everything") : scope}</code>`);

/** The last uses of a key, folded away. */
export function LastUse({ row }) {
  if (!row.last_used_at) return html`<span class="muted">${t("never")}</span>`;
  const uses = row.recent_use ?? [];
  if (!uses.length) return html`<${Time} at=${row.last_used_at} />`;
  return html`<details><summary><${Time} at=${row.last_used_at} /></summary>
    <ul class="plain">${uses.map(({ operation, at, ip }) => html`<li key=${operation}><code>${operation}</code> <span class="muted"><${Time} at=${at} />${ip && html` ${t("from {address}", { address: ip })}`}</span></li>`)}</ul></details>`;
}

/** The scopes of a key, with those that it does without. */
export function ScopesOf({ row }) {
  return html`<div>${tags(row.scopes)}
    ${row.unused_scopes?.length > 0 && html`<p class="help">${row.needed_scopes.length
      ? html`${t("In 30 days it needed only")} ${tags(row.needed_scopes)}`
      : t("In 30 days it needed none of them.")}</p>`}</div>`;
}

/** Makes a new key in the place of `row`. */
export function Rotation({ row, onDone, onCancel }) {
  const part = useFirstFocus();
  return html`<section ref=${part} class="card" aria-labelledby="rotation"><h2 id="rotation">${t("A new key in the place of {name}", { name: row.name })}</h2>
    <p>${t("It may do the same. The old one goes on working for a while, so that you can give the new one to the program.")}
      ${row.expires_at && html` ${t("It ends at {time} at the latest.", { time: absolute(row.expires_at) })}`}</p>
    <${Form} id="rotateApiKey" path=${{ id: row.id }} initial=${{ overlap_hours: 24 }} onDone=${onDone} submit=${t("Rotate")}
        extra=${html`<button type="button" onClick=${onCancel}>${t("Cancel")}</button>`}>
      <${Field} name="overlap_hours" label=${t("Hours for which the old key goes on working")} kind="number" help=${t("Up to 720, which is 30 days. 0 ends it at once.")} />
    </${Form}></section>`;
}
