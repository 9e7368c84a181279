"""The link from an estimator's HTML representation to its documentation."""

import inspect
from pathlib import Path
from typing import ClassVar

from sklearn.base import BaseEstimator


class DocLinked(BaseEstimator):
    """Link the HTML representation to the source file, whose docstring documents the class.

    scikit-learn shows the documentation of parameters in a notebook only where there is a link.
    """

    _doc_link_module: ClassVar[str] = "lloydformer"
    _doc_link_template: ClassVar[str] = "{source}"

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        return {"source": Path(inspect.getfile(type(self))).as_uri()}
