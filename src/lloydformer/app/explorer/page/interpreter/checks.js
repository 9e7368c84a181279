/** Checks of points and centers; every refusal says what was found and what to do. */

import { Matrix } from "./matrix.js";
import { NORMS } from "./norms.js";
import { floatText, general } from "./python_text.js";
import { Refusal } from "./refusal.js";

/** Points and centers as matrices, if they suit a circuit of this recipe and these sizes. */
export function asProblem(points, centers, { nFeatures, nClusters, schedule }) {
  const [x, c] = [asRows("points", points), asRows("centers", centers)];
  if (x.cols !== c.cols) {
    throw new Refusal(
      `centers: found shape ${shape(c)} with points of shape ${shape(x)}; ` +
        "batch and number of features must agree");
  }
  if (c.rows > x.rows) {
    throw new Refusal(
      `centers: found ${c.rows} for ${x.rows} points; use at most one per point`);
  }
  if (x.cols !== nFeatures || c.rows !== nClusters) {
    throw new Refusal(
      `points, centers: found ${x.cols} features and ${c.rows} centers; this circuit ` +
        `was made with n_features=${nFeatures}, n_clusters=${nClusters}`);
  }
  checkRange("points", x);
  checkRange("centers", Matrix.fromRows([...x.toRows(), ...c.toRows()]));
  for (const { norm } of schedule.filter((recipe) => recipe.norm)) {
    checkUnit("points", x);
    if (NORMS[norm.part].zeroSum) checkZeroSum("points", x);
  }
  return [x, c];
}

function asRows(name, rows) {
  if (rows instanceof Matrix) return checkFinite(name, rows);
  const [count, cols] = [rows.length, rows[0]?.length ?? 0];
  if (!count || !cols || rows.some((row) => row.length !== cols)) {
    throw new Refusal(
      `${name}: found shape (${count}, ${cols}); pass rows (m, d), or a batch (b, m, d), ` +
        "none of them empty");
  }
  return checkFinite(name, Matrix.fromRows(rows));
}

function checkFinite(name, rows) {
  const at = rows.data.findIndex((value) => !Number.isFinite(value));
  if (at < 0) return rows;
  const where = `(${Math.floor(at / rows.cols)}, ${at % rows.cols})`;
  throw new Refusal(
    `${name}: found ${floatText(rows.data[at])} at ${where}; ` +
      "remove or fill in these rows, for example with sklearn.impute.SimpleImputer");
}

/** Refuse values whose squares overflow or underflow. */
function checkRange(name, rows) {
  const [d, most] = [rows.cols, Number.MAX_VALUE];
  const limit = Math.sqrt(Math.min(1e-6 * most, most / (64 * d)));
  const least = 1e3 * Math.sqrt(2 ** -1022);
  let span = 0;
  for (let j = 0; j < d; j++) {
    let [low, high] = [Infinity, -Infinity];
    for (let i = 0; i < rows.rows; i++) {
      low = Math.min(low, rows.at(i, j));
      high = Math.max(high, rows.at(i, j));
    }
    span = Math.max(span, high / 2 - low / 2);
  }
  if (span === 0 || (span > least && span < limit)) return;
  throw new Refusal(
    `${name}: found values that span ${general(2 * span, 2)}, whose squares torch.float64 cannot ` +
      "hold; rescale them, for example with sklearn.preprocessing.StandardScaler");
}

function checkUnit(name, rows) {
  const worst = Math.max(...perRow(rows, (row) => Math.abs(Math.hypot(...row) - 1)));
  if (worst <= slack(rows)) return;
  throw new Refusal(
    `${name}: found a row whose norm differs from 1 by ${general(worst, 2)}; ` +
      `normalise first, ${name} / ${name}.norm(dim=-1, keepdim=True)`);
}

function checkZeroSum(name, rows) {
  const worst = Math.max(...perRow(rows, (row) => Math.abs(row.reduce((a, b) => a + b, 0))));
  if (worst <= slack(rows)) return;
  throw new Refusal(
    `${name}: found a row whose coordinates sum to ${general(worst, 2)}; LayerNorm needs 0, ` +
      `use lloydformer.circuits.norms.zero_sum(${name}) or RMSNorm`);
}

const perRow = (rows, measure) => Array.from({ length: rows.rows }, (_, i) => measure(rows.row(i)));
const slack = (rows) => 8 * (rows.cols + 3) * Number.EPSILON;
const shape = (rows) => `(${rows.rows}, ${rows.cols})`;
