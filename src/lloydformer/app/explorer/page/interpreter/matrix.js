/** Matrices of 64-bit floats, by rows: tokens are rows, and scores are (queries, keys). */

export class Matrix {
  /**
   * @param {number} rows
   * @param {number} cols
   * @param {Float64Array} [data] the numbers, row after row; zeros by default
   */
  constructor(rows, cols, data = new Float64Array(rows * cols)) {
    this.rows = rows;
    this.cols = cols;
    this.data = data;
  }

  /** @param {ArrayLike<number>[]} rows @param {number} [cols] needed if there are no rows */
  static fromRows(rows, cols = rows.length ? rows[0].length : 0) {
    const matrix = new Matrix(rows.length, cols);
    rows.forEach((row, i) => matrix.data.set(row, i * cols));
    return matrix;
  }

  static filled(rows, cols, value) {
    return new Matrix(rows, cols, new Float64Array(rows * cols).fill(value));
  }

  static identity(size) {
    const matrix = new Matrix(size, size);
    for (let i = 0; i < size; i++) matrix.data[i * size + i] = 1;
    return matrix;
  }

  at(i, j) {
    return this.data[i * this.cols + j];
  }

  /** The row as a view: changing it changes the matrix. */
  row(i) {
    return this.data.subarray(i * this.cols, (i + 1) * this.cols);
  }

  /** @returns {Float64Array[]} copies of the rows */
  toRows() {
    return Array.from({ length: this.rows }, (_, i) => this.row(i).slice());
  }

  get shape() {
    return [this.rows, this.cols];
  }

  get transposed() {
    const out = new Matrix(this.cols, this.rows);
    for (let i = 0; i < this.rows; i++) {
      for (let j = 0; j < this.cols; j++) out.data[j * this.rows + i] = this.at(i, j);
    }
    return out;
  }

  map(change) {
    return new Matrix(this.rows, this.cols, this.data.map(change));
  }

  /** The entry, where a matrix with one row or column stands for all rows or columns. */
  spread(i, j) {
    return this.data[(this.rows === 1 ? 0 : i) * this.cols + (this.cols === 1 ? 0 : j)];
  }

  get finite() {
    return this.data.every(Number.isFinite);
  }
}

/** a + b, entry by entry. */
export function sum(a, b) {
  return new Matrix(a.rows, a.cols, a.data.map((value, i) => value + b.data[i]));
}

/** Apply a matrix to each token: tokens W^T + bias, as `F.linear` does. */
export function linear(tokens, weight, bias = null) {
  const entries = nonzero(weight, tokens.finite);
  const out = new Matrix(tokens.rows, weight.rows);
  for (let i = 0; i < tokens.rows; i++) {
    const [from, to] = [i * tokens.cols, i * weight.rows];
    for (const [target, source, value] of entries) {
      out.data[to + target] += value * tokens.data[from + source];
    }
    if (bias) for (let j = 0; j < weight.rows; j++) out.data[to + j] += bias.data[j];
  }
  return out;
}

/** The entries that are not 0; all of them if 0 times a token may be no number. */
function nonzero(weight, finite) {
  const entries = [];
  for (let i = 0; i < weight.rows; i++) {
    for (let j = 0; j < weight.cols; j++) {
      const value = weight.at(i, j);
      if (value !== 0 || !finite) entries.push([i, j, value]);
    }
  }
  return entries;
}

/** The product a b; entries of a that are 0 cost nothing. */
export function product(a, b) {
  const [out, skip, width] = [new Matrix(a.rows, b.cols), b.finite, b.cols];
  for (let i = 0; i < a.rows; i++) {
    for (let m = 0; m < a.cols; m++) {
      const factor = a.data[i * a.cols + m];
      if (factor === 0 && skip) continue;
      for (let j = 0; j < width; j++) out.data[i * width + j] += factor * b.data[m * width + j];
    }
  }
  return out;
}

/** Dot products of every row of a with every row of b. */
export function dotProducts(a, b) {
  const out = new Matrix(a.rows, b.rows);
  const skip = a.finite && b.finite; // 0 times infinity is no number
  for (const [p, q] of columnPairs(a, b, (inA, inB) => !skip || (inA && inB))) {
    let at = 0;
    for (let i = 0; i < p.length; i++) {
      for (let j = 0; j < q.length; j++) out.data[at++] += p[i] * q[j];
    }
  }
  return out;
}

/** All |q - k|^2, by differences: equal rows have distance 0 exactly. */
export function squaredDistances(queries, keys) {
  const out = new Matrix(queries.rows, keys.rows);
  for (const [p, q] of columnPairs(queries, keys, (inA, inB) => inA || inB)) {
    let at = 0;
    for (let i = 0; i < p.length; i++) {
      for (let j = 0; j < q.length; j++) {
        const difference = p[i] - q[j];
        out.data[at++] += difference * difference;
      }
    }
  }
  return out;
}

/** The columns of two matrices that count; `counts` is told in which of them a column is not 0. */
function columnPairs(a, b, counts) {
  const pairs = Array.from({ length: a.cols }, (_, j) => [columnOf(a, j), columnOf(b, j)]);
  const live = (column) => column.some((value) => value !== 0);
  return pairs.filter(([p, q]) => counts(live(p), live(q)));
}

function columnOf(matrix, j) {
  const column = new Float64Array(matrix.rows);
  for (let i = 0; i < matrix.rows; i++) column[i] = matrix.data[i * matrix.cols + j];
  return column;
}

/** The index of the largest number, the first one of equals; not-a-number is the largest. */
export function indexOfLargest(numbers) {
  let best = 0;
  for (let i = 0; i < numbers.length; i++) {
    if (Number.isNaN(numbers[i])) return i;
    if (numbers[i] > numbers[best]) best = i;
  }
  return best;
}

/** The largest number; not-a-number if one of them is. */
export function largest(numbers) {
  let best = -Infinity;
  for (let i = 0; i < numbers.length; i++) best = Math.max(best, numbers[i]);
  return best;
}

/** The numbers in descending order. */
export function descending(numbers) {
  return Float64Array.from(numbers).sort().reverse();
}
