// The members of the workspace: who they are, what they may do, inviting and removing them.
import { allowed, call, me, workspace } from "../lib/api.js";
import { absolute, Action, announce, Code, confirm, dialog, Empty, Head, html, t, Time, useState } from "../lib/ui.js";
import { Field, Form } from "../lib/form.js";
import { changeQuery, href } from "../lib/route.js";
import { List } from "../lib/table.js";
import { useFirstFocus, useFocusBack } from "../lib/focus.js";

const ROLES = [
  ["viewer", "Viewer", "sees everything, with addresses masked"],
  ["editor", "Editor", "contacts, templates, campaigns, automations, sending; addresses in clear"],
  ["admin", "Admin", "everything, also keys, members, channels"],
  ["owner", "Owner", "as admin; there is always at least one"],
];

const nameOf = (role) => t(ROLES.find(([id]) => id === role)?.[1] ?? role);

const isInvited = (row) => row.status === "invited";

export default function Members({ query }) {
  const [reloads, setReloads] = useState(0);
  const again = () => setReloads((n) => n + 1);
  const [invited, setInvited] = useState(null);
  const isNew = query.new && allowed("createMember");
  const columns = [
    { label: t("Name"), cell: (row) => html`<div><strong dir="auto">${row.name || row.email}</strong>${row.user_id === me().user.id && html` <span class="badge">${t("you")}</span>`}
        ${row.name && html`<br /><span class="muted" dir="auto">${row.email}</span>`}</div>` },
    { label: t("Status"), cell: (row) => (isInvited(row) ? t("invited") : t("active")) },
    { label: t("Role"), cell: (row) => html`<${RoleOf} row=${row} onDone=${again} />` },
    { label: t("Added"), cell: (row) => html`<${Time} at=${row.created_at} />` },
  ];
  return html`
    <${Head} title=${t("Members")} text=${t("Who may work in {workspace}, and what they may do there.", { workspace: workspace().name })}>
      ${allowed("createMember") && !isNew && html`<a class="button primary" href=${href("members", { new: 1 })} onClick=${() => setInvited(null)}>${t("Invite a member")}</a>`}
    </${Head}>
    ${invited && html`<${Invited} ...${invited} onClose=${() => setInvited(null)} />`}
    ${isNew && html`<${Invite} onDone=${(found) => { setInvited(found); changeQuery({ new: null }); again(); }} />`}
    <${List} id="listMembers" reloads=${reloads} caption=${t("Members")} columns=${columns} rowKey=${(row) => row.user_id}
      empty=${html`<${Empty} title=${t("Nobody is here")} text=${t("Invite the people you work with.")} action=${t("Invite a member")} href=${href("members", { new: 1 })} />`}
      actions=${(row) => html`${isInvited(row) && html`<${Link} row=${row} />`} <${Remove} row=${row} onDone=${again} />`} />
    ${!isNew && html`<section class="stack" aria-labelledby="roles"><h2 id="roles">${t("Roles")}</h2>
      <dl class="facts">${ROLES.map(([, name, text]) => html`<div><dt>${t(name)}</dt><dd>${t(text)}</dd></div>`)}</dl></section>`}`;
}

// ---- inviting ----

function Invite({ onDone }) {
  const [fault, setFault] = useState(null);
  // The member exists even when making the link fails; the link can be made again in their row.
  const added = async (member) => {
    try {
      onDone({ member, link: await call("createMemberTicket", { path: { user_id: member.user_id } }) });
    } catch (error) {
      setFault(error);
      announce(error.message, { fault: true });
      onDone({ member });
    }
  };
  const roles = ROLES.filter(([role]) => role !== "owner" || workspace().role === "owner");
  const part = useFirstFocus();
  return html`<section ref=${part} class="card" aria-labelledby="invite"><h2 id="invite">${t("Invite a member")}</h2>
    ${fault && html`<p class="fault-text">${fault.message}</p>`}
    <${Form} id="createMember" initial=${{ email: "", role: "editor" }} onDone=${added} submit=${t("Make a link")} refusal=${taken}
        extra=${html`<a class="button" href=${href("members")}>${t("Cancel")}</a>`}>
      <${Field} name="email" label=${t("Email")} kind="email" autocomplete="off" help=${t("They will sign in with it. No mail is sent: you get a link to hand on.")} />
      <${Field} name="role" label=${t("Role")} kind="select" options=${roles.map(([role, name, text]) => [role, `${t(name)}: ${t(text)}`])} />
    </${Form}></section>`;
}

