// Builds the page. Whatever is data becomes text nodes and attributes of ours, never markup.

// el("p", {cls: "x", on: {click: f}}, "text", node): an element. Strings are shown by `visible`, so that nothing in them hides.
function el(tag, props, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [type, act] of Object.entries(value)) node.addEventListener(type, act);
    else if (name === "cls") node.className = value;
    else if (name === "vars") for (const [key, size] of Object.entries(value)) node.style.setProperty(key, size);
    else node.setAttribute(name, value === true ? "" : wellFormed(String(value)));
  }
  put(node, children);
  return node;
}

function put(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    if (child instanceof Node) node.append(child);
    else node.append(...visible(String(child)));
  }
  return node;
}

// A button that does something on this page.
function button(text, act, props) {
  return el("button", { type: "button", on: { click: act }, ...props }, text);
}

// Tell a screen reader what has happened.
function say(text) {
  document.getElementById("said").textContent = text;
}

// Call `act` when there has been no call for `wait` milliseconds.
function settled(act, wait) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(act, wait);
  };
}

const plural = (count, one, many) => `${count.toLocaleString("en")} ${count === 1 ? one : many || one + "s"}`;

function seconds(value) {
  if (typeof value !== "number") return "";
  if (value >= 120) return `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
  return value >= 10 ? `${value.toFixed(1)} s` : value >= 1 ? `${value.toFixed(2)} s` : `${Math.round(value * 1000)} ms`;
}

// A shell command with a button that copies it.
function command(text, label) {
  const code = el("code", { tabindex: "0" }, text);
  return el("div", { cls: "command" }, code, copier(text, label || "Copy the command"));
}

function copier(text, label) {
  const own = button("Copy", async () => {
    const done = await copy(text);
    own.textContent = done ? "Copied" : "Select and copy it by hand";
    say(own.textContent);
    setTimeout(() => { own.textContent = "Copy"; }, 2000);
  }, { cls: "copy", "aria-label": label, title: label });
  return own;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Not allowed here (a page that came over plain http): the old way.
    const area = el("textarea", { cls: "unseen", readonly: true });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
