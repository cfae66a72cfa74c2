"""Problems that are hard on solvers are drawn until one of them contradicts the facts, and made small enough to report.

`families` draws problems, `trials` has them solved by all and finds who contradicts, `shrinking` makes the problem
small, `scripts` and `reproduction` make of it what a solver's developers can run, and `run` goes on for as long as is
asked, on many cores or a cluster, and after a pause where it was.
"""