const taken = ({ code }) => (code === "already_exists" ? { text: t("They are a member or invited already. Invited people get a new link in their row below.") } : null);

function Invited({ member, link, onClose }) {
  useFocusBack();
  const part = useFirstFocus("button");
  return html`<section ref=${part} class="notice good" aria-labelledby="invited"><h2 id="invited" dir="auto">${t("{email} is invited", { email: member.email })}</h2>
    ${link ? html`<${LinkText} link=${link} />` : html`<p>${t("The link could not be made; try again in their row.")}</p>`}
    <div class="actions"><button type="button" class="small" onClick=${onClose}>${t("Close")}</button></div></section>`;
}

function LinkText({ link }) {
  return html`<p>${t("Give them this link. It works once, until {time}. Whoever is new here chooses a password by it; others sign in and accept.", { time: absolute(link.expires_at, { dateStyle: "medium", timeStyle: "short" }) })}</p>
    <${Code} text=${link.url} label=${t("Link")} />`;
}

/** Another link, say because the first one ran out. */
function Link({ row }) {
  const show = (link) => dialog((close) => html`<${LinkText} link=${link} />
    <div class="actions"><button type="button" onClick=${() => close()}>${t("Close")}</button></div>`,
  { title: t("Link of the invitation") });
  return html`<${Action} id="createMemberTicket" className="small" args=${{ path: { user_id: row.user_id } }} done=${t("The link is made")} onDone=${show}>
    ${t("New link")}<span class="sr"> ${t("for {email}", { email: row.email })}</span></${Action}>`;
}

// ---- changing ----

function RoleOf({ row, onDone }) {
  const [wanted, setWanted] = useState(null);
  const isMe = row.user_id === me().user.id;
  // Only an owner makes or lowers owners; what else is refused the server says.
  const isOpen = allowed("updateMember") && (row.role !== "owner" || workspace().role === "owner");
  if (!isOpen) return nameOf(row.role);
  const change = async (event) => {
    const role = event.target.value;
    const text = isMe
      ? t("This is you. You keep only what {role} may do, and may be unable to change it back.", { role: nameOf(role) })
      : t("{email} is {before} and will be {after}: {text}.", { email: row.email, before: nameOf(row.role), after: nameOf(role), text: t(ROLES.find(([id]) => id === role)[2]) });
    setWanted(role);
    if (await confirm({ title: t("Change the role?"), text, action: t("Change") })) {
      try {
        await call("updateMember", { path: { user_id: row.user_id }, body: { role } });
        announce(t("{email} is {role} now", { email: row.email, role: nameOf(role) }));
        onDone();
      } catch (error) {
        announce(error.code === "in_use" ? t("The last owner stays owner. Make somebody else owner first.") : error.message, { fault: true });
      }
    }
    setWanted(null);
  };
  const shown = wanted ?? row.role;
  const roles = ROLES.filter(([role]) => role !== "owner" || workspace().role === "owner");
  return html`<select aria-label=${t("Role of {email}", { email: row.email })} data-operation="updateMember" value=${shown} onChange=${change}>
    ${roles.map(([role, name]) => html`<option value=${role} selected=${role === shown}>${t(name)}</option>`)}</select>`;
}

function Remove({ row, onDone }) {
  const isMe = row.user_id === me().user.id;
  const before = () => confirm({
    title: t("Remove {email}?", { email: row.email }),
    text: isMe
      ? t("This is you: you lose this workspace at once, and somebody else has to invite you again.")
      : t("They lose this workspace at once. What they made stays, also the keys. You can invite them again."),
    action: t("Remove"), name: isMe ? row.email : undefined,
  });
  return html`<${Action} id="deleteMember" className="small" args=${{ path: { user_id: row.user_id } }} before=${before} onDone=${onDone}
    done=${t("{email} is removed", { email: row.email })}>${t("Remove")}<span class="sr"> ${row.email}</span></${Action}>`;
}
