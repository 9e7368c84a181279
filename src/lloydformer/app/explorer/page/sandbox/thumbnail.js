// A small picture of a matrix: the largest share of each cell of a coarser grid.

/** A data URL; `tint(row, column)` gives [red, green, blue]. */
export function thumbnail(matrix, tint, most) {
  const [rows, columns] = [Math.min(matrix.rows, most), Math.min(matrix.cols, most)];
  const canvas = document.createElement("canvas");
  const zoom = Math.max(1, Math.floor(most / Math.max(rows, columns)));
  [canvas.width, canvas.height] = [columns, rows];
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  for (let row = 0; row < matrix.rows; row += 1) {
    const values = matrix.data.subarray(row * matrix.cols, (row + 1) * matrix.cols);
    let top = 0;
    for (const value of values) top = Math.max(top, Math.abs(value));
    const r = Math.floor((row * rows) / matrix.rows);
    for (let column = 0; top > 0 && column < matrix.cols; column += 1) {
      const at = 4 * (r * columns + Math.floor((column * columns) / matrix.cols));
      const ink = (255 * Math.abs(values[column])) / top;
      if (ink <= image.data[at + 3]) continue;
      [image.data[at], image.data[at + 1], image.data[at + 2]] = tint(row, column);
      image.data[at + 3] = ink;
    }
  }
  context.putImageData(image, 0, 0);
  return zoom > 1 ? enlarged(canvas, zoom) : canvas.toDataURL();
}

/** Whole pixels instead of a blur. */
function enlarged(canvas, zoom) {
  const large = document.createElement("canvas");
  [large.width, large.height] = [canvas.width * zoom, canvas.height * zoom];
  const context = large.getContext("2d");
  context.imageSmoothingEnabled = false;
  context.drawImage(canvas, 0, 0, large.width, large.height);
  return large.toDataURL();
}
