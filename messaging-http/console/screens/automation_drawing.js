// The drawing of an automation: the same steps as the outline, laid out by dagre. It is only looked at; everything that
// it shows stands in the outline too.
import { Graph, layout } from "../vendor/dagre.js";
import { html, number, t, useMemo } from "../lib/ui.js";
import { branchText, kindName, nodeText } from "../lib/automation.js";

const WIDTH = 190;
const HEIGHT = 48;
const LETTERS = 26;
// Smaller than this nobody reads it; then it is scrolled.
const LEAST_SCALE = 0.7;
const START = "$start";

export default function Drawing({ graph, trigger, names, counts, numbers, faults, onChoose }) {
  const placed = useMemo(() => place(graph), [JSON.stringify([graph.nodes.map(({ id }) => id), graph.edges, graph.entry])]);
  const byId = new Map(graph.nodes.map((node) => [node.id, node]));
  const { width, height } = placed;
  return html`<div class="drawing" tabindex="0" role="group" aria-label=${t("Drawing, can be scrolled")}>
    <svg viewBox="0 0 ${width} ${height}" width=${width} height=${height} style=${{ minWidth: `${Math.round(width * LEAST_SCALE)}px` }} role="img" aria-label=${t("The steps of the outline as a drawing")}>
      <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z" /></marker></defs>
      ${placed.edges.map(({ from, branch, points, x, y }) => html`<g key=${`${from}/${branch}`}>
        <path class="edge" d=${curve(points)} marker-end="url(#arrow)" />
        ${branch !== "next" && byId.has(from) && html`<text class="label" x=${x} y=${y} text-anchor="middle" dominant-baseline="middle">${short(branchText(byId.get(from), branch), 22)}</text>`}</g>`)}
      ${placed.nodes.map(({ id, x, y }) => {
        const node = byId.get(id);
        const entered = counts.get(id)?.entered;
        const waiting = counts.get(id)?.waiting;
        const title = node ? `${numbers.get(id)}. ${kindName(node.kind)}` : t("Start");
        const text = node ? nodeText(node, names) : trigger;
        const tone = faults[id] ? "bad" : waiting ? "busy" : node ? "" : "start";
        return html`<g key=${id} class="node ${tone}" transform="translate(${x - WIDTH / 2} ${y - HEIGHT / 2})" onClick=${() => onChoose(node ? id : "start")}>
          <title>${`${title}: ${text}`}</title>
          <rect width=${WIDTH} height=${HEIGHT} rx="8" />
          <text class="name" x="12" y="20">${short(title, entered ? LETTERS - 10 : LETTERS - 4)}</text><text class="text" x="12" y="37">${short(text, LETTERS)}</text>
          ${entered > 0 && html`<text class="text" x=${WIDTH - 12} y="20" text-anchor="end">${waiting ? `${number(waiting)} / ${number(entered)}` : number(entered)}</text>`}</g>`;
      })}
    </svg></div>
    ${[...counts.values()].some(({ entered }) => entered) && html`<p class="help">${t("Numbers: contacts that wait here / that came here.")}</p>`}`;
}

const short = (text, most) => ([...text].length > most ? `${[...text].slice(0, most - 1).join("")}…` : text);

function place({ entry, nodes, edges }) {
  const drawn = new Graph({ directed: true, multigraph: true });
  drawn.setGraph({ rankdir: "TB", nodesep: 22, ranksep: 34, marginx: 6, marginy: 6 });
  drawn.setNode(START, { width: WIDTH, height: HEIGHT });
  for (const { id } of nodes) drawn.setNode(id, { width: WIDTH, height: HEIGHT });
  if (entry) drawn.setEdge(START, entry, { width: 0, height: 0 }, "next");
  for (const { from, to, branch = "next" } of edges) {
    const label = branch === "next" ? { width: 0, height: 0 } : { width: 110, height: 18, labelpos: "c" };
    drawn.setEdge(from, to, label, branch);
  }
  layout(drawn);
  const { width, height } = drawn.graph();
  return {
    width: Math.ceil(width), height: Math.ceil(height),
    nodes: drawn.nodes().map((id) => ({ id, ...drawn.node(id) })),
    edges: drawn.edges().map((edge) => ({ from: edge.v, branch: edge.name, ...drawn.edge(edge) })),
  };
}

// A line through the points of dagre with rounded corners.
function curve(points) {
  const [first, ...rest] = points;
  const last = rest.at(-1);
  const middle = rest.slice(0, -1).map((point, at) => {
    const next = rest[at + 1];
    return `Q${point.x} ${point.y} ${(point.x + next.x) / 2} ${(point.y + next.y) / 2}`;
  });
  return `M${first.x} ${first.y}${middle.join("")}L${last.x} ${last.y}`;
}
