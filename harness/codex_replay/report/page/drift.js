// The drift between two versions, as `codex-replay drift --json` says it: of schemas here, of behaviour in behaviour.js.
// Its file may be of another form, or damaged: then this is told, and what is there is shown as it is.

const HITS = { senders: "clients that send it", readers: "clients that read it", nobody: "nobody" };
const PLACES = {
  "client-request": "request of the client", "client-notification": "notification of the client", "server-request": "request of the server",
  "server-notification": "notification of the server", event: "codex/event (v1)", envelope: "JSON-RPC envelope",
};
const USED = "hits your cases";
const saidIn = (capability) => `capabilities.${capability} in initialize`;
// What is said of a change that not all clients notice, by the key that names the capability.
const NOTICED = {
  behind: (capability) => `now only for clients that send ${saidIn(capability)}`,
  without: (capability) => `noticed only by clients that do not send ${saidIn(capability)}`,
  with: (capability) => `noticed only by clients that send ${saidIn(capability)}`,
};

// The drift of the page, unpacked when it is asked for: {node, ready}; `views` gets its list when it is there.
function driftPanel(views = []) {
  const node = el("div", { cls: "drifted" }, el("p", { cls: "empty" }, "Opening ..."));
  const ready = chunk("d0").then((found) => driftParts(found, views), (error) => [
    el("p", { cls: "notice" }, `This drift cannot be shown: its data in this file are damaged (${error.message}). Write the page again.`)])
    .then((parts) => {
      node.replaceChildren();
      put(node, [parts]);
    });
  return { node, ready };
}

function driftParts(found, views) {
  const known = isObject(found) && (found.drift === 1 ? schemaDrift : found.behaviour === 1 ? behaviouralDrift : null);
  if (isObject(found) && typeof found.unreadable === "string") return el("p", { cls: "notice" }, found.unreadable);
  if (!known || !Array.isArray(found.findings)) return asItIs(found, known ? "it has no list of findings" : `it is not of the form that this page knows${formOf(found)}`);
  try {
    return known(found, views);
  } catch (error) {
    return asItIs(found, `it is damaged (${error.message})`);
  }
}

function formOf(found) {
  const number = isObject(found) ? found.drift ?? found.behaviour : undefined;
  return typeof number === "number" ? ` (1), but of form ${number}` : "";
}

function asItIs(found, why) {
  let shown;
  try {
    shown = tree(found);
  } catch { // deeper than anything that was meant
    shown = el("p", { cls: "empty" }, "This drift cannot be shown. Look at the file.");
  }
  return [el("p", { cls: "notice" }, `This drift is shown as it stands in its file: ${why}. \`codex-replay drift FROM TO --json\` writes a file that this page can show.`), shown];
}

// -- the schemas -------------------------------------------------------------------------------------------------------------

function schemaDrift(found, views) {
  const read = found.findings.map(schemaFinding);
  const items = read.filter(Boolean);
  const lost = found.findings.filter((_, i) => !read[i]);
  const uses = isObject(found.cassettes);
  gatherEvents(items, found);
  for (const item of items) item.found = foundIn(item);
  const of = (cls, side) => items.filter((item) => item.cls === cls && (!side || item.hits === side)).length;
  const most = greatest(items);
  const view = findingsView(items, {
    what: "change",
    loud: (item) => item.cls === "breaking",
    first: uses ? { used: USED } : {},
    selects: [
      { key: "cls", label: "All changes", of: (item) => item.cls },
      { key: "hits", label: "Whoever is hit", of: (item) => hitOf(item) },
      { key: "kind", label: "All directions", of: (item) => PLACES[item.kind] || item.kind },
      { key: "behind", label: "Behind a capability or not", of: (item) => item.mark ? `${item.mark} ${item.capability}` : "noticed by all" },
      { key: "used", label: "Used or not", of: (item) => uses ? item.cases.length ? USED : "hits none of them" : null },
    ],
    head: (name, own, word) => schemaHead(name, own, word, most),
    row: schemaRow,
  });
  views.push(view);
  const side = (name) => tile(of("breaking", name), "failed", "\u2192", `hit ${HITS[name]}`, () => view.choose({ cls: "breaking", hits: HITS[name] }));
  return [
    el("p", { cls: "said" }, schemaSentence(found, items)),
    el("span", { cls: "bar total", role: "img", "aria-label": `${of("breaking")} breaking, ${of("additive")} additive` },
      [["failed", of("breaking")], ["passed", of("additive")]].filter(([, size]) => size).map(([cls, size]) => el("i", { cls, vars: { "flex-grow": String(size) } }))),
    el("div", { cls: "tiles" },
      tile(of("breaking"), "failed", GLYPHS.failed, "breaking", () => view.choose({ cls: "breaking" })), side("senders"), side("readers"),
      uses && tile(items.filter((item) => item.cases.length).length, "known", GLYPHS.known, USED, () => view.choose({ used: USED })),
      tile(of("additive"), "passed", "+", "additive", () => view.choose({ cls: "additive" }))),
    sizes(found.counts),
    doubts(found, of, lost),
    view.node,
    listOf(found.uncompared).length > 0 && opened(`${plural(found.uncompared.length, "part")} could not be compared`, () =>
      el("ul", {}, found.uncompared.slice(0, MOST_TABLE).map((each) => el("li", {}, textOf(each))), moreOf(found.uncompared))),
  ];
}

