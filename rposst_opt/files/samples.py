"""What is there to try the package on? Tables that come with it: made-up scores of made-up models.

They are made by a few skills and a seed, as `docs/make_samples.py` says, so that they look and behave like a
leaderboard. Nothing in them was measured, and no model in them exists.
"""

from importlib.resources import files

import pandas as pd

RESULTS, NEW_MODELS, CASES, LONG, RUNS = "results.csv", "new_models.csv", "cases.csv", "long.csv", "runs.csv"


def sample_text(name: str) -> str:
    """One of the files that come with the package, as text."""
    return files("rposst_opt").joinpath("samples", name).read_text(encoding="utf-8")


def sample_results(*, new_models: bool = False) -> pd.DataFrame:
    """A made-up leaderboard: scores in percent of 24 tasks (rows) and 30 language models (columns).

    Parameters
    ----------
    new_models : bool
        Return four other models of the same kind instead, on all tasks, to see how a test does on policies that it
        was not tuned on.

    Returns
    -------
    DataFrame of shape (24, 30) or (24, 4)
        Nothing in it was measured, and no model in it exists.

    Examples
    --------
    >>> import rposst_opt as ro
    >>> ro.sample_results().shape
    (24, 30)
    >>> ro.sample_results(new_models=True).mean().round(1).to_dict()
    {'alder-3b': 37.1, 'hazel-70b': 75.7, 'rowan-8b': 58.1, 'willow-70b': 76.1}
    """
    return _frame(NEW_MODELS if new_models else RESULTS)


def sample_cases() -> pd.DataFrame:
    """What the tasks of `sample_results` cost, in minutes, and their groups: math, code, knowledge or language.

    Examples
    --------
    >>> import rposst_opt as ro
    >>> ro.sample_cases().head(2)
                              cost group
    case
    arithmetic-word-problems    12  math
    unit-conversion              4  math
    """
    return _frame(CASES)


def _frame(name: str) -> pd.DataFrame:
    with files("rposst_opt").joinpath("samples", name).open(encoding="utf-8") as file:
        return pd.read_csv(file, index_col=0)
