// Reads pasted or uploaded text as points. What cannot be read is told in one sentence.
export const MOST_POINTS = 1000;
export const MOST_FEATURES = 64;

export class Unreadable extends Error {}

const shown = (line) => (line.length > 40 ? `${line.slice(0, 40)}…` : line);
/** What separates the values: a semicolon or a tab wherever there is one, for commas may be decimal. */
const separatorOf = (lines) =>
  [";", "\t", ","].find((sign) => lines.some(([line]) => line.includes(sign))) ?? /\s+/;
const unquoted = (cell) => cell.trim().replace(/^"(.*)"$/, "$1").trim();
const number = (cell) => (/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(cell) ? Number(cell) : NaN);
const count = (value) => value.toLocaleString("en");

/** The points of a text with one point per line; a first line of column names is passed over. */
export function parsePoints(text) {
  const lines = text
    .split(/\r\n|\n|\r/)
    .map((line, i) => [line.trim(), i + 1])
    .filter(([line]) => line && !line.startsWith("#"));
  const separator = separatorOf(lines);
  const value = (cell) =>
    number(separator === "," ? unquoted(cell) : unquoted(cell).replace(/^([^.,]*),([^.,]*)$/, "$1.$2"));
  const rows = lines.map(([line, at]) => [line.split(separator).map(value), line, at]);
  const bad = ([values]) => !values.every(Number.isFinite);
  if (rows.length && bad(rows[0]) && rows.length > 1 && !bad(rows[1])) rows.shift();
  if (!rows.length)
    throw new Unreadable("No points were found: write one point per line, such as 1.5, 2.0.");
  if (rows.length > MOST_POINTS) {
    throw new Unreadable(
      `Found ${count(rows.length)} lines; this page takes at most ${count(MOST_POINTS)} points, because ` +
        "self-attention compares all pairs: paste a sample of the lines.",
    );
  }
  const wrong = rows.find(bad);
  if (wrong)
    throw new Unreadable(
      `Line ${wrong[2]} is “${shown(wrong[1])}”: expected numbers separated by commas.`,
    );
  const d = rows[0][0].length;
  const ragged = rows.find(([values]) => values.length !== d);
  if (ragged)
    throw new Unreadable(
      `Line ${ragged[2]} has ${ragged[0].length} numbers, but the first point has ${d}: give every point the same.`,
    );
  if (d > MOST_FEATURES)
    throw new Unreadable(
      `Found ${count(d)} columns; this page takes at most ${MOST_FEATURES}: leave some out.`,
    );
  if (rows.length < 2)
    throw new Unreadable("Found one point only: clustering needs two or more lines.");
  return rows.map(([values]) => values);
}

/** The text of a file, if it is not too large to be looked at. */
export async function textOf(file) {
  if (file.size > 2e7)
    throw new Unreadable(
      `The file has ${count(Math.round(file.size / 1e6))} MB; this page takes at most ${count(MOST_POINTS)} points: choose a sample of it.`,
    );
  return file.text();
}

export const asText = (points) => points.map((p) => p.join(", ")).join("\n");
