"""A run of sweeps cut into compiled calls of bounded work, so that Ctrl-C is heard between them."""

from __future__ import annotations

from collections.abc import Iterator

# Elementary operations of one call, about a fifth of a second.
_OPERATIONS_PER_CALL = 2e8


def cut_run(
    n_warmup: int, n_draws: int, thin: int, per_sweep: float, per_record: float
) -> Iterator[tuple[int, int, int]]:
    """Yield (warm-up sweeps, first draw, last draw + 1) of each call.

    Parameters
    ----------
    n_warmup, n_draws, thin : int
        ``n_warmup`` sweeps, then a record after every ``thin`` sweeps.
    per_sweep, per_record : float
        Operations of a sweep and of a record.

    Examples
    --------
    >>> from bayesknn.labels.slices import cut_run
    >>> list(cut_run(5, 3, 1, per_sweep=1e8, per_record=0.0))
    [(2, 0, 0), (2, 0, 0), (1, 0, 0), (0, 0, 2), (0, 2, 3)]
    """
    step = max(1, int(_OPERATIONS_PER_CALL / per_sweep))
    for done in range(0, n_warmup, step):
        yield min(step, n_warmup - done), 0, 0
    step = max(1, int(_OPERATIONS_PER_CALL / (thin * per_sweep + per_record)))
    for start in range(0, n_draws, step):
        yield 0, start, min(start + step, n_draws)
