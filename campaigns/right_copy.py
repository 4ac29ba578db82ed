"""A plugin of pytest that refuses to test another copy of the package than the one named."""

import os

import bayesknn

assert bayesknn.__file__.startswith(os.environ["PYTHONPATH"]), bayesknn.__file__
