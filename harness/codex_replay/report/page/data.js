// The data of the page: what the lists need is there at once, the rest is unpacked when it is asked for.

const data = JSON.parse(document.getElementById("data").textContent);
const OUTCOMES = ["failed", "known", "skipped", "passed"];
const GLYPHS = { passed: "\u2713", failed: "\u2715", known: "!", skipped: "\u2013" };
const unpacked = new Map();

// The whole page must have come before a chunk can be missing.
const arrived = new Promise((done) => {
  if (document.readyState !== "loading") done();
  else document.addEventListener("DOMContentLoaded", () => done());
});

// The value packed in the chunk of this name (c0: the first block of cases, s0: trace 0, d0: the drift), or null if there is none.
async function chunk(name) {
  if (unpacked.has(name)) return unpacked.get(name);
  if (!document.getElementById(name)) await arrived;
  const packed = document.getElementById(name);
  if (!packed) return null;
  const bytes = Uint8Array.from(atob(packed.textContent), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const value = JSON.parse(await new Response(stream).text());
  if (unpacked.size > 4) unpacked.delete(unpacked.keys().next().value); // a story may be large: keep the last few
  unpacked.set(name, value);
  return value;
}

data.cases.forEach((each, i) => {
  each.index = i;
  if (each.spec !== undefined) {
    const [document, section] = data.specs[each.spec];
    each.spec = { document, labels: labelsOf(section) };
  }
  each.found = `${each.id} ${each.title || ""} ${each.message || ""} ${each.check || ""}`.toLowerCase();
});

// The statements of a section, one label each: "PAY-07, PAY-08" are two.
function labelsOf(section) {
  return /^[A-Z]+-\d+(, [A-Z]+-\d+)*$/.test(section) ? section.split(", ") : [section];
}

// How many of these cases ended how.
function counted(cases) {
  const sums = { all: cases.length, failed: 0, known: 0, skipped: 0, passed: 0, seconds: 0 };
  for (const each of cases) {
    sums[each.outcome] += 1;
    sums.seconds += each.seconds || 0;
  }
  return sums;
}

function grouped(cases, key) {
  const groups = new Map();
  for (const each of cases) {
    const name = key(each);
    if (name === null || name === undefined) continue;
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(each);
  }
  return groups;
}

// The address of a case in this page.
function address(each) {
  try {
    return `#case=${encodeURIComponent(each.id)}`;
  } catch { // a lone surrogate has no address
    return `#number=${each.index}`;
  }
}

const addresses = new Map(data.cases.map((each) => [address(each), each]));
const cases = new Map(data.cases.map((each) => [each.id, each]));
