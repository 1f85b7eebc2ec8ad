// One import: upload, reading, what came of it, the rows that were refused. The link stays usable after leaving.
import { allowed } from "../lib/api.js";
import { rowsOf } from "../lib/csv.js";
import { Written } from "../lib/contacts.js";
import { download } from "../lib/export.js";
import { useHeading } from "../lib/focus.js";
import { href } from "../lib/route.js";
import { beginUpload, useUpload } from "../lib/uploads.js";
import { Table } from "../lib/table.js";
import { absolute, Badge, bytes, Copy, count, duration, Facts, Figure, Head, html, Loaded, number, Progress, t, Time, useCall, useEffect, useState, words } from "../lib/ui.js";

/** How states look; their words are the server's. */
export const STATES = { awaiting_upload: "waiting", processing: "processing", completed: "completed", failed: "failed", expired: "cancelled" };

const EVERY = 1000;
const SHOWN = 100;
const OTHER = ["size_mismatch", "checksum_mismatch"];
const OPEN = ["awaiting_upload", "processing"];

export function OneImport({ id }) {
  const sent = useUpload(id);
  const [isOpen, setOpen] = useState(true);
  const found = useCall("getImport", { path: { id } }, { every: isOpen ? EVERY : undefined });
  useEffect(() => { if (found.data) setOpen(OPEN.includes(found.data.status)); }, [found.data]);
  useEffect(() => { if (sent?.done) found.reload(); }, [sent?.done]);
  useHeading(Boolean(found.data));
  const head = { back: href("import"), backText: t("Import") };
  if (!found.data) return html`<${Head} title=${t("Import")} ...${head} /><${Loaded} of=${found} skeleton=${6} />`;
  return html`<${Loaded} of=${found}>${(one) => html`
    <${Head} title=${one.filename} ...${head} badge=${html`<${Badge} status=${STATES[one.status]}>${t(words(one.status))}</${Badge}>`}>
      ${!OPEN.includes(one.status) && allowed("createImport") && html`<a class="button" href=${href("import")}>${t("Import another file")}</a>`}</${Head}>
    <${Stage} one=${one} sent=${sent} reload=${found.reload} />
    ${one.status !== "awaiting_upload" && html`<${Numbers} one=${one} />`}
    ${one.failed > 0 && html`<${Refused} one=${one} />`}
    <section class="stack" aria-labelledby="facts"><h2 id="facts">${t("Details")}</h2>
      <${Facts} pairs=${[
        [t("File"), html`<${Written}>${one.filename}</${Written}>`], [t("Size"), bytes(one.size_bytes)],
        [t("Begun"), absolute(one.created_at)], [t("Finished"), one.finished_at && absolute(one.finished_at)],
        [t("Took"), one.finished_at && duration(new Date(one.finished_at) - new Date(one.created_at))],
        [t("Id"), html`<span class="actions"><code>${one.import_id}</code> <${Copy} text=${one.import_id} /></span>`],
      ]} /></section>`}</${Loaded}>`;
}

function Stage({ one, sent, reload }) {
  const { status } = one;
  if (status === "completed") {
    return html`<div class="notice good" role="status"><p>${one.failed
      ? t("Done, but {rows} could not be taken: see below.", { rows: count(one.failed, "row", "rows") })
      : t("Done: every row is in.")} <a href=${href("contacts")}>${t("See the contacts")}</a>${
      allowed("createCampaign") && html` <a href=${href("campaigns", { new: 1 })}>${t("New campaign")}</a>`}</p></div>`;
  }
  if (status === "failed") {
    return html`<div class="notice fault" role="alert"><p><strong>${t("The file could not be read.")}</strong> ${sentence(one.failure_reason)}</p>
      <p>${t("Nothing was imported beyond the numbers below. Correct the file and import it again: rows that are in already are updated, not doubled.")}</p></div>`;
  }
  if (status === "expired") {
    return html`<div class="notice warning"><p>${t("The file did not arrive within an hour, so this import was given up. Nothing was imported.")} <a href=${href("import")}>${t("Choose the file again")}</a></p></div>`;
  }
  if (status === "processing") {
    const done = one.created + one.updated + one.failed;
    return html`<section class="card" aria-labelledby="stage"><h2 id="stage">${t("Reading the rows")}</h2>
      ${one.total_rows ? html`<${Progress} value=${done} max=${one.total_rows} label=${t("Rows that are read")} />` : html`<div class="progress"><progress aria-label=${t("Rows that are read")}></progress></div>`}
      <p>${one.total_rows ? t("{done} of {total} rows", { done: number(done), total: number(one.total_rows) }) : t("{done} rows so far", { done: number(done) })}</p>
      <p class="muted">${t("You may leave: the server goes on by itself, and this page keeps its link.")}</p></section>`;
  }
  if (sent && !sent.error) {
    return html`<section class="card" aria-labelledby="stage"><h2 id="stage">${t("Sending the file")}</h2>
      <${Progress} value=${sent.share} max=${1} label=${t("Of the file is sent")} />
      <p class="muted">${t("You may go to other screens; keep this tab open until the file is there.")}</p></section>`;
  }
  return html`<${Missing} one=${one} sent=${sent} reload=${reload} />`;
}

