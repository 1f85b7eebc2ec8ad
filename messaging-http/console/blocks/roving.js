// A row of buttons that is one stop of Tab: arrows, Home and End go on within it.
import { useRef, useState } from "../lib/ui.js";

/** `row` are the attributes of the element around so many buttons, `button(nth)` those of each. */
export function useRoving(count) {
  const element = useRef();
  const [current, setCurrent] = useState(0);
  const go = (nth) => {
    setCurrent(nth);
    element.current.querySelectorAll("[data-roving]")[nth]?.focus();
  };
  const onKeyDown = (event) => {
    const next = { ArrowRight: current + 1, ArrowLeft: current - 1, Home: 0, End: count - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    go((next + count) % count);
  };
  return {
    row: { ref: element, onKeyDown, role: "toolbar" },
    button: (nth) => ({ tabindex: nth === current ? 0 : -1, onFocus: () => setCurrent(nth), "data-roving": true }),
  };
}