// A finding with every member what it should be, or null if it is none.
function schemaFinding(each) {
  if (!isObject(each) || ["class", "rule", "method"].some((key) => typeof each[key] !== "string")) return null;
  const item = { cls: each.class, places: [], cases: listOf(each.cases).map(textOf) };
  for (const key of ["rule", "kind", "method", "path", "what", "before", "after", "sends", "hits", "sentence", "type"]) item[key] = textOf(each[key]);
  item.places = listOf(each.places).filter(isObject).map((place) => ({ kind: textOf(place.kind), method: textOf(place.method), path: textOf(place.path) }));
  const methods = new Set(item.places.map((place) => place.method)).size;
  // A file may be of anybody's making: a capability is a name, and nothing else is.
  item.mark = Object.keys(NOTICED).find((key) => typeof each[key] === "string" && each[key]) || "";
  item.capability = item.mark && each[item.mark];
  // What many methods share is told by the name of its definition.
  item.shared = item.type && methods > 1 ? methods : 0;
  item.group = item.shared ? item.type : item.method;
  return item;
}

// When the last type of codex/event goes, that is one thing to read, not one for each.
function gatherEvents(items, found) {
  const gone = items.filter((item) => item.kind === "event" && item.rule === "method-gone" && !item.mark);
  if (gone.length < 2 || !isObject(found.counts) || numberIn(found.counts.to, "events") !== 0) return;
  for (const item of gone) Object.assign(item, { group: "codex/event/*", gathered: gone.length });
}

function foundIn(item) {
  return [item.group, item.cls, item.rule, wordsOf(item.rule), item.kind, item.method, item.path, item.what, item.before, item.after, item.sentence, item.type, item.mark, item.capability,
    ...item.places.map((place) => `${place.method} ${place.path}`), ...item.cases].join(" ").toLowerCase();
}

const hitOf = (item) => HITS[item.hits] || item.hits || "nobody";
const wordsOf = (rule) => rule.replace(/-/g, " ");

// How many of a class not all clients notice.
function noticed(items, cls) {
  const marked = items.filter((item) => item.cls === cls && item.mark);
  const capable = marked.filter((item) => item.mark === "with").length;
  const without = marked.length - capable;
  const only = (number) => {
    const verb = cls === "breaking" ? (number === 1 ? "breaks" : "break") : (number === 1 ? "is" : "are");
    return `${number.toLocaleString("en")} of them ${verb} only ${cls === "breaking" ? "" : "for "}clients that`;
  };
  const parts = without ? [`${only(without)} do not send ${saidIn(marked[0].capability)}`] : [];
  if (capable) parts.push(`${only(capable)} send ${without ? "it" : saidIn(marked[0].capability)}`);
  return parts.length ? ` (${parts.join(", ")})` : "";
}

function schemaSentence(found, items) {
  const [from, to] = [textOf(found.from), textOf(found.to)];
  const breaking = items.filter((item) => item.cls === "breaking").length;
  const additive = items.filter((item) => item.cls === "additive").length;
  if (!found.findings.length) return `Nothing changed between ${from} and ${to}${listOf(found.uncompared).length ? " in what could be compared" : ""}.`;
  const changes = `${plural(breaking, "change breaks", "changes break")} clients${noticed(items, "breaking")}. ${plural(additive, "change adds", "changes add")} something new${noticed(items, "additive")}`;
  const left = numberIn(found, "ignored");
  const rest = `rom ${from} to ${to}, ${changes}.${left ? ` Not counted: ${plural(left, "change")} (--ignore, --reads, --sends).` : ""}`;
  return isObject(found.cassettes) ? `${affected(found.cassettes)}. In all, f${rest}` : `F${rest}`;
}

// How many of the reader's cases a breaking change affects, and by how many such changes: the others of the drift do not concern them.
function affected(cassettes) {
  const [hit, cases] = [numberIn(cassettes, "hit") || 0, numberIn(cassettes, "cases") || 0];
  const used = new Set(Object.values(isObject(cassettes.hits) ? cassettes.hits : {}).flatMap(listOf)).size;
  const by = used ? ` by ${plural(used, "breaking change")}` : "";
  if (cases === 1) return `Your only case is ${hit ? "" : "not "}affected${by}`;
  if (!hit) return `None of your ${plural(cases, "case")} is affected`;
  return `${hit.toLocaleString("en")} of your ${plural(cases, "case")} ${hit === 1 ? "is" : "are"} affected${by}`;
}

