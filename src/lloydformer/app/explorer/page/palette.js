// Colours: clusters (Okabe and Ito's, as in all plots of the package), and those of the theme.
export const CLUSTERS = [
  "#0072B2",
  "#E69F00",
  "#009E73",
  "#CC79A7",
  "#D55E00",
  "#56B4E9",
  "#A07D3A",
  "#6B6B6B",
];

const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
const TRIPLES = CLUSTERS.map(rgb);

export const clusterColour = (j) => CLUSTERS[j % CLUSTERS.length];
export const clusterTriple = (j) => TRIPLES[j % TRIPLES.length];

/** White or near black, whichever has more contrast on the cluster's colour. */
export function inkOn(j) {
  const [red, green, blue] = clusterTriple(j).map((c) => (c / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.18 ? "#ffffff" : "#111111";
}

/** The clusters' colours mixed in the proportions of non-negative weights; null where all are zero. */
export function mixed(weights) {
  let total = 0;
  const sum = [0, 0, 0];
  for (let j = 0; j < weights.length; j += 1) {
    const weight = weights[j] > 0 ? weights[j] : 0;
    total += weight;
    for (let c = 0; c < 3; c += 1) sum[c] += weight * clusterTriple(j)[c];
  }
  return total > 0 ? sum.map((value) => Math.round(value / total)) : null;
}

const triples = new Map(); // until the theme changes

/** A colour of the theme, such as "--ink", as [red, green, blue] for canvases. */
export function themeTriple(name) {
  if (!triples.has(name)) {
    const probe = document.body.appendChild(document.createElement("i"));
    probe.style.color = `var(${name})`;
    triples.set(
      name,
      getComputedStyle(probe)
        .color.match(/[\d.]+/g)
        .slice(0, 3)
        .map(Number),
    );
    probe.remove();
  }
  return triples.get(name);
}

/** Runs `redraw` when light turns to dark or back. */
export function onTheme(redraw) {
  const again = () => {
    triples.clear();
    redraw();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  document.addEventListener("themechange", again);
}
