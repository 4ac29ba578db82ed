"""What an installed bayesknn promises: the classifier, and what the extra named adds to it."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
from sklearn.base import clone

import bayesknn
from bayesknn import BayesianKNeighborsClassifier

HEAVY = ("arviz_base", "click", "dask", "h5py", "jinja2", "matplotlib", "pandas", "rich",
         "skops", "xarray")  # fmt: skip
BAYESKNN = Path(sys.executable).with_name("bayesknn")


def refuse(what, sentence):
    """Check that something that needs an extra says so."""
    try:
        what()
    except ModuleNotFoundError as error:
        assert sentence in str(error), error
    else:
        raise AssertionError(sentence)


def use_core(X, y):
    """Fit, predict, intervals."""
    assert "site-packages" in bayesknn.__file__, bayesknn.__file__
    clf = BayesianKNeighborsClassifier(max_neighbors=15, random_state=0).fit(X, y)
    assert clf.predict_proba(X).shape == (80, 2)
    assert np.mean(clf.predict(X) == y) > 0.7
    low, high = np.moveaxis(clf.predict_interval(X), 2, 0)
    assert np.all(low <= high)
    threads = clone(clf).set_params(n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(threads.predict_proba(X), clf.predict_proba(X))
    return clf


def use_nothing(clf, X, y):
    """Without an extra nothing heavy is there, and what needs it names the extra."""
    there = [name for name in HEAVY if importlib.util.find_spec(name)]
    assert not there, there
    refuse(lambda: clf.posterior_, "bayesknn[posterior]")
    ran = subprocess.run([BAYESKNN, "--help"], capture_output=True, text=True, check=False)
    assert ran.returncode == 1 and "bayesknn[cli]" in ran.stderr, ran


def use_posterior(clf, X, y):
    """Trees, files, chains."""
    import arviz_stats

    from bayesknn.posterior import load_posterior, save_posterior

    save_posterior(clf.posterior_, "posterior.nc")
    assert load_posterior("posterior.nc").identical(clf.posterior_)
    chain = BayesianKNeighborsClassifier(
        "pseudo", inference="metropolis", max_neighbors=15, random_state=0
    ).fit(X, y)
    assert chain.posterior_["posterior"]["beta"].shape == (4, 5000)
    assert list(arviz_stats.summary(chain.posterior_).index) == ["beta", "k"]


def use_plot(clf, X, y):
    """Pictures."""
    from bayesknn.plots import DecisionRegionDisplay, PosteriorDisplay

    PosteriorDisplay.from_estimator(clf).figure_.savefig("posterior.png")
    DecisionRegionDisplay.from_estimator(clf, X, y).figure_.savefig("regions.png")


def use_persist(clf, X, y):
    """Write a file that is read without unpickling."""
    from skops import io

    trusted = ["bayesknn.classifier.BayesianKNeighborsClassifier"]
    read = io.loads(io.dumps(clf), trusted=trusted)
    np.testing.assert_array_equal(read.predict_proba(X), clf.predict_proba(X))


def use_report(clf, X, y):
    """Go from a table to a page and back by the command line."""
    import pandas

    np.savetxt("t.csv", np.column_stack([X, y]), ["%.6f", "%.6f", "%d"], ",", header="a,b,y",
               comments="")  # fmt: skip
    fit = ["fit", "t.csv", "--target", "y", "--model", "coherent", "--no-compare", "--out", "out"]
    pandas.read_csv("t.csv").to_parquet("t.parquet")
    for words in (["--version"], fit, ["predict", "out", "t.parquet", "--out", "p.csv"]):
        subprocess.run([BAYESKNN, *words], stdout=subprocess.DEVNULL, check=True)
    names = {path.name for path in Path("out").iterdir()}
    assert names == {"predictions.csv", "posterior.nc", "model.skops", "report.html"}
    assert len(Path("p.csv").read_text().splitlines()) == 81


def use_excel(clf, X, y):
    """Fit the first sheet of a workbook."""
    import pandas

    pandas.DataFrame(X, columns=["a", "b"]).assign(y=y).to_excel("t.xlsx", index=False)
    fit = ["fit", "t.xlsx", "--target", "y", "--no-compare", "--out", "out"]
    subprocess.run([BAYESKNN, *fit], stdout=subprocess.DEVNULL, check=True)


def use_distributed(clf, X, y):
    """Blocks of a Dask array."""
    import dask.array as da

    from bayesknn.distributed import DistributedNeighborsClassifier

    blocks = da.from_array(X, chunks=(40, 2)), da.from_array(y, chunks=40)
    fitted = DistributedNeighborsClassifier(random_state=0, max_neighbors=15).fit(*blocks)
    assert fitted.predict_proba(blocks[0]).compute().shape == (80, 2)


def main(extra):
    """Use the core, then the extra."""
    rng = np.random.default_rng(0)
    y = np.arange(80) % 2
    X = rng.normal(size=(80, 2)) + 1.5 * y[:, None]
    clf = use_core(X, y)
    uses = {
        "": use_nothing, "posterior": use_posterior, "plot": use_plot, "persist": use_persist,
        "report": use_report, "cli": use_report, "excel": use_excel,
        "distributed": use_distributed,
    }  # fmt: skip
    uses[extra](clf, X, y)


if __name__ == "__main__":
    main(*(sys.argv[1:] or [""]))
