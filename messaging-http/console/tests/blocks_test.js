import { attribute, attributes, parse, parsePart, withAttribute, write } from "../blocks/mjml.js";
import { decoded, encoded, isUnfinished, pieces } from "../blocks/language.js";
import { ADDED, beginning, kindOf, made, nameOf } from "../blocks/kinds.js";
import { History } from "../blocks/history.js";
import { words } from "../blocks/rich.js";
import * as tree from "../blocks/tree.js";
import { toDocument, toHtml } from "../blocks/schema.js";
import { expressionOf } from "../blocks/picker.js";
import { equal, holds } from "./check.js";

const around = (body) => `<mjml><mj-head><mj-title>{{ a }}</mj-title></mj-head>\n  <mj-body width="600px">${body}</mj-body>\n</mjml>\n`;

// What people write by hand, and what kinds of blocks are in it, in the order of the document.
const WRITTEN = [
  ["", []],
  ["\n    <mj-section>\n      <mj-column>\n        <mj-text>Hello</mj-text>\n      </mj-column>\n    </mj-section>\n  ", ["section", "column", "text"]],
  ["<mj-section><mj-column><mj-text><h1>Big</h1></mj-text></mj-column></mj-section>", ["section", "column", "heading"]],
  ["<mj-section ><mj-column/><mj-column></mj-column></mj-section >", ["columns", "column", "column"]],
  ["<mj-section css-class='a product-row b'><mj-column width=\"30%\"/></mj-section>", ["product", "column"]],
  ["{% if a < b and c > \"</mj-body>\" %}<mj-section/>{% else %}<mj-section></mj-section>{% endif %}", ["tag", "section", "tag", "section", "tag"]],
  ["{# </mj-body> #}<!-- <mj-section> -->{% raw %}{{ <mj-text> }}{% endraw %}", ["tag", "comment", "tag"]],
  ["<mj-section background-color=\"{{ \"#fff\" if x > 1 else '#000' }}\" data-x=y flag><mj-column><mj-divider/></mj-column></mj-section>", ["section", "column", "divider"]],
  ["<mj-section><mj-column><mj-text>1 < 2 && <br> <img src=x> </p> {{ '</mj-text>' }}</mj-text></mj-column></mj-section>", ["section", "column", "text"]],
  ["<mj-wrapper><mj-section><mj-group><mj-column><mj-spacer height='3px'/></mj-column></mj-group></mj-section></mj-wrapper>", ["wrapper", "section", "group", "column", "spacer"]],
  ["<mj-hero><mj-button href=\"#\">Go</mj-button></mj-hero><mj-raw><div><script>a < b</script></div></mj-raw>", ["hero", "button", "raw"]],
  ["<mj-section><mj-column><mj-social><mj-social-element name=\"x\">X</mj-social-element></mj-social><mj-table><tr><td>1</td></tr></mj-table></mj-column></mj-section>", ["section", "column", "social", "element"]],
  ["<mj-accordion><mj-accordion-element><mj-accordion-title>A</mj-accordion-title></mj-accordion-element></mj-accordion>", ["element"]],
  ["words that stand <unknown a='>'>here</unknown> \t\r\n <![CDATA[ </mj-body> ]]> ü € 😀", ["raw", "element", "raw", "raw"]],
  ["<mj-section>\r\n\t<mj-column>\r\n\t</mj-column>\r\n</mj-section>", ["section", "column"]],
];

export function what_is_read_is_written_again_byte_for_byte() {
  for (const [body, kinds] of WRITTEN) {
    const source = around(body);
    const doc = parse(source);
    holds(!doc.fault, `${body}: ${JSON.stringify(doc.fault)}`);
    equal(write(doc), source);
    equal(tree.places(doc.body).map((place) => kindOf(tree.at(doc.body, place))), kinds);
  }
  equal(write(parse(beginning())), beginning());
}

// Elements that do not match, with the line on which that is seen.
const BROKEN = [
  ["<mjml></mjml>", 1], ["", 1], [around("<mj-section>"), 2], [around("\n</mj-section>"), 3], [around("<mj-text>\n"), 2],
  [around("<mj-section>{% if a %}</mj-column></mj-section>"), 2], [around("<mj-text a=\"></mj-text>"), 2], ["<mjml><mj-body>", 1],
  [`<mj-body>${"<mj-wrapper>".repeat(80)}${"</mj-wrapper>".repeat(80)}</mj-body>`, 1],
];

