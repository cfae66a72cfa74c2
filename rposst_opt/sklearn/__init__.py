"""Test selection for scikit-learn: policies are samples, test cases are features, and the full score is the target."""

from rposst_opt.sklearn.selector import TestSelector, UnreachableScoreWarning

__all__ = ["TestSelector", "UnreachableScoreWarning"]