// How much of each kind there was and is.
function sizes(counts) {
  const sides = isObject(counts) ? [counts.from, counts.to] : [];
  if (!sides.length || !sides.every(isObject)) return null;
  const names = Object.keys(sides[1]).filter((name) => sides.every((side) => typeof side[name] === "number")).slice(0, 20);
  return el("p", { cls: "sizes" }, names.map((name) => {
    const [old, now] = sides.map((side) => side[name]);
    return el("span", { cls: "chip" }, `${words(name)} `, el("b", {}, old === now ? String(now) : `${old} \u2192 ${now}`));
  }));
}

// What the file says of itself and does not hold.
function doubts(found, of, lost) {
  const wrong = ["breaking", "additive"].filter((cls) => numberIn(found.counts, cls) !== null && found.counts[cls] !== of(cls));
  return [
    wrong.map((cls) => el("p", { cls: "notice" }, `The file counts ${found.counts[cls].toLocaleString("en")} ${cls}, and ${of(cls).toLocaleString("en")} can be shown: the file is damaged, or was changed by hand.`)),
    lost.length > 0 && [
      el("p", { cls: "notice" }, `${plural(lost.length, "finding")} of ${found.findings.length.toLocaleString("en")} cannot be read.`),
      opened("The unreadable findings", () => tree(lost))],
  ];
}

function schemaHead(name, own, word, most) {
  const size = (cls) => own.filter((item) => item.cls === cls).length;
  const [breaking, additive] = [size("breaking"), size("additive")];
  const first = own[0];
  const where = first.shared ? `definition, in ${plural(own.reduce((most, item) => Math.max(most, item.shared), 0), "method")}` : PLACES[first.kind] || first.kind;
  return [
    el("span", { cls: "name" }, el("code", {}, highlighted(name, word)), el("span", { cls: "tag" }, where)),
    el("span", { cls: "sum" }, breaking > 0 && el("span", { cls: "badge failed" }, `${GLYPHS.failed} ${breaking} breaking`), additive > 0 && el("span", { cls: "badge passed" }, `+ ${additive} additive`)),
    share([["failed", breaking], ["passed", additive]], most),
    el("span", { cls: "glimpse" }, first.gathered ? `gone: all ${first.gathered} types` : glimpse(own)),
  ];
}

// What changed in a group, in a line: each rule once, with what it is about.
function glimpse(own) {
  return [...grouped(own.slice(0, 12), (item) => wordsOf(item.rule))].map(([rule, some]) => rule.startsWith("method ") ? rule.slice(7)
    : [rule, [...new Set(some.map((item) => item.what).filter(Boolean))].join(", ")].filter(Boolean).join(": ")).join("; ");
}

function schemaRow(item, word) {
  const breaking = item.cls === "breaking";
  const sides = item.before || item.after;
  const others = item.places.slice(1);
  return el("div", { cls: `finding ${breaking ? "loud" : ""}` },
    el("p", { cls: "change" }, el("span", { cls: `badge ${breaking ? "failed" : item.cls === "additive" ? "passed" : ""}` },
      el("span", { "aria-hidden": "true" }, breaking ? GLYPHS.failed : "+"), ` ${item.cls}`), " ",
      el("b", {}, wordsOf(item.rule)), item.what && item.what !== item.method && [" ", el("code", {}, highlighted(item.what, word))],
      sides && [" ", item.before && el("del", {}, highlighted(item.before, word)), item.before && item.after && " \u2192 ", item.after && el("ins", {}, highlighted(item.after, word))],
      item.mark && [" ", el("span", { cls: "tag" }, NOTICED[item.mark](item.capability))]),
    el("p", { cls: "at" }, (item.shared > 0 || item.gathered) && [el("code", {}, highlighted(item.method, word)), " "], item.path !== "$" && el("code", { cls: "path" }, highlighted(item.path, word)),
      item.type && !item.shared && el("span", { cls: "tag" }, item.type)),
    el("p", {}, highlighted(item.sentence, word), " ", breaking && el("span", { cls: "muted" }, `Hit: ${hitOf(item)}.`)),
    others.length > 0 && opened(`and ${plural(others.length, "other place")}`, () => [el("ul", { cls: "names" }, others.slice(0, MOST_TABLE).map((place) =>
      el("li", {}, el("code", {}, place.method), el("code", { cls: "path" }, place.path)))), moreOf(others)]),
    item.cases.length > 0 && opened(`${USED}: ${item.cases.length.toLocaleString("en")}`, () => caseNames(item.cases)));
}
