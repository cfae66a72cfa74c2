"""The problem as mathematical programs in modelling languages: an appendix to the paper that can be run."""
