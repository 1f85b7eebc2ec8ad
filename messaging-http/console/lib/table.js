// Lists by pages: what an operation lists, as a table. Filters and the page stand in the URL, so that links, back and
// reload show the same.
import { html, Listed, Loaded, t, useCall, useEffect, useLayoutEffect, useRef, useState } from "./ui.js";
import { changeQuery, href, memory, useRoute } from "./route.js";

/**
 * A page of what `id` lists.
 *
 * `columns`: `[{ label, cell(row), numeric, wide }]`, the first one names the row. `rowHref(row)` makes rows links.
 * `args` are the arguments of the call; the cursor is added. `empty` is drawn when there is nothing at all, and
 * `filtered` tells that filters may be the cause. `onRows` hears the rows that are shown.
 */
export function List({ id, args = {}, columns, rowHref, rowKey, empty, filtered, caption, onRows, actions, reloads, limit }) {
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
  const path = segments.map(encodeURIComponent).join("/");
  return html`<${Loaded} of=${{ ...found, data: shown }} skeleton=${8}>${(page) => {
    if (!page.data.length && !query.cursor) {
      return filtered
        ? html`<div class="empty"><p class="empty-title">${t("Nothing matches")}</p>
            <p><a class="button" href=${href(path)}>${t("Clear filters")}</a></p></div>`
        : empty;
    }
    return html`
      <${Table} columns=${columns} rows=${page.data} rowHref=${rowHref} rowKey=${rowKey} caption=${caption} actions=${actions} />
      ${(page.next_cursor || query.cursor) && html`<nav class="pages" aria-label=${t("Pages")}>
        ${query.cursor && html`<a class="button" href=${href(path, { ...query, cursor: null })}>${t("First page")}</a>`}
        ${page.next_cursor && html`<a class="button" rel="next" href=${href(path, { ...query, cursor: page.next_cursor })}>${t("Next page")}</a>`}
      </nav>`}`;
  }}</${Loaded}>`;
}

// Where the page stood when this entry of the history was left.
function useRestoredScroll(ready) {
  const entry = useRef(memory());
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

// Whether a table with many columns finds no room where it stands; its rows are cards then, as on narrow pages.
function useCards(table, rows) {
  const [isCards, setIsCards] = useState(false);
  const needed = useRef(0);
  useLayoutEffect(() => {
    const around = table.current.parentElement;
    const look = () => {
      const { paddingLeft, paddingRight } = getComputedStyle(around);
      if (!table.current.classList.contains("cards")) needed.current = table.current.offsetWidth;
      setIsCards(needed.current > around.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight) + 1);
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

/** A table of rows that are there; where it finds no room, and below 640 px, its rows are cards. */
export function Table({ columns, rows, rowHref, rowKey, caption, actions }) {
  const table = useRef();
  const isCards = useCards(table, rows);
  return html`<table class=${isCards ? "rows cards" : "rows"} ref=${table}>
    ${caption && html`<caption class="sr">${caption}</caption>`}
    <thead><tr>
      ${columns.map((column) => html`<th scope="col" class=${column.numeric ? "numeric" : ""}>${column.label}</th>`)}
      ${actions && html`<th scope="col"><span class="sr">${t("Actions")}</span></th>`}
    </tr></thead>
    <${Listed.Provider} value=${true}><tbody>${rows.map((row, at) => html`<tr key=${rowKey?.(row) ?? row.id ?? at}>
      ${columns.map((column, nth) => {
        const drawn = column.cell(row);
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
 * none of them; without options texts, with `type` inputs of that type.
 */
export function Filters({ fields, label, children }) {
  const { query } = useRoute();
  const change = (name, value) => changeQuery({ [name]: value, cursor: null });
  return html`<form class="filters" role="search" aria-label=${label} onSubmit=${(event) => event.preventDefault()}>
    ${fields.map(({ name, label, options, all = t("All"), type = "search" }) => html`<label key=${name}><span>${label}</span>
      ${options
        ? html`<select name=${name} value=${query[name] ?? ""} onChange=${(event) => change(name, event.target.value)}>
            <option value="">${all}</option>
            ${options.map(([value, text]) => html`<option value=${value} selected=${query[name] === value}>${text}</option>`)}</select>`
        : html`<input type=${type} name=${name} value=${query[name] ?? ""}
            onChange=${(event) => change(name, event.target.value.trim())} />`}
    </label>`)}
    ${children}
  </form>`;
}

/** Whether any of the filters is set. */
export function isFiltered(query, names) {
  return names.some((name) => query[name]);
}
