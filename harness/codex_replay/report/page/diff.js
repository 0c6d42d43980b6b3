// Where two texts differ: by line first, then by character within lines that stand for each other.

const MOST_CELLS = 4e6;

// Pairs [i, j] of equal members of a and b, in order (a longest common subsequence; of lists too long for that, their ends).
function common(a, b) {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let ends = 0;
  while (ends < Math.min(a.length, b.length) - start && a[a.length - 1 - ends] === b[b.length - 1 - ends]) ends += 1;
  const n = a.length - start - ends;
  const m = b.length - start - ends;
  const pairs = Array.from({ length: start }, (_, i) => [i, i]);
  if (n && m && n * m <= MOST_CELLS) {
    const width = m + 1;
    const best = new Uint16Array((n + 1) * width);
    for (let i = n - 1; i >= 0; i -= 1) {
      for (let j = m - 1; j >= 0; j -= 1) {
        const here = i * width + j;
        best[here] = a[start + i] === b[start + j] ? best[here + width + 1] + 1 : Math.max(best[here + width], best[here + 1]);
      }
    }
    for (let i = 0, j = 0; i < n && j < m;) {
      if (a[start + i] === b[start + j]) { pairs.push([start + i, start + j]); i += 1; j += 1; }
      else if (best[(i + 1) * width + j] >= best[i * width + j + 1]) i += 1;
      else j += 1;
    }
  }
  for (let k = ends; k > 0; k -= 1) pairs.push([a.length - k, b.length - k]);
  return pairs;
}

// Rows {left, right, same} of indices (null: nothing stands there). Lines that differ are paired by label (a JSON path) where
// there is one, else one by one.
function aligned(a, b, labelsA, labelsB) {
  const rows = [];
  let i = 0;
  let j = 0;
  const changed = (toI, toJ) => {
    const named = labelsA && labelsB;
    const pairs = named ? common(labelsA.slice(i, toI), labelsB.slice(j, toJ)).map(([x, y]) => [i + x, j + y])
      : Array.from({ length: Math.min(toI - i, toJ - j) }, (_, k) => [i + k, j + k]);
    for (const [x, y] of [...pairs, [toI, toJ]]) {
      for (; i < x; i += 1) rows.push({ left: i, right: null, same: false });
      for (; j < y; j += 1) rows.push({ left: null, right: j, same: false });
      if (x < toI && y < toJ) { rows.push({ left: x, right: y, same: false }); i = x + 1; j = y + 1; }
    }
  };
  for (const [x, y] of [...common(a, b), [a.length, b.length]]) {
    changed(x, y);
    if (x < a.length && y < b.length) { rows.push({ left: x, right: y, same: true }); i = x + 1; j = y + 1; }
  }
  return rows;
}

// Two lines as pieces [text, differs], by character.
function byCharacter(left, right) {
  const a = Array.from(left);
  const b = Array.from(right);
  const pairs = a.length * b.length <= 1e6 ? common(a, b) : common([...left.split(/\b/)], [...right.split(/\b/)]);
  const split = a.length * b.length <= 1e6 ? [a, b] : [left.split(/\b/), right.split(/\b/)];
  return [0, 1].map((side) => pieces(split[side], new Set(pairs.map((pair) => pair[side]))));
}

function pieces(characters, same) {
  const found = [];
  characters.forEach((character, i) => {
    const differs = !same.has(i);
    if (found.length && found[found.length - 1][1] === differs) found[found.length - 1][0] += character;
    else found.push([character, differs]);
  });
  // One or two equal characters between differences are chance, not meaning.
  const calm = [];
  found.forEach(([text, differs], i) => {
    const chance = !differs && text.length < 3 && i > 0 && i < found.length - 1;
    const kind = differs || chance;
    if (calm.length && calm[calm.length - 1][1] === kind) calm[calm.length - 1][0] += text;
    else calm.push([text, kind]);
  });
  return calm;
}
