// Images of this server in the HTML of a mail. The page in which a mail is shown loads nothing, so what is the server's own
// is put into the HTML as it is.
import { useEffect, useState } from "./ui.js";

const ADDRESS = /https?:\/\/[^\s"'()<>]{1,200}?\/i\/([\w-]{64,90})(?![\w-])/g;
const MOST = 20;
// A picture of one point that is not seen, while the real one is on its way.
const NOTHING = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=";
const LARGEST = 5 << 20;

// Answers are kept: an address always leads to the same image. Not for ever, because they are long.
const MOST_KEPT = 60;
const kept = new Map();

function keep(token, image) {
  if (kept.size >= MOST_KEPT) kept.delete(kept.keys().next().value);
  kept.set(token, image);
}

async function load(token) {
  const answer = await fetch(new URL(`../i/${token}`, document.baseURI), { credentials: "omit" });
  const type = answer.headers.get("Content-Type") ?? "";
  if (!answer.ok || !/^image\/(?:png|jpeg|gif|webp)$/.test(type)) return null;
  const file = await answer.blob();
  if (file.size > LARGEST) return null;
  return new Promise((resolve) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => resolve(null);
    reader.readAsDataURL(file);
  });
}

/** Where the page may ask for an image of the server's own, or null: those of others are not loaded in it. */
export function shownAt(address = "") {
  const [token] = tokensOf(address);
  return token ? new URL(`../i/${token}`, document.baseURI).href : null;
}

/** The tokens of the images in a text, each once; none where there is no text. */
export function tokensOf(source) {
  return [...new Set([...(source ?? "").matchAll(ADDRESS)].map(([, token]) => token))].slice(0, MOST);
}

/** The text with the images that are known in the place of their addresses. */
export function withImages(source, images) {
  return source?.replace(ADDRESS, (whole, token) => images.get(token) ?? whole);
}

/** The HTML of a mail, with the server's images in it once they are there. */
export function useOwnImages(source) {
  const [, loaded] = useState(0);
  const wanted = tokensOf(source).filter((token) => !kept.has(token));
  useEffect(() => {
    if (!wanted.length) return undefined;
    let isGone = false;
    Promise.all(wanted.map((token) => load(token).catch(() => null).then((image) => keep(token, image)))).then(() => !isGone && loaded((n) => n + 1));
    return () => { isGone = true; };
  }, [wanted.join()]);
  return withImages(source, new Map([...kept, ...wanted.map((token) => [token, NOTHING])]));
}
