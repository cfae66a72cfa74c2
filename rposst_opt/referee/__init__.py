"""Solvers check each other: who agrees, who contradicts the facts, and who has nothing to say.

`agreement` asks them all, each in a process of its own (`witnesses`, which come from the `nursery`); `evidence` holds
their answers against each other, and `findings` are what is said of them.
"""
