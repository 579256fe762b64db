"""Writes numpy.json and opt_einsum.json next to this file.

    pip install numpy==2.4.6 opt_einsum==3.4.0
    PYTHONHASHSEED=0 python generate.py

numpy.json: what numpy.einsum answers. Element e of operand k, counted
row-major, is (7*e + 5*k + 3) % 11 - 5, so that every result is exact.

opt_einsum.json: costs of paths, in opt_einsum's unit, which is Weir's for real
elements: one multiplication for each point of a product, and one addition if
it sums. "optimal" is the best of all orders, tried here one by one, since
opt_einsum's own "optimal", kept as "opt_einsum", misses some; "dp" is its best
without outer products; "greedy" the best of its 128 random greedy runs.
"""

import functools
import itertools
import json
import math
import pathlib
import random

import numpy as np
import opt_einsum as oe

HERE = pathlib.Path(__file__).parent

WRITTEN = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ij,jk->", (2, 3), (3, 4)),
    ("ba", (2, 3)), ("bA", (2, 3)), ("Ab,ba", (2, 3), (3, 4)), ("ij->ji", (2, 3)), ("ij", (2, 3)),
    ("ii", (3, 3)), ("ii->i", (3, 3)), ("iii->", (2, 2, 2)), ("iji->j", (2, 3, 2)), ("iij,jkk->ik", (2, 2, 3), (3, 2, 2)),
    ("ii->i", (1, 3)), ("ii->i", (3, 1)), ("ii", (2, 3)), ("ii,i->i", (1, 1), (3,)),
    ("ij,jk", (2, 1), (3, 4)), ("ij,jk->ik", (2, 2), (3, 4)), ("ij,ij->ij", (2, 1), (1, 3)), ("ij,ij->j", (2, 1), (1, 3)),
    ("ij,jk->ik", (2, 0), (0, 4)), ("ij,jk->ik", (2, 0), (1, 4)), ("ij,jk->ik", (2, 1), (0, 4)), ("i->", (0,)), ("i,j->ij", (0,), (2,)),
    ("...i,...i->...i", (2, 1, 3), (4, 3)), ("...i,...i->i", (2, 1, 3), (4, 3)), ("...i,...i->i", (3,), (3,)),
    ("...i,...i", (2, 1, 3), (4, 3)), ("i...,j->ij...", (2, 3), (3,)), ("i,j->...ij", (2,), (3,)), ("i,j->i...j", (2,), (3,)),
    ("...ij,...jk->...ik", (2, 3, 2), (2, 2)), ("i...j->j...i", (2, 3, 4)), ("...ii->...i", (3, 2, 2)), ("i...i->...", (2, 3, 2)),
    ("i...i", (2, 4, 2)), ("...a,...a->...", (0, 3), (1, 3)), ("...a,...a->...", (0, 3), (2, 3)), ("...,...->...", (2, 3), (3,)),
    ("...->", ()), ("...->", (2,)), ("...->...", (2, 3)), ("...", ()), ("i...", ()), ("...ij->...", (3, 2, 2)),
    ("", ()), ("->", ()), (",", (), ()), (",->", (), ()), ("i,->i", (3,), ()), (",i", (), (3,)), ("->i", ()),
    ("ij,jk -> ik", (2, 3), (3, 4)), (" i j , jk ", (2, 3), (3, 4)), ("i j,\tjk", (2, 3), (3, 4)),
    ("i.j", (2, 3)), ("i..j", (2, 3)), ("i. ..j", (2, 3)), ("i....j", (2, 3)), ("......", (2, 3)), ("i...j...", (2, 3)),
    ("...a...->a", (3,)), ("a->......a", (3,)), ("a->...a...", (3,)), ("a->a...", (3,)), ("ij->...i", (2, 3)),
    ("ij->i->j", (2, 3)), ("ij-", (2, 3)), ("ij>", (2, 3)), ("ij-i", (2, 3)), ("ij- >i", (2, 3)), ("->->", ()),
    ("ij->ii", (2, 3)), ("ij->k", (2, 3)), ("ij->i,j", (2, 3)), ("ij,jk", (2, 3)), ("ij", (2, 3), (3, 4)), ("ij,", (2, 3)),
    ("ijk", (2, 3)), ("i", (2, 3)), ("i1", (2, 3)), ("ij,jk->ik", (), (3, 4)), ("ij,jk,kl->il", (2, 3), (3, 2), (2, 3)),
    ("ij,kj->ik", (2, 3), (4, 3)), ("bij,bjk->bik", (2, 2, 3), (2, 3, 2)), ("ij,ik,il->jkl", (3, 2), (3, 2), (3, 2)),
    ("i,i,i,i->", (3,), (3,), (3,), (3,)), ("isj,jtk->istk", (2, 2, 3), (3, 2, 2)), ("a,b,c->abc", (2,), (2,), (2,)),
    ("ij,j->i", (2, 3), (3,)), ("ij,kl->", (2, 2), (2, 2)), ("ijk,ilk->jl", (2, 3, 2), (2, 2, 2)),
]


def operand(k, shape):
    size = math.prod(shape)
    return ((7 * np.arange(size) + 5 * k + 3) % 11 - 5).astype(float).reshape(shape)


