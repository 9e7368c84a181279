// Saves the page as it stands: the one file, with the points and the recipe of now inside.
import { download } from "./share.js";

/** Whether all of the page is in one file; a page in a folder has its scripts beside it. */
export const canSavePage = () => !document.querySelector('script[type="module"][src]');

/** The source of the page with another state to begin with. */
export function pageWith({ recipe, points, centers }) {
  const copy = document.documentElement.cloneNode(true);
  for (const id of ["story-root", "sandbox-root"]) copy.querySelector(`#${id}`).replaceChildren();
  copy.querySelector(".preferences").replaceChildren();
  copy.querySelector("#notice").hidden = true;
  for (const name of ["data-theme", "data-motion"]) copy.removeAttribute(name);
  const state = JSON.stringify({ recipe, points, centers }).replaceAll("<", "\\u003c");
  copy.querySelector("#initial-state").textContent = state;
  return `<!doctype html>\n${copy.outerHTML}\n`;
}

export const savePage = (state) => download("explorer.html", new Blob([pageWith(state)], { type: "text/html" }));

