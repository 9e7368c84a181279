/**
 * Counter-based noise: a draw is a pure function of (seed, layer, head, cluster, row).
 *
 * Philox 4x32 with ten rounds, as lloydformer.numerics.noise: the same draws, number by number.
 */

import { Matrix } from "./matrix.js";

const HEADS = [
  "encoder_cross", "encoder_self", "decoder_cross", "decoder_self", "affinity", "grow", "drawn",
  "parents", "dropped", "planted",
];

/** The high 32 bits of the product of two 32-bit words, by halves of 16 bits. */
function high(a, b) {
  const a0 = a & 0xffff;
  const a1 = a >>> 16;
  const b0 = b & 0xffff;
  const b1 = b >>> 16;
  const middle = a1 * b0 + ((a0 * b0) >>> 16);
  const carried = a0 * b1 + (middle & 0xffff);
  return (Math.imul(a1, b1) + (middle >>> 16) + (carried >>> 16)) >>> 0;
}

/** Write four words of 32 bits, from a counter of four words and a key of two. */
export function philox(words, c0, c1, c2, c3, k0, k1) {
  for (let round = 0; round < 10; round++) {
    const low0 = Math.imul(c0, 0xd2511f53);
    const high0 = high(c0, 0xd2511f53);
    c0 = high(c2, 0xcd9e8d57) ^ c1 ^ k0;
    c1 = Math.imul(c2, 0xcd9e8d57);
    c2 = high0 ^ c3 ^ k1;
    c3 = low0;
    k0 = (k0 + 0x9e3779b9) | 0;
    k1 = (k1 + 0xbb67ae85) | 0;
  }
  words[0] = c0;
  words[1] = c1;
  words[2] = c2;
  words[3] = c3;
}

/** 52 random bits plus half of the last one, so the result is never 0 or 1. */
function fraction(high, low) {
  return ((high >>> 6) * 2 ** 26 + (low >>> 6) + 0.5) * 2 ** -52;
}

/** Numbers in (0, 1), (nClusters, nRows). */
export function uniform(seed, layer, head, nClusters, nRows) {
  const [low, above] = [seed % 2 ** 32 >>> 0, Math.floor(seed / 2 ** 32) >>> 0];
  const site = ((layer << 8) | HEADS.indexOf(head)) >>> 0;
  const [out, words] = [new Matrix(nClusters, nRows), new Uint32Array(4)];
  for (let pair = 0; 2 * pair < nClusters; pair++) {
    for (let row = 0; row < nRows; row++) {
      philox(words, row, 0, pair, site, low, above);
      out.data[2 * pair * nRows + row] = fraction(words[0], words[1]);
      if (2 * pair + 1 < nClusters) {
        out.data[(2 * pair + 1) * nRows + row] = fraction(words[2], words[3]);
      }
    }
  }
  return out;
}

/** Standard Gumbel draws, -log(-log u). */
export function gumbel(seed, layer, head, nClusters, nRows) {
  return uniform(seed, layer, head, nClusters, nRows).map((u) => -Math.log(-Math.log(u)));
}

/** A function that draws the noise of a slot in a layer, of the shape of its scores. */
export function layerNoise(seed, layer) {
  if (seed === null || seed === undefined) return null;
  return (slot, scores) => {
    const byPoints = slot === "encoder_cross" || slot === "affinity";
    const [clusters, rows] = byPoints ? [scores.cols, scores.rows] : scores.shape;
    const draws = gumbel(seed, layer, slot, clusters, rows);
    return byPoints ? draws.transposed : draws;
  };
}
