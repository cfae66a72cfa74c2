"""Is a proof one? What checks certificates, in plain Python, NumPy and SciPy; nothing here knows any solver.

`hitting_sets` finds out whether a set of test cases is left that no cut rules out.
"""
