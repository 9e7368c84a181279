// Takes things away: the address, Python code, pictures.
import { h, s } from "../dom.js";

const KEPT = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-opacity",
  "stroke-dasharray",
  "stroke-linecap",
  "stroke-linejoin",
  "opacity",
  "font-size",
  "font-weight",
  "font-family",
  "text-anchor",
  "dominant-baseline",
  "transform",
  "visibility",
  "image-rendering",
];

/** A copy of a figure that looks the same without the page's styles. */
export function standalone(svg) {
  const copy = svg.cloneNode(true);
  const [from, to] = [svg, copy].map((root) => [root, ...root.querySelectorAll("*")]);
  from.forEach((element, i) => {
    const style = getComputedStyle(element);
    const found = KEPT.map((name) => [name, style.getPropertyValue(name)]).filter(
      ([name, value]) => value && (name !== "transform" || value !== "none"),
    );
    to[i].setAttribute("style", found.map(([name, value]) => `${name}:${value}`).join(";"));
    for (const name of ["tabindex", "fill", "stroke", "class"]) to[i].removeAttribute(name); // the style has them
  });
  const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.prepend(
    s("rect", { width, height, style: `fill:${getComputedStyle(document.body).backgroundColor}` }),
  );
  return { text: new XMLSerializer().serializeToString(copy), width, height };
}

export function download(name, blob) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export const saveSvg = (svg, name) =>
  download(`${name}.svg`, new Blob([standalone(svg).text], { type: "image/svg+xml" }));

/** The figure as a picture with three pixels for one. */
export async function savePng(svg, name) {
  const { text, width, height } = standalone(svg);
  const image = new Image();
  await new Promise((resolve, reject) => {
    image.onload = resolve;
    image.onerror = reject;
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  });
  const canvas = h("canvas", { width: 3 * width, height: 3 * height });
  const context = canvas.getContext("2d");
  context.fillStyle = getComputedStyle(document.body).backgroundColor;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  download(
    `${name}.png`,
    await new Promise((resolve) => {
      canvas.toBlob(resolve);
    }),
  );
}

/** A matrix as a picture, eight pixels a cell or fewer. */
export function saveCanvas(canvas, name) {
  const zoom = Math.max(1, Math.floor(1200 / Math.max(canvas.width, canvas.height)));
  const large = h("canvas", { width: canvas.width * zoom, height: canvas.height * zoom });
  const context = large.getContext("2d");
  context.fillStyle = getComputedStyle(document.body).backgroundColor;
  context.fillRect(0, 0, large.width, large.height);
  context.imageSmoothingEnabled = false;
  context.drawImage(canvas, 0, 0, large.width, large.height);
  large.toBlob((blob) => download(`${name}.png`, blob));
}

/** Copies text; where the browser forbids it, shows it to be copied by hand. */
export async function copy(text, field) {
  field.value = text;
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    field.focus();
    field.select();
    return false;
  }
}
