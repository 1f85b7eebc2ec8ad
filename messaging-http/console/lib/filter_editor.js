// A filter as nested rows. Everything is done by keyboard: rows are added and removed by buttons.
import { allowed } from "./api.js";
import { begun, fieldsOf, filterOf, group, leaf, leavesOf, MODES, treeOf, TYPES, withRow } from "./filter.js";
import { Choice } from "./filter_values.js";
import { Condition } from "./filter_rows.js";
import { usePreview } from "./preview.js";
import { count, html, t, useCall, useEffect, useLayoutEffect, useRef, useState, words } from "./ui.js";

/**
 * Edits a filter. `value` is the filter at the beginning; `onChange(filter)` hears every change, `onPreview(state)` what
 * it finds. With `isAutomation` it offers what only automations know; with `readOnly` it only shows.
 */
export function FilterEditor({ value, onChange, onPreview, isAutomation = false, readOnly = false }) {
  const [tree, setTree] = useState(() => treeOf(value));
  const fields = useCall(allowed("listCustomFields") && "listCustomFields", { query: { limit: 200 } }, { quiet: true });
  const found = usePreview(tree);
  // Keys of attributes that nobody declared are known from contacts that were seen.
  const seen = useRef(new Map());
  for (const field of fieldsOf(found.sample ?? [])) seen.current.set(field.key, field);
  const declared = fields.data?.data ?? [];
  const others = [...seen.current.values()].filter(({ key }) => !declared.some((one) => one.key === key));
  const added = useRef(null);
  const area = useRef();
  useEffect(() => { onPreview?.(found); }, [found]);
  // A filter that was changed elsewhere, say as JSON, is taken over. Looked at before the next key arrives: later it would
  // find the letter before that one, take it for such a change, and put it back.
  const own = useRef(JSON.stringify(value));
  useLayoutEffect(() => {
    if (JSON.stringify(value) !== own.current) {
      own.current = JSON.stringify(value);
      setTree(treeOf(value));
    }
  }, [value]);
  useLayoutEffect(() => {
    if (!added.current) return;
    area.current?.querySelector(`[data-row="${added.current}"] select, [data-row="${added.current}"] button`)?.focus();
    added.current = null;
  }, [tree]);
  const change = (next) => {
    const { filter } = filterOf(next);
    own.current = JSON.stringify(filter);
    setTree(next);
    onChange(filter);
  };
  const edit = {
    found, fields: [...declared, ...others], isAutomation, readOnly,
    alter: (id, by) => change(withRow(tree, id, by)),
    add: (id, row) => {
      added.current = row.id;
      change(withRow(tree, id, (one) => ({ ...one, items: [...one.items, row] })));
    },
    remove: (id, parent) => {
      added.current = parent;
      change(withRow(tree, id, () => null));
    },
  };
  return html`<fieldset class="bare" ref=${area} disabled=${readOnly}
    onKeyDown=${(event) => event.key === "Enter" && event.target.matches("input") && event.preventDefault()}><${Group} row=${tree} edit=${edit} /></fieldset>`;
}

function Group({ row, edit, parent }) {
  const label = t(MODES.find(([mode]) => mode === row.mode)[1]);
  const isEmpty = !parent && !row.items.length;
  return html`<div role="group" class="form wide" aria-label=${label} data-row=${row.id}>
    <div class="condition">
      ${isEmpty
        ? html`<span>${t("Everybody. Conditions narrow it down.")}</span>`
        : html`<span>${t("Who meets")}</span><${Choice} label=${t("How conditions are joined")} value=${row.mode}
            options=${MODES.map(([mode, text]) => [mode, t(text)])} onChange=${(mode) => edit.alter(row.id, (one) => ({ ...one, mode }))} />`}
      ${parent && html`<span class="end"><${Remove} row=${row} parent=${parent} edit=${edit} /></span>`}
    </div>
    ${!edit.isAutomation && html`<${Faults} texts=${edit.found.faults[row.id]} />`}
    ${row.items.length > 0 && html`<ul class="outline">${row.items.map((item) => html`<li key=${item.id} class="card">
      ${item.items ? html`<${Group} row=${item} edit=${edit} parent=${row.id} />` : html`<${Leaf} row=${item} edit=${edit} parent=${row.id} />`}</li>`)}</ul>`}
    ${!edit.readOnly && html`<div class="actions">
      <button type="button" class="small" onClick=${() => edit.add(row.id, leaf(begun("attribute")))}>${t("Add condition")}</button>
      <button type="button" class="small" title=${t("Conditions of their own, joined in another way")} onClick=${() => edit.add(row.id, group(row.mode === "any" ? "all" : "any", [leaf(begun("attribute"))]))}>${t("Add group")}</button>
    </div>`}
  </div>`;
}

function Leaf({ row, edit, parent }) {
  const { condition } = row;
  const types = TYPES.map(([type, text]) => [type, t(text)]);
  const options = types.some(([type]) => type === condition.type) ? types : [...types, [condition.type ?? "", condition.type ?? "–"]];
  return html`<div data-row=${row.id}>
    <div class="condition">
      <${Choice} label=${t("About")} value=${condition.type} options=${options} onChange=${(type) => edit.alter(row.id, (one) => ({ ...one, condition: begun(type) }))} />
      <${Condition} key=${condition.type} condition=${condition} fields=${edit.fields} isAutomation=${edit.isAutomation} readOnly=${edit.readOnly}
        onChange=${(next) => edit.alter(row.id, (one) => ({ ...one, condition: next }))} />
      <span class="end"><${Size} found=${edit.found} id=${row.id} isAutomation=${edit.isAutomation} /> <${Remove} row=${row} parent=${parent} edit=${edit} /></span>
    </div>
    ${!edit.isAutomation && html`<${Faults} texts=${edit.found.faults[row.id]} />`}
  </div>`;
}

// What counts from the entry on cannot be counted before it; the automation's own checks say what is wrong.
function Size({ found, id, isAutomation }) {
  const size = found.sizes[id];
  if (isAutomation && size === undefined) return null;
  if (size === undefined) return html`<span class="muted">${found.loading ? "…" : "–"}</span>`;
  const told = count(size, "contact", "contacts");
  return html`<span class="numeric ${found.loading ? "muted" : ""}">${found.exact ? told : t("about {number}", { number: told })}</span>`;
}

function Remove({ row, parent, edit }) {
  if (edit.readOnly) return null;
  const label = row.items
    ? t("Remove the group with {conditions}", { conditions: count(leavesOf(row), "condition", "conditions") })
    : t("Remove the condition on {type}", { type: words(row.condition.type) });
  return html`<button type="button" class="quiet" aria-label=${label} title=${label} onClick=${() => edit.remove(row.id, parent)}>✕</button>`;
}

const MEMBERS = { key: "attribute", id: "choice", between: "days", after: "day", before: "day", and: "conditions", or: "conditions" };

// What is still missing in a row; said plainly, since it is mostly not typed yet.
function Faults({ texts: violations }) {
  if (!violations) return null;
  const member = ({ pointer }) => {
    const name = pointer.split("/").filter((part) => !/^\d+$/.test(part)).pop();
    return t(MEMBERS[name] ?? name);
  };
  const isMissing = ({ code }) => code === "required" || code === "too_short";
  const empty = [...new Set(violations.filter(isMissing).map(member))];
  const wrong = violations.filter((one) => !isMissing(one)).map((one) => `${member(one)}: ${one.message}`);
  return html`<p class="help">${t("Not counted yet.")} ${[...(empty.length ? [t("Still empty: {names}", { names: empty.join(", ") })] : []), ...wrong].join("; ")}</p>`;
}