const sentence = (text) => (text ? `${text[0].toUpperCase()}${text.slice(1)}.` : "");

// The tab was closed in the middle, or the connection broke: the same file can be sent until its hour is over.
function Missing({ one, sent, reload }) {
  if (!allowed("createImport")) return html`<div class="notice"><p>${t("The file has not arrived yet. Who began this import sends it until {time}.", { time: absolute(one.expires_at) })}</p></div>`;
  const take = (file) => {
    if (!file) return;
    beginUpload(one, file);
    reload();
  };
  return html`<section class="card" aria-labelledby="stage"><h2 id="stage">${t("The file has not arrived")}</h2>
    ${sent?.error && html`<div class="notice fault" role="alert"><p>${OTHER.includes(sent.error.code) ? t("That is another file than the one this import was begun with. If you chose a list for it, begin anew.") : sent.error.status ? sentence(sent.error.message) : t("The connection broke.")} <span class="muted">${words(sent.error.code)}</span></p></div>`}
    <div class="field"><label for="again">${t("Choose the same file again")}</label>
      <p class="help" id="again-help">${t("{name}, {size}. It can be sent until then:", { name: one.filename, size: bytes(one.size_bytes) })} <${Time} at=${one.expires_at} /></p>
      <input id="again" type="file" aria-describedby="again-help" onChange=${(event) => take(event.target.files[0])} /></div>
    <p><a href=${href("import")}>${t("Begin anew")}</a></p></section>`;
}

function Numbers({ one }) {
  const rows = one.total_rows ?? one.created + one.updated + one.failed;
  return html`<div class="grid">
    <${Figure} name=${t("Rows")} value=${rows} /><${Figure} name=${t("Created")} value=${one.created} />
    <${Figure} name=${t("Updated")} value=${one.updated} /><${Figure} name=${t("Refused")} value=${one.failed} /></div>`;
}

function Refused({ one }) {
  const isOpen = OPEN.includes(one.status);
  // They are read once the import is done, so that a long list is not fetched every second.
  const found = useCall(isOpen ? null : "listImportErrors", { path: { id: one.import_id } });
  if (isOpen) return null;
  return html`<section class="stack" aria-labelledby="refused"><h2 id="refused">${t("Rows that were refused")}</h2>
    <${Loaded} of=${found}>${(text) => {
      const [, ...rows] = rowsOf(text, ",");
      return html`
        <p>${t("Everything else is in. Correct these rows and import the file again: what is in already is updated, not doubled.")}</p>
        <div class="actions"><button type="button" onClick=${() => download(`${one.import_id}-errors.csv`, text, "text/csv")}>${t("Download as CSV")}</button>
          ${rows.length > SHOWN && html`<span class="muted">${t("The first {shown} of {all} faults:", { shown: SHOWN, all: number(rows.length) })}</span>`}</div>
        <${Table} caption=${t("Rows that were refused")} rows=${rows.slice(0, SHOWN)} columns=${[
          { label: t("Row"), cell: ([row]) => t("Row {row}", { row }) },
          { label: t("Column"), cell: ([, column]) => column && html`<bdi>${column}</bdi>` },
          { label: t("What is wrong"), wide: true, cell: ([, , code, message]) => html`<span>${message} <span class="muted">${words(code)}</span></span>` },
        ]} />`;
    }}</${Loaded}></section>`;
}
