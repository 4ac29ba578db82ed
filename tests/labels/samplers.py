"""The samplers called with graph, classes and weights apart, as tests of many models write them."""

from functools import wraps

from bayesknn import labels
from bayesknn.model import BoltzmannModel


def _apart(sampler):
    @wraps(sampler)
    def call(graph, *args, n_classes=None, class_weight=None, **options):
        args = list(args)
        if n_classes is None:
            n_classes = args.pop(2 if len(args) > 2 else len(args) - 1)
        return sampler(BoltzmannModel(graph, n_classes, class_weight), *args, **options)

    return call


gibbs_labels = _apart(labels.gibbs_labels)
perfect_labels = _apart(labels.perfect_labels)
swendsen_wang_labels = _apart(labels.swendsen_wang_labels)
