"""What bayesknn raises and warns about beyond ``ValueError``."""


class CoalescenceError(RuntimeError):
    """Coupling from the past did not meet within the allowed past.

    Raised in place of a biased draw.

    Attributes
    ----------
    n_sweeps : int
        How far into the past the chains were started.
    n_apart : int
        How many sites or bonds still differed at time zero.
    """

    def __init__(self, message: str, n_sweeps: int = 0, n_apart: int = 0):
        super().__init__(message)
        self.n_sweeps = n_sweeps
        self.n_apart = n_apart

    def __reduce__(self) -> tuple[type, tuple[str, int, int]]:
        return type(self), (self.args[0], self.n_sweeps, self.n_apart)


class MixingWarning(UserWarning):
    """A chain did not mix well enough for its output to be trusted."""


class PhaseTransitionWarning(UserWarning):
    """The model is near or beyond its phase transition, where samplers slow down."""


class SamplingInterrupted(KeyboardInterrupt):
    """Ctrl-C ended the chains before they were done.

    It is a ``KeyboardInterrupt``, so that nothing takes the draws for a complete run by mistake.

    Attributes
    ----------
    posterior : xarray.DataTree
        The draws that every chain had finished by then, laid out as those of a complete run.
    """

    def __init__(self, message: str, posterior: object = None):
        super().__init__(message)
        self.posterior = posterior

    def __reduce__(self) -> tuple[type, tuple[str, object]]:
        return type(self), (self.args[0], self.posterior)
