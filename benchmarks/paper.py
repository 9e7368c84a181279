"""Generate docs/paper.md and its pictures from the results in results/paper.

The results come from `lloydformer reproduce`; their verdicts are evaluated again.
"""

import json
from pathlib import Path

from lloydformer.data.storage.atomic_files import atomic_write_text
from lloydformer.paper.artefact import AUTHORS, BY_AUTHORS, LABELS, load_artefact
from lloydformer.paper.pages import fill_marks
from lloydformer.paper.reproduce import add_verdicts, load_result

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "paper"
PAGE = HERE.parent / "docs" / "paper.md"
PICTURES = HERE.parent / "docs" / "pictures" / "paper"

if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    results = {}
    # numerical-validation has the authors' data in its main result
    by_authors = [f"{label}{BY_AUTHORS}" for label in AUTHORS if label != "numerical-validation"]
    for label in (*LABELS, *by_authors):
        result = load_result(RESULTS, label)
        if result is None:
            print(f"{label}: no result; run lloydformer reproduce (see --help) -o {RESULTS}")
            continue
        artefact = load_artefact(label)
        results[label] = add_verdicts(artefact, result)
        text = json.dumps(results[label], indent=1, allow_nan=False) + "\n"
        atomic_write_text(RESULTS / f"{label}.json", text)
        for picture in artefact.pictures(result):
            end = BY_AUTHORS if label.endswith(BY_AUTHORS) else ""
            picture.figure.savefig(PICTURES / f"{picture.name}{end}.png", dpi=100)
    atomic_write_text(PAGE, fill_marks(PAGE.read_text(encoding="utf-8"), results))
