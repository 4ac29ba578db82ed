"""Private helpers that know nothing of neighbours: kernels, checks, progress, saving."""
