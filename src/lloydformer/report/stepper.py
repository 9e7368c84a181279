"""The stepper: a button and a slider that choose the layer that the page shows."""

from lloydformer.report.page import Part
from lloydformer.report.parts import widget

_BAR = """<button type="button" aria-label="Play the layers">Play</button>
<input type="range" min="0" max="{n_layers}" value="{n_layers}" step="1" aria-label="Layer">
<output></output>"""


def stepper(n_layers: int) -> Part:
    """Return the part. Its script sends `layer` events with the number of layers, 0 to `n_layers`.

    A page that is opened with `#layer=3` starts at layer 3.
    """
    return widget("stepper", _BAR.format(n_layers=n_layers))
