"""What must stay equal, for any table, classifier, options and way of calling.

``cases`` draws cases, ``laws`` has the invariances, ``known`` lists the faults that a later change
mends. ``python -m campaigns invariances`` draws thousands; the tests run a slice of fixed size.
"""
