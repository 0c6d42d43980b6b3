// The top of the page: the verdict, then where it comes from.

const WORDS = { verified: "Verified", failed: "Failed", "nothing verified": "Nothing verified" };
const GOOD = { verified: "passed", failed: "failed" };

// With failed cases their list stands before the tables, else after them.
function overview(choose, list) {
  const sums = counted(data.cases);
  const subjects = Object.entries(data.subject || {}).map(([role, name]) => `${role} ${name}`).join(", ");
  const tables = [
    alike(choose),
    panel("suites", "By suite", () => bySuite(choose), true),
    data.cases.some((each) => each.spec) && panel("documents", "By spec document", () => byDocument(choose), true),
    data.coverage && panel("coverage", ["Protocol shown ", meter(...shownOf(data.coverage))], () => coverage(data.coverage)),
    data.proxy_fields && panel("fields", ["Fields that the proxy sends ", fieldsOf(data.proxy_fields)], () => proxyFields(data.proxy_fields)),
    data.strength && panel("strength", ["Strength ", strengthOf(data.strength)], () => strength(data.strength)),
    data.drift && panel("drift", ["Drift ", driftOf(data.drift)], () => driftPanel().node),
    data.runs && panel("runs", `${plural(data.runs.length, "run")} joined`, () => tree(data.runs), true),
    facts(),
  ].filter(Boolean);
  return [
    el("header", { cls: `verdict ${GOOD[data.verdict] || "known"}` },
      el("p", { cls: "product" }, "codex-replay"),
      el("div", { cls: "headline" }, el("h1", { tabindex: "-1" }, WORDS[data.verdict] || data.verdict),
        el("div", { cls: "tiles" }, OUTCOMES.filter((outcome) => sums[outcome] || outcome === "failed" || outcome === "passed")
          .map((outcome) => button([el("b", {}, sums[outcome].toLocaleString("en")), badge(outcome)], () => choose({ outcome }), { cls: "tile" })))),
      bar(sums, true),
      el("p", { cls: "muted" }, sentence(sums, subjects))),
    data.stopped_early && el("p", { cls: "notice" },
      `The run of ${data.stopped_early} cases stopped early: every case that ran failed, most of them for one cause.`),
    data.interrupted && el("p", { cls: "notice" }, "The run was interrupted; the other cases did not run."),
    (data.stale || []).length > 0 && el("p", { cls: "notice" }, `The baseline is stale: ${data.stale.join(", ")} passes now. Remove its entry.`),
    data.next && el("section", { cls: "next", "aria-labelledby": "next-title" },
      el("h2", { id: "next-title" }, "Do this next"),
      el("ol", {}, data.next.map((text) => {
        const [step, line] = text.split(/: (?=(?:pytest|codex-replay) )/);
        return el("li", {}, line ? [`${step}:`, command(line)] : step);
      }))),
    sums.failed ? [list, tables] : [tables, list],
  ];
}

function sentence(sums, subjects) {
  const of = `${subjects || "no subject"} (Codex ${data.codex}), profile ${data.profile}${data.validated === false ? "; frames not validated" : ""}`;
  return `${plural(sums.all, "case")} of ${of}.`;
}

function facts() {
  return el("section", { cls: "facts-line", "aria-label": "The run" },
    el("p", { cls: "muted" }, [
      data.started && `Started ${data.started.replace("T", " ").replace("Z", " UTC")}`,
      data.seconds !== undefined && `took ${seconds(data.seconds)}`,
      (data.profiles || []).length > 1 && `profiles ${data.profiles.join(", ")}`,
      data.record && data.record !== "none" && `recording ${data.record}`,
    ].filter(Boolean).join(" \u00b7 ")),
    data.command && command(data.command));
}

// Failed cases grouped by cause: one cause can fail a hundred of them.
function alike(choose) {
  const groups = grouped(data.cases, (each) => each.alike);
  return data.alike && el("section", { cls: "alike", "aria-labelledby": "alike-title" },
    el("h2", { id: "alike-title" }, "Most common failures"),
    el("ul", {}, data.alike.map((said, i) => el("li", {}, el("b", {}, plural(groups.get(i).length, "case")), " ",
      button(said, () => choose({ said }), { cls: "link", title: "Show these cases" })))));
}

