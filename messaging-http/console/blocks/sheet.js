// The sheet of the editor, which no other screen needs.
import { useEffect } from "../lib/ui.js";

const HREF = new URL("./blocks.css", import.meta.url).href;

/** Loads the sheet, once. */
export function useSheet() {
  useEffect(() => {
    if ([...document.querySelectorAll("link[rel=stylesheet]")].some(({ href }) => href === HREF)) return;
    document.head.append(Object.assign(document.createElement("link"), { rel: "stylesheet", href: HREF }));
  }, []);
}
