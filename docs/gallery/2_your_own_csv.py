"""
Your own table, from the command line
=====================================

``bayesknn fit`` reads a CSV, Excel or Parquet file with numbers and categories, fits a model, and
writes predictions, the model and a report as one HTML file. ``bayesknn predict`` applies the saved
model to new rows. This example shows each command with its output; the commands run in a temporary
folder.
"""

# %%
# A table
# -------
# The simulated table has 180 patients with two measurements, a category and the outcome to be
# predicted. A second table has 20 patients without an outcome.

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

temporary = tempfile.TemporaryDirectory()
folder = Path(temporary.name)
rng = np.random.default_rng(0)
age = rng.normal(55, 12, size=200)
marker = rng.lognormal(size=200)
site = rng.choice(["north", "south", "west"], size=200)
risk = 0.08 * (age - 55) + 1.2 * np.log(marker) + np.where(site == "west", 1.0, 0.0)
outcome = np.where(risk + rng.logistic(size=200) > 0.3, "relapse", "no relapse")
table = pd.DataFrame({"age": age.round(1), "marker": marker.round(3), "site": site})
table.assign(outcome=outcome)[:180].to_csv(folder / "train.csv", index=False)
table[180:].to_csv(folder / "new.csv", index=False)
print((folder / "train.csv").read_text()[:150])


# %%
# Fit
# ---
# The default model is an ensemble of nearest neighbours, a logistic regression and boosted trees.
# ``--model coherent`` fits the paper's model instead, with the posterior of (beta, k). The report
# shows how each column was read, compares the model with others, and ranks the columns.


def shell(command):
    """Run a command in the folder; print the command and its output."""
    print(f"$ {command}")
    words = [sys.executable, "-m", *shlex.split(command)]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
    print(done.stdout)


shell("bayesknn fit train.csv --target outcome --test new.csv --out result")

# %%
# After an error or an interruption there is no incomplete folder. An existing folder is overwritten
# only with ``--force``. ``report.html`` needs no other files and makes no network requests.

for path in sorted((folder / "result").iterdir()):
    print(f"{path.name:16s} {path.stat().st_size / 1024:8.0f} KB")

# %%
# A row of ``predictions.csv`` has the most probable class, the probability of each class with its
# interval, the zone and the expected loss.

pd.read_csv(folder / "result" / "predictions.csv").head(4).round(3)

# %%
# Predict with the saved model
# ----------------------------
# ``model.skops`` is not a pickle file. The types of its objects are checked before they are loaded,
# and a damaged file raises an error. Nevertheless, load only models from sources that you trust.

shell("bayesknn predict result/model.skops new.csv --out again.csv")
again = pd.read_csv(folder / "again.csv")
print(len(again), "rows")

# %%
# If errors have unequal costs, ``--loss`` takes a table of costs with a row for each true class and
# a column for each decision. The output then has the decision with the smallest expected loss, in
# addition to the most probable class. In this table, missing a relapse costs five times as much as
# a false alarm.

(folder / "loss.csv").write_text("truth,no relapse,relapse\nno relapse,0,1\nrelapse,5,0\n")
shell("bayesknn predict result/model.skops new.csv --loss loss.csv --out decided.csv")
decided = pd.read_csv(folder / "decided.csv")
print(pd.crosstab(decided["class"], decided["decision"]))
temporary.cleanup()