// A bar of outcomes; with `says` for those who cannot see it.
function bar(sums, says) {
  const text = OUTCOMES.filter((outcome) => sums[outcome]).map((outcome) => `${sums[outcome]} ${outcome}`).join(", ");
  return el("span", { cls: "bar", role: says ? "img" : null, "aria-label": says ? text : null, "aria-hidden": says ? null : "true" },
    OUTCOMES.slice().reverse().filter((outcome) => sums[outcome]).map((outcome) =>
      el("i", { cls: outcome, vars: { "flex-grow": String(sums[outcome]) } })));
}

function panel(id, title, make, open) {
  const node = opened(title, make, { cls: `panel ${id}`, id });
  node.open = Boolean(open);
  if (open && node.children.length === 1) put(node, [make()]);
  return node;
}

// A row of sums; with `inner` (rows of its own) it can be opened.
function row(name, some, act, inner) {
  const sums = counted(some);
  const node = el("tr", {},
    el("th", { scope: "row" }, el("span", { cls: "name" },
      inner && button("\u25b8", toggle, { cls: "more", "aria-expanded": "false", "aria-label": `What is in ${name}` }),
      button(name, act, { cls: "link" }))),
    el("td", { cls: "bars" }, bar(sums)),
    columns().map((outcome) => el("td", { cls: `number ${sums[outcome] ? outcome : "none"}` }, sums[outcome].toLocaleString("en"))),
    el("td", { cls: "number" }, seconds(sums.seconds)));
  let rows = null;
  function toggle(event) {
    const open = event.currentTarget.getAttribute("aria-expanded") !== "true";
    event.currentTarget.setAttribute("aria-expanded", String(open));
    if (open && !rows) node.after(...(rows = inner()));
    else for (const each of rows) each.hidden = !open;
  }
  return node;
}

const columns = () => ["passed", "failed", "known", "skipped"].filter((outcome) => outcome === "passed" || data.cases.some((each) => each.outcome === outcome));

function table(first, rows) {
  return el("table", { cls: "sums" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, first), el("th", { cls: "bars" }, ""),
      columns().map((name) => el("th", { scope: "col", cls: "number" }, name)),
      el("th", { scope: "col", cls: "number" }, "time"))),
    el("tbody", {}, rows));
}

function parts(groups, choice) {
  return [...groups].sort(worstFirst).map(([name, own]) => {
    const node = row(name || "(no statement)", own, () => choice(name));
    node.className = "inner";
    return node;
  });
}

function bySuite(choose) {
  return table("suite", [...grouped(data.cases, (each) => each.suite)].map(([suite, some]) =>
    row(suite, some, () => choose({ suite }), () => parts(grouped(some, (each) => each.module), (module) => choose({ suite, module })))));
}

function byDocument(choose) {
  const held = data.cases.filter((each) => each.spec);
  return table("document", [...grouped(held, (each) => each.spec.document)].map(([document, some]) =>
    row(document, some, () => choose({ document }), () => parts(byLabel(some), (label) => choose({ document, label })))));
}

// A case that holds several statements stands with each of them.
function byLabel(some) {
  const groups = new Map();
  for (const label of [...new Set(some.flatMap((each) => each.spec.labels))].sort(inNumbers.compare)) {
    groups.set(label, some.filter((each) => each.spec.labels.includes(label)));
  }
  return groups;
}

const inNumbers = new Intl.Collator("en", { numeric: true });

function worstFirst(a, b) {
  return counted(b[1]).failed - counted(a[1]).failed;
}

// How many fields of a proxy Codex accepts and does not read.
function fieldsOf(found) {
  const rows = isObject(found.profiles) ? Object.values(found.profiles).filter(Array.isArray).flat().filter(isObject) : [];
  const sent = rows.filter((each) => each.value || each.null);
  const unknown = sent.filter((each) => each.known === false).length;
  return rows.length > 0 && el("span", { cls: "muted" }, `${plural(sent.length, "field")}${unknown ? `, ${unknown.toLocaleString("en")} of them not known to Codex` : ""}`);
}

