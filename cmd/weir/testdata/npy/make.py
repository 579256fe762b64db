"""Makes the files that the scripts read, whole and damaged.

    pip install numpy && python make.py
"""

import pathlib

import numpy as np

here = pathlib.Path(__file__).parent

a = np.arange(6, dtype=np.float64).reshape(2, 3) - 2
b = np.arange(12, dtype=np.float64).reshape(3, 4) / 4
c = np.arange(20, dtype=np.float64).reshape(4, 5) - 7
z = a + 1j * np.arange(6).reshape(2, 3)


def save(name, array):
    np.save(here / f"{name}.npy", array)


# Operands, and what they are contracted to.
save("a", a)
save("a_fortran", np.asfortranarray(a))
save("a_big_endian", a.astype(">f8"))
save("a_float32", a.astype(np.float32))
save("b", b)
save("b_fortran_big_endian", np.asfortranarray(b.astype(">f8")))
save("c", c)
save("z", z)
save("empty", np.zeros((0, 3)))
save("v", np.arange(40, dtype=np.int64))
save("ab", a @ b)
save("ab_float32", (a @ b).astype(np.float32))
save("abc", np.einsum("ij,jk,kl->il", a, b, c))
save("zzh", np.einsum("ij,kj->ik", z, z))
save("a_sum", np.einsum("ij->", a))

# Element types that Weir does not have.
save("dates", np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[D]"))
save("bytes", np.arange(6, dtype=np.uint8))
np.save(here / "objects.npy", np.array([1, "two", None], dtype=object), allow_pickle=True)

# Damaged files.
whole = (here / "a.npy").read_bytes()
(here / "truncated.npy").write_bytes(whole[:-5])
(here / "oversized.npy").write_bytes(whole + b"more")
(here / "headless.npy").write_bytes(whole[:40])
(here / "nothing.npy").write_bytes(b"")
promise = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000), }"
promise += b" " * (128 - 10 - len(promise) - 1) + b"\n"
(here / "promises.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(promise).to_bytes(2, "little") + promise + bytes(64))
(here / "text.npy").write_text("1.0, 2.0, 3.0\n")
