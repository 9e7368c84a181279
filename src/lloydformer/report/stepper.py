"""The stepper: a button and a slider that choose the layer which the whole page shows."""

from lloydformer.report.page import Part
from lloydformer.report.parts import widget

_BAR = """<button type="button" aria-label="Play the layers">Play</button>
<input type="range" min="0" max="{n_layers}" value="{n_layers}" step="1" aria-label="Layer">
<output></output>"""


def stepper(n_layers: int) -> Part:
    """It sends `layer` events with the number of layers done so far, from 0 to `n_layers`.

    A page opened with `#layer=3` begins there.
    """
    return widget("stepper", _BAR.format(n_layers=n_layers))
