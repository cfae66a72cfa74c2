"""The mixture of cuts that a settled set of cases leaves in the basis, kept as one cut for all cases."""

from typing import NamedTuple

import numpy as np

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.solvers.kernels.compiling import internal
from rposst_opt.solvers.kernels.problem_arrays import ProblemArrays
from rposst_opt.solvers.kernels.tuple_game import TupleGame


class CutMixture(NamedTuple):
    """A mixture of cuts: c_x = constant + Σ_h pulls[h] A[x, policies[h]] + noise_slopes[x], h < length.

    It has each policy once.
    """

    constant: FloatArray  # (1,)
    length: IntArray  # (1,)
    policies: IntArray
    pulls: FloatArray
    places: IntArray  # (n_policies,): scratch, where each policy is while a mixture is being made; -1 otherwise
    noise_slopes: FloatArray  # (n_cases,), or empty without noise


def make_cut_mixture(arrays: ProblemArrays) -> CutMixture:
    """A workspace for a mixture."""
    n_policies = arrays.results.shape[1]
    return CutMixture(
        constant=np.zeros(1),
        length=np.zeros(1, np.int64),
        policies=np.empty(n_policies, np.int64),
        pulls=np.empty(n_policies),
        places=np.full(n_policies, -1),
        noise_slopes=np.zeros(len(arrays.noise)),
    )


@internal
def mixture_at(case: int, results: FloatArray, mixture: CutMixture) -> float:
    """The mixture at one case."""
    value, policies, pulls = mixture.constant[0], mixture.policies, mixture.pulls
    for h in range(mixture.length[0]):
        value += pulls[h] * results[case, policies[h]]
    return value + mixture.noise_slopes[case] if mixture.noise_slopes.shape[0] > 0 else value


@internal
def share_of(i: int, n_rows: int, workspace: TupleGame) -> float:
    """What cut ``basic[i]`` has in the mixture of the basis; zero for a slack."""
    slots, total = workspace.values.shape[1], 0.0
    if workspace.basic[i] >= slots:
        return 0.0
    for k in range(n_rows):
        if workspace.basic[k] < slots:
            total += max(workspace.inverse[k, n_rows], 0.0)
    return max(workspace.inverse[i, n_rows], 0.0) / total


@internal
def keep_mixture(n_rows: int, workspace: TupleGame, mixture: CutMixture) -> None:
    """Copy the mixture that the basis holds."""
    policies, pulls, places, length = mixture.policies, mixture.pulls, mixture.places, 0
    mixture.constant[0] = 0.0
    mixture.noise_slopes[:] = 0.0
    for i in range(n_rows):
        share, k = share_of(i, n_rows, workspace), workspace.basic[i]
        if share == 0.0:
            continue
        mixture.constant[0] += share * workspace.constants[k]
        for h in range(workspace.noise_cases.shape[1]):
            if workspace.noise_cases[k, h] >= 0:
                mixture.noise_slopes[workspace.noise_cases[k, h]] += share * workspace.noise_slopes[k, h]
        for h in range(workspace.lengths[k]):
            j = workspace.policies[k, h]
            if places[j] < 0:
                places[j], policies[length], pulls[length] = length, j, 0.0
                length += 1
            pulls[places[j]] += share * workspace.pulls[k, h]
    for h in range(length):
        places[policies[h]] = -1
    mixture.length[0] = length


@internal
def record_mixture(n_rows: int, workspace: TupleGame, record: FloatArray) -> None:
    """Write down the tail weight α and the pull αδ of each scenario in the mixture of the basis."""
    record[:] = 0.0
    for i in range(n_rows):
        share, k = share_of(i, n_rows, workspace), workspace.basic[i]
        if share > 0.0:
            for h in range(workspace.answers.shape[1]):
                weight = share * workspace.answer_parts[k, 0, h]
                record[0, workspace.answers[k, h]] += weight
                record[1, workspace.answers[k, h]] += weight * workspace.answer_parts[k, 1, h]
