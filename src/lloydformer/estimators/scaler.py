"""`Scaler`: columns scaled for clustering, each by the method that suits its distribution."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from lloydformer.data.column_scales import SCALES, ColumnScales, fit_column_scales
from lloydformer.data.curves import Curves
from lloydformer.data.scale_choice import Choice
from lloydformer.data.storage.model_folder import CONFIG, Arrays, Config, read_folder, write_folder
from lloydformer.estimators.parameter_checks import check_weights

_METHODS = (*SCALES, "none")
_ARRAYS = ("shift", "scale")
_CURVES = ("units", "counts", "values", "shares")


class Scaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Scale columns for clustering; "auto" chooses a method for each of them.

    Distances add up the columns, so a column in small units decides everything, and so does one
    with a long tail. ``method="auto"`` looks at the distribution of each column and takes the first
    that applies:

    1. "constant": the column has one value, and becomes 0.
    2. "binary": it has two values, which become -0.71 and 0.71. The variance is at most 1/2: a rare
       value weighs no more than a frequent one, and a random flag does not hide clusters.
    3. "standard": it has at most 10 different values, all whole numbers, such as codes or ratings.
    4. "log": its values have one sign, the 95 % quantile of their sizes is at least 5 times the
       5 % quantile, and they have a tail that logarithms shorten by half. The measure of the tail
       is (q95 - 2 q50 + q05) / (q95 - q05), above 0.25, or also log((q95 - q75) / (q25 - q05)), of
       at least log(3).
    5. "robust": some values are more than 5 robust standard deviations from the median, and are
       a group of their own, with fewer values between it and the others.
    6. "clip": some values are more than 10 robust standard deviations away, are no group, and are
       few: at most 2 % of the values are beyond 5 deviations, those of "clip" in the notes.
    7. "rank": some values are more than 10 away, and more are beyond 5: heavy tails.
    8. "standard": all other columns.

    All columns are left as they are ("none") if scaling could only harm: if at least two columns,
    and half of all, have the same smallest and the same largest value, as pixels and ratings do; or
    if no column needs "log", "clip" or "rank" and the spreads differ by at most a factor of 5, as
    those of coordinates do.

    Parameters
    ----------
    method : {"auto", "standard", "minmax", "robust", "log", "rank", "clip", "none"}
        Default: "auto".
        "standard" subtracts the mean and divides by the standard deviation; "minmax" maps the
        column to [0, 1]; "robust" subtracts the median and divides by the distance of the quartiles
        over 1.349, which is the standard deviation of normal data; "log" takes logarithms and then
        standardises; "rank" replaces a value by the share of rows below it, standardised;
        "clip" moves values beyond two limits to the limits, and then standardises.

    Attributes
    ----------
    methods_ : ndarray of shape (n_features,)
        The method of each column.
    reasons_ : list of str
        Why it was chosen, in words.
    numbers_ : list of dict
        The numbers that decided: spans, asymmetries and distances named in the rule.
    shift_, scale_ : ndarray of shape (n_features,)
        Subtracted, then divided by; after the logarithm or the ranks, if the column has them.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features seen during `fit`. Defined only when all column names of X are
        strings: in a data frame, or in a file opened with `lf.data.open_dataset`.

    See Also
    --------
    lloydformer.data.open_dataset : Open a file with the same scales; its models keep them.
    sklearn.preprocessing.StandardScaler : One method for all columns.

    Notes
    -----
    The logarithm is defined for zeros and negative values: it is x / u for sizes up to u, and
    sign(x) (1 + log(\|x\| / u)) beyond. u is the 1 % quantile of the sizes other than 0; of a
    column with both signs it is the median.

    Ranks are a piecewise linear curve through at most 1024 values. Rows beyond the smallest and
    the largest value of the fit get the rank of these.

    The limits of "clip" are 2 deviations from the median. The deviation of a side is the robust
    standard deviation, or the distance of the 5 % or 95 % quantile over 1.645 if that is larger, so
    that a small cluster on one side is not cut.

    `inverse_transform` returns what `transform` was given, but for rounding, for ranks beyond the
    fit, and for values beyond limits. Missing values are ignored by `fit` and stay missing.
    Quantiles are of 65,536 rows, evenly spaced, if there are more.

    Examples
    --------
    >>> import numpy as np
    >>> import lloydformer as lf
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([np.exp(rng.normal(8, 1, 500)), rng.normal(40, 12, 500)])
    >>> scaler = lf.Scaler().fit(X)  # income and age
    >>> scaler.methods_.tolist()
    ['log', 'standard']
    >>> bool(np.allclose(scaler.inverse_transform(scaler.transform(X)), X))
    True
    """

    def __init__(self, method: Any = "auto") -> None:
        self.method = method

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "Scaler":
        """Choose and compute the scale of each column.

        Parameters
        ----------
        X : array-like, sparse matrix, Tensor or Blocks of shape (n_samples, n_features)
            The points, one per row: an array, a data frame, a tensor in float32 or float64, or
            what `lf.data.open_dataset` returns. Sparse matrices are accepted by `KMeans`,
            `SoftKMeans`, `SphericalKMeans`, `RelocatingKMeans`, `LearnedKMeans` and mixtures
            without full or tied covariances; CSR is read in place, other formats are converted to a
            copy in CSR.
        y : object, default=None
            Ignored; present for compatibility with scikit-learn.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row, not negative. A row with weight 2 counts twice, a row with weight 0
            does not count. None: every row has weight 1.

        Returns
        -------
        Scaler
            The fitted scaler.

        Raises
        ------
        ValueError
            If the method is not known, or X has infinite values, or values whose spread float64
            cannot hold.

        See Also
        --------
        Scaler.transform : Scale rows.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.Scaler("minmax").fit([[0.0], [4.0]]).scale_
        array([4.])
        """
        if self.method not in _METHODS:
            raise ValueError(f"method: found {self.method!r}; pass one of {', '.join(_METHODS)}")
        X = self._check(X, reset=True)
        weights = None if sample_weight is None else check_weights(sample_weight, len(X))
        if self.method == "none":
            n_features = X.shape[1]
            choices = (Choice("none", "as given"),) * n_features
            found = ColumnScales(np.zeros(n_features), np.ones(n_features), None, choices)
        else:
            found = fit_column_scales(X, self.method, weights)
        wrong = np.flatnonzero(~(np.isfinite(found.shift) & np.isfinite(found.scale)))
        if len(wrong):
            raise ValueError(
                f"X: found values in column {wrong[0]} whose spread float64 cannot hold; divide "
                "them by a large number first"
            )
        self._keep(found)
        return self

    def _keep(self, found: ColumnScales) -> None:
        self.shift_, self.scale_, self._curves = found.shift, found.scale, found.curves
        self.methods_ = np.array([choice.method for choice in found.choices], dtype=object)
        self.reasons_ = [choice.reason for choice in found.choices]
        self.numbers_ = [choice.numbers for choice in found.choices]

    def _check(self, X: Any, *, reset: bool) -> np.ndarray:
        checked: np.ndarray = validate_data(
            self,
            X,
            reset=reset,
            dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan",
        )
        return checked

    def transform(self, X: Any) -> Any:
        """Scale rows.

        Parameters
        ----------
        X : array-like, sparse matrix, Tensor or Blocks of shape (n_samples, n_features)
            The points, one per row: an array, a data frame, a tensor in float32 or float64, or
            what `lf.data.open_dataset` returns. Sparse matrices are accepted by `KMeans`,
            `SoftKMeans`, `SphericalKMeans`, `RelocatingKMeans`, `LearnedKMeans` and mixtures
            without full or tied covariances; CSR is read in place, other formats are converted to a
            copy in CSR.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Scaled rows, in the precision of X.

        See Also
        --------
        Scaler.inverse_transform : Return to the units of the data.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.Scaler("minmax").fit([[0.0], [4.0]]).transform([[1.0]])
        array([[0.25]])
        """
        check_is_fitted(self)
        X = self._check(X, reset=False)
        rows = X.astype(np.float64)
        rows = rows if self._curves is None else self._curves.bend(rows)
        return ((rows - self.shift_) / self.scale_).astype(X.dtype)

    def inverse_transform(self, X: Any) -> Any:
        """Return scaled rows, such as centers, in the units of the data.

        Parameters
        ----------
        X : array-like, sparse matrix, Tensor or Blocks of shape (n_samples, n_features)
            The points, one per row: an array, a data frame, a tensor in float32 or float64, or
            what `lf.data.open_dataset` returns. Sparse matrices are accepted by `KMeans`,
            `SoftKMeans`, `SphericalKMeans`, `RelocatingKMeans`, `LearnedKMeans` and mixtures
            without full or tied covariances; CSR is read in place, other formats are converted to a
            copy in CSR.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Rows in the units of the fit.

        See Also
        --------
        Scaler.transform : Scale rows.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.Scaler("minmax").fit([[0.0], [4.0]]).inverse_transform([[0.25]])
        array([[1.]])
        """
        check_is_fitted(self)
        # Not by `_check`: scaled rows have no names to compare.
        values = np.asarray(X)
        dtype = values.dtype if values.dtype == np.float32 else np.float64
        if values.ndim != 2 or values.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X: found the shape {values.shape}; pass rows of {self.n_features_in_} columns"
            )
        rows = values.astype(np.float64) * self.scale_ + self.shift_
        return (rows if self._curves is None else self._curves.unbend(rows)).astype(dtype)

    def save_pretrained(self, folder: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the scaler, fitted or not, to a folder, as JSON and safetensors.

        Parameters
        ----------
        folder : str or os.PathLike
            The folder. It is created if it does not exist.
        force : bool, default=False
            If True, replace a model that is in the folder.

        Raises
        ------
        ValueError
            If there is a model in the folder and `force` is False.

        See Also
        --------
        Scaler.from_pretrained : Read the scaler again.

        Examples
        --------
        >>> import tempfile, lloydformer as lf
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     lf.Scaler("minmax").fit([[0.0], [4.0]]).save_pretrained(folder)
        ...     again = lf.Scaler.from_pretrained(folder)
        >>> again.transform([[1.0]])
        array([[0.25]])
        """
        config: Config = {"class": "Scaler", "method": self.method}
        tensors: Arrays = {}
        if hasattr(self, "scale_"):
            tensors = {"shift": self.shift_, "scale": self.scale_}
            if self._curves is not None:
                tensors |= vars(self._curves)
            names = getattr(self, "feature_names_in_", None)
            config["names"] = None if names is None else names.tolist()
            config["columns"] = [
                {"method": method, "reason": reason, "numbers": numbers}
                for method, reason, numbers in zip(
                    self.methods_, self.reasons_, self.numbers_, strict=True
                )
            ]
        write_folder(Path(folder), config, tensors, force=force)

    @classmethod
    def from_pretrained(cls, folder: str | os.PathLike[str]) -> "Scaler":
        """Read a scaler that `save_pretrained` has written.

        Parameters
        ----------
        folder : str or os.PathLike
            The folder.

        Returns
        -------
        Scaler
            The scaler.

        Raises
        ------
        ValueError
            If the folder holds no scaler, or a damaged one.

        See Also
        --------
        Scaler.save_pretrained : Write the scaler.

        Examples
        --------
        >>> import tempfile, lloydformer as lf
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     lf.Scaler("rank").save_pretrained(folder)
        ...     lf.Scaler.from_pretrained(folder)
        Scaler(method='rank')
        """
        config, tensors = read_folder(Path(folder))
        where = Path(folder) / CONFIG
        if config.get("class") != "Scaler" or config.get("method") not in _METHODS:
            raise ValueError(f"{where}: holds no Scaler")
        scaler = cls(config["method"])
        if "columns" not in config:
            return scaler
        try:
            choices = tuple(
                Choice(str(c["method"]), str(c["reason"]), dict(c["numbers"]))
                for c in config["columns"]
            )
            shift, scale = (np.array(tensors[name], dtype=np.float64) for name in _ARRAYS)
            curves = None
            if "units" in tensors:
                curves = Curves(*(np.array(tensors[name]) for name in _CURVES))
            parts = [shift, scale, *([] if curves is None else [curves.units, curves.counts])]
            names = config["names"]
            named = names is None or len(names) == len(choices)
            finite = np.isfinite(shift).all() and (scale > 0).all()
            if not (named and finite and all(part.shape == (len(choices),) for part in parts)):
                raise ValueError("its parts have different numbers of columns")
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{where}: is damaged ({error}); save the scaler again") from None
        scaler._keep(ColumnScales(shift, scale, curves, choices))
        scaler.n_features_in_ = len(choices)
        if names is not None:
            scaler.feature_names_in_ = np.array(names, dtype=object)
        return scaler
