// The list of cases, and the filter over it.

function caseList() {
  const state = { outcome: "", suite: "", module: "", document: "", section: "", said: "" };
  let list = null;
  let walk = null;
  let shown = data.cases;

  const search = el("input", { type: "search", id: "search", placeholder: "Search cases", "aria-label": "Search cases by name, title, message or check",
    "aria-keyshortcuts": "/", spellcheck: "false", autocomplete: "off" });
  const suites = [...new Set(data.cases.map((each) => each.suite))];
  const select = (name, label, values) => {
    const node = el("select", { "aria-label": label }, el("option", { value: "" }, label), values.map((value) => el("option", { value }, value)));
    node.addEventListener("change", () => { state[name] = node.value; if (name === "suite") state.module = ""; show(); });
    return node;
  };
  const outcome = select("outcome", "All verdicts", OUTCOMES.filter((each) => data.cases.some((one) => one.outcome === each)));
  const suite = select("suite", "All suites", suites);
  const chips = el("div", { cls: "chips" });
  const count = el("span", { cls: "count" });
  const place = el("div", { cls: "cases" });

  function matches(each, words) {
    return (!state.outcome || each.outcome === state.outcome) && (!state.suite || each.suite === state.suite) &&
      (!state.module || each.module === state.module) && (!state.document || (each.spec && each.spec.document === state.document)) &&
      (!state.section || (each.spec && each.spec.section === state.section)) && (!state.said || data.alike[each.alike] === state.said) && words.every((word) => each.found.includes(word));
  }

  function show() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    // The worst stands first; otherwise the order of the run.
    shown = data.cases.filter((each) => matches(each, words))
      .sort((a, b) => OUTCOMES.indexOf(a.outcome) - OUTCOMES.indexOf(b.outcome) || a.index - b.index);
    if (list) list.stop();
    list = lazyList(shown.length, (i) => item(shown[i], words[0] || ""), 58, "Cases");
    walk = walker(list, (each) => each.firstChild);
    place.replaceChildren(list.node);
    if (!shown.length) place.append(el("p", { cls: "empty" }, data.cases.length ? "No case is like that." : "No case was run."));
    outcome.value = state.outcome;
    suite.value = state.suite;
    chips.replaceChildren(...["module", "document", "section", "said"].filter((name) => state[name]).map((name) =>
      button([`${name}: ${state[name]} `, el("span", { "aria-hidden": "true" }, "\u2715")], () => { state[name] = ""; show(); search.focus(); },
        { cls: "chip", "aria-label": `No longer only ${name} ${state[name]}` })));
    count.textContent = shown.length === data.cases.length ? plural(shown.length, "case") : `${shown.length.toLocaleString("en")} of ${plural(data.cases.length, "case")}`;
  }

  function item(each, word) {
    return el("div", { cls: `case ${each.outcome}` }, el("a", { href: address(each) },
      el("span", { cls: "glyph", title: each.outcome }, el("span", { "aria-hidden": "true" }, GLYPHS[each.outcome]), el("span", { cls: "unseen" }, each.outcome)),
      el("span", { cls: "title" }, word ? highlighted(each.title || each.id, word) : prose(each.title || each.id)),
      el("span", { cls: "id" }, highlighted(each.id, word)),
      el("span", { cls: "took" }, seconds(each.seconds)),
      each.message && el("span", { cls: "message" }, highlighted(each.message, word))));
  }

  const soon = settled(() => { show(); say(count.textContent); }, 80);
  search.addEventListener("input", soon);
  show();
  return {
    node: el("section", { cls: "list", id: "cases", "aria-labelledby": "cases-title" },
      el("div", { cls: "tools" }, el("h2", { id: "cases-title" }, "Cases"), search, outcome, suite, count),
      chips, place),
    search,
    move: (by) => walk.move(by),
    next() {},
    choose(wanted) {
      Object.assign(state, { outcome: "", suite: "", module: "", document: "", section: "", said: "" }, wanted);
      search.value = "";
      show();
      document.getElementById("cases").scrollIntoView({ block: "start" });
      say(count.textContent);
      search.focus({ preventScroll: true });
    },
    // The neighbours of a case in the list as it is filtered, and coming back to it.
    beside(each) {
      const at = shown.indexOf(each);
      return { before: at > 0 ? shown[at - 1] : null, after: at >= 0 ? shown[at + 1] : null };
    },
    back(each) {
      const at = shown.indexOf(each);
      if (at >= 0) walk.to(at);
    },
  };
}
