// The graph of an automation as an outline: chains of steps, with a chain below each branch of a step.
//
// A chain is `{ items, then }`, an item `{ node, branches: [{ name, chain }] }`. Where a chain ends, `then` says what is
// next: null goes on with what follows the step above (at the outermost chain the run ends), "end" ends the run, an id
// goes to that step. A graph becomes a flow and the same graph again; edits are made in the flow, where every place can
// be named without drawing lines.

/** The branches of a node that stand below it, by name. Of a webhook only the error does; its success just goes on. */
export function branchesOf({ kind, config }) {
  switch (kind) {
    case "wait_event": return ["event", "timeout"];
    case "condition": return ["yes", "no"];
    case "webhook": return ["error"];
    case "split": return (config?.branches ?? []).map(({ name }) => name);
    default: return [];
  }
}

const emptyChain = () => ({ items: [], then: null });

/** The flow of a graph as the API writes it. */
export function flowOf(graph) {
  const nodes = new Map((graph.nodes ?? []).map((node) => [node.id, node]));
  const edges = new Map([...nodes.keys()].map((id) => [id, new Map()]));
  for (const { from, to, branch = "next" } of graph.edges ?? []) edges.get(from)?.set(branch, to);
  const entered = new Set((graph.edges ?? []).map(({ to }) => to));
  const visited = new Set();

  const nextOf = (id) => [...(edges.get(id)?.values() ?? [])].filter((to) => nodes.has(to));

  // Everything that can be reached, nearest first; steps at which an outer chain goes on are the border.
  const reach = (start, border) => {
    const found = new Set();
    const waiting = start === undefined ? [] : [start];
    for (const id of waiting) {
      if (found.has(id) || visited.has(id)) continue;
      found.add(id);
      if (!border.has(id)) waiting.push(...nextOf(id));
    }
    return [...found];
  };

  // The step at which most branches come together again.
  const joinOf = (targets, border) => {
    const counts = new Map();
    for (const target of targets) for (const id of reach(target, border)) counts.set(id, (counts.get(id) ?? 0) + 1);
    const most = Math.max(0, ...counts.values());
    return most > 1 ? [...counts].find(([, times]) => times === most)[0] : undefined;
  };

  const chainFrom = (start, after, border) => {
    const chain = emptyChain();
    let id = start;
    for (;;) {
      if (id === undefined) {
        chain.then = after === undefined ? null : "end";
        return chain;
      }
      if (id === after) return chain;
      if (visited.has(id) || border.has(id)) {
        chain.then = id;
        return chain;
      }
      visited.add(id);
      const node = nodes.get(id);
      const out = edges.get(id);
      const item = { node, branches: [] };
      chain.items.push(item);
      const names = branchesOf(node);
      const known = (to) => (nodes.has(to) ? to : undefined);
      if (node.kind === "webhook") {
        const next = known(out.get("next"));
        const error = known(out.get("error"));
        const branch = error === undefined ? emptyChain() : chainFrom(error, next, next === undefined ? border : new Set([...border, next]));
        item.branches = [{ name: "error", chain: branch }];
        id = next;
        continue;
      }
      if (!names.length) {
        id = known(out.get("next"));
        continue;
      }
      const targets = names.map((name) => known(out.get(name)));
      const join = joinOf(targets, border);
      const isOuter = join !== undefined && border.has(join);
      const inner = join === undefined || isOuter ? after : join;
      const innerBorder = inner === undefined ? border : new Set([...border, inner]);
      item.branches = names.map((name, nth) => ({ name, chain: chainFrom(targets[nth], inner, innerBorder) }));
      if (join === undefined || isOuter) return chain;
      id = join;
    }
  };

  const first = graph.entry ?? [...nodes.keys()].find((id) => !entered.has(id)) ?? nodes.keys().next().value;
  const chain = chainFrom(nodes.has(first) ? first : undefined, undefined, new Set());
  const loose = [];
  const left = () => [...nodes.keys()].filter((id) => !visited.has(id));
  while (left().length) {
    const start = left().find((id) => !entered.has(id)) ?? left()[0];
    loose.push(chainFrom(start, undefined, new Set()));
  }
  return { chain, loose };
}

/** The graph of a flow, `rest` being its other members: goal and exit conditions. */
export function graphOf({ chain, loose }, rest = {}) {
  const nodes = [];
  const edges = [];
  const resolve = (then, after) => (then === null ? after : then === "end" ? undefined : then);
  const firstOf = ({ items, then }, after) => (items.length ? items[0].node.id : resolve(then, after));
  const connect = (from, branch, to) => {
    if (to !== undefined) edges.push(branch === "next" ? { from, to } : { from, to, branch });
  };
  const write = ({ items, then }, after) => items.forEach(({ node, branches }, at) => {
    nodes.push(node);
    const isLast = at === items.length - 1;
    const next = isLast ? resolve(then, after) : items[at + 1].node.id;
    if (node.kind === "webhook" || !branchesOf(node).length) {
      if (node.kind !== "exit" || !isLast) connect(node.id, "next", next);
    }
    for (const { name, chain: inner } of branches) {
      const isSilent = node.kind === "webhook" && !inner.items.length && inner.then === null;
      if (!isSilent) connect(node.id, name, firstOf(inner, next));
      write(inner, next);
    }
  });
  write(chain, undefined);
  loose.forEach((one) => write(one, undefined));
  const known = new Set(nodes.map(({ id }) => id));
  const kept = edges.filter(({ to }) => known.has(to));
  if (!nodes.length) return rest;
  const entry = chain.items[0]?.node.id;
  return { ...(entry && { entry }), nodes, edges: kept, ...rest };
}

