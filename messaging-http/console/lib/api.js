// Calls of the API. Paths, methods and rights come from `operations.js`, which the server writes from its own table;
// no path stands in the console.
import { operations } from "../operations.js";

// Relative to the page, so that any prefix of a proxy works.
const BASE = new URL("../v1", document.baseURI).href;

const WORKSPACE = "messaging.workspace";
const RECORDED = 30;
const PATIENCE_SECONDS = 10;
const READ_ATTEMPTS = 3;

/** A call that did not succeed. */
export class Failure extends Error {
  constructor(status, body, retryAfter) {
    // A missing scope is answered by a bare text (contract section 1.4).
    const error = typeof body?.error === "string" ? { code: "scope_required", message: body.error } : body?.error ?? {};
    super(error.message ?? `status ${status}`);
    this.status = status;
    this.code = error.code ?? "unreachable";
    this.details = error.details ?? {};
    this.requestId = error.request_id;
    this.retryAfter = retryAfter;
    this.needs = /^scope required: (.+)$/.exec(error.message ?? "")?.[1];
  }

  /** What is wrong with the input: `[{ pointer | parameter, code, message }]`. */
  get violations() {
    return this.details.errors ?? [];
  }
}

// ---- the session ----

const session = { me: null, workspace: null, listeners: new Set() };

/** The user who is signed in with the workspaces of theirs, or null. */
export function me() {
  return session.me;
}

/** The chosen workspace: `{ workspace_id, name, role, scopes }`. */
export function workspace() {
  return session.workspace;
}

/** Calls back when somebody signs in or out or another workspace is chosen; answers how to stop that. */
export function onSession(listener) {
  session.listeners.add(listener);
  return () => session.listeners.delete(listener);
}

function changed() {
  for (const listener of session.listeners) listener();
}

/** Asks who is signed in. Answers whether somebody is. */
export async function loadSession() {
  try {
    const found = await request("getMe", {});
    session.me = found;
    const wanted = sessionStorage.getItem(WORKSPACE);
    const { workspaces } = found;
    session.workspace = workspaces.find((one) => one.workspace_id === wanted) ?? workspaces[0] ?? null;
  } catch (error) {
    if (error.status !== 401) throw error;
    session.me = null;
  }
  changed();
  return session.me !== null;
}

/** Chooses a workspace for this tab. */
export function chooseWorkspace(id) {
  sessionStorage.setItem(WORKSPACE, id);
  session.workspace = session.me.workspaces.find((one) => one.workspace_id === id) ?? session.workspace;
  changed();
}

/** Forgets who was signed in. */
export function forgetSession() {
  session.me = null;
  session.workspace = null;
  changed();
}

// ---- rights ----

const RANKS = ["viewer", "editor", "admin", "owner"];

function covers(scopes, wanted) {
  if (scopes.includes("*") || scopes.includes(wanted)) return true;
  if (wanted === "messages:read") return scopes.includes("messages:send");
  return wanted.endsWith(":read") && scopes.includes(wanted.replace(/:read$/, ":write"));
}

/** The rights that an operation needs, as words: scopes, or `role admin`. */
export function needs(id) {
  const { access } = operations[id];
  const rights = [...(access.scopes ?? [])];
  if (access.role) rights.push(`role ${access.role}`);
  if (access.operator) rights.push("operator");
  return rights.join(", ");
}

/** The first right that the user lacks for an operation, or null. */
export function missing(id) {
  const { access } = operations[id];
  const { role = "", scopes = [] } = session.workspace ?? {};
  if (access.role && RANKS.indexOf(role) < RANKS.indexOf(access.role)) return `role ${access.role}`;
  if (access.operator && !session.me?.operator) return "operator";
  return (access.scopes ?? []).find((scope) => !covers(scopes, scope)) ?? null;
}

/** Whether the user may call an operation, as far as roles and scopes decide it. */
export function allowed(id) {
  return missing(id) === null;
}

/** Whether the user sees addresses in clear. */
export function seesAddresses() {
  return covers(session.workspace?.scopes ?? [], "pii:read");
}

// ---- what was called ----

let recorded = [];

/** The calls that filled the screen, the newest last: `{ id, path, query, body, answer, status }`. */
export function calls() {
  return recorded;
}

/** Begins anew: another screen is shown. */
export function forgetCalls() {
  recorded = [];
}

function record(entry) {
  // A call that was made again, say after a change, takes the place of the earlier one.
  const same = (other) => other.id === entry.id && JSON.stringify(other.path) === JSON.stringify(entry.path)
    && JSON.stringify(other.query) === JSON.stringify(entry.query);
  recorded = [...recorded.filter((other) => !same(other)), entry].slice(-RECORDED);
}

// ---- the connection ----

// Asked for when nothing was heard of the server for so long, and given up after so long: what is lost is known in 5 s.
const QUIET_MS = 2400;
const PING_MS = 2200;
const connection = { isThere: true, heard: 0, listeners: new Set() };

/** Whether the server was reached by the last call. */
export function isConnected() {
  return connection.isThere;
}

