"""The posterior of (beta, k) by quadrature: a likelihood and a prior in, weights on a grid out.

``grid`` is the result and the way to it. Of the coherent model ``which_k`` finds the k that can
matter, ``mesh`` log Z where the posterior is, and ``log_posterior`` is what they sum but for log Z;
``peaks`` is for the two products of conditionals, which have no Z.
"""
