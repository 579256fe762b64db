"""The phases of run.sh, which sets what they need.

machine     what machine this is, into machine.txt
tests       each test of the CUDA driver, conformance suite and all, in a process
            of its own, eight at a time and each with a limit, so that one that
            hangs does not cost the rest
packages    the tests of the other packages, and the command
raft        of these, the tests of the native interface on RAFT; only if it is named
sanitizer   a few tests under compute-sanitizer's memcheck and racecheck
bench       the benchmarks, a scenario at a time: tables in bench.txt, and the same
            as lines of JSON in bench.jsonl

What failed beside other processes, and soon, is tried again alone, and passes if
it does then; the summary says so. Each phase has a log of what failed, also of what
then passed alone.
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TESTS = HERE / "tests"
DRIVER = TESTS / "internal/driver/cuda"
RAFT = HERE / "raft"
ON_RAFT = ("native", "provider/raft")
AT_ONCE = 8
TEST_SECONDS = 30
SOON = 10  # seconds; there is no time to see many tests hang twice
MOST_LINES = 150  # of one failure in a log


class Job:
    """A command with a limit, and how it went."""

    def __init__(self, name, command, folder=HERE, limit=TEST_SECONDS, **environment):
        self.name, self.command, self.folder, self.limit = name, command, folder, limit
        self.environment = environment
        self.word, self.output, self.seconds = "NO TIME", "", 0.0

    @property
    def failed(self):
        return self.word not in ("ok", "skipped", "passes alone")

    def run(self, end):
        limit = min(self.limit, end - time.monotonic())
        if limit < 5:
            return
        began = time.monotonic()
        with tempfile.TemporaryFile() as log:
            process = subprocess.Popen(
                [str(c) for c in self.command], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, env={**os.environ, **self.environment})
            try:
                code = process.wait(limit)
                self.word = "ok" if code == 0 else f"FAILED ({code})"
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # children of the test too
                process.wait()
                self.word = "HUNG"
            log.seek(0)
            self.output = log.read().decode(errors="replace")
        self.seconds = time.monotonic() - began
        if self.word == "ok" and "testing: warning: no tests to run" in self.output:
            self.word = "FAILED (no such test)"
        if self.word == "ok" and re.search(r"^\s*--- SKIP", self.output, re.M) and not re.search(r"^\s+--- PASS", self.output, re.M):
            self.word = "skipped"
        if self.word == "ok" and "[  SKIPPED ]" in self.output:  # GoogleTest
            self.word = "skipped"


class Run:
    """Where the results go, and until when."""

    def __init__(self, results, seconds):
        self.results = results
        self.end = time.monotonic() + seconds
        self.failures = 0

    def say(self, text):
        print(text, flush=True)
        with open(self.results / "summary.txt", "a") as f:
            f.write(text + "\n")

    def phase(self, name, beside, alone=()):
        """Runs jobs, those beside each other first and at once, tries again alone what
        failed of these, and writes what is to be known."""
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda job: job.run(self.end), beside))
        for job in beside:
            if job.failed and job.word != "NO TIME" and job.seconds < SOON:
                self.again(job)
        for job in alone:
            job.run(self.end)
        jobs = [*beside, *alone]
        failed = [job for job in jobs if job.failed]
        self.failures += len(failed)
        words = {}
        for job in jobs:
            word = job.word.split(" (")[0]
            words[word] = words.get(word, 0) + 1
        self.say(f"{name}: {', '.join(f'{n} {w}' for w, n in sorted(words.items()))}, {time.monotonic() - began:.0f} s")
        for job in jobs:
            if job.word != "ok":
                self.say(f"  {job.word}  {job.name}  {job.seconds:.1f} s{reason(job)}")
        with open(self.results / f"{name}.log", "w") as f:
            for job in jobs:
                if not job.failed and job.word != "passes alone":
                    continue
                f.write(f"=== {job.word}  {job.name}  {job.seconds:.1f} s\n{shortened(job.output)}\n")
            f.write("=== the slowest\n")
            for job in sorted(jobs, key=lambda job: -job.seconds)[:20]:
                f.write(f"{job.seconds:6.1f} s  {job.name}\n")

    def again(self, job):
        first, output = job.word, job.output
        job.run(self.end)
        alone = shortened(job.output) if job.failed else job.word
        job.output = f"{first} beside others:\n{shortened(output)}\nalone:\n{alone}"
        if job.word == "ok":
            job.word = "passes alone"


def shortened(text):
    lines = text.splitlines()
    if len(lines) > MOST_LINES:
        lines = lines[: MOST_LINES // 2] + [f"... {len(lines) - MOST_LINES} lines ..."] + lines[-MOST_LINES // 2 :]
    return "\n".join(lines)


def reason(job):
    """Why a test was skipped, in one line."""
    found = re.search(r"^\s+\S+\.go:\d+: (.*)", job.output, re.M)
    return f"  {found[1][:160]}" if job.word == "skipped" and found else ""


def pattern(name):
    """What -test.run takes for exactly that test."""
    return "/".join("^" + re.escape(part) + "$" for part in name.split("/"))


def driver_test(name, **environment):
    return Job(name, ["./cuda.test", "-test.v", f"-test.timeout={TEST_SECONDS - 4}s", "-test.run=" + pattern(name)], DRIVER, **environment)


def driver_tests():
    """Every test of the driver: the suite's as it lists them itself, the others by name."""
    suite, mortal, skeleton = "TestCUDAPassesTheConformanceSuite", "TestADeviceDiesAsTheSuiteSays", "TestMortal"
    ask = lambda *arguments: subprocess.run(
        ["./cuda.test", *arguments], cwd=DRIVER, capture_output=True, text=True, timeout=60,
        env={**os.environ, "WEIR_CUDA_MORTAL_TEST": "list"}).stdout
    listed = re.findall(r"--- SKIP: TestMortal/(\S+)", ask("-test.v", "-test.run=^TestMortal$"))
    if len(listed) < 100:
        raise SystemExit(f"the suite lists {len(listed)} tests")
    names = []
    for name in listed:
        group, _, test = name.partition("/")
        names.append(f"{mortal}/{test}" if group == "Death" else f"{suite}/{name}")
    own = [n for n in ask("-test.list=^Test").split() if n not in (suite, mortal, skeleton)]
    return [driver_test(n) for n in names + own]


