"""The paper's experiments: result matrices to try methods on."""
