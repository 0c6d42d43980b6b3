// Any JSON value as a reader sees it: tables of objects, lists, values. For what other commands put into the report.

const MOST_TABLE = 500;

function tree(value, depth = 0) {
  if (depth > 10 && value !== null && typeof value === "object") return el("code", {}, JSON.stringify(value));
  if (Array.isArray(value)) return value.length && value.every(isObject) ? rowsOf(value, depth) : listed(value, depth);
  if (isObject(value)) return listedKeys(value, depth);
  return el("span", {}, value === null ? "\u2013" : String(value));
}

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

function listed(value, depth) {
  if (!value.length) return el("span", { cls: "muted" }, "none");
  if (value.every((each) => each === null || typeof each !== "object")) return el("span", {}, value.slice(0, MOST_TABLE).join(", "), rest(value));
  return el("ul", {}, value.slice(0, MOST_TABLE).map((each) => el("li", {}, tree(each, depth + 1))), rest(value));
}

function listedKeys(value, depth) {
  return el("dl", { cls: "facts" }, Object.entries(value).slice(0, MOST_TABLE).map(([key, inner]) => {
    const big = isObject(inner) && Object.keys(inner).length > 6;
    const size = big ? Object.keys(inner).length : 0;
    return [el("dt", {}, words(key)),
      el("dd", {}, big ? opened(plural(size, "entry", "entries"), () => tree(inner, depth + 1)) : depth > 8 ? JSON.stringify(inner) : tree(inner, depth + 1))];
  }));
}

function rowsOf(rows, depth) {
  const columns = [...new Set(rows.slice(0, MOST_TABLE).flatMap((row) => Object.keys(row)))];
  return el("div", { cls: "scroll", tabindex: "0", role: "group", "aria-label": "Table" }, el("table", {},
    el("thead", {}, el("tr", {}, columns.map((name) => el("th", { scope: "col" }, words(name))))),
    el("tbody", {}, rows.slice(0, MOST_TABLE).map((row) => el("tr", {}, columns.map((name) =>
      el("td", {}, row[name] === undefined ? "" : tree(row[name], depth + 1))))))), rest(rows));
}

const rest = (value) => value.length > MOST_TABLE && el("p", { cls: "muted" }, `and ${(value.length - MOST_TABLE).toLocaleString("en")} more in the JSON`);
const words = (key) => key.replace(/_/g, " ");

// A part that is built when it is opened.
function opened(summary, make, props) {
  const node = el("details", props || {}, el("summary", {}, summary));
  node.addEventListener("toggle", () => { if (node.open && node.children.length === 1) put(node, [make()]); });
  return node;
}
