"""Generate docs/paper.md and its pictures from the results in results/paper.

The results come from `lloydformer reproduce`; their verdicts are evaluated again.
"""

import json
from pathlib import Path

from lloydformer.paper.labels import LABELS, artefact
from lloydformer.paper.markdown import fill_marks
from lloydformer.paper.run import load_result, with_verdicts
from lloydformer.storage.atomic import write_whole

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "paper"
PAGE = HERE.parent / "docs" / "paper.md"
PICTURES = HERE.parent / "docs" / "pictures" / "paper"

if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    for label in LABELS:
        result = load_result(RESULTS, label)
        if result is None:
            print(f"{label}: no result; run lloydformer reproduce {label} -o {RESULTS}")
            continue
        of = artefact(label)
        text = json.dumps(with_verdicts(of, result), indent=1, allow_nan=False) + "\n"
        write_whole(RESULTS / f"{label}.json", text)
        for picture in of.pictures(result):
            picture.figure.savefig(PICTURES / f"{picture.name}.png", dpi=100)
    write_whole(PAGE, fill_marks(PAGE.read_text(encoding="utf-8"), RESULTS))
