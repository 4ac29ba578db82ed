"""Curves between nodes: a polynomial of the fifth degree on each interval (Section 3.3).

``d log Z / d beta`` is ``E[S_k] / k`` and its derivative is ``Var[S_k] / k**2``, so that each node
knows value, slope and curvature of log Z: six numbers for an interval, as many as a quintic has.
"""

from __future__ import annotations

import numpy as np

from bayesknn._jit import kernel


def quintic(betas, values, slopes, curvatures) -> np.ndarray:
    """Return the coefficients of the quintic that has these derivatives at the nodes.

    Parameters
    ----------
    betas : ndarray of shape (n_nodes,)
    values, slopes, curvatures : ndarray of shape (..., n_nodes)

    Returns
    -------
    ndarray of shape (..., n_nodes - 1, 6)
        Of the powers 0 to 5 of the share of the interval that has been gone.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.likelihood.path.hermite import evaluate, quintic
    >>> x = np.array([0.0, 1.0, 3.0])
    >>> coefficients = quintic(x, x**5, 5 * x**4, 20 * x**3)
    >>> evaluate(x, coefficients, np.array([0.5, 2.0]))
    array([3.125e-02, 3.200e+01])
    """
    step = np.diff(betas)
    rise = np.diff(values)
    left, right = step * slopes[..., :-1], step * slopes[..., 1:]
    bend, next_bend = step**2 * curvatures[..., :-1] / 2, step**2 * curvatures[..., 1:] / 2
    return np.stack(
        [
            values[..., :-1],
            left,
            bend,
            10 * rise - 6 * left - 4 * right - 3 * bend + next_bend,
            -15 * rise + 8 * left + 7 * right + 3 * bend - 2 * next_bend,
            6 * rise - 3 * left - 3 * right - bend + next_bend,
        ],
        axis=-1,
    )


def parabola(betas, values, slopes) -> np.ndarray:
    """Return the coefficients of the curve whose slope is linear between nodes.

    Where values are those of the trapezium rule for the slopes, the pieces meet.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.likelihood.path.hermite import parabola
    >>> parabola(np.array([0.0, 2.0]), np.array([1.0, 5.0]), np.array([1.0, 3.0])).tolist()
    [[1.0, 2.0, 2.0, 0.0, 0.0, 0.0]]
    """
    coefficients = np.zeros((*values.shape[:-1], values.shape[-1] - 1, 6))
    coefficients[..., 0] = values[..., :-1]
    coefficients[..., 1] = np.diff(betas) * slopes[..., :-1]
    coefficients[..., 2] = np.diff(betas) * np.diff(slopes) / 2
    return coefficients


def differentiate(betas, coefficients) -> np.ndarray:
    """Return the coefficients of the derivatives by beta.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.likelihood.path.hermite import differentiate
    >>> differentiate(np.array([0.0, 4.0]), np.array([[1.0, 2.0, 0.0, 0.0, 0.0, 0.0]]))[0, 0]
    np.float64(0.5)
    """
    derivative = np.zeros_like(coefficients)
    derivative[..., :-1] = coefficients[..., 1:] * np.arange(1, 6) / np.diff(betas)[:, None]
    return derivative


def evaluate(betas, coefficients, at) -> np.ndarray:
    """Return the values of curves, of shape ``coefficients.shape[:-2] + at.shape``.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesknn.likelihood.path.hermite import evaluate
    >>> line = np.array([[1.0, 2.0, 0.0, 0.0, 0.0, 0.0]])
    >>> evaluate(np.array([0.0, 4.0]), line, np.array([1.0, 4.0]))
    array([1.5, 3. ])
    """
    rows = np.ascontiguousarray(coefficients).reshape(-1, *coefficients.shape[-2:])
    values = np.empty((len(rows), at.size))
    _evaluate(betas, rows, np.ascontiguousarray(at).ravel(), values)
    return values.reshape((*coefficients.shape[:-2], *at.shape))


@kernel
def _evaluate(betas, rows, at, values):
    for i in range(at.size):
        low, high = 0, betas.size - 2
        while low < high:
            middle = (low + high + 1) // 2
            if betas[middle] <= at[i]:
                low = middle
            else:
                high = middle - 1
        t = (at[i] - betas[low]) / (betas[low + 1] - betas[low])
        for r in range(rows.shape[0]):
            total = rows[r, low, 5]
            for power in range(4, -1, -1):
                total = total * t + rows[r, low, power]
            values[r, i] = total
