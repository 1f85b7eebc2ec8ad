// Signing in: by email and password, by single sign-on where the server offers it, or by a ticket in the link; whoever has no
// password yet then chooses one. A ticket of somebody who has an account shows the invitation, which they accept signed in. A
// first single sign-on of somebody who has a password asks for it once.
import { call, chooseWorkspace, forgetSession, loadSession, me } from "../lib/api.js";
import { announce, html, t, useEffect, useId, useRef, useState } from "../lib/ui.js";
import { LanguageChoice } from "../lib/language_choice.js";
import { hasPasskeys, refusalOf, usePasskey } from "../lib/passkey.js";
import { go } from "../lib/route.js";
import { Brand } from "../app.js";

/** Signs in by a ticket. Answers whether that worked; what went wrong is said on the screen. */
export async function redeem(ticket) {
  try {
    const { invitation, user } = await call("redeemTicket", { body: { ticket, cookie: true }, quiet: true });
    await loadSession();
    if (invitation) {
      pending = { invitation, ticket, email: user.email };
      return true;
    }
    pending = { chooses: !me().has_password };
    location.hash = pending.chooses ? "#/sign-in" : "#/";
    return true;
  } catch (error) {
    if (error.code === "second_factor_required") {
      pending = { step: error.details };
      return false;
    }
    pending = { said: error.code === "link_expired" ? t("This link was used already, or its time is over. Ask for another one, or sign in.") : error.message };
    return false;
  }
}

/** Keeps the ticket of a first single sign-on, which a password confirms. */
export function confirmSignOn(ticket) {
  pending = { confirm: ticket };
}

/** Keeps a single sign-on that waits for a second factor: `{ token, kinds, options }` as JSON. */
export function askFactor(text) {
  try {
    const { token, kinds, options } = JSON.parse(text);
    if (Array.isArray(kinds)) pending = { step: { token, kinds, options } };
  } catch {
    pending = {};
  }
}

let pending = {};

// What became of a single sign-on, by the word in the link back here.
const REASONS = {
  expired: "The sign-in took longer than ten minutes, or began in another browser or tab. Please try again.",
  cancelled: "The sign-in was cancelled, or you may not use this application. Ask whoever manages your accounts.",
  unreachable: "The sign-in service does not answer. Please try again in a few minutes.",
  provider: "The sign-in service did not confirm the sign-in. Please try again.",
  token: "The answer of the sign-in service could not be verified. The log of the server says why.",
  email_missing: "The sign-in service names no email address of yours. Ask whoever manages your accounts.",
  email_unverified: "The sign-in service has not verified your email address. Ask whoever manages your accounts.",
  no_account: "You have no account here. Ask an administrator of your workspace for an invitation.",
  failed: "The server could not complete the sign-in. Please try again in a minute.",
  busy: "Too many people sign in at the moment. Please try again in a minute.",
};

/** How the server offers single sign-on: `{ name, url, only }`; null where it does not, undefined before that is known. */
function useSignOn() {
  const [offer, setOffer] = useState();
  useEffect(() => {
    let gone = false;
    call("getHealth", { quiet: true }).then(
      ({ sign_on }) => !gone && setOffer(sign_on ?? null),
      () => !gone && setOffer(null),
    );
    return () => { gone = true; };
  }, []);
  return offer;
}

