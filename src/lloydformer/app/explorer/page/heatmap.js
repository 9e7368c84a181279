// A matrix as a picture: one cell for each number, lit up with the point or center that is looked at.
import { h, short } from "./dom.js";
import { paint } from "./paint.js";
import { clusterColour } from "./palette.js";

export class HeatMap {
  /** `rows` and `columns`: "point", "center", or null for the dimensions of tokens. */
  constructor({ title, hover, rows, columns, onpick }) {
    this.kinds = { rows, columns };
    this.hover = hover;
    this.canvas = h("canvas", { width: 1, height: 1 });
    this.marks = h("div", { class: "marks" });
    this.bands = h("div", { class: "bands", "aria-hidden": "true" });
    this.face = h(
      "div",
      {
        class: "cells",
        tabindex: 0,
        role: "group",
        "aria-roledescription": "matrix",
        onpointermove: (event) => this.look(...this.cell(event)),
        onpointerleave: () => this.hover.look(null),
        onclick: (event) => onpick?.(...this.cell(event)),
        onkeydown: (event) => this.walk(event),
        onblur: () => this.hover.look(null),
      },
      this.canvas,
      this.marks,
    );
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
    this.face.style.setProperty("--rows", matrix.rows);
    this.face.style.setProperty("--columns", matrix.cols);
    this.face.setAttribute(
      "aria-label",
      `${this.title}: ${matrix.rows} rows, ${matrix.cols} columns. Arrow keys read the numbers. ${note}`,
    );
    paint(this.canvas, matrix, { scale, tint, bands });
    this.bands.replaceChildren(...this.heads(bands));
    this.mark();
  }

  /** What stands above the columns: the names of subspaces, or the numbers of the centers. */
  heads(bands) {
    if (bands) {
      return bands.map((band, i) =>
        h(
          "span",
          {
            style: `flex: ${band.stop - band.start} 0 0`,
            title: band.name,
            class: i % 2 ? "odd" : "",
          },
          band.symbol,
        ),
      );
    }
    if (this.kinds.columns !== "center") return [];
    return Array.from({ length: this.matrix.cols }, (_, j) =>
      h(
        "span",
        { class: "center-number", style: `border-color:${clusterColour(j)}` },
        String(j + 1),
      ),
    );
  }

  cell(event) {
    const box = this.face.getBoundingClientRect();
    const place = (share, count) => Math.min(count - 1, Math.max(0, Math.floor(share * count)));
    return [
      place((event.clientY - box.top) / box.height, this.matrix.rows),
      place((event.clientX - box.left) / box.width, this.matrix.cols),
    ];
  }

  look(row, column) {
    this.at = [row, column];
    const { rows, columns } = this.kinds;
    const band = this.named?.find((one) => column >= one.start && column < one.stop);
    const what = columns
      ? `${columns} ${column + 1}`
      : `${band?.name ?? "column"} ${column - (band?.start ?? 0) + 1}`;
    const value = this.matrix.data[row * this.matrix.cols + column];
    const words = `${this.title.toLowerCase()}, ${rows} ${row + 1} ${columns ? "→" : "·"} ${what}: ${short(value, 4)}`;
    this.hover.look({
      kind: rows,
      index: row,
      also: columns ? { kind: columns, index: column } : undefined,
      words,
    });
  }

  /** Arrow keys go from cell to cell. */
  walk(event) {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[
      event.key
    ];
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
      const [start, size] = [(100 * index) / count, 100 / count].map((share) => `${share}%`);
      return h("i", {
        class: axis,
        style: axis === "row" ? `top:${start};height:${size}` : `left:${start};width:${size}`,
      });
    };
    const inside = (count) => (index) => index < count;
    this.marks.replaceChildren(
      ...(this.kinds.rows ? this.hover.of(this.kinds.rows) : [])
        .filter(inside(rows))
        .map((i) => bar("row", i, rows)),
      ...(this.kinds.columns ? this.hover.of(this.kinds.columns) : [])
        .filter(inside(cols))
        .map((i) => bar("column", i, cols)),
    );
  }
}
