// What the tests of the modules beside this one are written with. Each exports functions whose names say what holds;
// `cargo test -p messaging-http --test it console::units` runs them in a browser.

/** Fails unless both say the same as JSON. */
export function equal(found, expected) {
  const [left, right] = [found, expected].map((value) => JSON.stringify(value));
  if (left !== right) throw new Error(`found ${left}, expected ${right}`);
}

/** Fails unless it holds. */
export function holds(condition, text) {
  if (!condition) throw new Error(text ?? "does not hold");
}

/** An element that a component was drawn into, and how to take it away again. */
export async function drawn(render, component) {
  // Ids are unique within what is drawn together, so the console itself has no place beside it.
  document.getElementById("app")?.remove();
  const place = document.createElement("div");
  document.body.append(place);
  render(component, place);
  // Effects run after the frame in which the component was drawn.
  await new Promise((resolve) => { requestAnimationFrame(() => setTimeout(resolve)); });
  return { place, end: () => { render(null, place); place.remove(); } };
}
