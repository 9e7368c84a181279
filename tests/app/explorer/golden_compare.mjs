/**
 * Compare the interpreter with traces of Python (tests/support/golden_traces.py).
 *
 * "each": every intermediate is computed from Python's values of those before it, so that no
 * decision depends on earlier rounding. "free": each layer runs from Python's tokens.
 */

let [interpreter, numbers] = [null, null];

/** What is found for each case; modules: the interpreter's; all: the numbers that cases refer to. */
export function compared(cases, all, modules) {
  [interpreter, numbers] = [modules, all];
  return cases.map(check);
}

const matrix = ([start, rows, cols]) =>
  new interpreter.Matrix(rows, cols, numbers.slice(start, start + rows * cols));

/** The largest number of a matrix, by magnitude. */
function size({ data }) {
  let most = 0;
  for (const value of data) if (Number.isFinite(value)) most = Math.max(most, Math.abs(value));
  return most;
}

/** The largest difference, in units of the largest number; infinite if one is no number. */
function deviation(found, wanted, unit = size(wanted)) {
  if (found.rows !== wanted.rows || found.cols !== wanted.cols) return Infinity;
  let worst = 0;
  found.data.forEach((value, i) => {
    if (Object.is(value + 0, wanted.data[i] + 0)) return;
    const off = Math.abs(value - wanted.data[i]) / (unit || 1);
    worst = Math.max(worst, Number.isNaN(off) ? Infinity : off);
  });
  return worst;
}

const mapped = (object, change) =>
  Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value)]));
const weightsOf = ({ weights = {} }) => mapped(weights, (head) => mapped(head, matrix));

function check(one) {
  let circuit;
  try {
    circuit = new interpreter.Circuit(one.recipe, { ...one, weights: weightsOf(one) });
    const options = { nLayers: one.nLayers, seed: one.seed };
    const [points, centers] = [matrix(one.points), matrix(one.centers)];
    if (one.refusal !== null) {
      circuit.run(points, centers, options); // must refuse
      return { said: null };
    }
    return { said: null, ...each(circuit, one, points, centers, options),
      ...free(circuit, one, points, centers, options), ...plain(one, points) };
  } catch (error) {
    if (error instanceof interpreter.Refusal) return { said: error.message };
    throw new Error(`${one.name}: ${error.stack}\n${JSON.stringify(one.recipe)}`);
  }
}

/** The size of the terms that a sum of products is made of: they may cancel. */
function termSize(one, name) {
  const other = (point) => one.values[name.replace(/[a-z]+$/, point)];
  const of = (point) => (other(point) ? size(matrix(other(point))) : 0);
  if (name.endsWith("output")) return of("values");
  return name.endsWith("scores") ? of("queries") * of("keys") : 0;
}

function each(circuit, one, points, centers, options) {
  const off = {};
  const replace = (value, name) => {
    const wanted = matrix(one.values[name]);
    off[name] = deviation(value, wanted, Math.max(size(wanted), termSize(one, name)));
    return wanted;
  };
  const trace = circuit.run(points, centers, { ...options, hooks: { "*": replace } });
  const worst = Object.keys(off).reduce((a, b) => (off[b] > off[a] ? b : a));
  return { found: trace.names(), seen: Object.keys(off).length, worst, off: String(off[worst]),
    warned: trace.warning };
}

function free(circuit, one, points, centers, options) {
  const tokens = Object.keys(one.values).filter((name) => /\.(en|de)coder_tokens$/.test(name));
  const hooks = Object.fromEntries(tokens.map((name) => [name, matrix(one.values[name])]));
  const trace = circuit.run(points, centers, { ...options, hooks });
  const centersOff = trace.centers.map((rows, t) =>
    String(deviation(interpreter.Matrix.fromRows(rows), matrix(one.newCenters[t]))));
  const objective = new interpreter.Matrix(1, trace.objective.length, trace.objective);
  return { freeLabels: trace.labels.map((row) => [...row]), centersOff,
    objectiveOff: String(deviation(objective, matrix(one.objective))) };
}

/** The plain algorithm's centers after an iteration from each of the trace's centers. */
function plain(one, points) {
  const algorithm = interpreter.algorithmOf(one.recipe, one.seed ?? 0);
  const identified = interpreter.identify(one.recipe);
  if (!algorithm || !one.plain) return { identified, algorithm: algorithm?.name ?? null };
  const plainOff = one.plain.map((wanted, t) => {
    const centers = matrix(one.newCenters[t]).toRows();
    const found = algorithm.step(points.toRows(), centers, t);
    return String(deviation(interpreter.Matrix.fromRows(found), matrix(wanted)));
  });
  return { identified, algorithm: algorithm.name, plainOff };
}