export function what_does_not_match_is_told_with_its_line() {
  for (const [source, line] of BROKEN) equal([source.slice(0, 60), parse(source).fault?.line], [source.slice(0, 60), line]);
}

// A generator with a seed, so that what fails can be seen again.
function randomly(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return (state >> 8) % below;
  };
}

const SPACES = ["", " ", "\n", "\n    ", "\r\n\t", "\n\n  "];
const TEXTS = ["Hello", "a &amp; b", "{{ name | default(\"you\") }}", "{% if a < b %}x{% endif %}", "<b>bold</b>", "<p style='color:red'>p</p>", "é😀", "<!-- c -->", "<br />", "{{ '}}' }}", "a > b"];
const ATTRIBUTES = ["", " color=\"#fff\"", " css-class='x y'", " href=\"{{ url | default(\"#\") }}\"", " padding = '1px'", " data-a", " alt=\"a &quot;b&quot; <c>\"", "\n   width=\"50%\""];
const BETWEEN = ["", "", "", "<!-- between -->", "{% for x in xs %}", "{% endfor %}", "{# note #}"];

function randomDocument(random) {
  const one = (list) => list[random(list.length)];
  const many = (most, make) => Array.from({ length: random(most + 1) }, make).join("");
  const text = () => many(4, () => one(TEXTS));
  const open = (name) => `<${name}${one(ATTRIBUTES)}${one(ATTRIBUTES)}`;
  const leaf = () => one([
    () => `${open("mj-text")}>${text()}</mj-text>`, () => `${open("mj-button")}>${text()}</mj-button>`, () => `${open("mj-image")} />`,
    () => `${open("mj-divider")}/>`, () => `${open("mj-unknown")}>${text()}</mj-unknown>`, () => `<mj-raw>${text()}</mj-raw>`,
  ])();
  const column = () => `${open("mj-column")}>${many(3, () => one(SPACES) + one(BETWEEN) + leaf())}${one(SPACES)}</mj-column>`;
  const section = () => `${open("mj-section")}>${many(3, () => one(SPACES) + column())}${one(SPACES)}</mj-section>`;
  return around(many(4, () => one(SPACES) + one(BETWEEN) + one([section, section, leaf])()) + one(SPACES));
}

export function any_document_is_the_same_after_reading_and_moves_lose_nothing() {
  const random = randomly(7);
  const letters = (source) => [...source.replace(/\s+/g, "")].sort().join("");
  for (let round = 0; round < 20; round += 1) {
    const source = randomDocument(random);
    const doc = parse(source);
    holds(!doc.fault, `${source}: ${JSON.stringify(doc.fault)}`);
    equal(write(doc), source);
    for (const place of tree.places(doc.body)) {
      const node = tree.at(doc.body, place);
      for (const step of [-1, 1]) {
        const next = tree.moved(doc.body, place, step);
        if (!next) continue;
        const moved = write({ ...doc, body: next.body });
        equal(letters(moved), letters(source));
        equal(write(tree.at(next.body, next.place)), write(node));
        holds(!parse(moved).fault, moved);
      }
      const without = write({ ...doc, body: tree.removed(doc.body, place) });
      holds(!parse(without).fault, without);
      holds(letters(without).length === letters(source).length - letters(write(node)).length, `${without} after ${write(node)}`);
    }
  }
}

const body = (source) => parse(around(source)).body;
const text = (source, next) => write({ ...parse(around(source)), body: next }).split('width="600px">')[1].split("</mj-body>")[0];

