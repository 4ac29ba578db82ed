"""The posterior of (beta, k) by Markov chains: a likelihood and a prior in, a tree of draws out.

``metropolis`` is for a likelihood that can be computed; ``exchange`` and ``auxiliary`` draw labels
in every move and need no log Z. ``runner`` runs many chains of
any kind, ``proposals`` are the moves and their tuning, ``diagnostics`` say whether chains mixed.
"""
