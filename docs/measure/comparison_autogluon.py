"""Log-losses of AutoGluon on the data sets of the comparison: ``python docs/measure autogluon``.

It writes ``prediction_autogluon.json`` with the version and the time limit of AutoGluon. It needs a
separate environment, made by ``pip install "autogluon.tabular[lightgbm,catboost,xgboost]" numba``,
with the ``src`` of this repository on the path.
"""

import tempfile
from importlib.metadata import version

from comparison import compare
from kept import HERE

# Time limit of a fit in seconds on one core, and the preset of AutoGluon. A longer limit may lower
# its log-loss, but would take hours for all data sets.
TIME_LIMIT, PRESET = 60, "best_quality"


class AutoGluon:
    """AutoGluon's ensemble with the ``fit`` and ``predict_proba`` of a classifier."""

    def fit(self, X, y):
        """Fit within the time limit, on one core."""
        import pandas as pd
        from autogluon.tabular import TabularPredictor

        frame = pd.DataFrame(X).add_prefix("x")
        with tempfile.TemporaryDirectory() as folder:
            self.predictor = TabularPredictor(
                "label", eval_metric="log_loss", path=folder, verbosity=0
            )
            self.predictor.fit(
                frame.assign(label=y), presets=PRESET, time_limit=TIME_LIMIT, num_cpus=1, num_gpus=0
            )
            self.predictor.persist()
        return self

    def predict_proba(self, X):
        """Return class probabilities in the order of the class indices."""
        import pandas as pd

        return self.predictor.predict_proba(pd.DataFrame(X).add_prefix("x")).to_numpy()


def write() -> None:
    """Fit AutoGluon to all data sets and store its scores."""
    compare(
        {"AutoGluon": AutoGluon}, HERE / "prediction_autogluon.json",
        version=version("autogluon.tabular"), time_limit=TIME_LIMIT, preset=PRESET,
    )  # fmt: skip
