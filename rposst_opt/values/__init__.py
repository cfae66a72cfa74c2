"""What our objects share as values: a name, equality, pickling, a short text, a table in a notebook, a digest.

Nothing here knows a class of ours, so that all of them may use it.
"""
