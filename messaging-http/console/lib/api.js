import { operations } from "../operations.js";

export async function api(id) {
  const { method, path } = operations[id];
  const answer = await fetch(new URL(`../v1${path}`, location.href), { method, headers: { "X-Console": "1" } });
  return answer.json();
}