def numpy_case(spec, shapes):
    case = {"spec": spec, "shapes": [list(s) for s in shapes]}
    try:
        result = np.einsum(spec, *(operand(k, s) for k, s in enumerate(shapes)))
    except ValueError:
        return case | {"error": True}
    return case | {"shape": list(np.shape(result)), "values": [int(v) for v in np.ravel(result)]}


def random_numpy_case(rng):
    """A random expression over few letters, sometimes with a wrong extent."""
    letters = rng.sample("abcdexyzXY", rng.randint(1, 5))
    extent = {c: rng.choice([0, 1, 2, 2, 3]) for c in letters}
    terms, shapes, used = [], [], set()
    for _ in range(rng.randint(1, 4)):
        term = [rng.choice(letters) for _ in range(rng.randint(0, 3))]
        shape = [extent[c] for c in term]
        if len(set(term)) == len(term):
            shape = [1 if rng.random() < 0.15 else n for n in shape]
        if shape and rng.random() < 0.05:
            shape[rng.randrange(len(shape))] += 1
        text = "".join(term)
        if rng.random() < 0.25:
            at = rng.randint(0, len(term))
            batch = [[], [2], [3, 2], [1, 2], [3, 1]][rng.randrange(5)]
            text = text[:at] + "..." + text[at:]
            shape = shape[:at] + batch + shape[at:]
        used.update(term)
        terms.append(text)
        shapes.append(tuple(shape))
    spec = ",".join(terms)
    if rng.random() < 0.7:
        out = rng.sample(sorted(used), rng.randint(0, len(used)))
        if "..." in spec and rng.random() < 0.9:
            out.insert(rng.randint(0, len(out)), "...")
        spec += "->" + "".join(out)
    return numpy_case(spec, shapes)


def random_network(rng, operands, extents, degree):
    """A network in which every index has two ends or more."""
    inputs = [[] for _ in range(operands)]
    sizes, output, label = [], [], 0
    for k in range(operands):
        for _ in range(degree):
            ends = {k, rng.randrange(operands)}
            if rng.random() < 0.15:
                ends.add(rng.randrange(operands))
            if len(ends) == 1:
                if len(inputs[k]) or rng.random() < 0.5:
                    continue
                output.append(label)
            elif rng.random() < 0.1:
                output.append(label)
            for e in ends:
                inputs[e].append(label)
            sizes.append(rng.choice(extents))
            label += 1
    rng.shuffle(output)
    return inputs, output, sizes


def cost(inputs, output, sizes, optimize):
    terms = ["".join(map(oe.get_symbol, labels)) for labels in [*inputs, output]]
    shapes = [tuple(sizes[i] for i in labels) for labels in inputs]
    spec = ",".join(terms[:-1]) + "->" + terms[-1]
    info = oe.contract_path(spec, *shapes, shapes=True, optimize=optimize)[1]
    return int(info.opt_cost), int(info.naive_cost)


def best_order(inputs, output, sizes):
    """The cost of the best of all orders of pairs."""

    @functools.lru_cache(None)
    def best(terms):
        if len(terms) == 1:
            return 0
        found = math.inf
        for a, b in itertools.combinations(range(len(terms)), 2):
            rest = terms[:a] + terms[a + 1 : b] + terms[b + 1 :]
            needed = set(output).union(*(t for t in rest))
            both = set(terms[a]) | set(terms[b])
            kept = both & needed
            flops = oe.helpers.flop_count(both, kept != both, 2, sizes)
            found = min(found, flops + best(tuple(sorted([*rest, tuple(sorted(kept))]))))
        return found

    return best(tuple(sorted(tuple(sorted(t)) for t in inputs)))


def opt_einsum_case(rng, operands, degree, extents, methods):
    inputs, output, sizes = random_network(rng, operands, extents, degree)
    case = {"inputs": inputs, "output": output, "sizes": sizes}
    for method, optimize in methods.items():
        if callable(optimize):
            optimize = optimize()
        case[method], case["naive"] = cost(inputs, output, sizes, optimize)
    if "opt_einsum" in methods:
        case["optimal"] = best_order(inputs, output, sizes)
    if case["naive"] >= 2**53:
        case["naive"] = float(case["naive"])
    return case


def write(name, cases):
    lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases)
    (HERE / name).write_text("[\n" + lines + "\n]\n")


def main():
    rng = random.Random(7)
    cases = [numpy_case(spec, shapes) for spec, *shapes in WRITTEN]
    while len(cases) < 400:
        case = random_numpy_case(rng)
        if len(case.get("values", ())) <= 48:
            cases.append(case)
    write("numpy.json", cases)

    greedy = lambda: oe.RandomGreedy(max_repeats=128, parallel=False, minimize="flops")
    cases = [opt_einsum_case(rng, 3 + k % 5, 2, [2, 3, 4, 5, 7], {"opt_einsum": "optimal"}) for k in range(60)]
    cases += [opt_einsum_case(rng, 8 + k % 5, 2, [2, 3, 5, 8], {"dp": "dp"}) for k in range(16)]
    cases += [opt_einsum_case(rng, 14 + 2 * k, 2, [2, 3, 4], {"greedy": greedy}) for k in range(16)]
    write("opt_einsum.json", cases)


main()
