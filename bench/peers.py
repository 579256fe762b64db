"""Measures the products of a case of weir bench by NumPy, PyTorch, CuPy and JAX.

Usage: peers.py LIBRARY...

It speaks JSON, one object a line, and first says what is there:

    {"protocol": 1, "python": VERSION, "libraries": {LIBRARY: VERSION}}

Each line of standard input asks for one case by one library (see request in
peers.go). The answer is a line for each way to compute it,

    {"variant": NAME, "device": NAME, "seconds": [...], "results": [FILE, ...]}
    {"variant": NAME, "error": TEXT}

and {"done": true}. seconds are rounds' times of one operation, from the first
call until the device is done, with what the outputs' memory costs; results are
names of files in the request's folder, of elements in row-major order. It ends
with its input.
"""

import contextlib
import gc
import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import sys
import time

PROTOCOL = 1


def version(library):
    """The version of a library that can be imported, without importing it."""
    if importlib.util.find_spec(library) is None:
        return None
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(library)
    # Some are distributed under other names, as cupy-cuda12x.
    for name in importlib.metadata.packages_distributions().get(library, []):
        return importlib.metadata.version(name)
    return "of unknown version"


class NumPy:
    """The host's matrix products. The others differ in what they override."""

    name = "numpy"

    def __init__(self, request):
        self.module = importlib.import_module(self.name)
        self.ordinal = request["ordinal"]
        self.gpu = request["device"] == "cuda"
        self.open()

    def open(self):
        self.device = "host"

    def put(self, array):
        """A NumPy array on the device."""
        return array

    def get(self, array):
        """An array of the device as NumPy's."""
        return array

    def stack(self, arrays):
        return self.module.stack(arrays)

    def wait(self, outputs):
        """Waits until the outputs are computed."""

    def ways(self, once, products, inputs):
        """The ways to run once(inputs), each a name and a function that prepares a pass."""
        return [("loop", lambda: lambda: once(inputs))]

    def free(self):
        """Gives memory that is kept for later back, since Weir is measured next."""


class Torch(NumPy):
    name = "torch"

    def open(self):
        self.module.set_grad_enabled(False)
        self.device = "host"
        self.place = self.module.device("cpu")
        if self.gpu:
            self.place = self.module.device("cuda", self.ordinal)
            self.module.cuda.set_device(self.place)
            self.device = self.module.cuda.get_device_name(self.place)
            self.module.backends.cuda.matmul.allow_tf32 = False

    def put(self, array):
        return self.module.from_numpy(array).to(self.place)

    def get(self, array):
        return array.cpu().numpy()

    def wait(self, outputs):
        if self.gpu:
            self.module.cuda.synchronize(self.place)

    def ways(self, once, products, inputs):
        ways = super().ways(once, products, inputs)
        return ways + [("graph", lambda: self.record(once, inputs))] if self.gpu else ways

    def record(self, once, inputs):
        """Replays a CUDA graph, whose outputs lie in its own memory."""
        cuda = self.module.cuda
        aside = cuda.Stream(self.place)
        aside.wait_stream(cuda.current_stream(self.place))
        with cuda.stream(aside):  # libraries set themselves up before a capture
            for _ in range(3):
                once(inputs)
        cuda.current_stream(self.place).wait_stream(aside)
        graph = cuda.CUDAGraph()
        with cuda.graph(graph):
            outputs = once(inputs)

        def replay():
            graph.replay()
            return outputs

        return replay

    def free(self):
        if self.gpu:
            self.module.cuda.empty_cache()


class CuPy(NumPy):
    name = "cupy"

    def open(self):
        device = self.module.cuda.Device(self.ordinal)
        device.use()
        name = self.module.cuda.runtime.getDeviceProperties(self.ordinal)["name"]
        self.place, self.device = device, name.decode()

    def put(self, array):
        return self.module.asarray(array)

    def get(self, array):
        return self.module.asnumpy(array)

    def wait(self, outputs):
        self.place.synchronize()

    def free(self):
        self.module.get_default_memory_pool().free_all_blocks()


class JAX(NumPy):
    name = "jax"
    # It compiles what it runs, for each shape; more than this takes minutes.
    most_shapes, most_together = 64, 1024

    def open(self):
        self.module.config.update("jax_enable_x64", True)
        self.module.config.update("jax_default_matmul_precision", "highest")
        self.numpy = importlib.import_module("jax.numpy")
        self.place = self.module.devices("cuda" if self.gpu else "cpu")[self.ordinal if self.gpu else 0]
        self.device = self.place.device_kind if self.gpu else "host"

    def put(self, array):
        return self.module.device_put(array, self.place)

    def get(self, array):
        return importlib.import_module("numpy").asarray(array)

    def stack(self, arrays):
        self.bound("arrays", len(arrays), self.most_together)
        return self.numpy.stack(arrays)

    def wait(self, outputs):
        self.module.block_until_ready(outputs)

    def bound(self, what, count, most):
        if count > most:
            raise NotImplementedError("%d %s to compile; at most %d are" % (count, what, most))

    def ways(self, once, products, inputs):
        def loop():
            self.bound("shapes", shapes, self.most_shapes)
            return lambda: once(inputs)

        def compiled():
            self.bound("shapes", shapes, self.most_shapes)
            self.bound("products", len(products), self.most_together)
            jitted = self.module.jit(once)
            return lambda: jitted(inputs)

        shapes = len(shapes_of(products, inputs))
        return [("loop", loop), ("jit", compiled)]


