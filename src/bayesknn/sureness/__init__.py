"""Uncertainty of class probabilities: calibration, intervals and counts, from arrays.

Leave-one-out probabilities go in, from whichever classifier. ``conditional_logit`` is the
regression by which ``calibration`` chooses its exponents. ``residuals`` estimates the squared error
of the probabilities, ``intervals`` cuts intervals of that variance, narrower by ``copies``, and
``counts`` estimates the number of each class in a batch.
"""
