// Import: choose a file and say what its columns are; earlier imports; one of them with its progress.
import { allowed, missing } from "../lib/api.js";
import { sampleOf } from "../lib/csv.js";
import { href } from "../lib/route.js";
import { List } from "../lib/table.js";
import { Badge, bytes, Empty, Head, html, number, t, Time, useState, words } from "../lib/ui.js";
import { Written } from "../lib/contacts.js";
import { Mapping } from "./import_mapping.js";
import { OneImport, STATES } from "./import_progress.js";

export default function Import({ segments, query }) {
  const id = query.id ?? segments[0];
  if (id) return html`<${OneImport} key=${id} id=${id} />`;
  return html`<${Start} list=${query.list} />`;
}

function Start({ list }) {
  const [chosen, setChosen] = useState(null);
  return html`
    <${Head} title=${t("Import")} text=${t("Adds contacts from a CSV file, and updates those that are there already.")} />
    ${allowed("createImport")
      ? html`<${FileChoice} onChosen=${setChosen} />
        ${chosen && html`<${Mapping} key=${chosen.key} file=${chosen.file} sample=${chosen.sample} list=${list} />`}`
      : html`<p class="muted">${t("To import, you need {right}.", { right: missing("createImport") })}</p>`}
    <section class="stack" aria-labelledby="earlier"><h2 id="earlier">${t("Earlier imports")}</h2>
      <${List} id="listImports" caption=${t("Earlier imports")} rowKey=${(row) => row.import_id} rowHref=${(row) => href("import", { id: row.import_id })}
        columns=${[
          { label: t("File"), cell: (row) => html`<${Written}>${row.filename}</${Written}>` },
          { label: t("Status"), cell: (row) => html`<${Badge} status=${STATES[row.status]}>${t(words(row.status))}</${Badge}>` },
          { label: t("Created"), numeric: true, cell: (row) => number(row.created) },
          { label: t("Updated"), numeric: true, cell: (row) => number(row.updated) },
          { label: t("Refused rows"), numeric: true, cell: (row) => number(row.failed) },
          { label: t("Begun"), cell: (row) => html`<${Time} at=${row.created_at} />` },
        ]}
        empty=${allowed("createImport")
          ? html`<p class="muted">${t("None yet. Choose a file above, or let a program do it:")} <code>messaging contact import people.csv</code></p>`
          : html`<${Empty} title=${t("No imports yet")} text=${t("Imports that your colleagues begin appear here.")} />`} />
    </section>`;
}

function FileChoice({ onChosen }) {
  const [fault, setFault] = useState(null);
  const [isOver, setOver] = useState(false);
  const [shown, setShown] = useState(null);
  const take = async (file, isInInput = false) => {
    if (!file) return;
    setFault(null);
    setShown({ file, isInInput });
    onChosen(null);
    try {
      const sample = await sampleOf(file);
      if (!sample.header.some(Boolean)) setFault(t("The file is empty. Its first row has to name the columns."));
      else if (!sample.rows.length) setFault(t("The file has a header and no rows."));
      else onChosen({ file, sample, key: `${file.name} ${file.size} ${file.lastModified} ${Date.now()}` });
    } catch {
      setFault(t("This is not a text in UTF-8. Save it as “CSV UTF-8” in your spreadsheet and choose it again."));
    }
  };
  const dropped = (event) => {
    event.preventDefault();
    setOver(false);
    take(event.dataTransfer.files[0]);
  };
  return html`<div class="empty ${isOver ? "over" : ""}" onDragOver=${(event) => { event.preventDefault(); setOver(true); }} onDragLeave=${() => setOver(false)} onDrop=${dropped}>
    <div class="field"><label for="file">${t("CSV file")}</label>
      <p class="help" id="file-help">${t("The first row names the columns. Comma, semicolon or tab; up to 100 MB and a million rows. You see the columns before anything is uploaded.")}</p>
      <input id="file" type="file" accept=".csv,.tsv,.txt,text/csv,text/plain" aria-describedby="file-help file-fault" aria-invalid=${fault ? "true" : undefined}
        onChange=${(event) => take(event.target.files[0], true)} /></div>
    <div id="file-fault" role="status">${fault
      ? html`<p class="fault-text">${fault}</p>`
      : shown && html`<p>${!shown.isInInput && html`<span dir="auto">${shown.file.name}</span>, `}${bytes(shown.file.size)}</p>`}</div>
    <p class="help">${t("A file can be dropped here as well.")} <button type="button" class="link" onClick=${() => take(example())}>${t("Try it with an example")}</button></p>
  </div>`;
}

function example() {
  const rows = ["email,name,plan,tags,consent.marketing_email", "ann@example.com,Ann,pro,vip|beta,yes", "ben@example.com,Ben,free,,no", "cleo@example.com,Cleo,team,beta,"];
  return new File([`${rows.join("\n")}\n`], "example.csv", { type: "text/csv" });
}
