// The timeline of a case as a sequence diagram: who spoke to whom, frame by frame, each one opened when it is asked for.

const KINDS = { request: "request", response: "result", notification: "notification", error: "error", "http-request": "HTTP request",
  "http-response": "HTTP response", sse: "event", close: "end", bytes: "bytes" };
const MARKS = { different: "different", missing: "missing", unexpected: "unexpected" };

// The lifelines, from left to right, and between which of them each seam runs.
function lanesOf(frames, suite) {
  const rpc = frames.some((frame) => frame.seam === "rpc");
  const http = frames.some((frame) => frame.seam === "http");
  if (suite === "proxy" && rpc && http) return { names: ["client", "proxy", "app-server"], http: 0, rpc: 1 };
  if (suite === "proxy" && http) return { names: ["client", "proxy"], http: 0, rpc: 0 };
  if (suite === "proxy") return { names: ["proxy", "app-server"], http: 0, rpc: 0 };
  const client = suite === "editor_client" ? "editor" : "client";
  if (rpc && http) return { names: [client, "app-server", "backend"], rpc: 0, http: 1 };
  return http ? { names: [client, "backend"], http: 0, rpc: 0 } : { names: [client, "app-server"], rpc: 0, http: 0 };
}

// The whole view of a story: {node, walk, search, toggle(), next(), stop()}.
function sequence(story, suite) {
  const frames = story.frames;
  const lanes = lanesOf(frames, suite);
  const both = new Set(frames.map((frame) => frame.seam)).size > 1;
  const marked = frames.filter((frame) => frame.mark).length;
  const conns = new Set(frames.map((frame) => frame.conn).filter((conn) => conn !== null && conn !== undefined)).size;
  let list = null;
  let walk = null;
  let query = "";

  const search = el("input", { type: "search", placeholder: "Search in the frames", "aria-label": "Search in the frames",
    spellcheck: "false", autocomplete: "off" });
  const seam = el("select", { "aria-label": "Seam" },
    el("option", { value: "" }, "both seams"), el("option", { value: "rpc" }, "rpc only"), el("option", { value: "http" }, "http only"));
  const differing = el("input", { type: "checkbox", id: "differing" });
  const count = el("span", { cls: "count", "aria-live": "polite" });
  const diagram = el("div", { cls: `sequence lanes-${lanes.names.length}` });

  function chosen() {
    const needle = query.toLowerCase();
    return frames.filter((frame) => (!seam.value || frame.seam === seam.value) && (!differing.checked || frame.mark) &&
      (!needle || frame.what.toLowerCase().includes(needle) || frame.text.toLowerCase().includes(needle) ||
        (frame.expected || "").toLowerCase().includes(needle)));
  }

  function show() {
    query = search.value.trim();
    const some = chosen();
    if (list) list.stop();
    list = lazyList(some.length, (i) => row(some[i]), 34, "Frames");
    walk = walker(list, (each) => each.querySelector(".line-head"));
    count.textContent = some.length === frames.length ? plural(frames.length, "frame") : `${some.length.toLocaleString("en")} of ${plural(frames.length, "frame")}`;
    diagram.replaceChildren(
      el("div", { cls: "lanes", "aria-hidden": "true" }, lanes.names.map((name) => el("span", {}, name))),
      el("div", { cls: "lifelines", "aria-hidden": "true" }, lanes.names.map(() => el("i", {}))),
      list.node);
    if (!some.length) diagram.append(el("p", { cls: "empty" }, "No frame matches."));
    diagram.shown = some;
  }

  function row(frame) {
    const right = frame.from === "client";
    const segment = lanes[frame.seam];
    const [from, to] = right ? [lanes.names[segment], lanes.names[segment + 1]] : [lanes.names[segment + 1], lanes.names[segment]];
    const inWhat = query && frame.what.toLowerCase().includes(query.toLowerCase());
    const head = el("button", { type: "button", cls: "line-head", "aria-expanded": "false" },
      el("span", { cls: "when" }, typeof frame.t === "number" ? frame.t.toFixed(3) : "\u2013"),
      el("span", { cls: `arrow segment-${segment} ${right ? "right" : "left"}` },
        el("span", { cls: "unseen" }, `frame ${frame.n}, ${from} to ${to}, ${KINDS[frame.kind] || frame.kind}: `),
        frame.mark && el("span", { cls: "mark" }, MARKS[frame.mark] || frame.mark),
        el("span", { cls: "what" }, highlighted(frame.what, query)),
        conns > 1 && frame.conn !== null && frame.conn !== undefined && el("span", { cls: "conn" }, `(${frame.conn})`),
        el("span", { cls: "glance" }, query && !inWhat ? around(frame.text, query) : glance(frame.text || frame.expected || "", 140, frame.what))));
    const node = el("div", { cls: `frame ${frame.seam} kind-${frame.kind} ${frame.mark ? "marked" : ""}` }, head);
    head.addEventListener("click", () => toggle(node, frame, from, to));
    return node;
  }

  function toggle(node, frame, from, to) {
    const open = node.classList.toggle("open");
    node.firstChild.setAttribute("aria-expanded", String(open));
    if (open) node.append(body(frame, from, to));
    else node.lastChild.remove();
  }

  search.addEventListener("input", settled(() => { show(); say(count.textContent); }, 120));
  seam.addEventListener("change", show);
  differing.addEventListener("change", show);
  const next = button("Next difference", () => self.next(), { cls: "next" });
  show();
  const self = {
    node: el("section", { cls: "story", "aria-labelledby": "story-title" },
      el("h2", { id: "story-title" }, "Traffic"),
      data.mode === "report" && el("p", { cls: "about" }, provenance(story)),
      story.truncated && el("p", { cls: "notice" }, "This trace is cut: only a part of the traffic is kept."),
      frames.length ? [
        el("div", { cls: "tools" }, search, both && seam,
          marked > 0 && [el("label", { cls: "check" }, differing, "differences only"), next],
          count),
        diagram] : el("p", { cls: "empty" }, "The trace has no frames.")),
    search,
    move: (by) => walk && walk.move(by),
    next() {
      const at = diagram.shown.findIndex((frame, i) => i > walk.here() && frame.mark);
      const i = at < 0 ? diagram.shown.findIndex((frame) => frame.mark) : at;
      if (i < 0) return;
      walk.to(i);
      const node = list.row(i);
      if (!node.classList.contains("open")) node.firstChild.click();
      node.scrollIntoView({ block: "start" });
    },
    stop: () => list && list.stop(),
  };
  return self;
}

