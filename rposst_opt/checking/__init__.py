"""Is a proof one? What checks certificates, in plain Python, NumPy and SciPy; nothing here knows any solver.

`verification` checks a certificate. `hitting_sets` finds out whether a set of test cases is left that no cut rules out,
`one_set` proves a bound for a single one, and `rationals` works cuts out without rounding. `claims` holds a test, and
what its file says of it, against what was proved.
"""
