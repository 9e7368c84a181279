// Saves the page as one file that works from disk, with the state of now inside.
import { writeHash } from "../state.js";
import { download } from "./share.js";

const IMPORT = /^((?:import|export)\b[^"';]*?["'])(\.{1,2}\/[^"']+)(?=["'])/gm;

/** Collects a module and all that it imports under names for an import map, as page_files.py does. */
async function collect(url, base, modules) {
  const name = `page/${url.href.slice(base.href.length)}`;
  if (modules.has(name)) return name;
  modules.set(name, "");
  const source = await (await fetch(url)).text();
  const names = new Map();
  for (const [, , path] of source.matchAll(IMPORT))
    names.set(path, await collect(new URL(path, url), base, modules));
  modules.set(
    name,
    source.replace(IMPORT, (whole, before, path) => before + names.get(path)),
  );
  return name;
}

/** Puts scripts and styles that lie beside the page into it. */
async function inline(page) {
  const base = new URL(".", document.baseURI);
  for (const link of page.querySelectorAll('link[rel="stylesheet"]')) {
    const style = document.createElement("style");
    style.textContent = await (await fetch(new URL(link.getAttribute("href"), base))).text();
    link.replaceWith(style);
  }
  const script = page.querySelector('script[type="module"][src]');
  if (!script) return;
  const modules = new Map();
  const first = await collect(new URL(script.getAttribute("src"), base), base, modules);
  const imports = Object.fromEntries(
    [...modules].map(([name, source]) => [
      name,
      `data:text/javascript,${encodeURIComponent(source)}`,
    ]),
  );
  const map = Object.assign(document.createElement("script"), { type: "importmap" });
  map.textContent = JSON.stringify({ imports });
  script.before(map);
  script.removeAttribute("src");
  script.textContent = `import "${first}";`;
}

/** The source of the page in one file, which begins with this state. */
export async function pageWith(state) {
  const page = document.documentElement.cloneNode(true);
  for (const place of ["#story-root", "#sandbox-root", "#recorded-root", ".preferences"])
    page.querySelector(place).replaceChildren();
  page.querySelector("#notice").hidden = true;
  for (const name of ["data-theme", "data-motion"]) page.removeAttribute(name);
  const { recipe, points, centers } = state;
  const written = JSON.stringify({ recipe, points, centers, address: writeHash(state, Infinity) });
  page.querySelector("#initial-state").textContent = written.replaceAll("<", "\\u003c");
  await inline(page);
  return `<!doctype html>\n${page.outerHTML}\n`;
}

export async function savePage(state) {
  download("explorer.html", new Blob([await pageWith(state)], { type: "text/html" }));
}
