// What belongs to each center: the corners of convex regions, cut out by one line for each other center.

/** Keeps the part of a polygon where `side(place) >= 0`; `side` is linear. */
function cut(corners, side) {
  return corners.flatMap((here, i) => {
    const next = corners[(i + 1) % corners.length];
    const [a, b] = [side(here), side(next)];
    const kept = a >= 0 ? [here] : [];
    if (a >= 0 === b >= 0) return kept;
    const share = a / (a - b);
    return [...kept, [0, 1].map((axis) => here[axis] + share * (next[axis] - here[axis]))];
  });
}

const dot = (a, b) => a[0] * b[0] + a[1] * b[1];

/** The region of each of the centers within the frame, in order; empty for one that has none. */
export function regions(centers, frame, score) {
  const half = score === "Euclidean" ? (c) => dot(c, c) / 2 : () => 0;
  return centers.map((mine, j) =>
    centers.reduce(
      (corners, other, i) => {
        if (i === j || !corners.length) return corners;
        return cut(
          corners,
          (place) =>
            dot(place, mine) - half(mine) - dot(place, other) + half(other) - (i < j ? 1e-12 : 0),
        );
      },
      mine.every(Number.isFinite) ? frame : [],
    ),
  );
}
