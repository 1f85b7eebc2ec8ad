// A part of a screen in a module of its own, loaded once it is shown.
import { Failed, html, Loading, t, useEffect, useState } from "./ui.js";

/** Draws the default export of the module that `load` imports, with the other arguments. */
export function Later({ load, ...rest }) {
  const [part, setPart] = useState(null);
  const [failure, setFailure] = useState(null);
  useEffect(() => {
    let gone = false;
    load().then(
      (module) => !gone && setPart(() => module.default),
      () => !gone && setFailure({ status: 0, code: "unreachable", message: t("The page could not be loaded. Was the server updated? Reload.") }),
    );
    return () => { gone = true; };
  }, []);
  // A whole page that comes later brings its heading with it, at which the reader begins.
  useEffect(() => {
    if (part && document.activeElement === document.body) document.querySelector("h1")?.focus({ preventScroll: true });
  }, [part]);
  if (failure) return html`<${Failed} error=${failure} retry=${() => location.reload()} />`;
  return part ? html`<${part} ...${rest} />` : html`<${Loading} />`;
}
