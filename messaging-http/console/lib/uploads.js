// Uploads that are under way in this tab. They go on while other screens are shown.
import { upload } from "./api.js";
import { useEffect, useReducer } from "./ui.js";

const running = new Map();
const listeners = new Set();

const tell = () => { for (const listener of listeners) listener(); };

/** Sends the file of an import; what becomes of it stands in `useUpload`. */
export function beginUpload({ import_id: id, upload_url: link }, file) {
  const state = { share: 0 };
  running.set(id, state);
  tell();
  const change = (next) => {
    Object.assign(state, next);
    tell();
  };
  upload(link, file, (share) => change({ share })).then(
    () => change({ share: 1, done: true }),
    (error) => change({ error }),
  );
}

/** The upload of an import in this tab: `{ share, done, error }`, or undefined. */
export function useUpload(id) {
  const [, again] = useReducer((n) => n + 1, 0);
  useEffect(() => {
    listeners.add(again);
    return () => listeners.delete(again);
  }, []);
  return running.get(id);
}

// Leaving the page as a whole would cut an upload; the browser asks first.
addEventListener("beforeunload", (event) => {
  if ([...running.values()].some(({ done, error }) => !done && !error)) event.preventDefault();
});
