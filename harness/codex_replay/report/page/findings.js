// Findings of any number: folded in groups, filtered, found by text. Only what is near the window exists.

const FEW = 40; // so many findings stand open at once
const viewsOfFindings = new WeakMap();

// The view of findings that an element stands in, if it stands in one: the keys are for it then.
function findingsAround(node) {
  const place = node.closest(".findings");
  return place && viewsOfFindings.get(place);
}

// `items` are {group, found (lower case), ...} in their order. `how` says: {what: "change", selects: [{key, label, of(item)}],
// first: what is chosen at first, loud(item): whether it goes first, head(name, items, word), row(item, word)}.
function findingsView(items, how) {
  const state = {};
  let lists = [];
  let walk = null;
  let groups = [];

  const search = el("input", { type: "search", placeholder: `Search ${how.what}s`, "aria-label": `Search ${how.what}s by any text in them`,
    spellcheck: "false", autocomplete: "off" });
  const selects = how.selects.map(({ key, label, of }) => {
    const values = [...new Set(items.map(of))].filter((value) => value !== null);
    const node = el("select", { "aria-label": label, hidden: values.length < 2 },
      el("option", { value: "" }, label), values.map((value) => el("option", { value }, value)));
    node.addEventListener("change", () => { state[key] = node.value; show(); });
    return { key, of, node };
  });
  const count = el("span", { cls: "count" });
  const place = el("div", { cls: "groups" });

  function show() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const some = items.filter((item) => selects.every(({ key, of }) => !state[key] || wellFormed(of(item) || "") === state[key]) &&
      words.every((word) => item.found.includes(word)));
    groups = [...grouped(some, (item) => item.group)].map(([name, own]) => ({ name, own: loudFirst(own, how.loud), loud: own.some(how.loud) }));
    groups = loudFirst(groups, (group) => group.loud);
    for (const each of lists) each.stop();
    const open = some.length <= FEW;
    const list = lazyList(groups.length, (i) => groupRow(groups[i], words[0] || "", open), 54, `${how.what}s, in groups`);
    lists = [list, ...lists.filter((each) => list.node.contains(each.node))];
    walk = walker(list, (each) => each.querySelector(".group-head"));
    place.replaceChildren(list.node);
    if (!some.length) place.append(el("p", { cls: "empty" }, items.length ? `No ${how.what} matches.` : `There is no ${how.what}.`));
    for (const { key, node } of selects) node.value = state[key] || "";
    count.textContent = some.length === items.length ? plural(items.length, how.what) : `${some.length.toLocaleString("en")} of ${plural(items.length, how.what)}`;
  }

  function groupRow({ name, own }, word, open) {
    const head = el("button", { type: "button", cls: "group-head", "aria-expanded": "false" },
      el("span", { cls: "more", "aria-hidden": "true" }, "\u25b8"), how.head(name, own, word));
    const node = el("div", { cls: "group" }, head);
    let inner = null;
    const toggle = () => {
      const opens = node.classList.toggle("open");
      head.setAttribute("aria-expanded", String(opens));
      if (!opens) {
        inner.stop();
        inner.node.remove();
        return;
      }
      inner = lazyList(own.length, (i) => how.row(own[i], word), 96, `${how.what}s of ${name}`);
      lists.push(inner);
      node.append(inner.node);
    };
    head.addEventListener("click", toggle);
    if (open) toggle();
    return node;
  }

  const next = () => {
    const after = groups.findIndex((group, i) => i > walk.here() && group.loud);
    walk.to(after < 0 ? 0 : after);
  };
  search.addEventListener("input", settled(() => { show(); say(count.textContent); }, 80));
  Object.assign(state, how.first);
  show();
  const self = {
    node: el("div", { cls: "findings" }, el("div", { cls: "tools" }, search, selects.map(({ node }) => node), count), place),
    search,
    move: (by) => walk.move(by),
    next,
    stop: () => lists.forEach((each) => each.stop()),
    choose(wanted) {
      for (const { key } of selects) state[key] = wanted[key] || "";
      search.value = "";
      show();
      say(count.textContent);
      self.node.scrollIntoView({ block: "start" });
      search.focus({ preventScroll: true });
    },
  };
  viewsOfFindings.set(self.node, self);
  return self;
}

function loudFirst(some, loud) {
  return [...some.filter((each) => loud(each)), ...some.filter((each) => !loud(each))];
}

// How many findings the greatest group has.
const greatest = (items) => [...grouped(items, (item) => item.group)].reduce((most, [, own]) => Math.max(most, own.length), 1);

// How much of the greatest group this one is, for who looks: [class, number] each.
function share(parts, most) {
  const all = parts.reduce((sum, [, size]) => sum + size, 0);
  return el("span", { cls: "bar share", "aria-hidden": "true" },
    [...parts, ["rest", Math.max(0, most - all)]].filter(([, size]) => size).map(([cls, size]) => el("i", { cls, vars: { "flex-grow": String(size) } })));
}

// A number that chooses what it counts.
function tile(number, cls, glyph, name, act) {
  return button([el("b", {}, number.toLocaleString("en")),
    el("span", { cls: `badge ${cls}` }, el("span", { "aria-hidden": "true" }, glyph), ` ${name}`)], act, { cls: "tile" });
}

// Names of cases, those of this report as links.
function caseNames(names) {
  const shown = names.slice(0, MOST_TABLE);
  return [el("ul", { cls: "names" }, shown.map((name) =>
    el("li", {}, cases.has(name) ? el("a", { href: address(cases.get(name)) }, name) : el("code", {}, name)))), moreOf(names)];
}

const moreOf = (some) => some.length > MOST_TABLE && el("p", { cls: "muted" }, `and ${(some.length - MOST_TABLE).toLocaleString("en")} more in the JSON`);

// Any value as one text: what should be a text and is none still shows.
const textOf = (value) => typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value);
const listOf = (value) => Array.isArray(value) ? value : [];
const numberIn = (value, key) => isObject(value) && typeof value[key] === "number" ? value[key] : null;