/** Calls back with whether there is a connection, when that changes; answers how to stop that. */
export function onConnection(listener) {
  connection.listeners.add(listener);
  return () => connection.listeners.delete(listener);
}

function heard(isThere) {
  connection.heard = performance.now();
  if (connection.isThere === isThere) return;
  connection.isThere = isThere;
  for (const listener of [...connection.listeners]) listener(isThere);
}

/** Looks after the connection from now on, as long as the page is seen. */
export function watchConnection() {
  let isAsking = false;
  const look = async () => {
    if (isAsking || document.visibilityState !== "visible" || performance.now() - connection.heard < QUIET_MS) return;
    isAsking = true;
    await request("getHealth", { signal: AbortSignal.timeout(PING_MS) }).catch((error) => { if (!error.status) heard(false); });
    isAsking = false;
  };
  setInterval(look, 300);
  addEventListener("offline", () => heard(false));
}

// ---- calls ----

let signInAgain;

/** Tells how to ask for a new sign-in when a session has ended in the middle of work. */
export function onExpired(ask) {
  signInAgain = ask;
}

/** A key under which a write happens once, however often it is sent. */
export function idempotencyKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The path of a call below the API, filled. */
export function pathOf(id, path = {}) {
  const values = { workspace_id: session.workspace?.workspace_id, ...path };
  return operations[id].path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(values[name] ?? ""));
}

/** A query string with its `?`, of the values that are there. */
export function queryOf(query = {}) {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString();
  return text && `?${text}`;
}

/** The whole URL of a call. */
export function urlOf(id, { path, query } = {}) {
  return BASE + pathOf(id, path) + queryOf(query);
}

/**
 * Carries an operation out and answers the body of its answer; throws a `Failure`.
 *
 * `path`, `query`, `body` are the parts of the request, `file` is sent in the place of a body, `key` is an Idempotency-Key; the workspace is the chosen one. A
 * `quiet` call is not among those that "Show as" shows. Reads wait and ask again when the server says when to. A session
 * that has ended is asked for again, and then the call goes on, so nothing that was typed is lost.
 */
export async function call(id, args = {}) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const answer = await request(id, args);
      if (!args.quiet) record({ id, path: args.path, query: args.query, body: args.body, answer });
      return answer;
    } catch (error) {
      // What needs no session was refused for what it brought.
      if (error.status === 401 && !operations[id].access.public && signInAgain && session.me && await hasEnded()) {
        await signInAgain();
      } else if (error.retryAfter > PATIENCE_SECONDS || !error.retryAfter || !isRead(id) || attempt >= READ_ATTEMPTS) {
        if (!args.quiet && !args.signal?.aborted) {
          record({ id, path: args.path, query: args.query, body: args.body, answer: { error: error.message } });
        }
        throw error;
      } else {
        await new Promise((resolve) => { setTimeout(resolve, error.retryAfter * 1000); });
      }
      if (args.signal?.aborted) throw error;
    }
  }
}

// A password that is wrong is answered like a session that has ended.
async function hasEnded() {
  return request("getMe", {}).then(() => false, (error) => error.status === 401);
}

function isRead(id) {
  return operations[id].method === "GET";
}

async function request(id, { path, query, body, file, key, signal }) {
  const { method } = operations[id];
  const headers = { "X-Console": "1" };
  if (session.workspace) headers["X-Workspace-Id"] = session.workspace.workspace_id;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (file) headers["Content-Type"] = file.type || "application/octet-stream";
  if (key) headers["Idempotency-Key"] = key;
  let response;
  try {
    response = await fetch(urlOf(id, { path, query }), {
      method, headers, signal, credentials: "same-origin", cache: "no-store",
      body: file ?? (body === undefined ? undefined : JSON.stringify(body)),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    heard(false);
    throw new Failure(0, { error: { code: "unreachable", message: "Is the network there, and the server running?" } });
  }
  heard(true);
  const isJson = (response.headers.get("Content-Type") ?? "").startsWith("application/json");
  const answer = isJson ? await response.json() : await response.text();
  if (!response.ok) throw new Failure(response.status, answer, Number(response.headers.get("Retry-After")) || undefined);
  return response.status === 204 ? null : answer;
}

/** Sends a file to a link for uploads; `onProgress` hears the share that is sent. */
export function upload(link, file, onProgress) {
  // The link names the public address of the server; the page may have come by another one.
  const token = new URL(link).pathname.split("/").pop();
  const target = new URL(`../uploads/${token}`, document.baseURI);
  return new Promise((resolve, reject) => {
    const transfer = new XMLHttpRequest();
    transfer.open("PUT", target);
    transfer.upload.onprogress = (event) => event.lengthComputable && onProgress?.(event.loaded / event.total);
    transfer.onerror = () => reject(new Failure(0, {}));
    transfer.onload = () => {
      let body = {};
      try { body = JSON.parse(transfer.responseText || "{}"); } catch { /* An answer of a proxy. */ }
      if (transfer.status < 300) resolve(body);
      else reject(new Failure(transfer.status, body));
    };
    transfer.send(file);
  });
}
