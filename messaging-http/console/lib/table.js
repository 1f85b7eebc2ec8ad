// Lists by pages: what an operation lists, as a table. Filters and the page stand in the URL, so that links, back and
// reload show the same.
import { absolute, announce, dayOf, html, laterDay, Listed, Loaded, number, startOf, t, useCall, useEffect, useLayoutEffect, useRef, useState } from "./ui.js";
import { Later } from "./later.js";
import { href, memory, useRoute } from "./route.js";
import { useViews, ViewLinks } from "./views.js";

/**
 * A page of what `id` lists.
 *
 * `columns`: `[{ label, cell(row), numeric, wide }]`, the first one names the row, and where a cell answers
 * nothing stands a dash. `rowHref(row)` makes rows links.
 * `args` are the arguments of the call; the cursor is added. `empty` is drawn when there is nothing at all; `filters` are
 * the names of what may be the cause. `onRows` hears the rows that are shown. With `words`, one row and many of them, rows can
 * be chosen, `nameOf(row)` is how one is called, and `onChange` hears that something was done with them.
 */
export function List({ id, args = {}, columns, rowHref, rowKey, empty, filters = [], caption, onRows, actions, reloads, limit, words, nameOf, onChange }) {
  const { segments, query } = useRoute();
  const found = useCall(id, { ...args, query: { limit, ...args.query, cursor: query.cursor } });
  const remembered = memory();
  const shown = found.data ?? remembered[id];
  useEffect(() => { if (reloads) found.reload(); }, [reloads]);
  useEffect(() => {
    if (!found.data) return;
    remembered[id] = found.data;
    onRows?.(found.data.data);
  }, [found.data]);
  useRestoredScroll(shown !== undefined);
  const asked = JSON.stringify(args);
  const choice = useChoice(shown?.data ?? [], (row) => rowKey?.(row) ?? row.id, asked);
  const path = segments.map(encodeURIComponent).join("/");
  const changed = () => {
    found.reload();
    onChange?.();
  };
  return html`<${Loaded} of=${{ ...found, data: shown }} skeleton=${8}>${(page) => {
    const isEmpty = !page.data.length && !query.cursor;
    // What became of the last rows is still told.
    const many = (!isEmpty || choice.isUsed) && html`<${Many} key=${asked} id=${id} args=${args} choice=${choice} words=${words} nameOf=${nameOf}
      hasMore=${Boolean(page.next_cursor || query.cursor)} onDone=${changed} />`;
    if (isEmpty) {
      return html`${many}${isFiltered(query, filters)
        ? html`<div class="empty"><p class="empty-title">${t("Nothing matches")}</p>
            <p><a class="button" href=${href(path, without(query, filters))}>${t("Clear filters")}</a></p></div>`
        : empty}`;
    }
    return html`${many}
      <${Table} columns=${columns} rows=${page.data} rowHref=${rowHref} rowKey=${rowKey} caption=${caption} actions=${actions}
        choice=${words && choice} nameOf=${nameOf} />
      ${(page.next_cursor || query.cursor) && html`<nav class="pages" aria-label=${t("Pages")}>
        ${query.cursor && html`<a class="button" href=${href(path, { ...query, cursor: null })}>${t("First page")}</a>`}
        ${page.next_cursor && html`<a class="button" rel="next" href=${href(path, { ...query, cursor: page.next_cursor })}>${t("Next page")}</a>`}
      </nav>`}`;
  }}</${Loaded}>`;
}

// Rows that are chosen, by their keys; they stay chosen on other pages of the same list.
function useChoice(rows, keyOf, asked) {
  const [chosen, setChosen] = useState(new Map());
  const last = useRef(null);
  const isUsed = useRef(false);
  const choose = (those) => setChosen(new Map(those.map((row) => [keyOf(row), row])));
  useEffect(() => { if (chosen.size) choose([]); }, [asked]);
  // What is done later is done with the rows as they are by then.
  for (const row of rows) if (chosen.has(keyOf(row))) chosen.set(keyOf(row), row);
  const set = (those, isOn) => {
    isUsed.current = true;
    const next = new Map(chosen);
    for (const row of those) {
      if (isOn) next.set(keyOf(row), row);
      else next.delete(keyOf(row));
    }
    setChosen(next);
    announce(t("{number} chosen", { number: number(next.size) }), { unseen: true });
  };
  // With Shift, all from the row before to this one.
  const toggle = (row, { target, shiftKey }) => {
    const [from, to] = [rows.indexOf(last.current), rows.indexOf(row)].sort((one, other) => one - other);
    set(shiftKey && from >= 0 ? rows.slice(from, to + 1) : [row], target.checked);
    last.current = row;
  };
  return { rows, chosen, choose, set, toggle, has: (row) => chosen.has(keyOf(row)), isUsed: isUsed.current };
}

