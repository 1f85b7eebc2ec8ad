// What can be set of the block that is open.
import { html, t, useEffect, useId, useState } from "../lib/ui.js";
import { shownAt } from "../lib/own_images.js";
import { attribute, isSpace, parsePart, withAttribute, withChildren, withInner, write } from "./mjml.js";
import { decoded, encoded, isUnfinished, pieces } from "./language.js";
import { kindOf, madeSocial, SETTINGS, WRAPS } from "./kinds.js";
import { Setting, TextInput } from "./fields.js";
import { chooseImage } from "./images.js";
import { isRich, RichText } from "./rich_text.js";

/**
 * `node` and what hears its next form: `onChange(node)`, or `onNodes(nodes)` for what is written as code. `columns` are how
 * many a section has, `onColumns(number)` hears another number. `outside` is that of `RichText`,
 * `defaults` what elements are like otherwise; `onWrap(tags)` puts the block between two tags of the template.
 */
export function BlockFields({ node, name, onChange, onNodes, columns, onColumns, onWrap, outside, defaults }) {
  const kind = kindOf(node);
  const set = (attributeName) => (value) => onChange(withAttribute(node, attributeName, value));
  const usual = (attributeName) => defaults[node.name]?.[attributeName] ?? defaults["mj-all"]?.[attributeName];
  const settings = SETTINGS[kind] ?? [];
  const isTag = kind === "tag" || kind === "comment";
  const isCode = !node.name || !SETTINGS[kind];
  return html`<div class="block-fields">
    ${(kind === "text" || kind === "heading") && html`<${TextContent} node=${node} name=${name} onChange=${onChange} outside=${outside} />`}
    ${kind === "button" && html`<${ButtonContent} node=${node} onChange=${onChange} />`}
    ${kind === "image" && html`<${ImageContent} node=${node} onChange=${onChange} />`}
    ${kind === "social" && html`<${SocialContent} node=${node} onChange=${onChange} />`}
    ${columns > 0 && html`<${Columns} columns=${columns} onColumns=${onColumns} />`}
    ${settings.length > 0 && html`<div class="row-of-fields">${settings.map((setting) => html`<${Setting} key=${setting.name} setting=${setting}
      usual=${usual(setting.name)} value=${attribute(node, setting.name)} onChange=${set(setting.name)} />`)}</div>`}
    ${isCode && html`<${Code} node=${node} onNodes=${onNodes} />`}
    ${!isCode && onNodes && html`<details class="more"><summary>${t("Code of this block")}</summary><${Code} node=${node} onNodes=${onNodes} /></details>`}
    ${onWrap && !isTag && html`<div class="actions">${WRAPS.map(([text, tags]) => html`<button type="button" class="small" onClick=${() => onWrap(tags)}>${t(text)}</button>`)}</div>`}
  </div>`;
}

function Columns({ columns, onColumns }) {
  return html`<div class="field"><span class="label" id="columns-of">${t("Columns")}</span>
    <div class="segmented" role="group" aria-labelledby="columns-of">${[1, 2, 3, 4].map((number) => html`
      <button type="button" aria-pressed=${number === columns} onClick=${() => onColumns(number)}>${number}</button>`)}</div></div>`;
}

function TextContent({ node, name, onChange, outside }) {
  const change = (inner) => onChange(withInner(node, inner));
  if (isRich(node.inner)) return html`<${RichText} label=${name} value=${node.inner} onChange=${change} outside=${outside} />`;
  return html`<${Guarded} label=${t("HTML of the text")} value=${node.inner} check=${within(node.name)} onChange=${change} multiline rows=${6}
    help=${t("Elements in it do not match, so it is shown as it is written.")} />`;
}

function ButtonContent({ node, onChange }) {
  const isPlain = !pieces(node.inner).some((piece) => !piece.tag && piece.text.includes("<"));
  const change = (text) => onChange(withInner(node, isPlain ? encoded(text) : text));
  if (!isPlain) return html`<${Guarded} label=${t("HTML of the button")} value=${node.inner} check=${within(node.name)} onChange=${change} picks />`;
  return html`<${TextInput} label=${t("Text of the button")} value=${decoded(node.inner)} picks onChange=${change} />`;
}

