"""How far apart are two pictures, beyond what other fonts and another layout do?"""

from pathlib import Path

import numpy as np
from matplotlib.image import imread
from scipy import ndimage

from rposst_opt.arrays import FloatArray

PIXELS_OF_PLAY = 5  # how far other fonts and another layout may move what is drawn
PATCH = 20  # pixels; a marker or a few letters fit into such a square
PICTURE_TOLERANCE = 0.014  # black to white is 1; other versions of matplotlib make 0.010, a curve that has moved 0.06


def picture_distance(first: Path, second: Path) -> float:
    """The mean absolute difference of pixels where it is largest, beyond what moving them a little explains."""

    def beyond(picture: FloatArray, other: FloatArray) -> float:
        window = (2 * PIXELS_OF_PLAY + 1, 2 * PIXELS_OF_PLAY + 1, 1)
        darkest, lightest = ndimage.minimum_filter(other, window), ndimage.maximum_filter(other, window)
        difference = np.maximum(darkest - picture, 0.0) + np.maximum(picture - lightest, 0.0)
        return float(ndimage.uniform_filter(difference.mean(axis=2), PATCH, mode="constant").max())

    one, two = (np.asarray(imread(path), dtype=np.float64)[..., :3] for path in (first, second))
    if one.shape != two.shape:
        return np.inf
    return 0.0 if np.array_equal(one, two) else max(beyond(one, two), beyond(two, one))
