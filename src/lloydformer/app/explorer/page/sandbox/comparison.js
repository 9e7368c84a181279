// The plain algorithm beside the circuit: its centers, its objective, and how far apart they are.
import { Matrix, algorithmOf, objectiveOf } from "../interpreter/index.js";

const plain = (rows) => rows.map((row) => [...row]);

/** {algorithm, centers, objective, apart}, `apart` being the largest difference after each layer; null if the parts are new. */
export function compare({ state, points, centers, trace }) {
  const algorithm = algorithmOf(state.recipe, state.seed);
  if (!algorithm) return null;
  const history = algorithm.run(plain(points), plain(centers), trace.nLayers);
  const objective = history.map((rows) => objectiveOf(trace.points, Matrix.fromRows(rows)));
  const apart = history.map((rows, t) =>
    Math.max(...rows.flatMap((row, j) => row.map((x, i) => Math.abs(x - trace.centers[t][j][i])))),
  );
  return { algorithm, centers: history, objective, apart };
}
