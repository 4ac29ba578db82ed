"""Values of a table of log Z on a grid of (beta, k), for the pictures of it."""

from __future__ import annotations

from typing import Any

import numpy as np


def choose_betas(table: Any, n_betas: int) -> np.ndarray:
    """Return evenly spaced values of beta over the range of a table."""
    if n_betas < 2:
        raise ValueError(f"n_betas must be at least 2, got {n_betas}")
    return np.linspace(0.0, table.beta_max, n_betas)


def check_k_values(table: Any, k_values: Any) -> np.ndarray:
    """Return the values of k as integers, if the table has all of them."""
    k_values = np.atleast_1d(k_values)
    for k in k_values:
        if k != int(k) or not 1 <= k <= table.k_max:
            raise ValueError(f"k_values must be integers in 1..{table.k_max}, got {k}")
    return k_values.astype(int)


def check_surface(values: Any, betas: np.ndarray, k_values: np.ndarray, name: str) -> np.ndarray:
    """Return values as an array, if it has a row for each k and a column for each beta."""
    values = np.asarray(values, dtype=float)
    shape = (len(k_values), len(betas))
    if values.shape != shape:
        raise ValueError(
            f"{name} must have a row for each k and a column for each beta, {shape}; "
            f"got shape {values.shape}"
        )
    return values


def tabulate(function: Any, betas: np.ndarray, k_values: np.ndarray) -> np.ndarray:
    """Return ``function(betas, k)`` for every k, of shape (n_k, n_betas)."""
    return np.array([function(betas, int(k)) for k in k_values])


def agreement_errors(table: Any, betas: np.ndarray, k_values: np.ndarray) -> np.ndarray | None:
    """Return the Monte Carlo error of E[S_k] / k, or None where the table cannot tell.

    E[S_k] / k is the slope of log Z in beta, so its error is the spread of the slopes of the
    table's replicates.
    """
    if not hasattr(table, "replicates"):
        return None

    def error(betas: np.ndarray, k: int) -> np.ndarray:
        resampled = table.replicates(betas, k)[1:]
        return np.gradient(resampled, betas, axis=1).std(axis=0)

    return tabulate(error, betas, k_values)
