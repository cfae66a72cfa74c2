"""What a search for tuples works with: its plan, its cuts, its place in the tree, and what it counts."""

from types import SimpleNamespace
from typing import NamedTuple, Protocol, cast

import numpy as np

from rposst_opt.arrays import FloatArray, IntArray
from rposst_opt.solvers.kernels.case_sets import WordArray
from rposst_opt.solvers.kernels.choice_rules import ChoiceRules
from rposst_opt.solvers.kernels.compiling import internal
from rposst_opt.solvers.kernels.cut_mixture import CutMixture, make_cut_mixture
from rposst_opt.solvers.kernels.problem_arrays import ProblemArrays
from rposst_opt.solvers.kernels.tuple_game import CALLS, STEPS, TupleGame, make_tuple_game

LEAF_COST, NODE_COST, SCAN_COST = 500.0, 300.0, 4.0  # nanoseconds, roughly: budgets are in these, so that runs repeat


class Levels(Protocol):
    """What a searcher looks below."""

    threshold: float  # a tuple of at least this is ruled out
    limit: float  # a cut rules out what is above this: the threshold, less what rounding may do
    unresolved: float  # the least bound among tuples that rounding kept from being settled
    roughness: float  # share by which a find must be better than the last one, and of its gain that it may leave; or 0


class Counts(Protocol):
    """What a searcher has learned, found, left and done."""

    own_start: int  # the own cuts have the places from here
    own_end: int  # to here,
    learned: int  # of which so many are filled
    found: int  # tests below the threshold
    adopted: int  # whether such a test became the incumbent
    left: int  # nodes that are put aside
    nodes: int
    leaves: int  # tuples settled
    scanned: int  # cuts that were looked at
    calls_before: int  # questions to the antagonist, and steps of the simplex method, when the turn began
    steps_before: int
    extensions_to_skip: int  # so many cuts are yet to be learned without trying to extend them,
    skipped_after_failure: int  # and so many were, after the last extension that failed
    held_back: int  # cases that a leap is shorter, after leaps that failed
    width: int  # cases that the next cut is widened by
    widening_calls: int  # questions to the antagonist, and steps of the simplex method, for widening alone
    widening_steps: int
    worked_out: int  # whether the mixture that is kept was worked out at all cases


NEVER, SELDOM, MOSTLY = range(3)  # cuts are widened; if seldom, and if not mostly, then as probes (`learning`)

# Records, whose numbers Python also finds by their names, since it may run the kernels without compiling them.
LEVELS = np.dtype((np.record, [(name, np.float64) for name in Levels.__annotations__]))
COUNTS = np.dtype((np.record, [(name, np.int64) for name in Counts.__annotations__]))


def read_counts(counts: Counts) -> Counts:
    """A copy of the counts that Python reads from ten times as fast as from a record."""
    numbers = cast(np.record, counts).item()
    return cast(Counts, SimpleNamespace(**dict(zip(Counts.__annotations__, numbers, strict=True))))


class Plan(NamedTuple):
    """What all searchers agree on."""

    size: int  # cases to choose
    n_selectable: int
    n_required: int
    most_rows: int  # up to which a cut may ever be extended,
    reach: int  # and up to which it is extended in any case
    widening: int  # NEVER, SELDOM or MOSTLY
    margin: float  # by how much a test must be better than the incumbent
    slack: float  # what rounding may do to a cut
    tolerance: float  # to which a tuple is solved
    call_cost: float  # of a question to the antagonist, in nanoseconds, roughly
    step_cost: float  # of a step of the simplex method


class Cuts(NamedTuple):
    """Cuts over all cases. Each searcher adds to a stretch of its own."""

    values: FloatArray  # (places, n_cases)
    hit: WordArray  # (places, n_words): the cases below the limit; a better tuple has one of them


class Stack(NamedTuple):
    """The branch of the tree that is being searched, level by level."""

    chosen: IntArray  # (size,): the partial tuple
    excluded: WordArray  # (size + 1, n_words)
    branches: WordArray  # (size + 1, n_words): cases yet to branch on
    unhit: IntArray  # the cuts that are not hit, level after level
    ends: IntArray  # (size + 2,): level l has unhit[ends[l]:ends[l + 1]]
    seen: IntArray  # (size + 1,): so many of the own cuts have been looked at


class Nodes(NamedTuple):
    """Nodes that are yet to be searched."""

    cases: IntArray  # (n, size + 1): the partial tuple; in the last column, how many cases it has
    excluded: WordArray  # (n, n_words)


