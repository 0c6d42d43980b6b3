// Expected beside actual, the difference marked; and one frame laid out, with what was not compared told.

const LONGEST_LINE = 4000;
const AROUND = 3; // equal lines shown beside a difference
const MOST_ROWS = 1500;

// Notes of a frame, made ready: which paths differ, which were masked, which values stand for recorded ones.
function notesOf(frame) {
  const pairs = (frame.bound || []).map((each) => {
    const text = typeof each === "string" ? each : JSON.stringify(each);
    const at = text.indexOf(" = ");
    return at < 0 ? [text, text] : [text.slice(0, at), text.slice(at + 3)];
  });
  return {
    differs: (frame.paths || []).map(steps),
    masked: (frame.masked || []).map(steps),
    bound: pairs,
  };
}

const NO_NOTES = { differs: [], masked: [], bound: [] };

// What of a line counts when it is compared: nothing of a masked value, the live value for a recorded one.
function counts(line, notes, recorded) {
  if (line.path !== null && notes.differs.length && !notes.differs.includes("")) {
    // Where the two differ is known: all else was found to be the same.
    const text = within(line.path, notes.differs) ? line.text.replace(/,$/, "") : "";
    return `${line.depth} ${line.path} ${text} ${/^[}\]]/.test(line.text)}`;
  }
  if (within(line.path, notes.masked)) return `${line.depth} ${line.key} masked`;
  let text = line.text;
  if (line.path === STEP + "id" && notes.bound.some(([own]) => own === "id")) return `${line.key} bound`;
  if (recorded) {
    for (const [from, to] of notes.bound) if (from.length > 3 && from !== to) text = text.split(from).join(to);
  }
  return `${line.depth} ${line.key}${text.replace(/,$/, "")}`;
}

function comparison(expected, actual, notes = NO_NOTES) {
  let left = prettyLines(expected);
  let right = prettyLines(actual);
  const json = left && right;
  if (!json) [left, right] = [expected, actual].map((text) => text.split("\n").map((line) => ({ depth: 0, key: "", text: line, path: null })));
  const rows = aligned(
    left.map((line) => counts(line, notes, true)), right.map((line) => counts(line, notes, false)),
    json && left.map((line) => line.path), json && right.map((line) => line.path));
  const table = el("div", { cls: "compare", role: "table", "aria-label": "Expected beside actual" },
    el("div", { cls: "pair head", role: "row" },
      el("div", { role: "columnheader" }, el("span", { cls: "sign", "aria-hidden": "true" }, "\u2212"), "Expected"),
      el("div", { role: "columnheader" }, el("span", { cls: "sign", "aria-hidden": "true" }, "+"), "Actual")));
  const make = (row) => pair(row, left[row.left], right[row.right], notes);
  let shown = 0;
  for (let i = 0; i < rows.length;) {
    if (shown >= MOST_ROWS) {
      table.append(folded(rows.slice(i), make, "more lines"));
      break;
    }
    let end = i;
    while (end < rows.length && rows[end].same) end += 1;
    const [head, tail] = [i === 0 ? 0 : AROUND, end === rows.length ? 0 : AROUND];
    if (end - i > head + tail + 6) {
      table.append(...rows.slice(i, i + head).map(make), folded(rows.slice(i + head, end - tail), make, "equal lines"));
      i = end - tail;
      shown += head + 1;
    } else {
      end = Math.max(end, i + 1);
      table.append(...rows.slice(i, end).map(make));
      shown += end - i;
      i = end;
    }
  }
  return table;
}

function folded(rows, make, what) {
  const row = el("div", { cls: "pair fold", role: "row" });
  const more = button(`${rows.length.toLocaleString("en")} ${what}`, () => {
    const some = rows.splice(0, MOST_ROWS);
    row.before(...some.map(make));
    if (rows.length) more.textContent = `${rows.length.toLocaleString("en")} ${what}`;
    else row.remove();
  });
  row.append(el("div", { role: "cell" }, more));
  return row;
}

function pair(row, left, right, notes, sides = ["expected: ", "actual: "]) {
  if (row.same) {
    const same = shownLine(left) === shownLine(right) || shownLine(left).replace(/,$/, "") === shownLine(right).replace(/,$/, "");
    const what = same ? "" : within(left.path, notes.masked) || within(right.path, notes.masked) ? "masked" : "bound";
    return el("div", { cls: `pair same ${what && "quiet"}`, role: "row" },
      el("div", { role: "cell", cls: "side" }, written(left)),
      el("div", { role: "cell", cls: "side" }, written(right), what && el("span", { cls: "tag" }, what)));
  }
  const [a, b] = left && right ? byCharacter(cut(shownLine(left)), cut(shownLine(right))) : [null, null];
  const side = (line, pieces, cls, sign, word) => el("div", { role: "cell", cls: `side ${line ? cls : "nothing"}` },
    line && [el("span", { cls: "sign", "aria-hidden": "true" }, sign), el("span", { cls: "unseen" }, word),
      pieces ? pieces.map(([text, differs]) => differs ? el("b", {}, text) : text) : el("b", { cls: "whole" }, written(line))]);
  return el("div", { cls: "pair differs", role: "row" },
    side(left, a, "del", "\u2212", sides[0]), side(right, b, "add", "+", sides[1]));
}

function cut(text) {
  return text.length > LONGEST_LINE ? `${text.slice(0, LONGEST_LINE)} ... (${text.length.toLocaleString("en")} characters)` : text;
}

function written(line) {
  if (shownLine(line).length > LONGEST_LINE) return cut(shownLine(line));
  return ["  ".repeat(Math.min(line.depth, 40)), line.key && el("span", { cls: "key" }, line.key), line.text];
}

// One frame laid out; masked and bound values told at their lines.
function laidOut(text, notes) {
  const box = el("div", { cls: "text", tabindex: "0", role: "group", "aria-label": "The frame" });
  const lines = linesOf(text);
  const show = (some) => some.map((line) => {
    const masked = within(line.path, notes.masked) && !/[{[]$/.test(line.text);
    const bound = line.path !== null && notes.bound.find(([own, live]) =>
      own === "id" ? line.path === STEP + "id" : live.length > 3 && line.text.includes(live));
    const cls = within(line.path, notes.differs) ? "line differs" : masked || bound ? "line quiet" : "line";
    return el("div", { cls }, written(line), masked && el("span", { cls: "tag" }, "masked"),
      bound && el("span", { cls: "tag" }, bound[0] === "id" ? "bound" : `bound ${bound[0].length < 24 ? bound[0] : ""}`));
  });
  box.append(...show(lines.splice(0, MOST_ROWS)));
  if (lines.length) {
    const more = button(`${plural(lines.length, "more line")}`, () => {
      more.before(...show(lines.splice(0, MOST_ROWS)));
      if (lines.length) more.textContent = plural(lines.length, "more line");
      else more.remove();
    });
    box.append(more);
  }
  return box;
}
