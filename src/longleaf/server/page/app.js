import { $, binBadge, call, chip, latest, make, notice, percent, short, thousands } from "./common.js";
import { colour, isBlank, isUnchanged, readText, setUpFields, uncolour } from "./fields.js";
import { setUpTree, showNode } from "./tree.js";

const TYPING_MS = 120;
const MOST_CHIPS = 12;
const LEAST_OF_NAME = 0.05; // smaller contributions would be shown as 0.0
const AUTO = "auto"; // as many tags as are likely

const state = { facts: null, shown: [], answered: false, open: null, marks: new Map(), pinned: null };

// ---------------------------------------------------------------- suggestions

const ask = latest(async (signal) => {
  const k = $("k").value;
  const body = { texts: [readText()], k: k === AUTO ? k : Number(k), tail: Number($("tail").value) };
  return call("v1/suggest", body, signal);
});

async function refresh() {
  if (isBlank()) {
    state.shown = [];
    state.answered = false;
    return draw();
  }
  $("list").classList.add("stale");
  const answer = await ask();
  if (answer === undefined) return; // superseded by a newer request
  $("list").classList.remove("stale");
  if (answer) {
    state.shown = answer.results[0].suggestions;
    state.answered = true;
    draw();
  }
}

function draw() {
  const before = places();
  const shown = [...state.shown];
  if (state.pinned && !shown.some((one) => one.tag === state.pinned.tag)) shown.push(state.pinned);
  if (!shown.some((one) => one.tag === state.open)) close();
  const focused = document.activeElement?.closest?.(".item")?.dataset.tag;
  const old = new Map([...$("list").children].map((item) => [item.dataset.tag, item]));
  $("list").replaceChildren(...shown.map((one) => row(one, old.get(one.tag))));
  if (focused) item(focused)?.querySelector(".toggle").focus();
  $("empty").hidden = (state.answered ? state.shown : shown).length > 0;
  $("empty").textContent = state.answered ? "No tag is likely." : "Nothing to tag yet.";
  slide(before);
}

function row(one, old) {
  const open = state.open === one.tag;
  const name = make("span", { className: "name" }, one.name);
  if (one.name !== one.tag) name.append(" ", make("small", {}, one.tag));
  const fill = make("i");
  fill.style.width = `${100 * (one.probability ?? 0)}%`;
  const numbers = one.score === undefined ? "not among the suggestions" : `score ${short(one.score)}`;
  const toggle = make("button", { className: "toggle", aria_expanded: open, onclick: () => choose(one.tag) },
    name, make("span", { className: "chance", title: "probability" },
      one.probability === undefined ? "" : percent(one.probability)),
    make("span", { className: "more" }, numbers), binBadge(one), make("span", { className: "bar" }, fill));
  const line = make("div", { className: "line" }, toggle);
  if (state.facts.feedback) line.append(make("div", { className: "marks" },
    mark(one, "accepted", "✓", "Accept"), mark(one, "rejected", "✗", "Reject")));
  const whole = make("li", { className: `item ${open ? "open" : ""} ${state.marks.get(one.tag) ?? ""}` }, line);
  whole.dataset.tag = one.tag;
  const words = old?.querySelector(".words");
  if (open && words) whole.append(words);
  return whole;
}

const item = (tag) => [...$("list").children].find((one) => one.dataset.tag === tag);
const places = () => new Map([...$("list").children].map((one) => [one.dataset.tag, one.offsetTop]));

/** Animate items that moved to their new position. */
function slide(before) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  for (const one of $("list").children) {
    const was = before.get(one.dataset.tag);
    const frames = was === undefined ? [{ opacity: 0 }, { opacity: 1 }]
      : [{ transform: `translateY(${was - one.offsetTop}px)` }, { transform: "none" }];
    if (was !== one.offsetTop) one.animate(frames, { duration: 220, easing: "ease-out" });
  }
}

// ---------------------------------------------------------------- explanation of a suggestion

const why = latest((signal, text, tag) => call("v1/explain", { text, tag }, signal));

async function choose(tag) {
  const again = state.open === tag;
  close();
  if (again) return draw();
  state.open = tag;
  draw();
  await explain();
}

async function explain() {
  const text = readText();
  const found = state.open && !isBlank() ? await why(text, state.open) : null;
  if (!found || found.tag !== state.open || !isUnchanged(text)) return;
  const listed = found.words.slice(0, MOST_CHIPS);
  const rest = found.words.length - listed.length;
  const words = make("div", { className: "words" }, ...named(found.match),
    ...meant(found.meaning), ...listed.map(([word, value]) => chip(word, value)));
  if (!listed.length) words.append("No word of the text supports it or counts against it.");
  const level = `decided at level ${found.decided} of ${found.levels.length}`;
  words.append(make("p", {}, `${rest > 0 ? `${rest} more words; ` : ""}${percent(found.baseline)} for an empty text; `
    + `${percent(found.probability)} for this one; ${level}.`));
  words.append(...similar(found.records));
  item(found.tag)?.querySelector(".words")?.remove();
  item(found.tag)?.append(words);
  colour(found.spans);
}

/** The tag's name in the text, if it adds anything; only models that know names have it. */
const named = (match) => (Math.abs(match?.value ?? 0) < LEAST_OF_NAME ? []
  : [chip(`the name “${match.name}” in the ${match.field || "text"}`, match.value)]);

