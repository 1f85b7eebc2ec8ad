// A form that a button opened takes the focus, which the button lost when it went.
import { useEffect, useRef } from "./ui.js";

/** A ref for the part that was opened: the first control in it gets the focus, or what `wanted` selects. */
export function useFirstFocus(wanted = "input, select, textarea") {
  const part = useRef();
  useEffect(() => part.current?.querySelector(wanted)?.focus(), []);
  return part;
}
