"""The problem as mathematical programs in modelling languages: an appendix to the paper that can be run.

================  =====================================================================  ==========================
file              program                                                                in the paper
================  =====================================================================  ==========================
`epigraph`        the problem as arrays, and why the programs equal it                   the percentile loss, finite
`convex`          the best weights of one tuple; all tuples; with integers, all at once  RPOSST_seq, CVaR
`duality`         a lower bound from any multipliers, by weak duality                    none
`milp`, `direct`  cases and weights together, as a mixed-integer linear program          RPOSST_seq, CVaR
`simultaneous`    a distribution over tuples, as a linear program                        RPOSST_sim
================  =====================================================================  ==========================

To add a solver to a modelling language, add a row to that module's ``SOLVERS`` and a name in
`rposst_opt.backends.table`.
"""
