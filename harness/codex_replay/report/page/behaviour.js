// What a version does otherwise, as `codex-replay drift --behaviour --json` says it: the changes of frames, each with its cases.

const SEEN = { findings: "in several cases", single: "in one case", racy: "where more than one way is right" };
const LOUD = new Set(["unheard", "refused"]); // somebody is hit, without having changed anything

function behaviouralDrift(found, views) {
  const names = listOf(found.cases).map(textOf);
  const lost = [];
  const items = Object.keys(SEEN).flatMap((key) => listOf(found[key]).flatMap((each) => behaviourFinding(each, key, names) || (lost.push(each), [])));
  const of = (key) => items.filter((item) => item.seen === SEEN[key]).length;
  const most = greatest(items);
  const view = findingsView(items, {
    what: "change",
    loud: (item) => LOUD.has(item.rule),
    selects: [
      { key: "rule", label: "All changes", of: (item) => item.rule },
      { key: "seen", label: "Seen anywhere", of: (item) => item.seen },
    ],
    head: (name, own, word) => behaviourHead(name, own, word, most),
    row: behaviourRow,
  });
  views.push(view);
  const totals = isObject(found.totals) ? found.totals : {};
  const ended = ["changed", "unchanged", "not_compared"].map((key) => [key, Math.max(0, numberIn(totals, key) || 0)]);
  const fills = { changed: "known", unchanged: "passed", not_compared: "skipped" };
  const claimed = numberIn(totals, "findings");
  const here = of("findings") + of("single");
  return [
    el("p", { cls: "said" }, `From ${textOf(found.from)} to ${textOf(found.to)}, ${ended.map(([key, size]) => `${size.toLocaleString("en")} ${words(key)}`).join(", ")} of ${plural(names.length, "case")}; ${plural(here, "change")} in what is said.`,
      found.chosen !== undefined && ` Only the cases of -k '${textOf(found.chosen)}' were run.`),
    el("span", { cls: "bar total", role: "img", "aria-label": `cases: ${ended.map(([key, size]) => `${size} ${words(key)}`).join(", ")}` },
      ended.filter(([, size]) => size).map(([key, size]) => el("i", { cls: fills[key], vars: { "flex-grow": String(size) } }))),
    el("div", { cls: "tiles" }, Object.keys(SEEN).filter((key) => of(key) || key !== "racy").map((key) =>
      tile(of(key), key === "racy" ? "skipped" : "known", "\u2260", SEEN[key], () => view.choose({ seen: SEEN[key] })))),
    claimed !== null && claimed !== here + lost.length && el("p", { cls: "notice" }, `The file counts ${plural(claimed, "finding")}, and ${here.toLocaleString("en")} can be shown: the file is damaged, or was changed by hand.`),
    lost.length > 0 && [el("p", { cls: "notice" }, `${plural(lost.length, "finding")} cannot be read.`), opened("The unreadable findings", () => tree(lost))],
    view.node,
    aside(found.ended_early, "case ends early", "cases end early", "Only the messages before the early end are compared."),
    aside(found.not_compared, "case is not compared", "cases are not compared", "A case that is not compared counts neither as changed nor as unchanged."),
    aside(found.noise, "kind of noise", "kinds of noise", "Noise differs between two runs of one version, and counts as no change."),
  ];
}

function behaviourFinding(each, key, names) {
  if (!isObject(each) || ["rule", "method"].some((name) => typeof each[name] !== "string")) return null;
  const item = { seen: SEEN[key], group: each.rule };
  for (const name of ["rule", "what", "method", "path", "note"]) item[name] = textOf(each[name]);
  item.methods = listOf(each.methods).map(textOf);
  item.cases = listOf(each.cases).map((at) => names[at] === undefined ? `case ${textOf(at)}` : names[at]);
  item.examples = listOf(each.examples).filter(isObject).map((one) => ({ before: textOf(one.before), after: textOf(one.after), case: textOf(one.case) }));
  item.found = [item.rule, item.what, item.method, ...item.methods, item.path, item.note, item.seen,
    ...item.examples.flatMap((one) => [one.before, one.after]), ...item.cases].join(" ").toLowerCase();
  return item;
}

function behaviourHead(name, own, word, most) {
  return [
    el("span", { cls: "name" }, el("b", {}, highlighted(name, word))),
    el("span", { cls: "sum" }, el("span", { cls: `badge ${LOUD.has(name) ? "failed" : "known"}` }, plural(own.length, "change"))),
    share([[LOUD.has(name) ? "failed" : "known", own.length]], most),
    el("span", { cls: "glimpse" }, own[0].what),
  ];
}

function behaviourRow(item, word) {
  const [first, ...others] = item.examples;
  return el("div", { cls: `finding ${LOUD.has(item.rule) ? "loud" : ""}` },
    el("p", { cls: "change" }, el("code", {}, highlighted(item.method, word)), item.path && item.path !== "$" && [" ", el("code", { cls: "path" }, highlighted(item.path, word))],
      " ", el("span", { cls: "tag" }, plural(item.cases.length, "case"))),
    item.note && el("p", { cls: "muted" }, highlighted(item.note, word)),
    first && beforeAfter(first),
    item.methods.length > 0 && opened(plural(item.methods.length, "method"), () => [el("ul", { cls: "names" }, item.methods.slice(0, MOST_TABLE).map((each) => el("li", {}, el("code", {}, each)))), moreOf(item.methods)]),
    others.length > 0 && opened(plural(others.length, "other example"), () => others.slice(0, MOST_TABLE).map((each) => [el("p", { cls: "at" }, caseLink(each.case)), beforeAfter(each)])),
    item.cases.length > 0 && opened(item.cases.length === 1 ? item.cases[0] : plural(item.cases.length, "case"), () => caseNames(item.cases)));
}

const caseLink = (name) => cases.has(name) ? el("a", { href: address(cases.get(name)) }, name) : el("code", {}, name);

// What was said before, beside what is said now; what was not there has no line.
function beforeAfter({ before, after }) {
  const line = (text) => text && text !== "(absent)" ? { depth: 0, key: "", text, path: null } : null;
  return el("div", { cls: "compare", role: "table", "aria-label": "Before and after" },
    pair({ same: false }, line(before), line(after), NO_NOTES, ["before: ", "after: "]));
}

function aside(some, one, many, sentence) {
  return listOf(some).length > 0 && opened(plural(some.length, one, many), () => [el("p", { cls: "muted" }, sentence), tree(some)]);
}
