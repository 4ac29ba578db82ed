"""How good class probabilities are, by what else they could be replaced, and what they rest on.

Arrays go in (probabilities, class indices, weights, groups, times) and plain results come out:
``scores`` with weights and errors, ``folds`` of rows, groups or time, ``comparison`` with other
classifiers, ``explanation`` by rows and columns. What is evaluated under another ``class_prior``
has the weights of :func:`weigh_rows`.
"""