/** What the meaning of the whole text adds, as one line; only models with an encoder have it. */
const meant = (value) => (value === null ? [] : [make("p", { className: "meaning", title: "the text as a whole, beside its words" },
  `meaning: ${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(1)}`)]);

/** Training records that carry the tag; only models that keep them have any. */
function similar(records) {
  if (!records.length) return [];
  const line = (one) => make("li", {}, make("span", { className: "share", title: "similarity to the text" },
    one.similarity.toFixed(2)), make("span", { className: "title" }, one.title, " ", make("small", {}, one.id)));
  return [make("p", {}, "Similar training records with this tag:"),
    make("ol", { className: "records" }, ...records.map(line))];
}

function close() {
  state.open = null;
  for (const words of document.querySelectorAll("#list .words")) words.remove();
  uncolour();
}

// ---------------------------------------------------------------- feedback

function mark(one, kind, sign, word) {
  const pressed = state.marks.get(one.tag) === kind;
  const label = `${word} ${one.name}`;
  return make("button", { className: "mark", title: word, aria_label: label, aria_pressed: pressed,
    onclick: () => setMark(one.tag, kind) }, sign);
}

function setMark(tag, kind) {
  if (state.marks.get(tag) === kind) state.marks.delete(tag);
  else state.marks.set(tag, kind);
  draw();
  drawMarks();
}

const marked = (kind) => [...state.marks].filter(([, one]) => one === kind).map(([tag]) => tag);

function drawMarks(sentence) {
  const [accepted, rejected] = [marked("accepted").length, marked("rejected").length];
  $("keep").hidden = !sentence && !state.marks.size;
  $("keep-button").hidden = !state.marks.size;
  $("marks").textContent = sentence ?? `${accepted} accepted, ${rejected} rejected`;
}

async function keep() {
  const body = { text: readText(), accepted: marked("accepted"), rejected: marked("rejected") };
  if (await call("v1/feedback", body)) {
    state.marks.clear();
    draw();
    drawMarks("Saved. Thank you.");
  }
}

// ---------------------------------------------------------------- search for a tag

const search = latest((signal, query) => call(`v1/tags?limit=6&q=${encodeURIComponent(query)}`, undefined, signal));

async function lookUp() {
  const query = $("ask").value.trim();
  const answer = query ? await search(query) : { tags: [] };
  if (!answer || query !== $("ask").value.trim()) return;
  $("no-tag").hidden = !query || answer.tags.length > 0;
  $("no-tag").textContent = `No tag matches “${query}”.`;
  $("found").replaceChildren(...answer.tags.map((one) =>
    make("li", {}, make("button", { onclick: () => pin(one) }, one.name, binBadge(one)))));
}

function pin(one) {
  state.pinned = one;
  $("ask").value = "";
  $("found").replaceChildren();
  if (state.open === one.tag) close();
  choose(one.tag);
}

// ---------------------------------------------------------------- events

let typing = 0;
function typed() {
  clearTimeout(typing);
  state.marks.clear();
  state.pinned = null;
  drawMarks();
  close();
  typing = setTimeout(refresh, TYPING_MS);
}

function turned() {
  $("tail-value").textContent = Number($("tail").value).toFixed(2).replace(/\.?0+$/, "");
  refresh();
}

function keyed(event) {
  const here = event.target.closest(".item");
  if (!here || event.ctrlKey || event.metaKey || event.altKey) return;
  const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
  const kind = { a: "accepted", r: "rejected" }[event.key.toLowerCase()];
  if (step) here[step]?.querySelector(".toggle").focus();
  else if (kind && state.facts.feedback) setMark(here.dataset.tag, kind);
  else return;
  event.preventDefault();
}

function show(name) {
  $("keys").hidden = name !== "suggest";
  for (const view of ["suggest", "tree"]) {
    $(view).hidden = view !== name;
    $(`tab-${view}`).setAttribute("aria-selected", view === name);
    $(`tab-${view}`).tabIndex = view === name ? 0 : -1;
  }
  if (name === "tree") showNode(0);
}

async function start() {
  const facts = (state.facts = await call("v1/model"));
  if (!facts) return;
  $("facts").textContent = `${facts.name}: ${thousands(facts.labels)} tags, trained on ${thousands(facts.rows)} rows`;
  $("mark-keys").hidden = !facts.feedback;
  const texts = facts.accepts.includes("texts");
  if (!texts) notice("This model accepts vectors, not texts: use the API. You can browse its label tree here.");
  $("text").disabled = $("tail").disabled = $("ask").disabled = !texts;
  setUpFields(facts.fields, typed);
  setUpTree(facts);
  if (!texts) show("tree");
  else turned();
}

$("tail").addEventListener("input", turned);
$("k").addEventListener("change", refresh);
$("ask").addEventListener("input", lookUp);
$("list").addEventListener("keydown", keyed);
$("keep-button").addEventListener("click", keep);
$("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("longleaf-key", $("key").value);
  start();
});
for (const [view, other] of [["suggest", "tree"], ["tree", "suggest"]]) {
  $(`tab-${view}`).addEventListener("click", () => show(view));
  $(`tab-${view}`).addEventListener("keydown", (event) => {
    if (!["ArrowLeft", "ArrowRight"].includes(event.key)) return;
    show(other);
    $(`tab-${other}`).focus();
  });
}
start();
