// Text as it is, but for what a reader could not see or would see elsewhere: control characters, marks of direction, lone
// surrogates, invisible spaces. These show as their number, so that no frame can disguise another.
const HIDDEN = new RegExp(
  "[\\0-\\x08\\x0b-\\x1f\\x7f-\\x9f\\xad\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e" +
  "\\u2060-\\u206f\\u3164\\ufeff\\uffa0\\ufff0-\\ufffb\\u{e0000}-\\u{e0fff}]|\\p{Cs}", "gu");

function visible(text) {
  if (text.search(HIDDEN) < 0) return [document.createTextNode(text)];
  const nodes = [];
  let from = 0;
  for (const found of text.matchAll(HIDDEN)) {
    if (found.index > from) nodes.push(document.createTextNode(text.slice(from, found.index)));
    const shown = document.createElement("span");
    shown.className = "hidden-char";
    shown.textContent = named(found[0]);
    nodes.push(shown);
    from = found.index + found[0].length;
  }
  if (from < text.length) nodes.push(document.createTextNode(text.slice(from)));
  return nodes;
}

function named(character) {
  return "U+" + character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
}

// The same in plain text, for attributes and the title of the page.
function wellFormed(text) {
  return text.replace(HIDDEN, named);
}

// Prose with `code` in it, as Markdown has it; nodes.
function prose(text) {
  const parts = text.split("`");
  if (parts.length < 3 || parts.length % 2 === 0) return visible(text);
  return parts.flatMap((part, i) => i % 2 ? el("code", {}, part) : visible(part));
}

// `text` with every place marked where `query` stands in it; nodes.
function highlighted(text, query) {
  const at = query ? text.toLowerCase().indexOf(query.toLowerCase()) : -1;
  // Lower case may be longer than the text (a Turkish I): then there is nothing to mark, and the text stays as it is.
  if (at < 0 || text.toLowerCase().length !== text.length) return visible(text);
  const end = at + query.length;
  const mark = document.createElement("mark");
  mark.append(...visible(text.slice(at, end)));
  return [...visible(text.slice(0, at)), mark, ...visible(text.slice(end))];
}