export default function SignIn({ query = {} }) {
  useEffect(() => { document.title = `${t("Sign in")} · messaging`; }, []);
  const { chooses, invitation, email, step, confirm } = pending;
  const said = pending.said ?? (Object.hasOwn(REASONS, query.reason ?? "") ? t(REASONS[query.reason]) : undefined);
  const done = () => {
    pending = {};
    if (location.hash.startsWith("#/sign-in")) go("");
  };
  if (me() && chooses) {
    return html`<div class="stack"><h1 tabindex="-1">${t("Choose a password")}</h1>
      <p class="muted">${t("Your link worked once. You will sign in with your email and this password from now on.")}</p>
      <${PasswordForm} onDone=${done} /></div>`;
  }
  if (me() && invitation) return html`<${Invitation} ...${pending} onDone=${done} />`;
  if (confirm) return html`<${Confirmation} ticket=${confirm} onDone=${done} />`;
  if (me() && !step) return html`<div class="stack"><h1 tabindex="-1">${t("You are signed in")}</h1><p><a href="#/">${t("Home")}</a></p></div>`;
  return html`<div class="stack"><p class="brand"><${Brand} /></p><h1 tabindex="-1">${t("Sign in")}</h1>
    ${said && html`<div class="notice warning" role="alert"><p>${said}</p></div>`}
    ${invitation && html`<div class="notice"><p>${t("You are invited to {name} as {role}. Sign in as {email} to accept.", { name: invitation.name, role: t(invitation.role), email })}</p></div>`}
    <${SignInWays} onDone=${invitation ? undefined : done} email=${email} begun=${step} />
    <details><summary>${t("No account, or the password forgotten?")}</summary>
      <p class="muted">${t("The operator of the server creates users, and links that sign in once:")}</p>
      <pre class="mono">messaging admin create-user --email you@example.com${"\n"}messaging admin login-link --email you@example.com</pre></details>
    <${LanguageChoice} /></div>`;
}

function Invitation({ invitation, ticket, email, onDone }) {
  const [fault, setFault] = useState(null);
  const { user } = me();
  const accept = async () => {
    try {
      await call("acceptInvitation", { path: { workspace_id: invitation.workspace_id }, body: { ticket }, quiet: true });
      await loadSession();
      onDone();
      chooseWorkspace(invitation.workspace_id);
    } catch (error) {
      setFault(error.message);
      announce(error.message, { fault: true });
    }
  };
  const signOut = async () => {
    await call("logout", { quiet: true }).catch(() => {});
    forgetSession();
  };
  const isTheirs = user.email === email;
  return html`<div class="stack"><h1 tabindex="-1">${t("You are invited to {name}", { name: invitation.name })}</h1>
    <p>${isTheirs
      ? t("You will be {role} there.", { role: t(invitation.role) })
      : t("The invitation is for {email}, and you are signed in as {other}.", { email, other: user.email })}</p>
    ${fault && html`<div class="notice fault" role="alert"><p>${fault}</p></div>`}
    <div class="actions">${isTheirs
      ? html`<button type="button" class="primary" onClick=${accept}>${t("Accept")}</button>`
      : html`<button type="button" class="primary" onClick=${signOut}>${t("Sign in as {email}", { email })}</button>`}
      <a class="button" href="#/" onClick=${onDone}>${t("Not now")}</a></div></div>`;
}

// Asks once for the password of an account that a single sign-on is joined to, and for its second factor where it has one.
function Confirmation({ ticket, onDone }) {
  const [password, setPassword] = useState("");
  const [step, setStep] = useState(null);
  const [over, setOver] = useState(false);
  const again = () => {
    pending = {};
    onDone();
  };
  const submit = async () => {
    try {
      await call("confirmSignOn", { body: { ticket, password, cookie: true }, quiet: true });
    } catch (error) {
      if (error.code === "second_factor_required") {
        setPassword("");
        setStep(error.details);
        return false;
      }
      if (error.code === "link_expired") setOver(true);
      throw error;
    }
    return true;
  };
  return html`<div class="stack"><p class="brand"><${Brand} /></p><h1 tabindex="-1">${t("Confirm that it is you")}</h1>
    ${step ? html`<${SecondStep} ...${step} onDone=${onDone} onBack=${again} />` : html`
      <p>${t("There is an account here with your email address, and it has a password. Enter it once; from then on you sign in without it.")}</p>
      <${Credentials} submit=${submit} onDone=${onDone} text=${t("Confirm")} wrong=${() => t("The password is wrong.")}>
        <${Input} label=${t("Password")} type="password" value=${password} onInput=${setPassword} autocomplete="current-password" autofocus />
      </${Credentials}>`}
    ${over && html`<p class="muted">${t("The ten minutes for that are over.")}</p>`}
    <p><a href="#/sign-in" onClick=${again}>${t("Sign in again")}</a></p></div>`;
}

