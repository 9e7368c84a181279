"""A small page to serve and to bundle, with the modules of the real one."""

import shutil
from pathlib import Path

from javascript import PAGE

INDEX = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<link rel="stylesheet" href="./small.css">
</head>
<body>
<script type="application/json" id="initial-state">{}</script>
<script type="module" src="./small.js"></script>
</body>
</html>
"""

MAIN = """import { Circuit } from "./interpreter/index.js";
import { RECIPES } from './recipes.js';

/* Lines of comments are not code:
 *   import("./nothing.js")
 */
// await import("./nothing.js")
const given = JSON.parse(document.getElementById("initial-state").textContent);
const late = await import("./late.js");
const recipe = given.recipe ?? RECIPES[0].recipe;
const circuit = new Circuit(recipe, { nFeatures: 1, nClusters: 2 });
const trace = circuit.run(given.points ?? [[0], [1], [8], [9]], given.centers ?? [[0], [1]]);
document.body.dataset.found = JSON.stringify([recipe.name, ...trace.centers.at(-1).flatMap(
  (row) => [...row]), late.word]);
"""


def make_small_page(folder: Path) -> Path:
    """Make a page with the interpreter that runs a circuit and writes down what it finds."""
    shutil.copytree(PAGE, folder)
    (folder / "index.html").write_text(INDEX, encoding="utf-8")
    (folder / "small.css").write_text("body { color: red; }\n", encoding="utf-8")
    (folder / "small.js").write_text(MAIN, encoding="utf-8")
    (folder / "late.js").write_text('export const word = "späť";\n', encoding="utf-8")
    return folder