// Above the rows: all of the page, what can be done with those that are chosen, and all of the list as a file.
function Many({ choice, words, ...rest }) {
  const [exports, setExports] = useState(0);
  const { rows, chosen } = choice;
  const here = rows.filter(choice.has).length;
  const partly = here > 0 && here < rows.length;
  return html`<div class=${chosen.size ? "many on" : "many"} role="group" aria-label=${t("Several rows")}>
    ${words && rows.length > 0 && html`<label><input type="checkbox" checked=${here > 0 && !partly} ref=${(box) => { if (box) box.indeterminate = partly; }}
      onClick=${({ target }) => choice.set(rows, target.checked)} /> ${t("All on this page")}</label>`}
    ${(choice.isUsed || exports > 0) && html`<${Later} load=${() => import("./chosen.js")} ...${rest} chosen=${chosen} onChosen=${choice.choose} words=${words} exports=${exports} />`}
    ${!chosen.size && rows.length > 0 && html`<button type="button" class="small" onClick=${() => setExports(exports + 1)}>${t("As CSV")}</button>`}</div>`;
}

// Where the page stood when this entry of the history was left.
function useRestoredScroll(ready) {
  const { query } = useRoute();
  const entry = useRef(memory());
  // Another page and other filters are another entry.
  useLayoutEffect(() => { entry.current = memory(); }, [JSON.stringify(query)]);
  useLayoutEffect(() => {
    if (ready && entry.current.scroll) scrollTo(0, entry.current.scroll);
  }, [ready]);
  // Before its rows are there the page is short, and where it stands then is nobody's choice; nor is what the next screen
  // does while this one goes.
  useEffect(() => {
    if (!ready) return undefined;
    const remember = () => { if (memory() === entry.current) entry.current.scroll = scrollY; };
    addEventListener("scroll", remember, { passive: true });
    return () => removeEventListener("scroll", remember);
  }, [ready]);
}

const NARROW = 640;

// Whether a table finds no room where it stands, or the page is narrow; its rows are cards then.
function useCards(table, rows) {
  const [isCards, setIsCards] = useState(false);
  const needed = useRef(0);
  useLayoutEffect(() => {
    const around = table.current.parentElement;
    const look = () => {
      const { paddingLeft, paddingRight } = getComputedStyle(around);
      if (!table.current.classList.contains("cards")) needed.current = table.current.offsetWidth;
      setIsCards(innerWidth <= NARROW || needed.current > around.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight) + 1);
    };
    look();
    let frame;
    // In the next frame: a change of what is observed within the callback itself is reported as an error.
    const seen = new ResizeObserver(() => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(look);
    });
    seen.observe(around);
    return () => {
      seen.disconnect();
      cancelAnimationFrame(frame);
    };
  }, [rows]);
  return isCards;
}

// What is not there has a dash in its cell.
const orDash = (drawn) => ([null, undefined, false, ""].includes(drawn) ? html`<span class="muted">–</span>` : drawn);

/** A table of rows that are there; where it finds no room, and below 640 px, its rows are cards. */
export function Table({ columns, rows, rowHref, rowKey, caption, actions, choice, nameOf, className = "" }) {
  const table = useRef();
  const isCards = useCards(table, rows);
  return html`<table class=${["rows", className, isCards && "cards"].filter(Boolean).join(" ")} ref=${table}>
    ${caption && html`<caption class="sr">${caption}</caption>`}
    <thead><tr>
      ${choice && html`<th scope="col"><span class="sr">${t("Choose")}</span></th>`}
      ${columns.map((column) => html`<th scope="col" class=${column.numeric ? "numeric" : ""}>${column.label}</th>`)}
      ${actions && html`<th scope="col"><span class="sr">${t("Actions")}</span></th>`}
    </tr></thead>
    <${Listed.Provider} value=${true}><tbody>${rows.map((row, at) => html`<tr key=${rowKey?.(row) ?? row.id ?? at}>
      ${choice && html`<td class="pick"><label><input type="checkbox" aria-label=${t("Choose {name}", { name: nameOf(row) })} checked=${choice.has(row)} onClick=${(event) => choice.toggle(row, event)} /></label></td>`}
      ${columns.map((column, nth) => {
        const drawn = orDash(column.cell(row));
        // What has several parts stays together where rows are cards.
        const cell = Array.isArray(drawn) ? html`<span class="cell">${drawn}</span>` : drawn;
        const content = nth === 0 && rowHref?.(row) ? html`<a href=${rowHref(row)} class="row-link">${cell}</a>` : cell;
        return nth === 0
          ? html`<th scope="row" data-label=${column.label}>${content}</th>`
          : html`<td class=${column.numeric ? "numeric" : column.wide ? "wide" : ""} data-label=${column.label}>${content}</td>`;
      })}
      ${actions && html`<td class="row-actions">${actions(row)}</td>`}
    </tr>`)}</tbody></${Listed.Provider}>
  </table>`;
}

