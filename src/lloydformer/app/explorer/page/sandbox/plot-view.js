// The plot of the sandbox: what a layer did to the points and centers, and what one of them looks at.
import { clusterColour, mixed } from "../palette.js";
import { Plot, SIZE } from "../plot.js";
import { Projection } from "../projection.js";
import { centersByKeys, editable } from "./editing.js";

const round = (value) => Math.round(value * 1000) / 1000;

export class PlotView {
  constructor(model, hover, tool) {
    Object.assign(this, { model, hover });
    this.plot = new Plot("Points, centers and their way through the layers");
    this.plot.svg.setAttribute("role", "group"); // its centers can have the focus
    this.root = this.plot.root;
    const edit = {
      tool,
      hold: (what) => this.hold(what),
      move: (what, place) => this.move(what, place),
      add: (place) => this.add(place),
      erase: (what) => this.erase(what),
      look: (what) => this.look(what),
    };
    editable(this.plot, edit);
    centersByKeys(
      this.plot,
      (j) => this.places(model.trace?.centers[model.layer] ?? model.centers)[j],
      (what, place) => {
        this.hold(what);
        this.move(what, place);
      },
      edit.look,
    );
    hover.listen((seen) => {
      this.plot.light(seen?.kind, seen?.index);
      this.rays(seen);
    });
    this.fit();
  }

  places(rows) {
    return rows.map((row) => this.projection.seen([...row]));
  }

  /** Chooses the view anew, for other points. */
  fit() {
    const { points, centers } = this.model;
    this.projection = new Projection(points);
    const [near, way] = [
      this.places([...points, ...centers]),
      this.places(this.model.trace?.centers.flat() ?? []),
    ];
    this.plot.fit(near);
    const reach = (0.75 * SIZE) / this.plot.scale; // centers that run away farther stay at the edge
    this.plot.fit([
      ...near,
      ...way.filter((p) => p.every((x, axis) => Math.abs(x - this.plot.middle[axis]) < reach)),
    ]);
  }

  show(glide) {
    const { model, plot } = this;
    const {
      layer,
      trace,
      state: { recipe },
    } = model;
    plot.glide(glide);
    const shares = trace && layer > 0 ? trace.assignments[layer - 1] : null;
    const colours = model.points.map((_, i) => {
      const found = shares && mixed(shares[i]);
      return found ? `rgb(${found})` : null;
    });
    plot.showPoints(this.places(model.points), colours, this.counts());
    const history = trace ? trace.centers.slice(0, layer + 1) : [model.centers];
    plot.showCenters(
      model.centers.map((_, j) => history.map((centers) => this.projection.seen([...centers[j]]))),
    );
    const score = recipe.encoder_cross.score.part;
    const regions =
      this.projection.exact && layer > 0 && ["Euclidean", "DotProduct"].includes(score);
    const kind = score === "Euclidean" || recipe.feedforward ? "Euclidean" : "DotProduct";
    plot.showRegions(regions ? history.at(-2).map((c) => [...c]) : [], regions ? kind : null);
    plot.centers.forEach((mark, j) => {
      mark.setAttribute("tabindex", 0);
      mark.setAttribute("role", "button");
      const at = [...history.at(-1)[j]].map((x) => Number(x.toFixed(2))).join(", ");
      mark.setAttribute("aria-label", `center ${j + 1} at ${at}; arrow keys move it`);
    });
    plot.light(this.hover.seen?.kind, this.hover.seen?.index);
    this.rays(this.hover.seen);
  }

  /** How much each point counts for its center, beside the one that counts most. */
  counts() {
    const map = this.model.get("decoder_cross.attention");
    if (!map) return null;
    const counts = new Float64Array(map.cols);
    for (let row = 0; row < map.rows; row += 1) {
      const values = map.data.subarray(row * map.cols, (row + 1) * map.cols);
      let top = 0;
      for (const value of values) top = Math.max(top, value);
      for (let i = 0; top > 0 && i < map.cols; i += 1)
        counts[i] = Math.max(counts[i], values[i] / top);
    }
    return counts;
  }

  /** Lines from what is looked at to what it attends to. */
  rays(seen) {
    const { model } = this;
    const map =
      seen &&
      model.get(seen.kind === "point" ? "encoder_cross.attention" : "decoder_cross.attention");
    if (!map || seen.index >= map.rows) return this.plot.showRays([]);
    const before = model.trace.centers[model.layer - 1];
    const from = this.projection.seen([
      ...(seen.kind === "point" ? model.points : before)[seen.index],
    ]);
    const answers = this.places(seen.kind === "point" ? before : model.points);
    return this.plot.showRays(
      answers.map((to, j) => ({
        from,
        to,
        weight: map.data[seen.index * map.cols + j],
        colour: clusterColour(seen.kind === "point" ? j : seen.index),
      })),
    );
  }

  look(what) {
    this.hover.look(what && { ...what, words: this.describe(what) });
  }

  /** "point 7, in the cluster of center 2"; "center 2, with 24 points". */
  describe({ kind, index }) {
    const { labels } = this.model;
    const name = `${kind} ${index + 1}`;
    if (!labels) return name;
    if (kind === "point") return `${name}, in the cluster of center ${labels[index] + 1}`;
    return `${name}, with ${labels.reduce((sum, label) => sum + (label === index), 0)} points`;
  }

  /** Centers are dragged from where they are: that is the new start. */
  hold(what) {
    const { layer } = this.model;
    if (what.kind !== "center" || layer === 0 || !this.model.trace) return;
    const here = this.model.trace.centers[layer].map((c, j) =>
      [...c].map((x, i) => (Number.isFinite(x) ? round(x) : this.model.centers[j][i])),
    );
    this.model.change({ centers: here, layer: 0 });
  }

  move({ kind, index }, place) {
    const name = `${kind}s`;
    const rows = this.model.state[name].map((row, i) =>
      i === index ? this.projection.moved(row, place) : row,
    );
    this.model.change({ [name]: rows, ...(kind === "point" ? { data: null } : {}) });
  }

  add(place) {
    if (this.model.state.points.length >= 1000) return;
    this.model.change({
      data: null,
      points: [...this.model.state.points, this.projection.at(place)],
    });
  }

  erase({ kind, index }) {
    const { points } = this.model.state;
    if (kind === "point" && points.length > this.model.k + 1)
      this.model.change({ data: null, points: points.filter((_, i) => i !== index), breaks: [] });
  }
}
