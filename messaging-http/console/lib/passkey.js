// Passkeys: what the server tells a browser, and what the browser answers, between JSON and octets.

import { t } from "./ui.js";

// Browsers keep passkeys for names alone.
const isNumber = () => /^[\d.]+$|^\[/.test(location.hostname);

/** True where the browser keeps passkeys for this page. */
export const hasPasskeys = () => isSecureContext && Boolean(globalThis.PublicKeyCredential) && !isNumber();

/** What the browser means where it neither makes nor uses a passkey; undefined where the error is none of the browser. */
export function refusalOf(error, otherwise) {
  if (!(error instanceof DOMException)) return undefined;
  return {
    InvalidStateError: t("This device has a passkey of yours already."),
    SecurityError: t("Passkeys are kept for another address of this server than the one that you are at."),
  }[error.name] ?? otherwise;
}

function octetsOf(text) {
  const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

function textOf(buffer) {
  const binary = Array.from(new Uint8Array(buffer), (octet) => String.fromCharCode(octet)).join("");
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

const descriptors = (list) => list.map((one) => ({ ...one, id: octetsOf(one.id) }));

// The members of an answer that the server reads, those that there are.
function written({ id, response }, names) {
  const members = names.filter((name) => response[name]).map((name) => [name, textOf(response[name])]);
  return { id, response: Object.fromEntries(members) };
}

/** Has the device make a passkey. Throws when the person does not want to, or has one on the device already. */
export async function makePasskey(options) {
  const { user, challenge, excludeCredentials } = options;
  const publicKey = {
    ...options, challenge: octetsOf(challenge), user: { ...user, id: octetsOf(user.id) }, excludeCredentials: descriptors(excludeCredentials),
  };
  return written(await navigator.credentials.create({ publicKey }), ["clientDataJSON", "attestationObject"]);
}

/** Has the device sign with a passkey. Throws when the person does not want to. */
export async function usePasskey(options) {
  const publicKey = { ...options, challenge: octetsOf(options.challenge), allowCredentials: descriptors(options.allowCredentials) };
  return written(await navigator.credentials.get({ publicKey }), ["clientDataJSON", "authenticatorData", "signature", "userHandle"]);
}
