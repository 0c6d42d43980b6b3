// The list of cases: one part for each verdict, and the filter over all of them.

// How many failed cases are shown before the reader asks for more: the tables below must not be a day's scrolling away.
const FIRST = 20;
const NO_CHOICE = { outcome: "", suite: "", module: "", document: "", label: "", said: "" };

function caseList() {
  const state = { ...NO_CHOICE };
  const failing = data.cases.some((each) => each.outcome === "failed");
  const folded = new Map(); // what the reader has opened or folded himself
  let all = false; // whether every failed case is shown
  let lists = [];
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
      (!state.label || (each.spec && each.spec.labels.includes(state.label))) && (!state.said || data.alike[each.alike] === state.said) && words.every((word) => each.found.includes(word));
  }

  function show() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = words.length > 0 || Object.values(state).some(Boolean);
    // The worst stands first; otherwise the order of the run.
    shown = data.cases.filter((each) => matches(each, words))
      .sort((a, b) => OUTCOMES.indexOf(a.outcome) - OUTCOMES.indexOf(b.outcome) || a.index - b.index);
    for (const each of lists) each.stop();
    lists = [];
    place.replaceChildren(...[...grouped(shown, (each) => each.outcome)].map(([name, some]) => part(name, some, words[0] || "", chosen)));
    walk = walker(joined(lists), (each) => each.firstChild);
    if (!shown.length) place.append(el("p", { cls: "empty" }, data.cases.length ? "No case matches. Change the search or the filters." : "No case was run."));
    outcome.value = state.outcome;
    suite.value = state.suite;
    chips.replaceChildren(...["module", "document", "label", "said"].filter((name) => state[name]).map((name) =>
      button([`${name === "said" ? "message" : name === "label" ? "statement" : name}: ${state[name]} `, el("span", { "aria-hidden": "true" }, "\u2715")], () => { state[name] = ""; show(); search.focus(); },
        { cls: "chip", "aria-label": `Remove the filter ${name} ${state[name]}` })));
    count.textContent = shown.length === data.cases.length ? plural(shown.length, "case") : `${shown.length.toLocaleString("en")} of ${plural(data.cases.length, "case")}`;
  }

  // The cases of one verdict. Known and skipped cases are folded, and passed ones beside failed ones, until someone asks for them.
  function part(name, some, word, chosen) {
    const open = folded.get(name) ?? (chosen || name === "failed" || (name === "passed" && !failing));
    const size = open && name === "failed" && !chosen && !all ? Math.min(FIRST, some.length) : some.length;
    const heading = el("h3", {}, button([el("span", { cls: "more", "aria-hidden": "true" }, "\u25b8"), badge(name), el("span", { cls: "size" }, some.length.toLocaleString("en"))],
      () => { folded.set(name, !open); show(); place.querySelector(`.${name} .fold`).focus(); }, { cls: "fold", "aria-expanded": String(open) }));
    if (!open) return el("section", { cls: `part ${name}` }, heading);
    const list = lazyList(size, (i) => item(some[i], word), 58, `${name} cases`);
    list.first = shown.indexOf(some[0]);
    lists.push(list);
    return el("section", { cls: `part ${name}` }, heading, list.node,
      size < some.length && button(`Show all ${some.length.toLocaleString("en")} failed cases`, () => { all = true; show(); }, { cls: "rest-of" }));
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
      Object.assign(state, NO_CHOICE, wanted);
      folded.clear();
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
      if (!shown.includes(each)) return;
      if (!lists.some((list) => holds(list, each))) {
        folded.set(each.outcome, true);
        all = true;
        show();
      }
      let before = 0;
      for (const list of lists) {
        if (holds(list, each)) return void walk.to(before + shown.indexOf(each) - list.first);
        before += list.count;
      }
    },
  };

  function holds(list, each) {
    const at = shown.indexOf(each) - list.first;
    return at >= 0 && at < list.count;
  }
}

// Several lists as one, for the cursor that walks them.
function joined(lists) {
  return {
    count: lists.reduce((sum, list) => sum + list.count, 0),
    row(i) {
      for (const list of lists) {
        if (i < list.count) return list.row(i);
        i -= list.count;
      }
      return null;
    },
  };
}
