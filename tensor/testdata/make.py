"""Makes einsum.json: contractions and products with NumPy's results.

Run with NumPy 2.x: python3 make.py. Operands hold small integers, so every
result is exact in every element type, and the comparison needs no tolerance.
"""

import json
import pathlib

import numpy as np

rng = np.random.default_rng(20261130)

SPECS = [
    # spec, shapes
    ("ij,jk->ik", [(3, 4), (4, 5)]),
    ("ij,jk", [(3, 4), (4, 5)]),
    ("ba", [(2, 3)]),
    ("ii", [(4, 4)]),
    ("ii->i", [(4, 4)]),
    ("iij->j", [(3, 3, 2)]),
    ("ijj,ik->jk", [(2, 3, 3), (2, 4)]),
    ("i,i", [(5,), (5,)]),
    ("i,j->ij", [(3,), (4,)]),
    ("i,j->ji", [(3,), (4,)]),
    ("ij->", [(3, 4)]),
    ("ij->j", [(3, 4)]),
    ("ij,ij->ij", [(3, 4), (3, 4)]),
    ("ij,ij", [(3, 4), (3, 4)]),
    ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
    ("bij,bjk->ikb", [(2, 3, 4), (2, 4, 5)]),
    ("ibj,kjb->bki", [(3, 2, 4), (5, 4, 2)]),
    ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)]),
    ("...ij,jk", [(2, 3, 3, 4), (4, 2)]),
    ("i...->...", [(3, 2, 4)]),
    ("...", [(2, 3)]),
    ("...i,...i->...", [(2, 3), (3,)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
    ("ij,jk,kl,lm->im", [(2, 3), (3, 4), (4, 5), (5, 2)]),
    ("abc,cd,be,def->af", [(2, 3, 4), (4, 2), (3, 5), (2, 5, 3)]),
    ("ab,bc,ca->", [(3, 4), (4, 5), (5, 3)]),
    ("ab,ac,ad->bcd", [(3, 2), (3, 4), (3, 5)]),
    ("a,ab,abc->abc", [(2,), (2, 3), (2, 3, 4)]),
    ("ij,kl->", [(2, 3), (4, 5)]),
    ("ij,jk->ik", [(3, 0), (0, 5)]),
    ("ij,jk->ik", [(0, 4), (4, 5)]),
    ("ij->i", [(3, 0)]),
    ("ij,jk->ik", [(3, 1), (4, 5)]),
    ("ij,jk->ik", [(1, 4), (4, 1)]),
    ("ab,bc,cd->ad", [(2, 1), (1, 1), (1, 3)]),
    (",ij->ij", [(), (2, 3)]),
    (",->", [(), ()]),
    ("isj,jtk->istk", [(3, 2, 4), (4, 2, 3)]),
    ("abcd,efcd->abef", [(2, 3, 2, 3), (2, 2, 2, 3)]),
    ("abcd,cedf->abef", [(2, 3, 2, 3), (2, 2, 3, 2)]),
    ("abcd,dcba->", [(2, 3, 4, 2), (2, 4, 3, 2)]),
    ("aab,bcc->ac", [(3, 3, 2), (2, 4, 4)]),
    ("abcdefgh,hgfedcba->", [(2,) * 8, (2,) * 8]),
    ("abcdefgh,agch->bdef", [(2,) * 8, (2,) * 4]),
    ("ij , jk -> ik", [(2, 3), (3, 2)]),
    ("αβ,βγ->αγ", [(2, 3), (3, 2)]),
]

cases = []
for spec, shapes in SPECS:
    real = [rng.integers(-4, 5, s) for s in shapes]
    imag = [rng.integers(-4, 5, s) for s in shapes]
    # NumPy takes ASCII letters only.
    ascii_spec = spec.translate(str.maketrans("αβγ", "xyz"))
    r = np.einsum(ascii_spec, *real)
    c = np.einsum(ascii_spec, *[a + 1j * b for a, b in zip(real, imag)])
    cases.append({
        "spec": spec,
        "shapes": [list(s) for s in shapes],
        "real": [a.ravel().tolist() for a in real],
        "imag": [a.ravel().tolist() for a in imag],
        "shape": list(r.shape),
        "result": np.ravel(r).tolist(),
        "complexReal": np.ravel(c.real).tolist(),
        "complexImag": np.ravel(c.imag).tolist(),
    })

out = pathlib.Path(__file__).with_name("einsum.json")
out.write_text("[\n" + ",\n".join(json.dumps(c, separators=(",", ":"), ensure_ascii=False) for c in cases) + "\n]\n")
