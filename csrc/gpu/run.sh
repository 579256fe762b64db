#!/bin/sh
# Runs a GPU bundle: run.sh [RESULTS [PHASE...]]. The phases are machine, tests,
# packages, sanitizer and bench, in that order and all of them without a name; and
# raft, which is a part of packages. run.py says what each does. It leaves at most
# seven files in RESULTS (results), and one more with raft; it fails if a test did.
# WEIR_GPU_SECONDS (540) is about how long it may take: what there is no time for is
# said, and a later call may go on with those phases.
here=$(cd "$(dirname "$0")" && pwd)

# Where drivers and toolkits are: the usual places, and NVIDIA's wheels in the
# machine's Python.
wheels=$(python3 - 2>/dev/null <<'PYTHON'
import glob, os, sysconfig
root = os.path.join(sysconfig.get_paths()["purelib"], "nvidia")
print(":".join(sorted(glob.glob(root + "/*/lib"), key=lambda p: "cu13" not in p)))
PYTHON
)
export LD_LIBRARY_PATH="/usr/local/nvidia/lib64:/usr/local/cuda/lib64:$wheels${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export PATH="$PATH:/usr/local/cuda/bin"
export WEIR_TEST_CUDA=1
exec python3 "$here/run.py" "$@"
