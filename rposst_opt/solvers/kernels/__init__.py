"""The compiled loops.

Plain loops, because they are compiled; each stands beside its formula. No `fastmath`, so sums are taken in the order in
which they are written, and the answer does not depend on the processor. All functions release the interpreter's lock.

`compiling` says how they are compiled and where that is kept. `response` lays a problem out and plays the antagonist,
`regret_matching` plays the protagonist of the reference method, and `sampled` the games on drawn scenarios and on
mixtures of tests. `tuple_game` finds the best weights of a set of cases; `swaps` exchanges cases with its help, and
`hitting_set` searches all tuples.
"""
