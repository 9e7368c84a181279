// Built-in sets: points and the centers to begin with. Numbers have three decimals, so that links and code stay short.
import { generator } from "./random.js";

const round = (value) => Math.round(value * 1000) / 1000;

/** Points around each of the places: `count` of them, as far as `spread`. */
function blobs(seed, places, count, spread) {
  const { normal } = generator(seed);
  return places.flatMap((place, j) =>
    Array.from({ length: [count].flat()[j] ?? count }, () =>
      place.map((x) => round(x + ([spread].flat()[j] ?? spread) * normal())),
    ),
  );
}

function ring(seed, count, radius, spread) {
  const { uniform, normal } = generator(seed);
  return Array.from({ length: count }, () => {
    const [angle, r] = [2 * Math.PI * uniform(), radius + spread * normal()];
    return [round(r * Math.cos(angle)), round(r * Math.sin(angle))];
  });
}

const THREE = [
  [-2, -1.2],
  [2.1, -0.9],
  [0.1, 2.1],
];

/** The worked example of the paper, as in docs/first-example.md: three dimensions. */
const PAPER = {
  points: [
    [0.064, 0.03, 0.308],
    [0.421, 0.127, 0.079],
    [0.779, 0.3, 0.061],
    [0.207, 0.069, 0.39],
    [0.421, 0.733, 0.291],
    [0.421, 0.203, 0.285],
    [0.279, 0.846, 0.085],
    [0.279, -0.063, 0.344],
    [0.279, -0.139, 0.055],
  ],
  centers: [
    [0, 0, 0],
    [0.7, 0, 0],
    [0.52, 0.66, 0],
  ],
};

const SETS = {
  three: {
    title: "Three groups",
    about: "An easy one: any start finds the groups.",
    points: () => blobs(3, THREE, 22, 0.62),
    centers: [
      [-0.6, -2.4],
      [0.4, -2],
      [1.2, -2.6],
    ],
  },
  paper: {
    title: "The paper's nine points",
    about:
      "The worked example of the paper, in three dimensions, seen from the side that shows most.",
    points: () => PAPER.points,
    centers: PAPER.centers,
  },
  trapped: {
    title: "Lloyd gets stuck",
    about:
      "Two centers share one group, and one center has two. Lloyd cannot leave; soft k-means can.",
    points: () =>
      blobs(
        12,
        [
          [-1.1, 0],
          [0.84, 0.92],
          [0.84, -0.92],
        ],
        24,
        0.3,
      ),
    centers: [
      [-1.1, 0.67],
      [-1.1, -0.67],
      [0.84, 0.17],
    ],
  },
  outliers: {
    title: "Outliers",
    about: "A few points far away drag the means of Lloyd along. Trimmed k-means leaves them out.",
    points: () => [
      ...blobs(
        5,
        [
          [-2, -1],
          [1.6, -1.2],
          [0, 1.6],
        ],
        20,
        0.45,
      ),
      [5.6, 4.6],
      [6, 5.3],
      [6.3, 4.2],
      [-5.4, 5.2],
    ],
    centers: [
      [-1.2, -2.2],
      [2.6, -0.4],
      [-0.8, 2.4],
    ],
  },
  uneven: {
    title: "One large, two small",
    about: "Lloyd halves the large group: it likes groups of equal size.",
    points: () =>
      blobs(
        8,
        [
          [-1.2, 0],
          [2.9, 1],
          [2.9, -1.1],
        ],
        [110, 12, 12],
        [1.05, 0.22, 0.22],
      ),
    centers: [
      [-1, 0.5],
      [2.9, 1],
      [2.9, -1],
    ],
  },
  rings: {
    title: "A ring around a group",
    about: "Means cannot tell a ring from what it holds: every variant here fails.",
    points: () => [...blobs(4, [[0, 0]], 36, 0.4), ...ring(9, 64, 2.5, 0.12)],
    centers: [
      [0.2, 0.1],
      [2.4, 0.4],
    ],
  },
  directions: {
    title: "Directions",
    about: "Groups of directions with different lengths: made for spherical k-means.",
    points: () => {
      const { uniform } = generator(21);
      return blobs(
        6,
        [
          [1, 0.15],
          [-0.2, 1],
          [-0.8, -0.65],
        ],
        18,
        0.13,
      ).map((p) => {
        const f = 0.5 + 1.6 * uniform();
        return p.map((x) => round(f * x));
      });
    },
    centers: [
      [0.8, 0.6],
      [-0.6, 0.8],
      [0.1, -1],
    ],
  },
};

export const DATASETS = Object.entries(SETS).map(([name, { title, about }]) => ({
  name,
  title,
  about,
}));

const made = new Map();

/** The points and first centers of a built-in set. */
export function dataset(name) {
  if (!Object.hasOwn(SETS, name)) return null;
  if (!made.has(name)) made.set(name, SETS[name].points());
  const copy = (rows) => rows.map((row) => [...row]);
  return { points: copy(made.get(name)), centers: copy(SETS[name].centers) };
}