/** Single sign-on where the server offers it, email and password unless it refuses them; or the second step of a sign-in that has begun, `{ token, kinds, options }`. */
function SignInWays({ onDone, email, begun }) {
  const offer = useSignOn();
  const [step, setStep] = useState(begun);
  if (step) return html`<${SecondStep} ...${step} onDone=${onDone} onBack=${() => setStep(null)} />`;
  // A form that goes away, or moves down, under somebody's hands would be worse than one that comes a moment later.
  if (offer === undefined) return null;
  return html`${offer && html`<p><a class="button primary" href=${offer.url}>${t("Sign in with {name}", offer)}</a></p>`}
    ${!offer?.only && html`<${SignInForm} onDone=${onDone} email=${email} />`}`;
}

/** The same in a dialog over work that shall not be lost: single sign-on takes place in another tab. */
export function SignInAgain({ onDone, email }) {
  const offer = useSignOn();
  const [fault, setFault] = useState(null);
  const goOn = async () => {
    if (await loadSession()) onDone();
    else setFault(t("You are not signed in yet."));
  };
  return html`${offer && html`<p class="actions"><a class="button" href=${offer.url} target="_blank" rel="noopener">${t("Sign in with {name} in another tab", offer)}</a>
      <button type="button" onClick=${goOn}>${t("I am signed in")}</button></p>
      ${fault && html`<div class="notice fault" role="alert"><p>${fault}</p></div>`}`}
    ${!offer?.only && html`<${SignInForm} onDone=${onDone} email=${email} />`}`;
}

/** Email and password, and then a code or a passkey where the person has a second factor. */
function SignInForm({ onDone, email: known = "" }) {
  const [email, setEmail] = useState(known);
  const [password, setPassword] = useState("");
  const [step, setStep] = useState(null);
  const [isPasskey, setPasskey] = useState(false);
  const submit = async () => {
    try {
      await call("login", { body: { email, password, cookie: true }, quiet: true });
    } catch (error) {
      if (error.code !== "second_factor_required") throw error;
      setPassword("");
      setStep(error.details);
      return false;
    }
    return true;
  };
  if (step) return html`<${SecondStep} ...${step} onDone=${onDone} onBack=${() => setStep(null)} />`;
  if (isPasskey) return html`<${PasskeyAlone} onDone=${onDone} onBack=${() => setPasskey(false)} />`;
  const extra = hasPasskeys() && html`<button type="button" onClick=${() => setPasskey(true)}>${t("Use a passkey")}</button>`;
  return html`<${Credentials} submit=${submit} onDone=${onDone} text=${t("Sign in")} about=${email} extra=${extra}>
    <${Input} label=${t("Email")} type="email" value=${email} onInput=${setEmail} autocomplete="username" autofocus=${!known} />
    <${Input} label=${t("Password")} type="password" value=${password} onInput=${setPassword} autocomplete="current-password" autofocus=${Boolean(known)} />
  </${Credentials}>`;
}

function SecondStep({ token, kinds, options, onDone, onBack }) {
  const [code, setCode] = useState("");
  const isAlone = !kinds.includes("totp");
  // Somebody without an app may still have a recovery code.
  const [isPasskey, setPasskey] = useState(Boolean(options) && hasPasskeys());
  const submit = () => call("loginWithFactor", { body: { token, code }, quiet: true });
  const sign = async () => call("loginWithFactor", { body: { token, assertion: await usePasskey(options) }, quiet: true });
  const wrong = ({ details }) => (details.tries_left > 0
    ? (isPasskey ? t("The passkey was refused.") : t("The code is wrong, was used already or is too old."))
    : t("This sign-in is over: too many tries were wrong, or it took too long. Begin again."));
  const extra = html`<button type="button" onClick=${onBack}>${t("Begin again")}</button>`;
  if (isPasskey) {
    return html`<${Credentials} key="passkey" submit=${sign} onDone=${onDone} text=${t("Use your passkey")} wrong=${wrong}
        extra=${html`<button type="button" onClick=${() => setPasskey(false)}>${isAlone ? t("Use a recovery code") : t("Use a code")}</button>${extra}`}>
      <p>${t("The browser asks for your fingerprint, your face, a PIN or a security key.")}</p></${Credentials}>`;
  }
  const [label, help] = isAlone
    ? [t("Recovery code"), t("One of the codes that you kept; each works once. None left? Ask the operator of the server for “messaging admin reset-factors”.")]
    : [t("Code"), t("The six digits that your app shows, or a recovery code. Lost both? Ask the operator of the server for “messaging admin reset-factors”.")];
  return html`<${Credentials} key="code" submit=${submit} onDone=${onDone} text=${t("Sign in")} wrong=${wrong} extra=${extra}>
    <${Input} label=${label} type="text" value=${code} onInput=${setCode} autocomplete="one-time-code" autocapitalize="none" spellcheck=${false} autofocus help=${help} />
  </${Credentials}>`;
}

