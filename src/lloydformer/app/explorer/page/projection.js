// Shows points of any dimension in the plane: as they are, or along the two directions in which they differ most.

const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
const unit = (v) => {
  const size = Math.hypot(...v);
  return size > 0 ? v.map((x) => x / size) : v;
};

/** The direction in which centered rows differ most, by power iteration, away from `others`. */
function direction(rows, d, others) {
  let v = unit(Array.from({ length: d }, (_, i) => 1 + 0.37 * i));
  for (let round = 0; round < 100; round += 1) {
    for (const other of others) {
      const share = dot(v, other);
      v = v.map((x, i) => x - share * other[i]);
    }
    const next = new Array(d).fill(0);
    for (const row of rows) {
      const share = dot(row, v);
      for (let i = 0; i < d; i += 1) next[i] += share * row[i];
    }
    for (const other of others) {
      const share = dot(next, other);
      next.forEach((x, i) => {
        next[i] = x - share * other[i];
      });
    }
    if (Math.hypot(...next) < 1e-300) break;
    v = unit(next);
  }
  const largest = v.reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a), 0);
  return largest < 0 ? v.map((x) => -x) : v; // the same side every time
}

export class Projection {
  constructor(points) {
    this.d = points[0].length;
    this.origin = new Array(this.d).fill(0);
    if (this.d <= 2) {
      this.axes = [0, 1].map((axis) =>
        Array.from({ length: this.d }, (_, i) => (i === axis ? 1 : 0)),
      );
      return;
    }
    this.origin = this.origin.map(
      (_, i) => points.reduce((sum, p) => sum + p[i], 0) / points.length,
    );
    const rows = points.map((p) => p.map((x, i) => x - this.origin[i]));
    const first = direction(rows, this.d, []);
    this.axes = [first, direction(rows, this.d, [first])];
  }

  get exact() {
    return this.d === 2;
  }

  /** Where a point is seen. */
  seen(point) {
    const moved = point.map((x, i) => x - this.origin[i]);
    return this.axes.map((axis) => dot(moved, axis));
  }

  /** The point, moved so that it is seen at `place`; what is not seen of it stays. */
  moved(point, place) {
    const now = this.seen(point);
    const shift = place.map((x, axis) => x - now[axis]);
    return point.map((x, i) => round(x + shift[0] * this.axes[0][i] + shift[1] * this.axes[1][i]));
  }

  /** A new point seen at `place`. */
  at(place) {
    return this.moved(this.origin, place);
  }
}

const round = (value) => Math.round(value * 1000) / 1000;
