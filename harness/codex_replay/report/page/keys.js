// The keyboard: everything can be done without a mouse.

const KEYS = [["/", "search"], ["j k, or the arrows in a list", "down and up the list"], ["Enter", "open or fold what has the focus"],
  ["Esc", "leave the search, then the case"], ["n p", "the next and the previous case"], ["d", "the next difference"], ["?", "this help"]];

function listen(current, leave) {
  const help = document.getElementById("help");
  put(help, [el("h2", { id: "help-title" }, "Keys"), el("dl", { cls: "facts" }, KEYS.map(([key, what]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, what)])),
    el("form", { method: "dialog" }, el("button", {}, "Close"))]);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "checkbox";
    const view = findingsAround(event.target) || current(); // who stands in the drift walks there
    const used = typing ? typed(event, view) : pressed(event, view, leave, help);
    if (used) event.preventDefault();
  });
}

function typed(event, view) {
  if (event.key === "Escape") {
    if (event.target.value && event.target.type === "search") {
      event.target.value = "";
      event.target.dispatchEvent(new Event("input"));
    } else event.target.blur();
    return true;
  }
  if (event.target.type === "search" && (event.key === "ArrowDown" || event.key === "Enter")) {
    view.move(1);
    return true;
  }
  return false;
}

function pressed(event, view, leave, help) {
  const inList = event.target.closest(".lazy");
  const by = { j: 1, k: -1, ...(inList && { ArrowDown: 1, ArrowUp: -1 }) }[event.key];
  if (by) view.move(by);
  else if (event.key === "/" && view.search) {
    view.search.focus();
    view.search.select();
  } else if (event.key === "Escape") leave();
  else if (event.key === "n" || event.key === "p") {
    const link = document.querySelector(`a.step[aria-keyshortcuts="${event.key}"]`);
    if (link) link.click();
  } else if (event.key === "d") view.next();
  else if (event.key === "?") help.showModal();
  else return false;
  return true;
}
