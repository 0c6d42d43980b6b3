// One case: what it holds to, how it ended, how to run it again, and what was said.

const LONGEST_DETAILS = 20000;

function badge(outcome) {
  return el("span", { cls: `badge ${outcome}` }, el("span", { "aria-hidden": "true" }, GLYPHS[outcome] || "?"), ` ${outcome}`);
}

// The view of a case; `beside` are its neighbours in the list. Returns {node, ready, move, search, next, stop}.
function caseView(light, beside) {
  const rest = el("div", { cls: "rest" }, el("p", { cls: "empty" }, "Opening ..."));
  const self = { move: () => {}, next: () => {}, stop: () => {}, search: null };
  const link = (each, text, key) => each
    ? el("a", { href: address(each), cls: "step", "aria-keyshortcuts": key }, text) : el("span", { cls: "step off" }, text);
  self.node = el("article", { cls: "case-view" },
    data.mode === "report" && el("nav", { "aria-label": "Cases" },
      el("a", { href: "#", cls: "step back", "aria-keyshortcuts": "Escape" }, "\u2190 All cases"),
      link(beside.before, "Previous", "p"), link(beside.after, "Next", "n")),
    data.mode === "report" && head(light),
    rest);
  self.ready = fill(light, rest, self).catch((error) => {
    rest.replaceChildren(el("p", { cls: "notice" }, `This case cannot be shown: its data in this file are damaged (${error.message}). Write the report again.`));
  });
  return self;
}

function head(light) {
  return el("header", { cls: "case-head" },
    el("p", {}, badge(light.outcome), el("span", { cls: "id" }, light.id), el("span", { cls: "muted" }, seconds(light.seconds))),
    el("h1", { tabindex: "-1" }, prose(light.title || light.id)));
}

async function fill(light, rest, self) {
  const [full, story] = await Promise.all([data.mode === "report" ? whole(light.index) : null,
    light.story === undefined || light.story < 0 ? null : chunk(`s${light.story}`)]);
  const parts = full ? about(full) : [];
  if (story) {
    const shown = sequence(story, light.suite);
    Object.assign(self, { move: shown.move, next: shown.next, stop: shown.stop, search: shown.search });
    parts.push(shown.node);
  } else if (data.mode === "report") {
    parts.push(el("section", { cls: "story" }, el("h2", {}, "Traffic"),
      el("p", { cls: "empty" }, light.story === undefined ? "No frames: this case exchanges no messages, or its frames were not kept."
        : light.story < 0 ? "To keep this page small, it has the frames of only some passed cases. `codex-replay report open --full` shows the frames of all cases."
          : "The frames of this case are not in this file.")));
  }
  if (full && full.details) parts.push(opened("Details: traceback and output", () => long(full.details), { cls: "panel details-of" }));
  rest.replaceChildren(...parts.filter(Boolean));
}

// All of a case: its message, its details and its values.
async function whole(index) {
  const block = await chunk(`c${Math.floor(index / data.block)}`);
  return block ? block[index % data.block] : null;
}

function about(full) {
  const values = full.expected !== null && full.expected !== undefined && full.actual !== null && full.actual !== undefined;
  return [
    full.message && el("p", { cls: `message ${full.outcome}` }, full.message),
    (full.told || []).length > 0 && el("section", {}, el("h2", {}, "In each run"), el("ul", { cls: "told" }, full.told.map((each) =>
      el("li", {}, badge(each.outcome), ` ${((data.runs || [])[each.run] || {}).name || `run ${each.run + 1}`} `,
        el("span", { cls: "muted" }, seconds(each.seconds)), each.message && el("span", {}, ` ${each.message}`))))),
    full.spec && quote(full.spec),
    full.again && el("section", {}, el("h2", {}, "Run it again"), command(full.again)),
    values && el("section", {}, el("h2", {}, "Expected and actual"), comparison(full.expected, full.actual)),
    !values && (full.expected || full.actual) && el("section", {}, el("h2", {}, full.expected ? "Expected" : "Actual"),
      laidOut(full.expected || full.actual, NO_NOTES)),
    (full.recorded || []).length > 0 && el("section", {}, el("h2", {}, "Recorded"), el("ul", {}, full.recorded.map((path) => el("li", {}, el("code", {}, path))))),
  ];
}

function quote(spec) {
  const labels = labelsOf(spec.section);
  const links = spec.links || [];
  const texts = (spec.text || "").split("\n");
  const own = labels.length === links.length && labels.length === texts.length;
  return el("section", { cls: "spec" }, el("h2", {}, "Specification"),
    el("p", { cls: "muted" }, el("code", {}, spec.check), " ", [spec.document, own ? "" : spec.section, spec.line ? `line ${spec.line}` : ""].filter(Boolean).join(", ")),
    own ? el("dl", { cls: "statements" }, labels.map((label, i) => [
      el("dt", {}, el("a", { href: `#statement=${label}`, title: `All cases of ${label} (${links[i]})` }, label)),
      el("dd", {}, prose(texts[i].startsWith(`${label}: `) ? texts[i].slice(label.length + 2) : texts[i]))]))
      : [spec.text && el("blockquote", {}, prose(spec.text)), links.length > 0 && el("p", { cls: "muted" }, links.join(", "))]);
}

function long(text) {
  const pre = el("pre", { cls: "text details", tabindex: "0" }, text.slice(0, LONGEST_DETAILS));
  if (text.length <= LONGEST_DETAILS) return pre;
  const more = button(`Show all ${plural(text.length, "character")}`, () => { pre.replaceChildren(...visible(text)); more.remove(); });
  return [pre, more];
}