// The fields that a proxy sent, by profile; in the words of the table that the terminal shows.
function proxyFields(found) {
  if (!isObject(found.profiles)) return tree(found);
  const word = (value) => (value === true ? "yes" : value === false ? "no" : "-");
  const cell = (value) => el("td", { cls: value === false ? "number failed" : "number" }, word(value));
  return Object.entries(found.profiles).filter(([, rows]) => Array.isArray(rows)).map(([profile, rows]) => [
    el("p", { cls: "muted" }, `Profile ${profile}. Specified: a statement has the field. Valid: the schema accepts its values. Known: Codex reads the field.`),
    el("div", { cls: "scroll", tabindex: "0", role: "group", "aria-label": `Fields, profile ${profile}` }, el("table", { cls: "fields" },
      el("thead", {}, el("tr", {}, ["field", "specified", "valid", "known", "value", "null", "omitted"].map((name, i) => el("th", { scope: "col", cls: i ? "number" : null }, name)))),
      el("tbody", {}, rows.filter(isObject).map((each) => el("tr", {},
        el("th", { scope: "row" }, el("code", {}, `${textOf(each.method)}.${textOf(each.field)}`)), cell(each.specified), cell(each.valid), cell(each.known),
        ["value", "null", "omitted"].map((form) => el("td", { cls: "number" }, typeof each[form] === "number" && each[form] > 0 ? each[form].toLocaleString("en") : ""))))))),
  ]);
}

// -- what other commands say ---------------------------------------------------------------------------------------------------

function meter(count, of) {
  const share = of ? Math.round((100 * count) / of) : 0;
  return el("span", { cls: "meter" },
    el("span", { cls: "bar", "aria-hidden": "true" }, el("i", { cls: "passed", vars: { "flex-grow": String(count) } }), el("i", { cls: "rest", vars: { "flex-grow": String(of - count) } })),
    ` ${count.toLocaleString("en")} of ${of.toLocaleString("en")} (${share} %)`);
}

const kindsOf = (found) => Object.entries(found).filter(([, names]) => isObject(names));

function shownOf(found) {
  const all = kindsOf(found).flatMap(([, names]) => Object.values(names));
  return [all.filter((each) => each && each.case).length, all.length];
}

function coverage(found) {
  return el("div", {}, kindsOf(found).map(([kind, names]) => {
    const all = Object.entries(names);
    return opened([`${kind} `, meter(all.filter(([, each]) => each && each.case).length, all.length)], () =>
      el("ul", { cls: "names" }, all.sort(([, a], [, b]) => Boolean(a && a.case) - Boolean(b && b.case)).map(([name, each]) => seenName(name, each || {}))));
  }));
}

function seenName(name, each) {
  const shown = each.case && cases.get(each.case);
  return el("li", { cls: each.case ? "seen" : "not-seen" },
    el("span", { "aria-hidden": "true" }, each.case ? GLYPHS.passed : "\u25cb"), el("code", {}, name),
    each.case ? (shown ? el("a", { href: address(shown) }, each.case) : el("span", { cls: "muted" }, each.case)) : el("span", {}, "not seen"),
    each.refused && el("span", { cls: "tag" }, "only refused"),
    each.reason && el("span", { cls: "muted" }, each.reason));
}

function strengthOf(found) {
  const { variants, killed } = isObject(found.strength) ? found.strength : found;
  return typeof variants === "number" && typeof killed === "number" ? [meter(killed, variants), el("span", { cls: "muted" }, " broken variants caught")] : null;
}

// The variants, each with what is wrong with it and which checks tell; then whatever else the measurement says.
function strength(found) {
  const said = isObject(found.strength) ? found.strength : found;
  if (!isObject(said.wrong) || !isObject(said.kills)) return tree(found);
  const { wrong, kills, reasons, variants, killed, survivors, ...more } = said;
  const rows = Object.entries(wrong).map(([variant, what]) => ({ variant, "what is wrong": what,
    "told by": (kills[variant] || []).join(", ") || `NOTHING: ${(reasons || {})[variant] || "no check saw it"}` }));
  rows.sort((a, b) => Boolean(kills[a.variant]) - Boolean(kills[b.variant]));
  return [tree(more), rowsOf(rows, 1)];
}

// The drift in a line: of any JSON, since it comes from a file that may hold anything.
function driftOf(found) {
  const parts = [];
  if (found.from !== undefined && found.to !== undefined) parts.push(`${short(found.from)} \u2192 ${short(found.to)}`);
  for (const word of ["breaking", "additive"]) {
    const size = numberIn(found.counts, word);
    if (size !== null) parts.push(`${size.toLocaleString("en")} ${word}`);
  }
  const [changed, compared] = [numberIn(found.totals, "changed"), numberIn(found.totals, "compared")];
  if (changed !== null && compared !== null) parts.push(`${changed.toLocaleString("en")} of ${plural(compared, "case")} changed`);
  return parts.length ? el("span", { cls: "muted" }, parts.join(", ")) : null;
}

const short = (value) => textOf(value).slice(0, 120);