function ImageContent({ node, onChange }) {
  const id = useId();
  const address = attribute(node, "src");
  const alt = attribute(node, "alt");
  const isDecoration = alt === "";
  const shown = shownAt(address);
  const choose = async () => {
    const image = await chooseImage();
    if (!image) return;
    // Twice as many pixels as are shown look sharp everywhere; wider than the mail is never of use.
    const sized = attribute(node, "width") || image.width > 550 ? node : withAttribute(node, "width", `${image.width}px`);
    onChange(withAttribute(sized, "src", image.url));
  };
  return html`
    <div class="actions">${shown && html`<img class="thumbnail" src=${shown} alt="" width="96" height="96" />`}
      <button type="button" onClick=${choose}>${address ? t("Another image") : t("Choose an image")}</button></div>
    <${TextInput} label=${t("Address of the image")} value=${address} mono picks placeholder="https://" onChange=${(value) => onChange(withAttribute(node, "src", value || undefined))}
      help=${address ? undefined : t("Nothing is shown without one.")} invalid=${!address} />
    ${!isDecoration && html`<${TextInput} label=${t("What the image shows")} value=${alt} picks onChange=${(value) => onChange(withAttribute(node, "alt", value || undefined))}
      help=${alt ? t("For those who do not see it: read aloud, and shown while images are blocked.") : t("Say it in a few words: for those who do not see the image, and while images are blocked.")} invalid=${!alt} />`}
    <div class="field check"><label for=${id}><input id=${id} type="checkbox" checked=${isDecoration} onChange=${(event) => onChange(withAttribute(node, "alt", event.target.checked ? "" : undefined))} />
      <span>${t("Only decoration, nothing to tell")}</span></label></div>`;
}

function SocialContent({ node, onChange }) {
  const children = node.children ?? [];
  const links = children.flatMap((child, index) => (child.name === "mj-social-element" ? [index] : []));
  const change = (index, next) => onChange(withChildren(node, children.map((child, nth) => (nth === index ? next : child))));
  const swap = (one, two) => onChange(withChildren(node, children.map((child, nth) => (nth === one ? children[two] : nth === two ? children[one] : child))));
  const remove = (index) => onChange(withChildren(node, children.filter((_, nth) => nth !== index && !(nth === index - 1 && isSpace(children[nth])))));
  const add = () => {
    const space = children.find(isSpace);
    const end = children.length && isSpace(children.at(-1)) ? children.length - 1 : children.length;
    onChange(withChildren(node, [...children.slice(0, end), ...(space ? [space] : []), madeSocial(), ...children.slice(end)]));
  };
  return html`${links.map((index, nth) => {
    const link = children[index];
    const set = (attributeName) => (value) => change(index, withAttribute(link, attributeName, value || undefined));
    const network = attribute(link, "name");
    const pick = async () => {
      const image = await chooseImage();
      if (image) change(index, withAttribute(link, "src", image.url));
    };
    return html`<fieldset key=${nth}><legend>${t("Link {number}", { number: nth + 1 })}</legend>
      <div class="row-of-fields"><${TextInput} label=${t("Its text")} value=${decoded(link.inner)} onChange=${(text) => change(index, withInner(link, encoded(text)))} />
        <${TextInput} label=${t("Its address")} value=${attribute(link, "href")} mono picks onChange=${set("href")} /></div>
      ${network && !attribute(link, "src") && html`<p class="help">${t("Its sign comes from the servers of mailjet.com, which learn who reads the mail. Choose an image of yours instead.")}</p>`}
      <div class="actions"><button type="button" class="small" onClick=${pick}>${t("Image of link {number}", { number: nth + 1 })}</button>
        ${nth > 0 && html`<button type="button" class="small" onClick=${() => swap(index, links[nth - 1])}>${t("Link {number} up", { number: nth + 1 })}</button>`}
        ${links.length > 1 && html`<button type="button" class="small" onClick=${() => remove(index)}>${t("Remove link {number}", { number: nth + 1 })}</button>`}</div>
    </fieldset>`;
  })}
  <div><button type="button" class="small" onClick=${add}>${t("Add a link")}</button></div>`;
}

// A source that is taken once it is whole; until then it waits here. `check(text)` tells what is missing.
function Guarded({ value, check, onChange, ...rest }) {
  const [typed, setTyped] = useState(value);
  const [fault, setFault] = useState(null);
  useEffect(() => {
    setTyped(value);
    setFault(null);
  }, [value]);
  const change = (text) => {
    const missing = isUnfinished(text) ? t("A tag of the template has no end yet.") : check(text);
    setTyped(text);
    setFault(missing);
    if (!missing) onChange(text);
  };
  return html`<${TextInput} ...${rest} value=${typed} onChange=${change} mono help=${fault ?? rest.help} invalid=${Boolean(fault)} />`;
}

// What stands in an element must not end it.
const within = (name) => (text) => {
  const { nodes = [], fault } = parsePart(`<${name}>${text}</${name}>`);
  return fault || nodes.length !== 1 || nodes[0].inner !== text ? t("Elements do not match yet.") : null;
};

function Code({ node, onNodes }) {
  const source = write(node);
  const check = (text) => {
    const { fault } = parsePart(text);
    if (!text.trim()) return t("Nothing is left of the block: delete it instead.");
    return fault ? t("Line {line}: {message}", fault) : null;
  };
  return html`<${Guarded} label=${t("Code")} value=${source} check=${check} onChange=${(text) => onNodes(parsePart(text).nodes)} multiline
    rows=${Math.min(16, Math.max(3, source.split("\n").length + 1))} help=${t("MJML, HTML and tags of the template, as they are written.")} />`;
}
