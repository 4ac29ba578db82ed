"""AutoGluon on the data sets of the comparison: ``python docs/measure autogluon``.

It writes ``prediction_autogluon.json``, in an environment of its own: ``pip install
"autogluon.tabular[lightgbm,catboost,xgboost]" numba``, and this repository's ``src`` on the path.
Its version and budget are kept beside the numbers.
"""

import tempfile
from importlib.metadata import version

from comparison import compare
from kept import HERE

# Of a fit, in seconds of one core: what a preset of many models gets.
TIME_LIMIT, PRESET = 60, "best_quality"


class AutoGluon:
    """AutoGluon's ensemble with the two methods of a classifier that are used here."""

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
        """Return probabilities in the order of the class numbers."""
        import pandas as pd

        return self.predictor.predict_proba(pd.DataFrame(X).add_prefix("x")).to_numpy()


def write() -> None:
    """Fit it to every data set."""
    compare(
        {"AutoGluon": AutoGluon}, HERE / "prediction_autogluon.json",
        version=version("autogluon.tabular"), time_limit=TIME_LIMIT, preset=PRESET,
    )  # fmt: skip