def packages():
    """The other packages' tests. Arrays live on the first GPU. The runtime's own
    lifecycle is about host devices: it runs as where no GPU is visible."""
    theta = pathlib.Path(tempfile.gettempdir()) / f"weir-theta-{os.getpid()}.npy"
    data = [HERE / "data" / f"{n}.npy" for n in ("left", "middle", "right")]
    beside, alone = [Job("command", [HERE / "weir", "einsum", "asb,btc,cud->astud", *data, "-o", theta], limit=60)], []
    for binary in sorted(TESTS.rglob("*.test")):
        folder = binary.parent
        name = str(folder.relative_to(TESTS))
        if folder == DRIVER or name in ON_RAFT:
            continue
        environment = {"CUDA_VISIBLE_DEVICES": "", "WEIR_TEST_CUDA": ""} if name == "runtime" else {}
        chosen = ["-test.run=^Test(GPUs|ADead)"] if name == "internal/devicetest" else []
        job = Job(name, [binary, "-test.timeout=175s", *chosen], folder, limit=180, **environment)
        # These look at how much memory the whole device has left.
        (alone if name in ("bench", "csrc/floor") else beside).append(job)
    return beside + on_raft(), alone


def on_raft():
    """The tests that call the bundle's libraries on RAFT: Go's, and C++'s own."""
    environment = {"WEIR_NATIVE_LIBRARY_PATH": str(RAFT), "WEIR_TEST_NATIVE": "1"}
    binaries = [(name, binary) for name in ON_RAFT for binary in (TESTS / name).glob("*.test")]
    jobs = [Job(name, [binary, "-test.timeout=175s"], binary.parent, limit=180, **environment) for name, binary in binaries]
    if (RAFT / "raft_test").exists():
        jobs.append(Job("raft_test", [RAFT / "raft_test"], RAFT, limit=180))
    return jobs


