"""Result matrices: each domain is a function from parameters and a seed to test cases × policies.

===================  ==================================================================================================
`arrows`             Racing Arrows, the paper's one-shot game between leaders and followers
`poker`              tables and match logs of the Annual Computer Poker Competition
`leduc`              checkpoints of one training run on Leduc poker, and scripted agents (needs OpenSpiel)
`passing`            a small race with overtaking and collisions
`dilemma`            the Axelrod library's strategies for the iterated prisoner's dilemma (needs axelrod)
===================  ==================================================================================================

A new domain is a new file with such a function, and a command under ``rposst domain`` in
`rposst_opt/cli/experiments.py`: the options of domains differ, and help must show them without importing the domain.
For experiments on it, it also has an entry in `rposst_opt.experiments.reproductions.DOMAINS`.
"""

from rposst_opt.experiments.domains.arrows import racing_arrows as racing_arrows
