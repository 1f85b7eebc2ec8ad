// Undo and redo: what stood there before each change. Changes that follow one another within a moment in one place are one.

const MOST = 200;
const MOMENT_MS = 1500;

export class History {
  #past = [];
  #future = [];
  #last = { key: null, at: 0 };

  /** Notes what stood there before a change; changes with the same `key` within a moment are one. */
  note(before, key, now) {
    const isSame = key !== null && this.#last.key === key && now - this.#last.at < MOMENT_MS;
    this.#last = { key, at: now };
    this.#future = [];
    if (!isSame) this.#past = [...this.#past, before].slice(-MOST);
  }

  /** What stood there before the last change, in exchange for what stands there now; undefined when there is nothing. */
  undo(current) {
    return this.#step("past", current);
  }

  /** The other way. */
  redo(current) {
    return this.#step("future", current);
  }

  get canUndo() {
    return this.#past.length > 0;
  }

  get canRedo() {
    return this.#future.length > 0;
  }

  #step(from, current) {
    const [take, put] = from === "past" ? [this.#past, this.#future] : [this.#future, this.#past];
    const found = take.pop();
    if (found === undefined) return undefined;
    put.push(current);
    this.#last = { key: null, at: 0 };
    return found;
  }
}
