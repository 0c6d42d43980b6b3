// The page put together: the overview with its list, or one case, as the address says; or one cassette, or one drift.

const main = document.getElementById("main");
const name = document.title;
let view = null;

function cassettePage() {
  const opened = caseView(data.cases[0], {});
  const about = Object.entries(data.about);
  main.append(
    el("header", { cls: "case-head" }, el("p", { cls: "product" }, "codex-replay"), el("h1", { tabindex: "-1" }, data.cases[0].id),
      el("p", { cls: "muted" }, about.map(([key, value]) => `${key} ${value}`).join(" \u00b7 "))),
    opened.node);
  listen(() => opened, () => {});
  opened.ready.then(ready);
}

// One drift, with nothing beside it.
function driftPage() {
  const views = [];
  const shown = driftPanel(views);
  main.append(
    el("header", { cls: "case-head" }, el("p", { cls: "product" }, "codex-replay"),
      el("h1", { tabindex: "-1" }, `${data.drift.behaviour === undefined ? "Drift" : "Behavioural drift"} from ${short(data.drift.from)} to ${short(data.drift.to)}`)),
    shown.node);
  listen(() => views[0] || { move: () => {}, next: () => {}, search: null }, () => {});
  shown.ready.then(ready);
}

function reportPage() {
  const list = caseList();
  const home = el("div", { cls: "home" }, overview((wanted) => list.choose(wanted), list.node),
    el("footer", { cls: "foot" }, button("Keys", () => document.getElementById("help").showModal(), { "aria-keyshortcuts": "?" })));
  main.append(home);
  let from = null; // the case that was left, and where the page stood before it
  let stood = 0;

  function route() {
    const each = addresses.get(location.hash);
    const statement = location.hash.startsWith("#statement=") && location.hash.slice("#statement=".length);
    if (view) {
      view.stop();
      view.node.remove();
      view = null;
    }
    if (!each) {
      home.hidden = false;
      document.title = name;
      if (statement) {
        from = null;
        list.choose({ label: statement });
      } else if (from) {
        window.scrollTo(0, stood);
        list.back(from);
        from = null;
      }
      return;
    }
    if (!from) stood = window.scrollY;
    from = each;
    home.hidden = true;
    view = caseView(each, list.beside(each));
    main.append(view.node);
    document.title = `${wellFormed(each.title || each.id)} - ${name}`;
    window.scrollTo(0, 0);
    view.node.querySelector("h1").focus({ preventScroll: true });
    view.ready.then(() => { document.documentElement.dataset.shown = each.index; });
  }

  listen(() => view || list, () => { if (view) location.hash = ""; });
  window.addEventListener("hashchange", route);
  route();
  ready();
}

// How long it took from the beginning of the page until it can be used, for whoever measures.
function ready() {
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

if (data.mode === "cassette") cassettePage();
else if (data.mode === "drift") driftPage();
else reportPage();
