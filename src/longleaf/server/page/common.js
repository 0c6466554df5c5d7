// Shared by both views: calls to the service, creating elements, formatting numbers.

export const $ = (id) => document.getElementById(id);

/** Create an element; children may be elements or strings, which are never parsed as HTML. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("aria") || name === "role") element.setAttribute(name.replace("_", "-"), value);
    else element[name] = value;
  }
  element.append(...children);
  return element;
}

export function notice(sentence) {
  $("notice").textContent = sentence;
  $("notice").hidden = !sentence;
}

/** Call the service; on an error, show it and return `null`. */
export async function call(path, body, signal) {
  const headers = { "content-type": "application/json" };
  const key = sessionStorage.getItem("longleaf-key");
  if (key) headers.authorization = `Bearer ${key}`;
  const options = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  try {
    const answer = await fetch(path, { ...options, headers, signal });
    const content = await answer.json();
    $("key-form").hidden = answer.status !== 401;
    if (answer.ok) {
      notice("");
      return content;
    }
    if (answer.status !== 401) notice(content.error);
  } catch (error) {
    if (error.name !== "AbortError") notice("The service is not responding.");
  }
  return null;
}

/** Abort earlier calls that are still running; only the latest returns a result. */
export function latest(work) {
  let running = null;
  return async (...given) => {
    running?.abort();
    const mine = (running = new AbortController());
    const result = await work(mine.signal, ...given);
    return mine.signal.aborted ? undefined : result;
  };
}

export const percent = (p) =>
  (p >= 0.9995 ? "100" : p >= 0.1 ? (100 * p).toFixed(0) : p >= 0.001 ? (100 * p).toFixed(1) : "< 0.1") + "\u00a0%";
export const short = (x) => (x >= 100 ? x.toFixed(0) : x >= 0.01 ? x.toFixed(2) : x.toExponential(0));
export const thousands = (n) => n.toLocaleString("en");

export function binBadge(one) {
  const times = one.count === 1 ? "once" : `${thousands(one.count)}×`;
  const title = `occurs ${one.count === 1 ? "once" : one.count + " times"} in training`;
  return make("span", { className: `bin ${one.bin}`, title }, `${one.bin} · ${times}`);
}

export function chip(word, value) {
  const sign = value > 0 ? "+" : "−";
  return make("span", { className: value > 0 ? "chip" : "chip against" },
    `${word} `, make("small", {}, sign + Math.abs(value).toFixed(1)));
}
