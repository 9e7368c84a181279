// Paints a matrix into a canvas, one pixel for each number.
import { themeTriple } from "./palette.js";

/** How a cell's number becomes ink in 0..1: beside the largest of its row, or between the row's ends. */
const SCALES = {
  weight: (row) => {
    const top = Math.max(...row.map(Math.abs));
    return (v) => (top > 0 ? Math.abs(v) / top : 0);
  },
  range: (row) => {
    const seen = row.filter(Number.isFinite);
    const [low, high] = [Math.min(...seen), Math.max(...seen)];
    return (v) => (high > low ? Math.max(0, (v - low) / (high - low)) : 0.5);
  },
};

/** `scale`: "weight", "range", or "signed" (each of the `bands` on its own scale); `tint(row, column)`: [red, green, blue]. */
export function paint(canvas, matrix, { scale, tint, bands }) {
  [canvas.width, canvas.height] = [matrix.cols, matrix.rows];
  const context = canvas.getContext("2d");
  const image = context.createImageData(matrix.cols, matrix.rows);
  if (scale === "signed") paintSigned(image.data, matrix, bands);
  else paintRows(image.data, matrix, SCALES[scale], tint);
  context.putImageData(image, 0, 0);
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
    for (let row = 0; row < rows; row += 1)
      for (let c = start; c < stop; c += 1) top = Math.max(top, Math.abs(values[row * cols + c]));
    for (let row = 0; row < rows; row += 1) {
      for (let c = start; c < stop; c += 1) {
        const value = values[row * cols + c];
        ink(
          data,
          4 * (row * cols + c),
          value < 0 ? minus : plus,
          top > 0 ? Math.abs(value) / top : 0,
        );
      }
    }
  }
}
