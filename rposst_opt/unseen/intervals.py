"""How far may the mean of a few samples be from the truth?"""

import numpy as np

from rposst_opt.arrays import FloatArray


def half_width(samples: FloatArray) -> FloatArray:
    """Half of the mean's 95 % interval by Student's t, over the first axis, which has two samples or more."""
    from scipy.special import stdtrit  # SciPy is slow to import, its distributions most of all

    half: FloatArray = stdtrit(len(samples) - 1, 0.975) * samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    return half