/** All items in the order of the outline. */
export function itemsOf(flow) {
  const found = [];
  const walk = (chain) => chain.items.forEach((item) => {
    found.push(item);
    item.branches.forEach((branch) => walk(branch.chain));
  });
  [flow.chain, ...flow.loose].forEach(walk);
  return found;
}

/** The number of each step, as the outline counts: `Map` of id → 1, 2, … */
export function numbersOf(flow) {
  return new Map(itemsOf(flow).map(({ node }, at) => [node.id, at + 1]));
}

// ---- edits; each answers another flow ----

const copy = (flow) => structuredClone(flow);

/** The chain that a place names: `{ owner, branch }`, without owner the outermost, with `loose` one that nothing leads to. */
function chainAt(flow, { owner, branch, loose }) {
  if (loose !== undefined) return flow.loose[loose];
  return owner ? itemsOf(flow).find(({ node }) => node.id === owner).branches[branch].chain : flow.chain;
}

// Where a step stands: its chain, its place in it, and for the step above the same, with the way that leads here.
function find(flow, id) {
  const look = (chain, above) => {
    for (const [at, item] of chain.items.entries()) {
      if (item.node.id === id) return { chain, at, above };
      for (const [branch, { chain: inner }] of item.branches.entries()) {
        const found = look(inner, { chain, at, item, branch });
        if (found) return found;
      }
    }
    return null;
  };
  for (const chain of [flow.chain, ...flow.loose]) {
    const found = look(chain, null);
    if (found) return found;
  }
  return null;
}

const inside = (item) => [item.node.id, ...item.branches.flatMap(({ chain }) => chain.items.flatMap(inside))];

/** The ids of a step and of all steps below it. */
export function blockOf(flow, id) {
  const { chain, at } = find(flow, id);
  return inside(chain.items[at]);
}

/** Puts a new step at a place, `{ owner, branch, at }` or `{ loose, at }`. */
export function insert(flow, place, node) {
  const next = copy(flow);
  const chain = chainAt(next, place);
  chain.items.splice(place.at, 0, { node, branches: branchesOf(node).map((name) => ({ name, chain: emptyChain() })) });
  if (node.kind === "exit") chain.then = null;
  return next;
}

/** An id for a new step of a kind. */
export function newId(flow, kind) {
  const taken = new Set(itemsOf(flow).map(({ node }) => node.id));
  for (let nth = 1; ; nth += 1) {
    const id = nth === 1 ? kind : `${kind}_${nth}`;
    if (!taken.has(id)) return id;
  }
}

/** Takes a step away with everything below it. What went there goes on with what followed it. */
export function remove(flow, id) {
  const gone = new Set(blockOf(flow, id));
  const next = copy(flow);
  const { chain, at } = find(next, id);
  chain.items.splice(at, 1);
  const follower = chain.items[at]?.node.id;
  const mend = (one) => {
    if (gone.has(one.then)) one.then = follower ?? "end";
    one.items.forEach((item) => item.branches.forEach((branch) => mend(branch.chain)));
  };
  [next.chain, ...next.loose].forEach(mend);
  next.loose = next.loose.filter(({ items }) => items.length);
  return next;
}

/** Whether a step can be moved up (-1) or down (1). */
export function canMove(flow, id, step) {
  const { chain, at, above } = find(flow, id);
  if (chain.items[at].node.kind === "exit") return false;
  const other = chain.items[at + step];
  return Boolean(other && other.node.kind !== "exit") || above !== null;
}

/**
 * Moves a step with what is below it one place up or down. The places are those of the outline, so a step goes into the
 * ways of its neighbour, from way to way, and out again: every place can be reached.
 */
export function move(flow, id, step) {
  const next = copy(flow);
  const { chain, at, above } = find(next, id);
  const [item] = chain.items.splice(at, 1);
  const put = ({ items }, place) => items.splice(place, 0, item);
  // Nothing comes after an exit.
  const endOf = ({ items }) => (items.at(-1)?.node.kind === "exit" ? items.length - 1 : items.length);
  const other = step < 0 ? chain.items[at - 1] : chain.items[at];
  if (other && other.node.kind !== "exit") {
    const into = step < 0 ? other.branches.at(-1) : other.branches[0];
    if (into) put(into.chain, step < 0 ? endOf(into.chain) : 0);
    else put(chain, at + step);
    return next;
  }
  const beside = above.item.branches[above.branch + step];
  if (beside) put(beside.chain, step < 0 ? endOf(beside.chain) : 0);
  else put(above.chain, step < 0 ? above.at : above.at + 1);
  return next;
}

/** Changes a node. A split's branches follow its names; `without` is the branch that goes. */
export function change(flow, id, node, { without } = {}) {
  const next = copy(flow);
  const { chain, at } = find(next, id);
  const item = chain.items[at];
  const branches = item.branches.filter((_, nth) => nth !== without);
  item.node = node;
  item.branches = branchesOf(node).map((name, nth) => ({ name, chain: branches[nth]?.chain ?? emptyChain() }));
  return next;
}

/** Says what is next where a chain ends. */
export function setThen(flow, place, then) {
  const next = copy(flow);
  chainAt(next, place).then = then;
  return next;
}