def sanitizer(run):
    tool = shutil.which("compute-sanitizer")
    if not tool:
        run.say("sanitizer: compute-sanitizer is not there")
        return
    jobs = []
    suite = "^TestCUDAPassesTheConformanceSuite$/"
    for check, tests in {
        "memcheck": ["Kernel/(sum_of_float32|copy_of_float64_to_float16|mul_of_complex64|large_views)$", "Gemm/groups_of_float32$"],
        "racecheck": ["Kernel/(sum_of_float32|copy_of_float64_to_float16|mul_of_complex64|large_views)$"],
    }.items():
        for test in tests:
            jobs.append(Job(f"{check} {test}", [tool, "--tool", check, "--error-exitcode", "99", "./cuda.test", "-test.v",
                                                "-test.timeout=110s", "-test.run=" + suite + test], DRIVER, limit=120))
    run.phase("sanitizer", [], jobs)


BENCHMARKS = ("gpu-gemm gpu-small gpu-chain gpu-streams gpu-copy gpu-start gpu-calls events lease ledger reads waiters gemm-small"
              " flow-submit flow-independent flow-chain flow-mixed flow-streams flow-large-among-small flow-replay gpu-flat").split()


def benchmarks(run):
    """A scenario at a time, each in a process of its own: those that
    WEIR_GPU_BENCHMARKS names, else all, with WEIR_GPU_BENCH_FLAGS."""
    table, lines = run.results / "bench.txt", run.results / "bench.jsonl"
    table.write_text("")
    lines.write_text("")
    names = os.environ.get("WEIR_GPU_BENCHMARKS", "").split() or BENCHMARKS
    extra = os.environ.get("WEIR_GPU_BENCH_FLAGS", "").split()
    began, words = time.monotonic(), []
    for name in names:
        saved = pathlib.Path(tempfile.gettempdir()) / f"weir-bench-{os.getpid()}.jsonl"
        saved.unlink(missing_ok=True)
        job = Job(name, [HERE / "weir", "bench", name, "--device", "cuda:0", "--save", saved, *extra], limit=300)
        job.run(run.end)
        with open(table, "a") as f:
            f.write(f"{job.output}\n")
        if saved.exists():
            with open(lines, "a") as f:
                f.write(saved.read_text())
        if job.failed:
            run.failures += 1
            words.append(f"{job.word} {name}")
    run.say(f"bench: {len(names)} scenarios, {', '.join(words) or 'all ok'}, {time.monotonic() - began:.0f} s")
    for line in table.read_text().splitlines():
        if re.match(r"^\s|^\w[\w-]*$", line):
            print(line)


def machine(run):
    with open(run.results / "machine.txt", "w") as f:
        f.write(time.strftime("%Y-%m-%dT%H:%M:%SZ\n", time.gmtime()) + (HERE / "version").read_text())
        f.write(f"LD_LIBRARY_PATH={os.environ['LD_LIBRARY_PATH']}\n")
        for command in (["uname", "-srm"], ["nproc"], ["grep", "-m1", "model name", "/proc/cpuinfo"], ["nvidia-smi"],
                        ["nvidia-smi", "--query-gpu=name,driver_version,clocks.sm,clocks.max.sm,clocks.mem,power.limit,pcie.link.gen.current,"
                         "pcie.link.width.current,mig.mode.current", "--format=csv"], [str(HERE / "weir"), "devices"]):
            job = Job(command[0], command, limit=120)
            try:
                job.run(run.end)
            except OSError as e:
                job.output = f"{e}\n"
            f.write(f"$ {' '.join(command)}\n{job.output}")
    run.say("machine: see machine.txt")


def main():
    results = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "results")
    results.mkdir(parents=True, exist_ok=True)
    run = Run(results.resolve(), float(os.environ.get("WEIR_GPU_SECONDS", "540")))

    phases = {
        "machine": lambda: machine(run),
        "tests": lambda: run.phase("tests", driver_tests()),
        "packages": lambda: run.phase("packages", *packages()),
        "raft": lambda: run.phase("raft", on_raft() or sys.exit("raft: the bundle has none; make raft, then make gpu-bundle")),
        "sanitizer": lambda: sanitizer(run),
        "bench": lambda: benchmarks(run),
    }
    chosen = sys.argv[2:] or [name for name in phases if name != "raft"]
    for name in chosen:
        if name not in phases:
            raise SystemExit(f"phase {name!r}; there are {', '.join(phases)}")
    for name in phases:
        if name in chosen:
            phases[name]()
    sys.exit(1 if run.failures else 0)


main()
