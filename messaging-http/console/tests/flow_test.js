import { branchesOf, canMove, flowOf, graphOf, move } from "../lib/flow.js";
import { equal, holds } from "./check.js";

const KINDS = ["send", "wait", "condition", "wait_event", "split", "webhook", "exit"];

// A generator with a seed, so that what fails can be seen again.
function randomly(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return (state >> 8) % below;
  };
}

function randomGraph(random) {
  const nodes = Array.from({ length: 1 + random(9) }, (_, nth) => {
    const kind = KINDS[random(KINDS.length)];
    const config = kind === "split" ? { branches: ["A", "B", "C"].map((name) => ({ name, weight: 1 })) } : {};
    return { id: `n${nth}`, kind, config };
  });
  const edges = nodes.flatMap((node) => {
    const own = branchesOf(node);
    const branches = { exit: [], webhook: ["next", "error"] }[node.kind] ?? (own.length ? own : ["next"]);
    return branches.filter(() => random(4)).map((branch) => ({ from: node.id, branch, to: `n${random(nodes.length)}` }));
  });
  return { entry: "n0", nodes, edges };
}

// Where a call that failed goes on like one that did not, the branch says nothing.
function normal({ entry, nodes, edges }) {
  const saysNothing = (edge) => edge.branch === "error"
    && edges.some((other) => other.from === edge.from && (other.branch ?? "next") === "next" && other.to === edge.to);
  return {
    entry,
    nodes: nodes.map(({ id }) => id).sort(),
    edges: edges.filter((edge) => !saysNothing(edge)).map(({ from, branch, to }) => `${from} ${branch ?? "next"} ${to}`).sort(),
  };
}

export function any_graph_comes_back_from_its_outline() {
  const random = randomly(1);
  for (let round = 0; round < 5000; round += 1) {
    const graph = randomGraph(random);
    equal(normal({ entry: graph.entry, ...graphOf(flowOf(graph)) }), normal(graph));
  }
}

export function a_step_that_was_moved_can_be_moved_back() {
  const item = (kind, id, branches = []) => ({ node: { id, kind, config: {} }, branches });
  const chain = (...items) => ({ items, then: null });
  const yes = { name: "yes", chain: chain(item("send", "y")) };
  const no = { name: "no", chain: chain(item("exit", "n")) };
  let flow = { chain: chain(item("send", "a"), item("condition", "q", [yes, no]), item("wait", "w")), loose: [] };
  let moves = 0;
  while (canMove(flow, "a", 1) && moves < 10) {
    const next = move(flow, "a", 1);
    equal(move(next, "a", -1), flow);
    flow = next;
    moves += 1;
  }
  holds(moves > 2 && moves < 10, `${moves} moves`);
}