export function what_is_added_stands_like_its_neighbours() {
  const source = "\n    <mj-section>\n      <mj-column>\n        <mj-text>A</mj-text>\n        <mj-text>B</mj-text>\n      </mj-column>\n    </mj-section>\n  ";
  const spacer = (space) => made("spacer", space, false);
  const after = tree.insertedAfter(body(source), [1, 1, 1], spacer);
  equal(text(source, after.body), source.replace("A</mj-text>\n", "A</mj-text>\n        <mj-spacer height=\"24px\" />\n"));
  equal(write(tree.at(after.body, after.place)), "<mj-spacer height=\"24px\" />");
  const last = tree.appended(body(source), [1, 1], spacer);
  equal(text(source, last.body), source.replace("B</mj-text>\n", "B</mj-text>\n        <mj-spacer height=\"24px\" />\n"));
  equal(text(source, tree.removed(last.body, last.place)), source);
  const close = "<mj-section><mj-column><mj-text>A</mj-text></mj-column></mj-section>";
  equal(text(close, tree.appended(body(close), [0, 0], spacer).body), close.replace("</mj-column>", "<mj-spacer height=\"24px\" /></mj-column>"));
  const empty = "<mj-section><mj-column/></mj-section>";
  equal(text(empty, tree.appended(body(empty), [0, 0], spacer).body), "<mj-section><mj-column>\n        <mj-spacer height=\"24px\" />\n      </mj-column></mj-section>");
}

export function a_block_is_put_between_two_tags() {
  const source = "\n    <mj-section>\n    </mj-section>\n    <mj-section/>\n  ";
  const { body: next, place } = tree.wrapped(body(source), [1], ["{% if a %}", "{% endif %}"]);
  equal(text(source, next), "\n    {% if a %}\n    <mj-section>\n    </mj-section>\n    {% endif %}\n    <mj-section/>\n  ");
  equal(tree.at(next, place).source, "{% if a %}");
  equal(text("<mj-raw/>", tree.wrapped(body("<mj-raw/>"), [0], ["{% if a %}", "{% endif %}"]).body), "{% if a %}<mj-raw/>{% endif %}");
}

export function every_kind_that_is_added_is_known_again() {
  for (const [kind] of ADDED) {
    for (const isAlone of [false, true]) {
      const node = made(kind, "    ", isAlone);
      const found = kindOf(isAlone && !["columns", "product"].includes(kind) ? tree.at(tree.at(node, [1]), [1]) : node);
      if (!isAlone || !["columns", "product"].includes(kind)) equal(found, kind);
    }
  }
}

export function content_goes_on_from_column_to_column() {
  const source = "<mj-section><mj-column><mj-text>A</mj-text></mj-column><mj-column><mj-text>B</mj-text></mj-column></mj-section><mj-section><mj-column/></mj-section>";
  const once = tree.moved(body(source), [0, 0, 0], 1);
  equal(words(text(source, once.body)), "AB");
  equal(once.place.slice(0, 2), [0, 1]);
  const down = tree.moved(once.body, tree.places(once.body).at(-3), 1);
  equal(down.place.slice(0, 2), [1, 0]);
  equal(tree.moved(body(source), [0, 0, 0], -1), null);
  equal(tree.movedTo(body(source), [0, 0, 0], { before: [1] }), null);
  equal(tree.movedTo(body(source), [0], { end: [0, 1] }), null);
  const two = tree.withColumns(body(source), [0], 1, () => parsePart("<mj-column></mj-column>").nodes[0]);
  equal(tree.columnsOf(two, [0]).length, 1);
  equal(words(text(source, two)), "AB");
}

// An opening tag, an attribute, its new value, and the tag after it.
const CHANGES = [
  ["<mj-image src='a' />", "src", "b", "<mj-image src='b' />"],
  ["<mj-image />", "alt", "a \"b\" <c> & d", "<mj-image alt=\"a &quot;b&quot; &lt;c&gt; &amp; d\" />"],
  ["<mj-image\n  src=\"a\"\n  alt=\"b\"/>", "src", undefined, "<mj-image\n  alt=\"b\"/>"],
  ["<mj-button href=\"{{ a | default(\"x\") }}\">", "href", "{{ b | default(\"y\") }}?a=1&b=2", "<mj-button href=\"{{ b | default(\"y\") }}?a=1&amp;b=2\">"],
  ["<mj-text width=5>", "width", "6", "<mj-text width=\"6\">"],
  ["<mj-text {% if a %}color=\"red\"{% endif %}>", "color", "blue", "<mj-text {% if a %}color=\"blue\"{% endif %}>"],
  ["<mj-text>", "color", undefined, "<mj-text>"],
  ["<mj-text data-color='a' color='b'>", "color", undefined, "<mj-text data-color='a'>"],
];

