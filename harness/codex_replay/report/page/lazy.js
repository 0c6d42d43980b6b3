// A list of any length: blocks of rows, of which only those near the window exist.

const BLOCK = 50;

// `make(i)` builds row i, `estimate` is its height in pixels. Returns {node, row(i), stop()}.
function lazyList(count, make, estimate, label) {
  const node = el("div", { cls: "lazy", role: "list", "aria-label": label });
  const blocks = [];
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const block = blocks[entry.target.dataset.block];
      if (entry.isIntersecting) fill(block);
      else if (entry.boundingClientRect.height > 0) drop(block, entry.boundingClientRect.height);
    }
  }, { rootMargin: "1200px 0px" });

  function fill(block) {
    if (block.filled) return;
    block.filled = true;
    const rows = [];
    for (let i = block.from; i < block.to; i += 1) {
      const row = make(i);
      row.setAttribute("role", "listitem");
      row.setAttribute("aria-setsize", count);
      row.setAttribute("aria-posinset", i + 1);
      rows.push(row);
    }
    block.node.replaceChildren(...rows);
    block.node.style.removeProperty("height");
  }

  function drop(block, height) {
    // What the reader has opened, or stands in, stays.
    if (!block.filled || block.node.querySelector(".open") || block.node.contains(document.activeElement)) return;
    block.filled = false;
    block.node.style.setProperty("height", `${height}px`);
    block.node.replaceChildren();
  }

  for (let from = 0; from < count; from += BLOCK) {
    const to = Math.min(from + BLOCK, count);
    const block = { from, to, filled: false, node: el("div", { role: "presentation", "data-block": blocks.length }) };
    block.node.style.setProperty("height", `${(to - from) * estimate}px`);
    blocks.push(block);
    node.append(block.node);
  }
  if (blocks.length) fill(blocks[0]);
  for (const block of blocks) watcher.observe(block.node);
  return {
    node,
    count,
    row(i) {
      const block = blocks[Math.floor(i / BLOCK)];
      if (!block) return null;
      fill(block);
      return block.node.children[i - block.from];
    },
    stop: () => watcher.disconnect(),
  };
}

// A cursor that walks the rows of a list by keys: `focus(row)` is what takes the focus of a row.
function walker(list, focus) {
  let at = -1;
  const to = (i) => {
    if (!list.count) return;
    at = Math.max(0, Math.min(list.count - 1, i));
    const target = focus(list.row(at));
    target.focus({ preventScroll: true });
    target.scrollIntoView({ block: "nearest" });
  };
  return { move: (by) => to(at + by), to, here: () => at, set: (i) => { at = i; } };
}