function provenance(story) {
  if (story.source === "recorded") {
    return story.cassette ? ["As recorded in ", el("code", {}, story.cassette), "; the run said the same."] : "As recorded.";
  }
  return story.cassette ? ["The traffic of this run, compared with ", el("code", {}, story.cassette), "."] : "The traffic of this run.";
}

// The place where the query stands in a text.
function around(text, query) {
  const at = text.toLowerCase().indexOf(query.toLowerCase());
  if (at < 0) return "";
  const from = Math.max(0, at - 30);
  return [from > 0 ? "..." : "", ...highlighted(text.slice(from, at + query.length + 90), query)];
}

// An opened frame.
function body(frame, from, to) {
  const notes = notesOf(frame);
  const place = el("div", { cls: "place" });
  const compared = frame.expected !== null && frame.expected !== undefined;
  const views = compared && frame.text ? [["Compared", () => comparison(frame.expected, frame.text, notes)]] : [];
  if (frame.text) views.push(["Laid out", () => laidOut(frame.text, notes)], ["As it was", () => el("pre", { cls: "text", tabindex: "0" }, frame.text)]);
  if (compared && (!frame.text || frame.mark === "missing")) views.push(["Expected", () => laidOut(frame.expected, notes)]);
  const tabs = views.map(([name, make]) => button(name, () => choose(name, make), { "aria-pressed": "false" }));
  function choose(name, make) {
    for (const tab of tabs) tab.setAttribute("aria-pressed", String(tab.textContent === name));
    place.replaceChildren(make());
  }
  if (views.length) choose(...views[0]);
  const sentence = {
    missing: "This frame was expected here, but was not sent.",
    unexpected: "This frame was sent, but was not expected.",
    different: "This frame differs from the expected frame.",
  }[frame.mark];
  return el("div", { cls: "body" },
    sentence && el("p", { cls: "sentence" }, sentence),
    frame.cut && el("p", { cls: "notice" }, frame.cut > frame.text.length ? `Shown are the first ${plural(frame.text.length, "character")} of ${frame.cut.toLocaleString("en")}.`
      : "This frame was cut when it was recorded, because it is long."),
    el("dl", { cls: "facts" },
      fact("frame", `${frame.n}, ${from} \u2192 ${to}, ${KINDS[frame.kind] || frame.kind}${frame.conn === null || frame.conn === undefined ? "" : `, connection ${frame.conn}`}`),
      fact("differs at", frame.paths), fact("bound", frame.bound), fact("masked", frame.masked)),
    el("div", { cls: "tabs", role: "group", "aria-label": "How to show the frame" }, tabs, frame.text && copier(frame.text, "Copy the frame")),
    place);
}

function fact(name, values) {
  const all = (Array.isArray(values) ? values : [values]).filter((each) => each !== null && each !== undefined && each !== "");
  if (!all.length) return null;
  const many = all.length > 12;
  const items = all.map((each) => el("span", { cls: "chip" }, typeof each === "string" ? each : JSON.stringify(each)));
  return [el("dt", {}, name), el("dd", {}, many ? el("details", {}, el("summary", {}, plural(all.length, "place")), items) : items)];
}