function PasskeyAlone({ onDone, onBack }) {
  const submit = async () => {
    const { token, options } = await call("beginPasskeyLogin", { body: { cookie: true }, quiet: true });
    return call("loginWithFactor", { body: { token, assertion: await usePasskey(options) }, quiet: true });
  };
  return html`<${Credentials} submit=${submit} onDone=${onDone} text=${t("Use your passkey")} wrong=${() => t("The passkey was refused.")}
      extra=${html`<button type="button" onClick=${onBack}>${t("Use email and password")}</button>`}>
    <p>${t("The browser asks for your fingerprint, your face, a PIN or a security key.")}</p></${Credentials}>`;
}

function PasswordForm({ onDone }) {
  const [password, setPassword] = useState("");
  const submit = () => call("setPassword", { body: { current: null, password }, quiet: true });
  return html`<${Credentials} submit=${submit} onDone=${onDone} text=${t("Save")}>
    <${Input} label=${t("Password")} type="password" value=${password} onInput=${setPassword} autocomplete="new-password" autofocus
      help=${t("At least 12 characters, and none of the common ones.")} />
  </${Credentials}>`;
}

function Input({ label, onInput, help, ...rest }) {
  const id = useId();
  return html`<div class="field"><label for=${id}>${label}</label>
    <input id=${id} ...${rest} required aria-describedby=${help && `${id}-help`} onInput=${(event) => onInput(event.target.value)} />
    ${help && html`<p class="help" id="${id}-help">${help}</p>`}</div>`;
}

const LABELS = { "/email": "Email", "/password": "Password", "/code": "Code" };

function textOf(error, wrong) {
  if (error.status === 401) return wrong?.(error) ?? t("Email or password is wrong.");
  if (error.status === 429) return t("Too many attempts.");
  return error.violations?.map(({ pointer, message }) => `${t(LABELS[pointer] ?? "")} ${message}.`).join(" ") || error.message;
}

// `about` is what a wait is for: another email need not wait. A `submit` that answers false opened no session; `wrong` tells
// what a 401 means.
function Credentials({ submit, onDone, text, about, wrong, extra, children }) {
  const [fault, setFault] = useState(null);
  const [busy, setBusy] = useState(false);
  const [wait, setWait] = useState(0);
  const form = useRef();
  // The focus is lost with the button of the step before, and while the one of this step is disabled.
  useEffect(() => {
    if (!busy && document.activeElement === document.body) form.current.querySelector("input, button:enabled")?.focus();
  }, [busy]);
  useEffect(() => {
    if (!wait) return undefined;
    const timer = setTimeout(() => setWait(wait - 1), 1000);
    return () => clearTimeout(timer);
  }, [wait]);
  useEffect(() => {
    setWait(0);
    setFault(null);
  }, [about]);
  const run = async (event) => {
    event.preventDefault();
    setBusy(true);
    setFault(null);
    try {
      if (await submit() === false) return;
      await loadSession();
      onDone?.();
    } catch (error) {
      if (error.status === 429) setWait(error.retryAfter ?? 60);
      const said = refusalOf(error, t("No passkey was used.")) ?? textOf(error, wrong);
      setFault(said);
      announce(said, { fault: true });
    } finally {
      setBusy(false);
    }
  };
  return html`<form ref=${form} class="form" onSubmit=${run} novalidate aria-busy=${busy ? "true" : undefined}>
    ${fault && html`<div class="notice fault" role="alert"><p>${fault} ${wait > 0 && t("Try again in {seconds} seconds.", { seconds: wait })}</p></div>`}
    ${children}
    <div class="actions"><button type="submit" class="primary" disabled=${busy || wait > 0}>${text}</button>${extra}</div>
  </form>`;
}
