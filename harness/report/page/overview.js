// The top of the page: the verdict, then where it comes from.

const WORDS = { verified: "Verified", failed: "Failed", "nothing verified": "Nothing verified" };
const GOOD = { verified: "passed", failed: "failed" };

function overview(choose) {
  const sums = counted(data.cases);
  const subjects = Object.entries(data.subject || {}).map(([role, name]) => `${role} ${name}`).join(", ");
  return [
    el("header", { cls: `verdict ${GOOD[data.verdict] || "known"}` },
      el("p", { cls: "product" }, "codex-replay"),
      el("h1", { tabindex: "-1" }, WORDS[data.verdict] || data.verdict),
      el("p", {}, sentence(sums, subjects)),
      bar(sums, true),
      el("div", { cls: "tiles" }, OUTCOMES.filter((outcome) => sums[outcome] || outcome === "failed" || outcome === "passed")
        .map((outcome) => button([el("b", {}, sums[outcome].toLocaleString("en")), badge(outcome)], () => choose({ outcome }), { cls: "tile" })))),
    facts(),
    data.runs && panel("runs", `${plural(data.runs.length, "run")} joined`, () => tree(data.runs), true),
    el("div", { cls: "panels" },
      panel("suites", "By suite", () => bySuite(choose), true),
      data.cases.some((each) => each.spec) && panel("documents", "By spec document", () => byDocument(choose), true)),
    data.coverage && panel("coverage", ["Protocol shown ", meter(...shownOf(data.coverage))], () => coverage(data.coverage)),
    data.strength && panel("strength", ["Strength ", strengthOf(data.strength)], () => tree(data.strength)),
    data.drift && panel("drift", ["Drift ", driftOf(data.drift)], () => tree(data.drift)),
  ];
}

function sentence(sums, subjects) {
  const of = `${subjects || "no subject"} (Codex ${data.codex}), profile ${data.profile}${data.validated === false ? "; frames not validated" : ""}`;
  const parts = OUTCOMES.filter((outcome) => sums[outcome]).map((outcome) => `${sums[outcome].toLocaleString("en")} ${outcome === "known" ? "known to fail" : outcome}`);
  return `${plural(sums.all, "case")}: ${parts.join(", ") || "none"}. ${of}.`;
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

function row(name, some, act) {
  const sums = counted(some);
  return el("tr", { cls: sums.failed ? "bad" : "" },
    el("th", { scope: "row" }, button(name, act, { cls: "link" })),
    el("td", { cls: "bars" }, bar(sums)),
    ["passed", "failed", "known", "skipped"].map((outcome) => el("td", { cls: `number ${sums[outcome] ? outcome : "none"}`, "data-name": outcome }, sums[outcome])),
    el("td", { cls: "number" }, seconds(sums.seconds)));
}

const HEADINGS = ["passed", "failed", "known", "skipped"];

function table(first, rows, label) {
  return el("table", { cls: "sums", "aria-label": label },
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, first), el("th", { cls: "bars" }, ""),
      HEADINGS.map((name) => el("th", { scope: "col", cls: "number", title: name }, el("span", { "aria-hidden": "true" }, GLYPHS[name]), el("span", { cls: "unseen" }, name))),
      el("th", { scope: "col", cls: "number" }, "time"))),
    el("tbody", {}, rows));
}

function bySuite(choose) {
  const suites = [...grouped(data.cases, (each) => each.suite)];
  return suites.map(([suite, some]) => {
    const modules = [...grouped(some, (each) => each.module)].sort(worstFirst);
    const whole = table("suite", [row(suite, some, () => choose({ suite }))], suite);
    if (modules.length < 2) return whole;
    const inner = opened(plural(modules.length, "module"), () =>
      table("module", modules.map(([module, own]) => row(module, own, () => choose({ suite, module }))), suite));
    return [whole, inner];
  });
}

function worstFirst(a, b) {
  return counted(b[1]).failed - counted(a[1]).failed;
}

function byDocument(choose) {
  const held = data.cases.filter((each) => each.spec);
  return [...grouped(held, (each) => each.spec.document)].map(([document, some]) => {
    const sections = [...grouped(some, (each) => each.spec.section)].sort(worstFirst);
    return [
      table("document", [row(document, some, () => choose({ document }))], document),
      opened(plural(sections.length, "section"), () =>
        table("section", sections.map(([section, own]) => row(section || "(no section)", own, () => choose({ document, section }))), document)),
    ];
  });
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
  return typeof variants === "number" && typeof killed === "number" ? [meter(killed, variants), " broken variants caught"] : null;
}

function driftOf(found) {
  const parts = [];
  if (found.from !== undefined && found.to !== undefined) parts.push(`${short(found.from)} \u2192 ${short(found.to)}`);
  for (const word of ["breaking", "additive"]) {
    const value = found[word] ?? (found.totals || found.counts || {})[word];
    const size = Array.isArray(value) ? value.length : value;
    if (typeof size === "number") parts.push(`${size.toLocaleString("en")} ${word}`);
  }
  return parts.length ? el("span", { cls: "muted" }, parts.join(", ")) : null;
}

const short = (value) => typeof value === "string" ? value : (value && (value.version || value.name)) || JSON.stringify(value);
