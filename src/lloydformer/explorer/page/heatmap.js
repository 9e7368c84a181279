// A matrix as a picture: one cell for each number, lit up with the point or center that is looked at.
import { h, short } from "./dom.js";
import { clusterColour, themeTriple } from "./palette.js";

/** How a cell's number becomes ink in 0..1: beside the largest of its row, or between the row's ends. */
const SCALES = {
  weight: (row) => { const top = Math.max(...row.map(Math.abs)); return (v) => (top > 0 ? Math.abs(v) / top : 0); },
  range: (row) => {
    const seen = row.filter(Number.isFinite);
    const [low, high] = [Math.min(...seen), Math.max(...seen)];
    return (v) => (high > low ? Math.max(0, (v - low) / (high - low)) : 0.5);
  },
};

export class HeatMap {
  /** `rows` and `columns`: "point", "center", or null for the dimensions of tokens. */
  constructor({ title, hover, rows, columns, onpick }) {
    this.kinds = { rows, columns };
    this.hover = hover;
    this.canvas = h("canvas", { width: 1, height: 1 });
    this.marks = h("div", { class: "marks" });
    this.bands = h("div", { class: "bands", "aria-hidden": "true" });
    this.face = h("div", {
      class: "cells", tabindex: 0, role: "group", "aria-roledescription": "matrix",
      onpointermove: (event) => this.look(...this.cell(event)), onpointerleave: () => this.hover.look(null),
      onclick: (event) => onpick?.(...this.cell(event)), onkeydown: (event) => this.walk(event), onblur: () => this.hover.look(null),
    }, this.canvas, this.marks);
    this.caption = h("figcaption", {}, title);
    this.root = h("figure", { class: "heatmap" }, this.caption, this.bands, this.face);
    this.title = title;
    this.drop = hover.listen(() => this.mark());
  }

  /**
   * Shows a matrix. `scale`: "weight", "range", or "signed" (with `bands`, each on its own scale);
   * `tint(row, column)`: [red, green, blue], by default the theme's.
   */
  show(matrix, { scale = "weight", tint = null, bands = null, note = "" } = {}) {
    this.matrix = matrix;
    this.named = bands;
    this.canvas.width = matrix.cols;
    this.canvas.height = matrix.rows;
    this.face.style.setProperty("--rows", matrix.rows);
    this.face.style.setProperty("--columns", matrix.cols);
    this.face.setAttribute("aria-label", `${this.title}: ${matrix.rows} rows, ${matrix.cols} columns. Arrow keys read the numbers. ${note}`);
    const context = this.canvas.getContext("2d");
    const image = context.createImageData(matrix.cols, matrix.rows);
    if (scale === "signed") paintSigned(image.data, matrix, bands);
    else paintRows(image.data, matrix, SCALES[scale], tint);
    context.putImageData(image, 0, 0);
    this.bands.replaceChildren(...this.heads(bands));
    this.mark();
  }

  /** What stands above the columns: the names of subspaces, or the numbers of the centers. */
  heads(bands) {
    if (bands) {
      return bands.map((band, i) => h("span", { style: `flex: ${band.stop - band.start} 0 0`, title: band.name, class: i % 2 ? "odd" : "" }, band.symbol));
    }
    if (this.kinds.columns !== "center") return [];
    return Array.from({ length: this.matrix.cols }, (_, j) => h("span", { class: "center-number", style: `border-color:${clusterColour(j)}` }, String(j + 1)));
  }

  cell(event) {
    const box = this.face.getBoundingClientRect();
    const place = (share, count) => Math.min(count - 1, Math.max(0, Math.floor(share * count)));
    return [place((event.clientY - box.top) / box.height, this.matrix.rows),
      place((event.clientX - box.left) / box.width, this.matrix.cols)];
  }

  look(row, column) {
    this.at = [row, column];
    const { rows, columns } = this.kinds;
    const band = this.named?.find((one) => column >= one.start && column < one.stop);
    const what = columns ? `${columns} ${column + 1}` : `${band?.name ?? "column"} ${column - (band?.start ?? 0) + 1}`;
    const value = this.matrix.data[row * this.matrix.cols + column];
    const words = `${this.title.toLowerCase()}, ${rows} ${row + 1} ${columns ? "→" : "·"} ${what}: ${short(value, 4)}`;
    this.hover.look({ kind: rows, index: row, also: columns ? { kind: columns, index: column } : undefined, words });
  }

  /** Arrow keys go from cell to cell. */
  walk(event) {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    const [row, column] = this.at ?? [0, -1];
    const inside = (at, count) => Math.min(count - 1, Math.max(0, at));
    this.look(inside(row + step[0], this.matrix.rows), inside(column + step[1], this.matrix.cols));
  }

  /** Frames the rows and columns of what is looked at. */
  mark() {
    if (!this.matrix) return;
    const { rows, cols } = this.matrix;
    const bar = (axis, index, count) => {
      const [start, size] = [100 * index / count, 100 / count].map((share) => `${share}%`);
      return h("i", { class: axis, style: axis === "row" ? `top:${start};height:${size}` : `left:${start};width:${size}` });
    };
    const inside = (count) => (index) => index < count;
    this.marks.replaceChildren(
      ...(this.kinds.rows ? this.hover.of(this.kinds.rows) : []).filter(inside(rows)).map((i) => bar("row", i, rows)),
      ...(this.kinds.columns ? this.hover.of(this.kinds.columns) : []).filter(inside(cols)).map((i) => bar("column", i, cols)),
    );
  }
}

const ink = (data, at, colour, alpha) => {
  [data[at], data[at + 1], data[at + 2]] = colour;
  data[at + 3] = Math.round(255 * alpha);
};

function paintRows(data, { rows, cols, data: values }, scale, tint) {
  const plain = themeTriple("--ink");
  for (let row = 0; row < rows; row += 1) {
    const share = scale(values.subarray(row * cols, (row + 1) * cols));
    for (let column = 0; column < cols; column += 1) {
      const at = row * cols + column;
      ink(data, 4 * at, tint?.(row, column) ?? plain, share(values[at]));
    }
  }
}

function paintSigned(data, { rows, cols, data: values }, bands) {
  const [plus, minus] = ["--plus", "--minus"].map(themeTriple);
  for (const { start, stop } of bands ?? [{ start: 0, stop: cols }]) {
    let top = 0;
    for (let row = 0; row < rows; row += 1) for (let c = start; c < stop; c += 1) top = Math.max(top, Math.abs(values[row * cols + c]));
    for (let row = 0; row < rows; row += 1) {
      for (let c = start; c < stop; c += 1) {
        const value = values[row * cols + c];
        ink(data, 4 * (row * cols + c), value < 0 ? minus : plus, top > 0 ? Math.abs(value) / top : 0);
      }
    }
  }
}