LIBRARIES = {library.name: library for library in (NumPy, Torch, CuPy, JAX)}


def evaluate(products, inputs, kept):
    """Those products that are kept, each of inputs or of earlier products."""
    values = list(inputs)
    for a, b in products:
        values.append(values[a] @ values[b])
    return [values[len(inputs) + k] for k in kept]


def keep(products, results, inputs):
    """The products that outlive a pass: those that no other takes, and results."""
    taken = {operand - inputs for product in products for operand in product}
    return [k for k in range(len(products)) if k not in taken or k in results]


def shapes_of(products, inputs):
    """The different shapes of operands."""
    shapes = [tuple(i.shape) for i in inputs]
    for a, b in products:
        shapes.append(shapes[a][:-1] + shapes[b][-1:])
    return {(shapes[a], shapes[b]) for a, b in products}


def batches(products, inputs):
    """Whether one call can multiply stacks of the operands."""
    if len(products) < 2 or max(map(max, products)) >= len(inputs):
        return False
    return len(shapes_of(products, inputs)) == 1


def variants(library, products, kept, inputs):
    """The ways to compute what is kept, each a name and a function that prepares a pass."""
    ways = library.ways(lambda given: evaluate(products, given, kept), products, inputs)
    if batches(products, inputs):
        left, right = [inputs[a] for a, _ in products], [inputs[b] for _, b in products]

        def batched():
            numpy = importlib.import_module("numpy")
            a, b = (library.put(numpy.stack([library.get(i) for i in side])) for side in (left, right))
            return lambda: a @ b

        ways += [
            ("batched", batched),  # the stacks are there already
            ("stack and batched", lambda: lambda: library.stack(left) @ library.stack(right)),
        ]
    return ways


def rounds(run, wait, effort, operations):
    """Seconds an operation of rounds, as effort in measure.go has them."""

    def lasts(passes):
        start = time.perf_counter()
        for _ in range(passes):
            outputs = run()
            wait(outputs)
        return time.perf_counter() - start

    passes, took = 1, lasts(1)
    while took < effort["round"] and passes < 1 << 20:
        passes = min(passes * 100, 1 << 20, max(passes + 1, int(passes * 1.2 * effort["round"] / max(took, 1e-9))))
        took = lasts(passes)
    gc.collect()
    seconds, spent = [], 0.0
    while len(seconds) < effort["most"] and (len(seconds) < effort["least"] or spent < effort["budget"]):
        took = lasts(passes)
        spent += took
        seconds.append(took / passes / operations)
    return seconds


def measure(request, answer):
    numpy = importlib.import_module("numpy")
    library = LIBRARIES[request["library"]](request)
    dtype = numpy.dtype(request["dtype"])
    inputs = [library.put(numpy.fromfile(i["file"], dtype).reshape(i["shape"])) for i in request["inputs"]]
    results = request["results"]
    kept = keep(request["products"], set(results), len(inputs))
    place = {k: i for i, k in enumerate(kept)}  # in outputs
    for v, (name, prepare) in enumerate(variants(library, request["products"], kept, inputs)):
        run = outputs = None  # those of the variant before
        try:
            run = prepare()
            outputs = run()
            library.wait(outputs)
            files = []
            for k in results:
                files.append("%s-%d-%d" % (library.name, v, k))
                numpy.ascontiguousarray(library.get(outputs[place[k]])).tofile(os.path.join(request["folder"], files[-1]))
            outputs = None
            seconds = rounds(run, library.wait, request["effort"], request["operations"])
            answer({"variant": name, "device": library.device, "seconds": seconds, "results": files})
        except Exception as e:
            answer({"variant": name, "error": failure(e)})
    inputs = prepare = run = outputs = None  # of which each holds some
    gc.collect()
    library.free()


def failure(e):
    lines = str(e).strip().splitlines()
    return "%s: %s" % (type(e).__name__, lines[0] if lines else "no message")


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer

    def answer(line):
        out.write(json.dumps(line) + "\n")
        out.flush()

    there = {library: version(library) for library in sys.argv[1:]}
    answer({"protocol": PROTOCOL, "python": platform.python_version(),
            "libraries": {library: v for library, v in there.items() if v is not None}})
    for line in sys.stdin:
        try:
            measure(json.loads(line), answer)
        except Exception as e:
            answer({"variant": "", "error": failure(e)})
        answer({"done": True})


if __name__ == "__main__":
    main()
