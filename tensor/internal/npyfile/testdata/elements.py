"""The reference elements that make.py writes and check.py expects."""

import ml_dtypes
import numpy as np

# The bits of six elements of each type, as package npyfile's tests have them:
# NaN with a payload, signalling NaN, -0, infinity, a denormal and 1.5.
BITS = {
    "float32": [0x7FC12345, 0xFF812345, 0x80000000, 0x7F800000, 0x00000001, 0x3FC00000],
    "float64": [0x7FF8000000012345, 0xFFF0000000012345, 1 << 63, 0x7FF << 52, 1, 0x3FF8 << 48],
    "float16": [0x7E01, 0xFC01, 0x8000, 0x7C00, 0x0001, 0x3E00],
    "bfloat16": [0x7FC1, 0xFF81, 0x8000, 0x7F80, 0x0001, 0x3FC0],
    "int32": [0x7FFFFFFF, 0x80000000, 0, 1, 0xFFFFFFFF, 0x01020304],
    "int64": [(1 << 63) - 1, 1 << 63, 0, 1, (1 << 64) - 1, 0x0102030405060708],
}
BITS["complex64"] = [b for x in BITS["float32"] for b in (x, x ^ 0x80000000)]
BITS["complex128"] = [b for x in BITS["float64"] for b in (x, x ^ (1 << 63))]

DTYPES = {name: np.dtype(name) for name in BITS if name != "bfloat16"}
DTYPES["bfloat16"] = np.dtype(ml_dtypes.bfloat16)
WIDTH = {"complex64": 4, "complex128": 8}


def reference(name):
    width = WIDTH.get(name, DTYPES[name].itemsize)
    return np.array(BITS[name], "<u%d" % width).view(DTYPES[name]).reshape(2, 3)
