"""Truth on policies that nobody has seen: hold policies out, do all that is done without them, and look at the error.

`splits` says who is held out, `procedures` what is repeated without them (scale, targets, choice, weights, estimator),
`validation` does it for many and sums up, `validation_files` keeps that in a folder, `recommendation` says in a
sentence what follows. `policy_ranking` compares the order of policies by two tests; `runner` runs tasks on this machine
or on a cluster and never runs one twice.
"""
