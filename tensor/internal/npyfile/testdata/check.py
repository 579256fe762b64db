"""Loads with NumPy what package npyfile wrote into a folder, and compares it.

    python check.py FOLDER

The folder holds one .npy file for each type and memory order, such as
bfloat16-F.npy, and all of them in all.npz, with one more whose name is empty.
"""

import os
import sys

import ml_dtypes
import numpy as np

from elements import BITS, reference

archive = np.load(os.path.join(sys.argv[1], "all.npz"))
assert len(archive.files) == 2 * len(BITS) + 1, archive.files
assert archive[""].tobytes() == reference("float64").tobytes()
for name in BITS:
    want = reference(name)
    for order in "CF":
        key = "%s-%s" % (name, order)
        for a in (np.load(os.path.join(sys.argv[1], key + ".npy")), archive[key]):
            if name == "bfloat16":
                a = a.view(ml_dtypes.bfloat16)
            assert a.dtype == want.dtype and a.shape == want.shape, key
            assert a.flags.f_contiguous == (order == "F"), key
            assert a.tobytes() == want.tobytes(), key
