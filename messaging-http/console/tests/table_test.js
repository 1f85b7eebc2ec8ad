import { html, render } from "../lib/ui.js";
import { Filters, filtersOf, isFiltered, Table } from "../lib/table.js";
import { drawn, equal } from "./check.js";

const NAMES = ["status", "since", "until"];

export function filters_are_taken_from_the_address_and_days_become_times() {
  const query = { status: "bounced", since: "2026-01-31", until: "2026-01-31", tab: "x", cursor: "c" };
  const { status, since, until } = filtersOf(query, NAMES);
  equal([status, Date.parse(until) - Date.parse(since)], ["bounced", 86400000]);
  equal(filtersOf({ since: "2026-01-31T09:15:00.000Z", status: "" }, NAMES), { since: "2026-01-31T09:15:00.000Z" });
  equal([isFiltered({ tab: "x" }, NAMES), isFiltered({ until: "2026-01-31" }, NAMES)], [false, true]);
}

// With an address that names filters.
async function at(hash, component) {
  const before = location.href;
  history.replaceState(null, "", hash);
  const { place, end } = await drawn(render, component);
  return { place, end: () => { end(); history.replaceState(null, "", before); } };
}

const fields = [
  { name: "status", label: "Status", options: [["bounced", "Bounced for good"]] },
  { name: "q", label: "Search" },
];
const more = [{ name: "since", label: "Since", type: "date" }, { name: "key_id", label: "Key", options: [] }];
const links = (place) => [...place.querySelectorAll(".chips a")].map((link) => [link.textContent.replace(/\s+/g, " ").trim(), link.getAttribute("href")]);

export async function each_filter_that_is_set_is_a_link_that_takes_it_away() {
  const { place, end } = await at("#/messages?status=bounced&key_id=key_1&tab=runs&cursor=c", html`<${Filters} fields=${fields} more=${more} />`);
  equal(links(place), [
    ["Take away Status: Bounced for good ✕", "#/messages?key_id=key_1&tab=runs"],
    ["Take away Key: key_1 ✕", "#/messages?status=bounced&tab=runs"],
    ["Clear filters", "#/messages?tab=runs"],
  ]);
  // What is set stands open, and what is not known by name is offered as it is.
  equal(place.querySelector("[name=key_id]").value, "key_1");
  end();
}

export async function without_filters_there_are_no_links_and_the_rarer_ones_are_folded() {
  const { place, end } = await at("#/messages", html`<${Filters} fields=${fields} more=${more} />`);
  equal([links(place), [...place.querySelectorAll("select, input")].map(({ name }) => name)], [[], ["status", "q"]]);
  end();
}

export async function a_day_that_is_no_day_breaks_nothing() {
  const { place, end } = await at("#/messages?since=soon", html`<${Filters} fields=${fields} more=${more} />`);
  equal([links(place)[0][0], place.querySelector("[name=since]").value], ["Take away Since: soon ✕", ""]);
  end();
}

export async function rows_have_a_check_box_with_their_name_where_they_can_be_chosen() {
  const chosen = [];
  const choice = { has: ({ id }) => id === 2, toggle: ({ id }, { target }) => chosen.push([id, target.checked]) };
  const columns = [{ label: "Name", cell: ({ name }) => name }];
  const rows = [{ id: 1, name: "Ann" }, { id: 2, name: "Bob" }];
  const { place, end } = await drawn(render, html`<${Table} columns=${columns} rows=${rows} choice=${choice} nameOf=${({ name }) => name} />`);
  const boxes = [...place.querySelectorAll("[type=checkbox]")];
  equal(boxes.map((box) => [box.getAttribute("aria-label"), box.checked]), [["Choose Ann", false], ["Choose Bob", true]]);
  boxes[0].click();
  equal(chosen, [[1, true]]);
  end();
}
