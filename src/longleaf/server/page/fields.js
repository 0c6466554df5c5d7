// The inputs of the text: one for each field of the model, the last of which is the large one. Coloured words lie under
// each of them.
import { $, make } from "./common.js";

const FAINT = 0.08; // words weaker than this share of the strongest of their field are not coloured,
const FAINTEST = 0.02; // nor those weaker than this share of the strongest of all: the words of a long text share its effect

let names = []; // none: the model reads plain texts
let editors = [editor("", $("text"), $("backdrop"))];

/** Create the inputs of a model's fields. */
export function setUpFields(fields, onInput) {
  names = fields;
  const short = fields.slice(0, -1).map(shortEditor);
  const text = $("text");
  text.oninput = onInput;
  $("text-label").textContent = fields.at(-1) ?? "Text";
  $("fields").replaceChildren(...short.flatMap(({ label, whole }) => [label, whole]));
  editors = [...short.map((one) => one.editor), editor(fields.at(-1) ?? "", text, $("backdrop"))];
  for (const one of short) {
    one.editor.area.oninput = () => {
      one.editor.backdrop.textContent = `${one.editor.area.value}\n`; // it gives the input its height
      onInput();
    };
  }
  if (short.length && document.activeElement === text && !text.value) editors[0].area.focus();
}

function shortEditor(name, place) {
  const id = `field-${place}`;
  const backdrop = make("div", { className: "backdrop", aria_hidden: true }, "\n");
  const area = make("textarea", { id, rows: 1, spellcheck: false });
  const label = make("label", { htmlFor: id }, name);
  return { label, whole: make("div", { className: "editor" }, backdrop, area), editor: editor(name, area, backdrop) };
}

function editor(name, area, backdrop) {
  area.onscroll = () => (backdrop.scrollTop = area.scrollTop);
  return { name, area, backdrop };
}

/** The text as the service takes it: a string, or an object of fields. */
export const readText = () =>
  names.length ? Object.fromEntries(editors.map((one) => [one.name, one.area.value])) : editors[0].area.value;
export const isUnchanged = (text) => JSON.stringify(text) === JSON.stringify(readText());
export const isBlank = () => editors.every((one) => !one.area.value.trim());

/** Colour words; of a text with fields, each field has its own spans. */
export function colour(spans) {
  const ofField = (one) => (Array.isArray(spans) ? spans : spans[one.name] ?? []);
  const strongest = strongestOf(editors.flatMap(ofField));
  const marks = editors.map((one) => colourField(one, ofField(one), strongest));
  $("legend").hidden = !marks.some(Boolean);
}

const strongestOf = (spans) => spans.reduce((most, [, , value]) => Math.max(most, Math.abs(value)), 0);

export function uncolour() {
  for (const one of editors) one.backdrop.textContent = one.area.id === "text" ? "" : `${one.area.value}\n`;
  $("legend").hidden = true;
}

/** The service counts code points, the browser counts UTF-16 code units. */
function colourField({ area, backdrop }, spans, strongest) {
  const text = area.value;
  const starts = /[\ud800-\udfff]/.test(text) ? codePoints(text) : null;
  const at = (place) => (starts ? starts[place] : place);
  const least = Math.max(FAINT * strongestOf(spans), FAINTEST * strongest);
  const pieces = [];
  let done = 0;
  for (const [begin, end, value] of spans) {
    if (!value || Math.abs(value) < least) continue;
    const share = Math.abs(value) / strongest;
    const mark = make("mark", { className: value > 0 ? "for" : "against" }, text.slice(at(begin), at(end)));
    mark.style.setProperty("--strength", (0.12 + 0.6 * share).toFixed(2));
    pieces.push(text.slice(done, at(begin)), mark);
    done = at(end);
  }
  backdrop.replaceChildren(...pieces, text.slice(done), "\n");
  backdrop.scrollTop = area.scrollTop;
  return pieces.length;
}

function codePoints(text) {
  const starts = [];
  let place = 0;
  for (const character of text) {
    starts.push(place);
    place += character.length;
  }
  return [...starts, place];
}
