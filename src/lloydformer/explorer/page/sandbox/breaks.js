// What is broken on purpose: heads switched off, frozen or asked evenly, subspaces erased, attention set by hand.

const like = (matrix, data) => ({ rows: matrix.rows, cols: matrix.cols, data });

/** {name of the intermediate: function} for one broken thing; `clean` is the trace of the whole circuit. */
function replacements(one, circuit, clean) {
  const everywhere = `layers.*.${one.name}`;
  switch (one.kind) {
    case "off": return [[`${everywhere}.output`, (old) => like(old, new Float64Array(old.data.length))]];
    case "uniform": return [[`${everywhere}.attention`, (old) => like(old, new Float64Array(old.data.length).fill(1 / old.cols))]];
    case "freeze": return frozen(one, clean);
    case "erase": return [[`${everywhere}_tokens`, (old) => erased(old, circuit.subspaces.find((s) => s.name === one.subspace))]];
    case "patch": return one.layer < clean.nLayers ? [[`layers.${one.layer}.${one.name}.attention`, (old) => oneHot(old, one)]] : [];
    default: return [];
  }
}

function frozen({ name, layer }, clean) {
  const at = Math.min(layer, clean.nLayers - 1);
  const map = clean.get(`layers.${at}.${name}.attention`);
  return Array.from({ length: clean.nLayers - at }, (_, t) => [`layers.${at + t}.${name}.attention`, () => map]);
}

function erased(old, subspace) {
  const data = old.data.slice();
  if (!subspace) return like(old, data);
  for (let row = 0; row < old.rows; row += 1) data.fill(0, row * old.cols + subspace.start, row * old.cols + subspace.stop);
  return like(old, data);
}

function oneHot(old, { row, column }) {
  const data = old.data.slice();
  if (row >= old.rows || column >= old.cols) return like(old, data);
  data.fill(0, row * old.cols, (row + 1) * old.cols);
  data[row * old.cols + column] = 1;
  return like(old, data);
}

/** Hooks for `circuit.run`; what no longer fits the recipe is passed over. */
export function hooksOf(breaks, circuit, clean) {
  const names = clean.names();
  const known = (name) => names.includes(name.replace("*", "0"));
  const hooks = new Map();
  for (const [name, change] of breaks.flatMap((one) => applies(one, known) ? replacements(one, circuit, clean) : [])) {
    const before = hooks.get(name);
    hooks.set(name, before ? (old) => change(before(old)) : change);
  }
  return hooks;
}

const applies = (one, known) => known(`layers.*.${one.name}${one.kind === "erase" ? "_tokens" : ".output"}`);

/** The heads that something is done to. */
export const brokenHeads = (breaks) => new Set(breaks.filter((one) => one.kind !== "erase").map((one) => one.name));

/** A sentence for each broken thing. */
export function breakWords(one, title) {
  return {
    off: () => `${title} is switched off`,
    uniform: () => `${title} asks everyone evenly`,
    freeze: () => `${title} is frozen from layer ${one.layer + 1} on`,
    erase: () => `${one.subspace} is erased from the ${one.name === "encoder" ? "points" : "centers"}`,
    patch: () => `${title}, layer ${one.layer + 1}: row ${one.row + 1} looks at ${one.column + 1} only`,
  }[one.kind]?.() ?? "";
}
