// Dragging blocks to another place, by any pointer. The keyboard does the same without it.
import { useRef } from "../lib/ui.js";

const FAR = 4;
// Near the edge of the window the page is scrolled.
const EDGE = 60;
const STEP = 14;

/** `onDrop(place, where)` hears what was dragged and `{ before }`, `{ after }` or `{ end }` of where it was let go. */
export function useDrag(area, onDrop) {
  const state = useRef(null);
  const places = useRef(new Map());
  const drop = useRef(onDrop);
  drop.current = onDrop;
  const clear = () => {
    for (const one of area.current?.querySelectorAll("[data-drop]") ?? []) delete one.dataset.drop;
  };
  const over = (event) => {
    const element = document.elementFromPoint(event.clientX, event.clientY)?.closest?.("[data-block]");
    if (!element || !area.current.contains(element)) return null;
    const { place, isColumn } = places.current.get(element.dataset.block) ?? {};
    if (!place) return null;
    const { top, height } = element.getBoundingClientRect();
    const share = (event.clientY - top) / height;
    const side = isColumn && share > 0.25 && share < 0.9 ? "end" : share < 0.5 ? "before" : "after";
    return { element, where: { [side]: place }, side };
  };
  const end = (event, isDropped) => {
    const { place, moved } = state.current ?? {};
    const found = isDropped && moved ? over(event) : null;
    state.current = null;
    clear();
    if (found) drop.current(place, found.where);
  };
  return {
    handle: (place) => ({
      onPointerDown: (event) => {
        if (event.button) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        state.current = { place, x: event.clientX, y: event.clientY, moved: false };
        event.preventDefault();
      },
      onPointerMove: (event) => {
        const { current } = state;
        if (!current) return;
        current.moved ||= Math.hypot(event.clientX - current.x, event.clientY - current.y) > FAR;
        clear();
        const { clientY: y } = event;
        if (current.moved && y < EDGE) scrollBy(0, -STEP);
        if (current.moved && y > innerHeight - EDGE) scrollBy(0, STEP);
        const found = current.moved && over(event);
        if (found) found.element.dataset.drop = found.side;
      },
      onPointerUp: (event) => end(event, true),
      onPointerCancel: (event) => end(event, false),
    }),
    target: (place, node) => {
      const key = place.join("-");
      places.current.set(key, { place, isColumn: node.name === "mj-column" });
      return { "data-block": key };
    },
  };
}
