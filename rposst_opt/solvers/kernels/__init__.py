"""The compiled loops.

Plain loops, because they are compiled; each stands beside its formula. No `fastmath`, so sums are taken in the order in
which they are written, and the answer depends neither on the processor nor on whether they are compiled at all.
Compiled, all functions release the interpreter's lock.

`compiling` says when they are compiled and where that is kept, and `entries` how the largest are compiled only once.
`case_sets` are bits in words. `problem_arrays` lays a problem out, `response` plays the antagonist, `regret_matching`
plays the protagonist of the reference method, and `sampled` the games on drawn scenarios and on mixtures of tests.
`tuple_game` finds the best weights of a set of cases, on a `simplex_basis`, and `cut_mixture` keeps the proof; `swaps`
exchanges cases with its help. `hitting_set` searches all tuples, by `learning` cuts, with its `search_state`, after
`exchanging` cases of a first one.
"""
