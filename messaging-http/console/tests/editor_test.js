import { Editor, parts } from "../lib/editor.js";
import { html, render } from "../lib/ui.js";
import { drawn, equal, holds } from "./check.js";

const SOURCES = [
  "", "plain", "<p class=\"a\">Hi {{ name }}</p>", "{% if a %}<b>{# no #}</b>{% endif %}", "<!-- {{ x }} -->", "{{ unclosed <p", "<", "\"a\" < \"b\"", "a\n\n",
];

export function the_coloured_text_is_the_text() {
  for (const source of SOURCES) equal(parts(source).map(([, text]) => text).join(""), source);
}

export function the_language_of_templates_is_told_apart_from_tags() {
  equal(parts("<p>{{ a }}</p>"), [["tag", "<p"], ["tag", ">"], ["template", "{{ a }}"], ["tag", "</p"], ["tag", ">"]]);
}

export async function ctrl_space_offers_variables_and_escape_takes_them_away() {
  let value = "Hi {{ na";
  const { place, end } = await drawn(render, html`<${Editor} value=${value} label="HTML" variables=${["name", "number"]} onInput=${(text) => { value = text; }} />`);
  const area = place.querySelector("textarea");
  holds(area.labels[0].textContent === "HTML", "the control has its label");
  area.setSelectionRange(8, 8);
  const press = async (key, more) => {
    area.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more }));
    await new Promise((resolve) => { setTimeout(resolve); });
  };
  await press(" ", { ctrlKey: true });
  equal([...place.querySelectorAll("[role=option]")].map((one) => one.textContent), ["name"]);
  await press("Escape");
  equal(place.querySelectorAll("[role=option]").length, 0);
  await press(" ", { ctrlKey: true });
  await press("Enter");
  equal(value, "Hi {{ name");
  end();
}
