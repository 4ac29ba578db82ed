"""Exceptions and warnings that bayesknn adds to Python's own."""


class CoalescenceError(RuntimeError):
    """Coupling from the past did not coalesce within the allowed number of sweeps.

    It is raised because a draw from chains that have not coalesced would be biased.

    Attributes
    ----------
    n_sweeps : int
        Number of sweeps before time zero at which the chains were started.
    n_apart : int
        Number of sites or bonds that still differed at time zero.
    """

    def __init__(self, message: str, n_sweeps: int = 0, n_apart: int = 0):
        super().__init__(message)
        self.n_sweeps = n_sweeps
        self.n_apart = n_apart

    def __reduce__(self) -> tuple[type, tuple[str, int, int]]:
        return type(self), (self.args[0], self.n_sweeps, self.n_apart)


class MixingWarning(UserWarning):
    """A Markov chain did not mix well enough for reliable estimates."""


class PhaseTransitionWarning(UserWarning):
    """Values of beta are near or beyond the phase transition, where samplers are slow."""


class SamplingInterrupted(KeyboardInterrupt):
    """Ctrl-C stopped the chains before they had run to their full length.

    It is a ``KeyboardInterrupt``, which ``except Exception`` does not catch, so that no code
    mistakes the draws for a complete run.

    Attributes
    ----------
    posterior : xarray.DataTree
        The iterations that all chains had completed, in the layout of a complete run.
    """

    def __init__(self, message: str, posterior: object = None):
        super().__init__(message)
        self.posterior = posterior

    def __reduce__(self) -> tuple[type, tuple[str, object]]:
        return type(self), (self.args[0], self.posterior)
