// Where the focus goes when a form opens or closes in place, and when the row of a button disappears.
import { html, useEffect, useRef } from "./ui.js";

const CONTROLS = "input:not([type=hidden]), select, textarea";
const PATIENCE = 3000;

// The heading of the screen gets the focus that nothing has; answers whether nothing had it.
function focusHeading() {
  const isLost = document.activeElement === document.body;
  if (isLost) document.querySelector("h1")?.focus({ preventScroll: true });
  return isLost;
}

/** Puts the focus on the heading of the screen once what had it is gone. */
export function keepFocus() {
  const until = Date.now() + PATIENCE;
  const look = () => {
    if (!focusHeading() && Date.now() < until) setTimeout(look, 100);
  };
  setTimeout(look, 50);
}

/** A heading that comes later than its screen, or takes the place of another one, gets the focus that nothing has. */
export function useHeading(ready) {
  useEffect(() => { focusHeading(); }, [ready]);
}

/** In a part whose own button closes it: the heading of the screen gets the focus that goes with the button. */
export function useFocusBack() {
  useEffect(() => () => setTimeout(focusHeading), []);
}

/** Inside a form that opens in place: its first control gets the focus; what had the focus is gone when it closes. */
export function FirstFocus() {
  const element = useRef();
  useEffect(() => {
    element.current.closest("form, section")?.querySelector(CONTROLS)?.focus();
    return () => setTimeout(focusHeading);
  }, []);
  return html`<span ref=${element} hidden></span>`;
}

/** A ref for a part that a button opened: the first control in it gets the focus, or what `wanted` selects. */
export function useFirstFocus(wanted = "input, select, textarea") {
  const part = useRef();
  useEffect(() => part.current?.querySelector(wanted)?.focus(), []);
  return part;
}
