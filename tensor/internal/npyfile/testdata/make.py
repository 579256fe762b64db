"""Makes the reference files of this folder with NumPy's own writer.

    python -m venv v && v/bin/pip install numpy==2.4.6 ml_dtypes==0.6.0
    v/bin/python make.py

reference.zip is a plain archive of .npy files, by the folder of their name:
read/ has each type in each memory order, byte order and format version; save/
is what np.save makes of other shapes; refused/ has types that Weir lacks.
stored.npz and deflated.npz are made by np.savez and np.savez_compressed.
"""

import io
import os
import zipfile

import ml_dtypes
import numpy as np

from elements import BITS, reference

here = os.path.dirname(os.path.abspath(__file__))

SHAPES = [(), (0,), (5,), (1, 1), (1, 4), (4, 1), (3, 0, 2), (0, 123456789012), (2, 3), (2, 3, 4), (2, 1, 3, 1, 2),
          (1,) * 64, (1234567, 0)]


def npy(a, version=None):
    f = io.BytesIO()
    if version:
        np.lib.format.write_array(f, a, version)
    else:
        np.save(f, a)
    return f.getvalue()


with zipfile.ZipFile(os.path.join(here, "reference.zip"), "w") as z:

    def put(name, content):
        z.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)

    for name in BITS:
        for order in "CF":
            for byte_order, mark in (("little", "<"), ("big", ">")):
                a = reference(name)
                a = a.astype(a.dtype.newbyteorder(mark), order=order)
                for version in ((1, 0), (2, 0), (3, 0)):
                    put("read/%s %s %s %d.%d" % (name, order, byte_order, *version), npy(a, version))
    for shape in SHAPES:
        for order in "CF":
            n = int(np.prod(shape, dtype=object))
            a = np.arange(n, dtype=np.int32).reshape(shape, order=order)
            put("save/%s %s" % (order, shape), npy(a))
    for name in "bool uint8 uint16 uint32 uint64 int8 int16 longdouble clongdouble M8[ns] m8[s] U5 S3 V5 O".split():
        a = np.zeros((2,), name)
        put("refused/" + name, npy(a))
    put("refused/structured", npy(np.zeros((2,), [("x", "<f4"), ("y", "<i4", (2,))])))
    put("refused/float8", npy(np.zeros((2,), ml_dtypes.float8_e4m3)))

arrays = {
    "matrix": reference("float32"),
    "fortran": np.asfortranarray(reference("int64")),
    "big": reference("complex128").astype(">c16"),
    "scalar": np.float64(1.5),
    "empty": np.zeros((0, 3), np.float16),
    "labels": np.array(["a", "b"]),
    "grün/x": reference("bfloat16"),
    "zeros": np.zeros(100000),
}
np.savez(os.path.join(here, "stored.npz"), **{k: v for k, v in arrays.items() if k != "zeros"})
np.savez_compressed(os.path.join(here, "deflated.npz"), **arrays)
