// JSON in lines to read, every token as it was sent: numbers, escapes, the order and the doubles of keys stay.

// A path is its steps, each after a NUL: a character that no path in our data uses otherwise.
const STEP = "\0";

// Lines {depth, key, text, path} of a JSON text, or null if it is none. `key` is the token of the member's name, colon included.
function prettyLines(text) {
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  const lines = [];
  const stack = [];
  let line = null; // begun by a key, waiting for its value
  let last = null;
  let wantsKey = false;
  const begin = (key, step) => {
    const parent = stack[stack.length - 1];
    return { depth: stack.length, key, text: "", path: parent ? parent.path + STEP + step : "" };
  };
  for (const [, mark, string, scalar] of text.matchAll(/([{}[\],:])|("[^"\\]*(?:\\.[^"\\]*)*")|([^\s{}[\],:"]+)/g)) {
    const parent = stack[stack.length - 1];
    if (mark === ":") continue;
    if (mark === ",") {
      last.text += ",";
      parent.index += 1;
      wantsKey = parent.object;
    } else if (mark === "}" || mark === "]") {
      stack.pop();
      last = parent.line;
      if (!parent.empty) lines.push(last = { depth: stack.length, key: "", text: "", path: parent.path });
      last.text += mark;
      wantsKey = false;
    } else if (string && wantsKey) {
      parent.empty = false;
      line = begin(`${string}: `, JSON.parse(string));
      wantsKey = false;
    } else {
      if (parent) parent.empty = false;
      last = line || begin("", parent ? parent.index : "");
      line = null;
      last.text += mark || string || scalar;
      lines.push(last);
      if (mark) {
        stack.push({ object: mark === "{", path: last.path, index: 0, empty: true, line: last });
        wantsKey = mark === "{";
      }
    }
  }
  return lines;
}

// The lines of any text: JSON laid out, or as it is.
function linesOf(text) {
  return prettyLines(text) || text.split("\n").map((line) => ({ depth: 0, key: "", text: line, path: null }));
}

const shownLine = (line) => "  ".repeat(Math.min(line.depth, 40)) + line.key + line.text;

// "$.params.item[0]["x-y"]" as steps; the dollar may be missing.
function steps(path) {
  let found = "";
  const rest = path.replace(/^\$/, "");
  for (const [, name, index, double, single] of rest.matchAll(/\.?([^.[\]]+)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|\['((?:[^'\\]|\\.)*)'\]/g)) {
    let step = name ?? index ?? single;
    if (double !== undefined) {
      try { step = JSON.parse(double); } catch { step = double; }
    }
    found += STEP + step;
  }
  return found;
}

// Whether a line stands at, or below, one of the paths.
function within(path, paths) {
  return path !== null && paths.some((each) => path === each || path.startsWith(each + STEP));
}

// What a message says in a line: its plain values.
// `known` is what its label says already.
function glance(text, most, known) {
  if (text.length > 20000) return text.slice(0, most);
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    return text.slice(0, most);
  }
  if (value === null || typeof value !== "object") return text.slice(0, most);
  const inner = ["params", "result", "error", "data", "body"].find((key) => value[key] !== undefined);
  if (inner) value = value[inner];
  else if (!Array.isArray(value)) value = Object.fromEntries(Object.entries(value).filter(([key]) => !LABELLED.has(key)));

  const parts = [];
  const ids = []; // say least, so they come last
  let left = 2 * most;
  const walk = (key, each, depth) => {
    if (left <= 0 || depth > 6 || each === null) return;
    if (Array.isArray(each)) {
      if (each.length === 1) walk(key, each[0], depth + 1);
      else if (each.length) add(`${key}[${each.length}]`);
    } else if (typeof each === "object") {
      for (const [name, inner] of Object.entries(each)) {
        if (!DULL.has(name)) walk(key && key !== "msg" ? `${key}.${name}` : name, inner, depth + 1);
      }
    } else if (typeof each !== "string" || each.length < 4 || !known.includes(each)) {
      add(`${key ? key + "=" : ""}${JSON.stringify(typeof each === "string" ? each.slice(0, 80) : each)}`, NUMBERING.test(key));
    }
  };
  const add = (part, last) => {
    (last ? ids : parts).push(part);
    left -= part.length + 1;
  };
  walk("", value, 0);
  return [...parts, ...ids].join(" ").slice(0, most);
}

// Keys that stand in nearly every message and say little in a line.
const NUMBERING = /(^|\.)(id|\w+_id|\w+Id|\w+_index|sequence_number|created_?[aA]t)$/;
const LABELLED = new Set(["id", "method", "jsonrpc", "path", "status", "event"]);
const DULL = new Set(["conversationId", "threadId", "turnId", "thread_id", "turn_id", "headers"]);