export function a_change_of_an_attribute_touches_nothing_else() {
  for (const [open, name, value, expected] of CHANGES) {
    const next = withAttribute({ name: "x", open, inner: "", close: "" }, name, value);
    equal(next.open, expected);
    equal(attribute(next, name), value);
  }
  equal(attributes("<a b c='1' d = \"2\">").map(({ name, value }) => [name, value]), [["b", ""], ["c", "1"], ["d", "2"]]);
}

export function texts_are_read_and_written_around_tags() {
  equal(pieces("a {{ b['}}'] }} {% raw %}{{ x }}{% endraw %}{# c").map((piece) => piece.text), ["a ", "{{ b['}}'] }}", " ", "{% raw %}{{ x }}{% endraw %}", "{# c"]);
  equal(encoded("{{ a }} {{ b"), "{{ a }} &#123;{ b");
  for (const plain of ["a < b & c > d", "{{ a < b & c }}", "{{ begun & {% not {# ended", "{{{ a }}", "© &unknown; \u00a0", "\"'"]) equal(decoded(encoded(plain, '"')), plain);
  equal(["{{ a }}", "{ a", "{% if a %}{{ b", "{# c", "}} x"].map(isUnfinished), [false, false, true, true, false]);
  equal(expressionOf("contact.email", "a \"b\" \\"), "{{ contact.email | default(\"a \\\"b\\\" \\\\\") }}");
  equal(expressionOf("event.cart_id", " "), "{{ event.cart_id }}");
}

// HTML of texts, and what it is once it was open and written again.
const RICH = [
  ["Hi <b>bold</b> and <i>italic</i>"], ["<p>One</p>\n<p style=\"text-align: center\">Two</p>"], ["<h2 style=\"margin: 0\">A {{ x | default(\"y\") }}</h2>"],
  ["<ul><li>One</li><li><strong>Two</strong></li></ul>"], ["<ol start=\"3\"><li>{{ a }}</li></ol>"], ["A<br />B"], ["A &amp; B &lt; C"],
  ["<a href=\"{{ url }}?a=1&amp;b=2\" target=\"_blank\">Go</a>"], ["<span style=\"color: #ff0000\">red</span>"], ["<span style=\"font-size: 9px\">small</span> text"],
  ["{% if a < b %}yes{% else %}no{% endif %}"], ["<p>a</p>\n{% if x %}\n<p>b</p>\n{% endif %}"], ["<table><tr><td>1</td></tr></table>"],
  ["<b class=\"x\">kept</b>"], ["<ul>{% for x in xs %}<li>{{ x }}</li>{% endfor %}</ul>"], ["a <!-- note --> b"], ["<img src=\"x\" onerror=\"run()\"> x"],
  ["  <p>\n  spaced   out\n</p>  ", "<p>spaced out</p>"], ["<a href=\"#\"><b>x</b></a>y"], ["<div><p>a</p></div>"], ["<p>a</p><div>b</div>", "<p>a</p>\n<div>b</div>"], [""],
];

export function rich_text_loses_nothing() {
  for (const [source, expected = source] of RICH) {
    const doc = toDocument(source);
    doc.check();
    equal(toHtml(doc), expected);
    equal(toHtml(toDocument(toHtml(doc))), expected);
  }
  equal(["<b>", "</p>", "<a><b></a></b>", "<p"].map(toDocument), [null, null, null, null]);
}

export function changes_are_undone_and_done_again() {
  const history = new History();
  history.note("a", "typing", 0);
  history.note("ab", "typing", 100);
  history.note("abc", "other", 200);
  equal([history.undo("abcd"), history.undo("abc"), history.undo("a")], ["abc", "a", undefined]);
  equal([history.redo("a"), history.redo("abc"), history.redo("abcd")], ["abc", "abcd", undefined]);
  history.undo("abcd");
  history.note("abc", null, 9000);
  equal(history.canRedo, false);
}

export function names_tell_what_a_block_is() {
  const doc = body("<mj-section><mj-column><mj-navbar></mj-navbar><mj-text><p>x</p></mj-text></mj-column></mj-section>");
  equal(tree.places(doc).map((place) => nameOf(tree.at(doc, place))), ["Section", "Column", "navbar", "Text"]);
}
