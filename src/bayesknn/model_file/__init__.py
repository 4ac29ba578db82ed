"""A table model: a preparer of tables and a classifier as one object, in a file and in memory.

``table_model`` has the object, ``saved`` writes it to a file and reads it, ``schema`` rejects files
that hold anything else, ``predictions`` holds what is predicted of the rows of a table, and
``adapters`` tells the two classifiers apart.

In come a table, a frame or a file; out come predictions, with what there is to know about the rows.
"""