/**
 * Filters of a list, kept in the URL: `[{ name, label, options: [[value, label]], all }]` are choices, `all` the word for
 * none of them; without options texts, with `type` inputs of that type. `more` are those that are rarely needed, `onMore(isOpen)` hears
 * whether they are shown. Each change is an
 * entry of the history. Above stand the views that were saved of them, below those that are set, each a link that takes it away.
 */
export function Filters({ fields, more = [], onMore, label, children }) {
  const { segments, query } = useRoute();
  const [isOpen, setIsOpen] = useState(() => more.some(({ name }) => query[name]));
  const form = useRef();
  useEffect(() => onMore?.(isOpen), [isOpen]);
  const path = segments.map(encodeURIComponent).join("/");
  const to = (change) => href(path, { ...query, ...change, cursor: null });
  const all = [...fields, ...more];
  const set = all.filter(({ name }) => query[name]);
  const cleared = without({}, all.map(({ name }) => name));
  const views = useViews(path, Object.fromEntries(set.map(({ name }) => [name, query[name]])));
  const opened = (filters) => { if (more.some(({ name }) => filters[name])) setIsOpen(true); };
  // The link that was followed is gone.
  const back = (name) => form.current.querySelector(name ? `[name="${name}"]` : "input, select")?.focus();
  return html`<form class="filters" role="search" aria-label=${label} ref=${form} onSubmit=${(event) => event.preventDefault()}>
    <${ViewLinks} of=${views} to=${(filters) => to({ ...cleared, ...filters })} onOpen=${opened} />
    ${(isOpen ? all : fields).map(({ name, label, options, all = t("All"), type = "search", control }) => control ?? html`<label key=${name}><span>${label}</span>
      ${options
        ? html`<select name=${name} value=${query[name] ?? ""} onChange=${(event) => { location.hash = to({ [name]: event.target.value }); }}>
            <option value="">${all}</option>
            ${offered(options, query[name]).map(([value, text]) => html`<option value=${value} selected=${query[name] === value}>${text}</option>`)}</select>`
        : html`<input type=${type} name=${name} value=${type === "date" ? day(query[name]) : query[name] ?? ""}
            onChange=${(event) => { location.hash = to({ [name]: event.target.value.trim() }); }} />`}
    </label>`)}
    ${more.length > 0 && html`<button type="button" class="quiet" aria-expanded=${isOpen} onClick=${() => setIsOpen(!isOpen)}>${isOpen ? t("Fewer filters") : t("More filters")}</button>`}
    ${children}
    ${set.length > 0 && html`<ul class="chips" aria-label=${t("Filters that are set")}>
      ${set.map(({ name, label, options, type }) => html`<li key=${name}><a class="button small" href=${to({ [name]: null })} onClick=${() => back(name)}>
        <span class="sr">${t("Take away")} </span>${label}: <bdi>${shownAs({ options, type }, query[name])}</bdi> <span aria-hidden="true">✕</span></a></li>`)}
      <li><a class="button small quiet" href=${to(cleared)} onClick=${() => back()}>${t("Clear filters")}</a></li>
      ${!views.shown && html`<li><button type="button" class="small quiet save-view" onClick=${views.save}>${t("Save view")}</button></li>`}</ul>`}
  </form>`;
}

// A value as people read it.
function shownAs({ options, type }, value) {
  if (type === "date" && day(value)) return absolute(startOf(day(value)), { dateStyle: "medium" });
  return options?.find(([one]) => one === value)?.[1] ?? value;
}

// What stands in the URL is offered even where its name is not known.
function offered(options, value) {
  return !value || options.some(([one]) => one === value) ? options : [...options, [value, value]];
}

const DAY = /^\d{4}-\d\d-\d\d$/;

// A link may name a whole time; the day that it falls on is shown.
function day(text) {
  if (!text || DAY.test(text)) return text ?? "";
  return Number.isNaN(Date.parse(text)) ? "" : dayOf(text);
}

const without = (query, names) => ({ ...query, ...Object.fromEntries(names.map((name) => [name, null])) });

/** Whether any of the filters is set. */
export function isFiltered(query, names) {
  return names.some((name) => query[name]);
}

/** The filters of these names as the API takes them: days of the workspace become times, that of `until` counts whole. */
export function filtersOf(query, names) {
  const value = (name) => (DAY.test(query[name] ?? "") ? startOf(laterDay(query[name], name === "until" ? 1 : 0)).toISOString() : query[name] || undefined);
  return Object.fromEntries(names.map((name) => [name, value(name)]));
}
