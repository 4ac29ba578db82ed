"""Tables as people have them: cells, the kinds of columns, and what a classifier is given.

``files`` reads CSV, Excel and Parquet files into cells, and ``table`` takes the classes off them. A
kind (``kinds``) reads a column and remembers how it is written. ``preparer`` decides once what each
column is, and ``encoder`` turns columns into what a classifier takes. ``checks`` looks for what
makes results look too good; all that there is to know is a ``Remark`` with a code (``remarks``).

In come files, frames, arrays or lists of rows; out come numbers, categories with fixed levels, and
remarks.
"""