class Search(NamedTuple):
    """What one searcher works with."""

    cuts: Cuts
    uses: IntArray  # (places,): how often each cut has ruled something out
    workspace: TupleGame
    mixture: CutMixture
    by_policy: FloatArray  # (n_policies, n_cases): the results, the other way round
    stack: Stack
    rules: ChoiceRules
    candidates: WordArray  # (n_words,): cases that may complete the tuple
    selectable: WordArray  # (n_words,): all that may be chosen
    nearest: IntArray  # (rows,): cases that a cut is to be extended by
    found_cases: IntArray  # (capacity, size): tests below the threshold
    found_weights: FloatArray  # (capacity, cases of a test + 1): in the last column, their values
    left: Nodes
    levels: Levels
    counts: Counts
    record: FloatArray  # (own cuts, 2, n_scenarios): tail weights and pulls of each own cut, or empty
    noise_record: FloatArray  # (own cuts, n_cases): the slopes of noise in each own cut, or empty
    stop: IntArray  # (1,), shared: not zero when all are to stop


def make_search(
    arrays: ProblemArrays,
    plan: Plan,
    *,
    rules: ChoiceRules,
    cuts: Cuts,
    by_policy: FloatArray,
    capacity: int,
    records: int,
    stop: IntArray,
) -> Search:
    """Make a searcher that has nothing of its own yet, and looks for whatever there is."""
    size, width = plan.size, plan.size + plan.n_required
    places, n_words = cuts.hit.shape
    most_left = (size + 1) * plan.n_selectable + 1
    levels: Levels = np.array([(np.inf, np.inf, np.inf, 0.0)], LEVELS)[0]
    return Search(
        cuts=cuts,
        uses=np.zeros(places, np.int64),
        workspace=make_tuple_game(arrays, plan.most_rows, record=records > 0),
        mixture=make_cut_mixture(arrays),
        by_policy=by_policy,
        stack=Stack(
            chosen=np.zeros(size, np.int64),
            excluded=np.zeros((size + 1, n_words), np.uint64),
            branches=np.zeros((size + 1, n_words), np.uint64),
            unhit=np.empty((size + 1) * places, np.int64),
            ends=np.zeros(size + 2, np.int64),
            seen=np.zeros(size + 1, np.int64),
        ),
        rules=rules._replace(totals=rules.totals.copy()),
        candidates=np.zeros(n_words, np.uint64),
        selectable=_first_cases(plan.n_selectable, n_words),
        nearest=np.zeros(plan.most_rows, np.int64),
        found_cases=np.zeros((capacity, size), np.int64),
        found_weights=np.zeros((capacity, width + 1)),
        left=Nodes(cases=np.zeros((most_left, size + 1), np.int64), excluded=np.zeros((most_left, n_words), np.uint64)),
        levels=levels,
        counts=np.zeros(1, COUNTS)[0],
        record=np.zeros((records, 2, arrays.full_scores.shape[0])),
        noise_record=np.zeros((records, len(arrays.noise))),
        stop=stop,
    )


def _first_cases(number: int, n_words: int) -> WordArray:
    """The set of so many cases, from the first on."""
    is_member = np.arange(64 * n_words) < number
    return np.packbits(is_member, bitorder="little").view("<u8").astype(np.uint64)


def work_of(arrays: ProblemArrays, n_rows: int) -> tuple[float, float]:
    """How much work a question to the antagonist is, and a step of the simplex method, with so many cases."""
    n_policies = arrays.results.shape[1]
    return 300.0 + n_policies * (0.3 * n_rows + 3.0) + 20.0 * arrays.most_chosen, 40.0 + 2.0 * n_rows**2


@internal
def look_below(threshold: float, slack: float, levels: Levels) -> None:
    """Search for tuples below this threshold from now on: nowhere else are the threshold and its limit set."""
    levels.threshold = threshold
    levels.limit = threshold - slack


@internal
def spent(call_cost: float, step_cost: float, counts: Counts, state: IntArray) -> float:
    """How much work the counts stand for, in nanoseconds, roughly."""
    return (
        call_cost * (state[CALLS] - counts.calls_before)
        + step_cost * (state[STEPS] - counts.steps_before)
        + SCAN_COST * counts.scanned
        + NODE_COST * counts.nodes
        + LEAF_COST * counts.leaves
    )
