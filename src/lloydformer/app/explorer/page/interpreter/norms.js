/** Normalisation of the position subspace, which keeps centers on the unit sphere. */

/** Each norm: whether coordinates must sum to zero, and one position made a unit vector. */
export const NORMS = {
  RMSNorm: { zeroSum: false, position: rms },
  LayerNorm: {
    zeroSum: true,
    position: (row, epsilon) => {
      const mean = total(row) / row.length;
      return rms(row.map((x) => x - mean), epsilon);
    },
  },
};

/** Normalise each row of the positions. */
export function normalise(norm, positions) {
  const out = positions.map((x) => x);
  for (let i = 0; i < out.rows; i++) {
    out.row(i).set(NORMS[norm.part].position(positions.row(i), norm.epsilon));
  }
  return out;
}

function rms(row, epsilon) {
  const meanSquare = total(row.map((x) => x * x)) / row.length;
  const root = Math.sqrt(meanSquare + epsilon);
  return row.map((x) => x / root / Math.sqrt(row.length));
}

function total(numbers) {
  return numbers.reduce((a, b) => a + b, 0);
}
