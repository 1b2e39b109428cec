"use strict";
// Elements of pages, and files that a reader saves.
// Whatever came from files is shown as text: nothing here reads it as markup.
const byId = (id) => document.getElementById(id);
const unpack = async (element) => {
  const bytes = Uint8Array.from(atob(element.textContent), (mark) => mark.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
};
const make = (name, attributes, ...inside) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "on") for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null) element.setAttribute(key, value);
  }
  element.append(...inside.filter((part) => part !== null));
  return element;
};
const button = (text, act, attributes) => make("button", { type: "button", on: { click: act }, ...attributes }, text);
const exact = (text, name = "bdi") => make(name, { class: "exact" }, text);
const store = (name, type, text) => {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = make("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  URL.revokeObjectURL(url);
};
const LONG = 700;
// Evidence counts characters, and so must what cuts the text into pieces.
const marked = (text, ranges) => {
  const letters = Array.from(text);
  const parts = [];
  let from = 0;
  for (const [start, end] of [...ranges].sort((a, b) => a[0] - b[0])) {
    if (end <= from) continue;
    const low = Math.max(start, from);
    parts.push(letters.slice(from, low).join(""), make("mark", {}, letters.slice(low, end).join("")));
    from = end;
  }
  parts.push(letters.slice(from).join(""));
  return parts;
};
const literal = (text, wanted) => {
  const [plain, small] = [text.toLowerCase(), wanted.toLowerCase()];
  if (!small || plain.length !== text.length) return [];
  const at = plain.indexOf(small);
  const before = Array.from(text.slice(0, at)).length;
  return at < 0 ? [] : [[before, before + Array.from(text.slice(at, at + small.length)).length]];
};
const body = (text, ranges) => {
  if (!text) return make("p", { class: "soft" }, "no text");
  const whole = make("p", { class: "document-text", dir: "auto" }, ...marked(text, ranges));
  if (text.length <= LONG) return whole;
  whole.classList.add("short");
  const more = button("Show all", () => more.replaceWith() || whole.classList.remove("short"), { class: "more" });
  return make("div", {}, whole, more);
};
