// A line chart of a few series, with the same numbers as a table behind it.
import { absolute, html, number, t, useId, useLayoutEffect, useRef, useState } from "./ui.js";

const USUAL_WIDTH = 720;
const HEIGHT = 200;
const LEFT = 44;
const BOTTOM = 22;
const TOP = 8;
// Room for a day below the line.
const TICK = 80;

/** The next round number above the largest value: 1, 2, 5 and their tens. */
export function ceiling(largest) {
  if (largest <= 4) return 4;
  const ten = 10 ** Math.floor(Math.log10(largest));
  return [1, 2, 5, 10].map((step) => step * ten).find((step) => step >= largest);
}

/**
 * `points`: `[{ at, … }]` in their order; `series`: `[{ name, label }]`, members of the points. At most five; each has a
 * dash pattern besides its colour.
 */
export function Chart({ points, series, label, dateStyle = { month: "short", day: "numeric" } }) {
  const id = useId();
  const [at, setAt] = useState(null);
  const figure = useRef();
  const [width, setWidth] = useState(USUAL_WIDTH);
  // Drawn as wide as there is room, so that its texts have the size of other texts.
  useLayoutEffect(() => {
    if (!figure.current) return undefined;
    let frame;
    // In the next frame: a change of what is observed within the callback itself is reported as an error.
    const seen = new ResizeObserver(([{ contentRect }]) => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => setWidth(Math.max(200, Math.round(contentRect.width))));
    });
    seen.observe(figure.current);
    return () => {
      seen.disconnect();
      cancelAnimationFrame(frame);
    };
  }, [Boolean(points?.length)]);
  if (!points?.length) return html`<p class="muted">${t("No numbers in this time.")}</p>`;
  // Hours and days are those of the workspace: the server counts by them.
  const day = ({ at: time }) => absolute(time, dateStyle);
  if (points.length === 1) return html`<${Single} point=${points[0]} series=${series} label=${label} when=${day(points[0])} />`;
  const top = ceiling(Math.max(...points.flatMap((point) => series.map(({ name }) => point[name] ?? 0))));
  const x = (nth) => LEFT + (nth * (width - LEFT - 8)) / (points.length - 1);
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top);
  const step = Math.max(1, Math.ceil(points.length / Math.max(2, Math.min(7, Math.floor(width / TICK)))));
  const nearest = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    const place = ((event.clientX - box.left) / box.width) * width;
    const nth = Math.round(((place - LEFT) / (width - LEFT - 8)) * (points.length - 1));
    setAt(Math.max(0, Math.min(points.length - 1, nth)));
  };
  return html`<figure class="chart" ref=${figure}>
    <figcaption id=${id}>${label}<span class="legend">${series.map(({ label: name }, nth) => html`<span class="series-${nth}"><i aria-hidden="true"></i>${name}</span>`)}</span></figcaption>
    <svg viewBox="0 0 ${width} ${HEIGHT}" role="img" aria-labelledby=${id} onPointerMove=${nearest} onPointerLeave=${() => setAt(null)}>
      ${[0, 0.5, 1].map((share) => html`<g class="grid"><line x1=${LEFT} x2=${width} y1=${y(top * share)} y2=${y(top * share)} />
        <text x=${LEFT - 6} y=${y(top * share) + 4} text-anchor="end">${number(top * share)}</text></g>`)}
      ${points.map((point, nth) => nth % step === 0 && html`<text class="tick" x=${x(nth)} y=${HEIGHT - 4} text-anchor=${nth === 0 ? "start" : nth === points.length - 1 ? "end" : "middle"}>${day(point)}</text>`)}
      ${series.map(({ name }, nth) => html`<g class="series-${nth}">
        <polyline points=${points.map((point, of) => `${x(of).toFixed(1)},${y(point[name] ?? 0).toFixed(1)}`).join(" ")} />
        ${at !== null && html`<circle cx=${x(at)} cy=${y(points[at][name] ?? 0)} r="3.5" />`}</g>`)}
    </svg>
    ${at !== null && html`<p class="chart-tip">${day(points[at])} · ${series.map(({ name, label: text }) => `${text} ${number(points[at][name])}`).join(" · ")}</p>`}
    <details><summary>${t("Numbers")}</summary><div class="scroll" tabindex="0" role="region" aria-label=${label}><table>
      <thead><tr><th scope="col">${t("Time")}</th>${series.map((one) => html`<th scope="col" class="numeric">${one.label}</th>`)}</tr></thead>
      <tbody>${points.map((point) => html`<tr><th scope="row">${day(point)}</th>${series.map(({ name }) => html`<td class="numeric">${number(point[name])}</td>`)}</tr>`)}</tbody>
    </table></div></details>
  </figure>`;
}

// The first hour or day of something: one point is no line.
function Single({ point, series, label, when }) {
  const id = useId();
  return html`<figure class="chart" aria-labelledby=${id}><figcaption id=${id}>${label} · ${when}</figcaption>
    <${Bars} rows=${series.map(({ name, label: text }) => ({ label: text, value: point[name] ?? 0 }))} /></figure>`;
}

/** Horizontal bars: `[{ label, value, note, href, tone }]`, as a list that is read well without its bars. */
export function Bars({ rows, label, whole = 0 }) {
  const largest = Math.max(1, whole, ...rows.map((row) => row.value));
  const isNoted = rows.some((row) => row.note);
  return html`<ul class="bars ${isNoted ? "noted" : ""}" aria-label=${label}>${rows.map((row) => html`<li>
    <span class="bar-label">${row.href ? html`<a href=${row.href}>${row.label}</a>` : row.label}</span>
    <svg class="bar ${row.tone ?? ""}" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect width=${Math.max(row.value ? 0.5 : 0, (row.value / largest) * 100)} height="8" /></svg>
    <span class="bar-value">${number(row.value)}${isNoted && html` <span class="muted bar-note">${row.note}</span>`}</span></li>`)}</ul>`;
}
