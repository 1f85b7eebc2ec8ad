// Saved views: filters of a list under a name. They stay in this browser, apart for each user and workspace.
import { me, workspace } from "./api.js";
import { announce, confirm, dialog, html, number, t, useEffect, useId, useReducer, useState } from "./ui.js";

/** Views that a list may have. */
export const MOST_VIEWS = 50;
/** Characters that the name of a view may have. */
export const LONGEST_NAME = 60;
/** Characters that the filters of a view may have as JSON. */
const LONGEST_FILTERS = 4000;

const isText = (value) => typeof value === "string" && value !== "";

const isFilters = (filters) => Boolean(filters) && typeof filters === "object" && Object.values(filters).length > 0 && Object.values(filters).every(isText);

const isView = (view) => isText(view?.name) && view.name === view.name.trim() && view.name.length <= LONGEST_NAME && isFilters(view.filters);

/** The views that a stored text holds: `[{ name, filters }]`. What is damaged is left out. */
export function viewsOf(text) {
  let found;
  try { found = JSON.parse(text); } catch { return []; }
  if (!Array.isArray(found)) return [];
  const names = new Set();
  return found.filter((view) => isView(view) && !names.has(view.name) && names.add(view.name)).slice(0, MOST_VIEWS);
}

/** Whether two sets of filters are the same, in whatever order they were set. */
export function isSame(one, other) {
  const [left, right] = [one, other].map((filters) => JSON.stringify(Object.entries(filters).sort()));
  return left === right;
}

const keyOf = (path) => `messaging.views/${me().user.id}/${workspace()?.workspace_id}/${path}`;

function read(path) {
  try { return viewsOf(localStorage.getItem(keyOf(path))); } catch { return []; }
}

// Answers whether the browser keeps them.
function write(path, views) {
  try {
    if (views.length) localStorage.setItem(keyOf(path), JSON.stringify(views));
    else localStorage.removeItem(keyOf(path));
    return true;
  } catch {
    return false;
  }
}

const isFull = () => t("A list has at most {number} views. Delete one first.", { number: number(MOST_VIEWS) });

// Why a name cannot be kept, or nothing. What is stored is read anew, because another tab may have changed it.
function keep(path, name, filters, renamed) {
  const views = read(path);
  if (!name) return t("Type a name.");
  if (name !== renamed && views.some((view) => view.name === name)) return t("Another view has this name.");
  const others = views.filter((view) => view.name !== renamed);
  if (others.length >= MOST_VIEWS) return isFull();
  const isKept = JSON.stringify(filters).length <= LONGEST_FILTERS
    && write(path, renamed === undefined ? [...views, { name, filters }] : views.map((view) => (view.name === renamed ? { ...view, name } : view)));
  return isKept ? undefined : t("The view cannot be kept: its filters are too long, or the storage of this browser is full.");
}

// After the next drawing, when what had the focus may be gone.
const focusOn = (selector) => requestAnimationFrame(() => document.querySelector(selector)?.focus());

/**
 * The saved views of the list at `path`: `{ views, shown, save, rename, remove }`. `filters` are those that are set, and
 * `shown` is the view that has the same.
 */
export function useViews(path, filters) {
  const [, again] = useReducer((n) => n + 1, 0);
  // Another tab tells of its changes by this event.
  useEffect(() => {
    addEventListener("storage", again);
    return () => removeEventListener("storage", again);
  }, []);
  const views = read(path);
  const shown = views.find((view) => isSame(view.filters, filters));
  const ask = async (title, fault, renamed) => {
    const isDone = await dialog((close) => html`<${Naming} initial=${renamed ?? ""} fault=${fault} close=${close}
      keep=${(name) => keep(path, name, filters, renamed)} />`, { title });
    if (!isDone) return;
    again();
    announce(t("Saved"));
    focusOn(".views [aria-current]");
  };
  const remove = async () => {
    if (!await confirm({ title: t("Delete this view?"), text: t("Only its name goes; the filters stay set."), action: t("Delete") })) return;
    if (write(path, read(path).filter(({ name }) => name !== shown.name))) announce(t("Deleted"));
    again();
    focusOn(".save-view");
  };
  return {
    views, shown, remove,
    save: () => ask(t("Save view"), views.length >= MOST_VIEWS ? isFull() : undefined),
    rename: () => ask(t("Rename"), undefined, shown.name),
  };
}

/** Links to saved views, `to(filters)` makes their addresses. The one that is shown can be renamed and deleted. */
export function ViewLinks({ of: { views, shown, rename, remove }, to, onOpen }) {
  if (!views.length) return null;
  return html`<ul class="chips views" aria-label=${t("Saved views")}>${views.map((view) => html`<li key=${view.name}>
    <a class="button small" aria-current=${view === shown ? "true" : undefined} href=${to(view.filters)} onClick=${() => onOpen(view.filters)}><bdi>${view.name}</bdi></a>
    ${view === shown && html`<button type="button" class="small quiet" onClick=${rename}>${t("Rename")}<span class="sr"> ${view.name}</span></button>
      <button type="button" class="small quiet" onClick=${remove}>${t("Delete")}<span class="sr"> ${view.name}</span></button>`}</li>`)}</ul>`;
}

// Asks for a name, as long as `keep(name)` answers why it cannot be kept.
function Naming({ initial, fault: known, keep: tryName, close }) {
  const [name, setName] = useState(initial);
  const [fault, setFault] = useState(known);
  const id = useId();
  const run = (event) => {
    event.preventDefault();
    const found = tryName(name.trim());
    if (found) setFault(found);
    else close(true);
  };
  return html`<form class="form" novalidate onSubmit=${run}>
    <div class="field"><label for=${id}>${t("Name")}</label>
      <input id=${id} value=${name} maxlength=${LONGEST_NAME} dir="auto" autocomplete="off" autofocus aria-describedby="${id}-help ${id}-fault"
        aria-invalid=${fault ? "true" : undefined} onInput=${(event) => setName(event.target.value)} />
      <p class="help" id="${id}-help">${t("Kept in this browser, for you alone and this workspace.")}</p>
      <p class="fault-text" id="${id}-fault" role="alert">${fault}</p></div>
    <div class="actions"><button type="submit" class="primary">${t("Save")}</button>
      <button type="button" onClick=${() => close()}>${t("Cancel")}</button></div></form>`;
}
