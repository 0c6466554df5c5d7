import { $, binBadge, call, chip, latest, make, percent, thousands } from "./common.js";
import { isBlank, readText } from "./fields.js";

let texts = false;

const fetchNode = latest((signal, tree, node) => {
  const body = { tree, node };
  if (texts && !isBlank()) body.text = readText();
  return call("v1/tree", body, signal);
});

export function setUpTree(facts) {
  texts = facts.accepts.includes("texts");
  $("which").hidden = facts.trees < 2;
  $("which-tree").replaceChildren(...Array.from({ length: facts.trees }, (_, i) =>
    make("option", { value: i }, String(i + 1))));
  $("which-tree").onchange = () => showNode(0);
}

export async function showNode(node) {
  const view = await fetchNode(Number($("which-tree").value || 0), node);
  if (!view) return;
  $("path").replaceChildren(...view.path.map((one) =>
    make("button", { onclick: () => showNode(one.node) }, title(one))), make("span", { aria_current: "page" }, title(view)));
  $("node").replaceChildren(...describe(view));
  const sorted = "probability" in (view.children[0] ?? {}) ? "most probable for your text first" : "most frequent first";
  const more = view.more_children ? `, ${thousands(view.more_children)} more not shown` : "";
  $("children-title").textContent = view.children.length ? `${count(view.children.length, "branch", "branches")}, ${sorted}${more}` : "";
  $("children").replaceChildren(...view.children.map(branch));
}

const count = (n, one, many) => (n === 1 ? `1 ${one}` : `${thousands(n)} ${many}`);

function title(view) {
  if (view.label) return view.label.name;
  return view.node === 0 ? "root" : view.words.slice(0, 2).map(([word]) => word).join(", ") || `node ${view.node}`;
}

const chips = (view, most) => make("div", { className: "words" }, ...view.words.slice(0, most).map(([word, value]) => chip(word, value)));

function describe(view) {
  const elements = [make("h2", {}, view.label ? `The tag ${view.label.name}` : `${count(view.labels, "tag", "tags")} below`)];
  if (view.words.length) elements.push(make("span", { className: "caption" }, "Words that lead here"), chips(view, 8));
  const best = view.best.map((one) => make("li", {}, make("span", {}, one.name,
    one.probability === undefined ? "" : ` ${percent(one.probability)}`), binBadge(one)));
  elements.push(make("span", { className: "caption" }, view.best.some((one) => "probability" in one) ? "Best tags for your text" : "Most frequent tags"),
    make("ul", { className: "best" }, ...best));
  return elements;
}

function branch(child) {
  const chance = child.probability === undefined ? "" : percent(child.probability);
  const names = child.best.map((one) => one.name).join(", ");
  const inside = child.label ? binBadge(child.label)
    : make("span", {}, `${count(child.labels, "tag", "tags")}: ${names}${child.labels > child.best.length ? ", …" : ""}`);
  return make("li", {}, make("button", { className: "toggle", onclick: () => showNode(child.node) },
    make("span", { className: "name" }, title(child)), make("span", { className: "chance" }, chance),
    make("span", { className: "more" }, inside), chips(child, 5)));
}
