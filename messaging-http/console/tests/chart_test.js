import { Bars, ceiling, Chart } from "../lib/chart.js";
import { html, render } from "../lib/ui.js";
import { drawn, equal, holds } from "./check.js";

export function the_scale_ends_at_a_round_number() {
  equal([0, 3, 5, 17, 21, 99, 100, 101, 5000].map(ceiling), [4, 4, 5, 20, 50, 100, 100, 200, 5000]);
}

export async function the_numbers_stand_behind_the_drawing() {
  const points = [{ at: "2026-01-30T00:00:00Z", sent: 3 }, { at: "2026-01-31T00:00:00Z", sent: 17 }];
  const { place, end } = await drawn(render, html`<${Chart} points=${points} series=${[{ name: "sent", label: "Sent" }]} label="By day" />`);
  equal([...place.querySelectorAll("tbody td")].map((cell) => cell.textContent), ["3", "17"]);
  holds(!/NaN|undefined/.test(place.innerHTML), "a coordinate is no number");
  end();
}

export async function one_point_and_none_are_drawn() {
  for (const points of [[], [{ at: "2026-01-30T00:00:00Z", sent: 0 }]]) {
    const { place, end } = await drawn(render, html`<${Chart} points=${points} series=${[{ name: "sent", label: "Sent" }]} label="By day" />`);
    holds(place.textContent && !/NaN|undefined|Infinity/.test(place.innerHTML), `${points.length} points`);
    end();
  }
}

export async function bars_of_nothing_have_no_width() {
  const { place, end } = await drawn(render, html`<${Bars} rows=${[{ label: "Bounced", value: 0 }]} label="Problems" whole=${0} />`);
  equal(place.querySelector("rect").getAttribute("width"), "0");
  end();
}
