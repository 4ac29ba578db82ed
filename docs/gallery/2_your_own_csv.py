"""
Your own table, from the command line
=====================================

``bayesknn fit`` reads a CSV, Excel or Parquet file with numbers and categories, fits, and writes
predictions, the model and a report that is one HTML file. ``bayesknn predict``
uses the model later. Each command is shown as it is typed in a shell, with what it prints; here
they run in a folder that is thrown away.
"""

# %%
# A table
# -------
# 180 patients, say, with two measurements and a category; the outcome is what we want to predict.
# Twenty further rows have no outcome yet.

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
# The default model is the pool, an ensemble of nearest neighbours, a logistic regression and
# boosted trees; ``--model coherent`` fits the paper's model, with the posterior of (beta, k). The
# report shows how each column was read, compares the model with others, and ranks the columns.


def shell(command):
    """Run a command in the folder; print it as typed, and its output."""
    print(f"$ {command}")
    words = [sys.executable, "-m", *shlex.split(command)]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
    print(done.stdout)


shell("bayesknn fit train.csv --target outcome --test new.csv --out result")

# %%
# The folder is written whole or not at all, and an existing one is not overwritten without
# ``--force``. ``report.html`` needs nothing beside it and asks no server for anything.

for path in sorted((folder / "result").iterdir()):
    print(f"{path.name:16s} {path.stat().st_size / 1024:8.0f} KB")

# %%
# A row of ``predictions.csv`` has the class, every probability with its interval, the zone and
# the expected loss.

pd.read_csv(folder / "result" / "predictions.csv").head(4).round(3)

# %%
# Use the model later
# -------------------
# ``model.skops`` is not a pickle: the types of objects in it are checked before it is loaded, and a
# damaged file is refused. Still, use models only from people you trust.

shell("bayesknn predict result/model.skops new.csv --out again.csv")
again = pd.read_csv(folder / "again.csv")
print(len(again), "rows")

# %%
# Where one mistake costs more than another, ``--loss`` takes a table of the costs: a row for each
# true class, a column for each decision. The output then has the decision of least expected loss
# beside the most probable class. Here it costs five times as much to miss a relapse.

(folder / "loss.csv").write_text("truth,no relapse,relapse\nno relapse,0,1\nrelapse,5,0\n")
shell("bayesknn predict result/model.skops new.csv --loss loss.csv --out decided.csv")
decided = pd.read_csv(folder / "decided.csv")
print(pd.crosstab(decided["class"], decided["decision"]))
temporary.cleanup()
