"use strict";
// Draws every circuit of the page at the layer that the stepper names.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const TRIANGLE = "M0,-1.15L1,0.58L-1,0.58Z";

  const make = (parent, name, attributes) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return parent.appendChild(element);
  };
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

  const largest = (values, row, columns) => Math.max(...values.subarray(row * columns, (row + 1) * columns));

  // Colours mixed in the proportions of the weights.
  const mix = (colours, weights) => {
    const total = weights.reduce((sum, weight) => sum + weight, 0) || 1;
    const channel = (c) => colours.reduce((sum, colour, j) => sum + colour[c] * weights[j], 0) / total;
    return `rgb(${[0, 1, 2].map((c) => Math.round(channel(c))).join(",")})`;
  };

  // Paints one pixel for each value, as opaque as the value is large beside `top(row)`.
  const paint = (canvas, rows, columns, values, colour, top = () => 255) => {
    canvas.width = columns;
    canvas.height = rows;
    const context = canvas.getContext("2d");
    const image = context.createImageData(columns, rows);
    for (let row = 0, at = 0; row < rows; row += 1) {
      const full = Math.max(1, top(row));
      for (let column = 0; column < columns; column += 1, at += 1) {
        image.data.set([...colour(row, column), 255 * values[at] / full], 4 * at);
      }
    }
    context.putImageData(image, 0, 0);
  };

  class Circuit {
    constructor(root) {
      this.root = root;
      this.data = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
      this.colours = this.data.colours.map(rgb);
      for (const head of Object.values(this.data.attention)) {
        head.maps.forEach((map) => { map.values = bytes(map.bytes); });
      }
      this.frame();
      this.read();
    }

    // The plot: y upwards, the longer side 40 units.
    frame() {
      const svg = this.root.querySelector("svg");
      const all = [...this.data.points, ...this.data.centers.flat()];
      const [low, high] = [Math.min, Math.max].map((end) => [0, 1].map((axis) => end(...all.map((p) => p[axis]))));
      const scale = 38 / Math.max(high[0] - low[0], high[1] - low[1]);
      const middle = [0, 1].map((axis) => (low[axis] + high[axis]) / 2);
      this.at = ([x, y]) => [scale * (x - middle[0]), -scale * (y - middle[1])];
      svg.setAttribute("viewBox", "-21 -21 42 42");
      this.points = this.data.points.map((p) => {
        const [cx, cy] = this.at(p);
        return make(svg, "circle", { cx, cy, r: 0.36, "stroke-width": 0.12 });
      });
      this.centers = this.data.colours.map((colour, j) => this.center(svg, colour, j));
    }

    center(svg, colour, j) {
      const [cx, cy] = this.at(this.data.centers[0][j]);
      const halo = { fill: "none", stroke: "var(--paper)", "stroke-width": 0.85 };
      const line = { fill: "none", stroke: colour, "stroke-width": 0.4 };
      const edge = { fill: colour, stroke: "var(--paper)", "stroke-width": 0.3 };
      return {
        halo: make(svg, "polyline", halo),
        steps: make(svg, "g", edge),
        line: make(svg, "polyline", line),
        start: make(svg, "circle", { cx, cy, r: 0.85, ...edge }),
        now: make(make(svg, "g", { class: "center" }), "path", { d: TRIANGLE, ...edge, transform: "scale(1.45)" }),
      };
    }

    show(layer) {
      this.root.classList.toggle("moving", this.layer !== undefined);
      this.layer = layer;
      this.root.dataset.layer = layer;
      this.root.querySelector(".objective").textContent = this.data.objective[layer];
      this.showPoints();
      this.centers.forEach((center, j) => this.showCenter(center, j));
      this.root.querySelectorAll(".maps canvas").forEach((canvas) => this.showMap(canvas));
      this.showImages();
      this.root.querySelector(".readout").textContent = layer === 0
        ? "No layer has run yet." : "The deeper the colour, the larger the weight within its row.";
    }

    map(name) {
      const head = this.data.attention[name];
      return this.layer === 0 ? null : head.maps[head.layers[this.layer - 1]];
    }

    // A point has the colours of its centers, and is as full as it counts for its new center.
    showPoints() {
      const [assign, update] = [this.map("encoder_cross"), this.map("decoder_cross")];
      const [n, k] = this.data.attention.encoder_cross.shape;
      const tops = this.colours.map((_, j) => update && Math.max(1, largest(update.values, j, n)));
      this.points.forEach((dot, i) => {
        const shares = assign ? [...assign.values.subarray(i * k, (i + 1) * k)] : [];
        const colour = assign ? mix(this.colours, shares) : "var(--soft)";
        const counts = update ? Math.max(...tops.map((top, j) => update.values[j * n + i] / top)) : 0.6;
        dot.setAttribute("fill", colour);
        dot.setAttribute("stroke", colour);
        dot.setAttribute("fill-opacity", counts.toFixed(2));
      });
    }

    showCenter(center, j) {
      const path = this.data.centers.slice(0, this.layer + 1).map((centers) => this.at(centers[j]));
      [center.halo, center.line].forEach((line) => line.setAttribute("points", path.join(" ")));
      center.steps.replaceChildren();
      for (const [x, y] of path.slice(1, -1)) {
        make(center.steps, "path", { d: TRIANGLE, transform: `translate(${x},${y}) scale(0.6)`, "stroke-width": 0.2 });
      }
      const [x, y] = path.at(-1);
      center.now.parentNode.style.transform = `translate(${x}px,${y}px)`;
      center.now.style.visibility = this.layer === 0 ? "hidden" : "visible";
    }

    showMap(canvas) {
      const name = canvas.dataset.head;
      const [rows, columns] = this.data.attention[name].shape;
      const map = this.map(name);
      const { labels } = this.data;
      const owner = {
        encoder_self: (row) => labels[row],
        encoder_cross: (row, column) => column,
        decoder_cross: (row) => row,
        decoder_self: (row) => row,
      }[name];
      const values = map ? map.values : new Uint8Array(rows * columns);
      const colour = (row, column) => this.colours[owner(row, column)];
      paint(canvas, rows, columns, values, colour, (row) => largest(values, row, columns));
    }

    showImages() {
      const { shape: [rows, columns], frames } = this.data.images;
      const values = bytes(frames[this.layer]);
      const ink = getComputedStyle(this.root).color.match(/\d+/g).slice(0, 3).map(Number);
      this.root.querySelectorAll(".strip canvas").forEach((canvas, j) => {
        const size = rows * columns;
        paint(canvas, rows, columns, values.subarray(j * size, (j + 1) * size), () => ink);
      });
    }

    // A pointer over a map reads the weight and lights up who asks and who answers.
    read() {
      const readout = this.root.querySelector(".readout");
      const dim = () => this.root.querySelectorAll(".lit").forEach((lit) => lit.classList.remove("lit"));
      this.root.querySelectorAll(".maps canvas").forEach((canvas) => {
        canvas.addEventListener("pointermove", (event) => {
          const name = canvas.dataset.head;
          const [rows, columns] = this.data.attention[name].shape;
          const row = Math.min(rows - 1, Math.floor(rows * event.offsetY / canvas.clientHeight));
          const column = Math.min(columns - 1, Math.floor(columns * event.offsetX / canvas.clientWidth));
          const map = this.map(name);
          if (!map || row < 0 || column < 0) return;
          const asks = name.startsWith("encoder") ? "point" : "center";
          const answers = ["encoder_self", "decoder_cross"].includes(name) ? "point" : "center";
          const weight = (map.top * map.values[row * columns + column] / 255).toPrecision(2);
          readout.textContent = `${asks} ${row} → ${answers} ${column}: ${weight}`;
          dim();
          for (const [kind, index] of [[asks, row], [answers, column]]) {
            (kind === "point" ? this.points[index] : this.centers[index].now).classList.add("lit");
          }
        });
        canvas.addEventListener("pointerleave", () => { dim(); this.show(this.layer); });
      });
    }
  }

  const circuits = [...document.querySelectorAll('[data-widget="circuit"]')].map((root) => new Circuit(root));
  document.addEventListener("layer", (event) => circuits.forEach((circuit) => circuit.show(event.detail)));
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", () => circuits.forEach((circuit) => circuit.show(circuit.layer)));
})();
