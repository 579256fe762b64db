"""Makes the arrays of this folder: three sites of a tensor train.

    pip install numpy && python make.py

Elements are multiples of 1/8, so that every sum of their products is exact and
does not depend on the order in which a library adds.
"""

import pathlib

import numpy as np

here = pathlib.Path(__file__).parent
random = np.random.default_rng(8)


def site(left, physical, right):
    return np.round(8 * random.uniform(-1, 1, (left, physical, right))) / 8


np.save(here / "left.npy", site(8, 4, 16))
np.save(here / "middle.npy", np.asfortranarray(site(16, 4, 16)))
np.save(here / "right.npy", site(16, 4, 8).astype(">f8"))
