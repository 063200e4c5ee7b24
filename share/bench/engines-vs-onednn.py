#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The cpu engine with each instruction set: products beside oneDNN's, and training steps.

    share/bench/engines-vs-onednn.py -c share/configs/demo.yaml --set model.vocab_size=2048

For each instruction set of this machine: the highest rate of fp32 products of dt, of
oneDNN's sgemm with the same instructions (ONEDNN_MAX_CPU_ISA) and the same three shapes, and
the training step of a configuration. All take turns in each round, in separate processes;
medians over the rounds, and the least and largest ratio. oneDNN has no version without SSE4.1,
which is compared with the generic engine. Needs libdnnl.so, and dt-bench on PATH or in build/bin.
"""
import argparse, ctypes, importlib.util, json, mmap, os, statistics, struct, sys, time

SHAPES = [(512, 512, 512), (1024, 1024, 1024), (1024, 3072, 768)]  # of dt-bench gemm
ENGINES = {"avx512": ("avx512f", "AVX512_CORE"), "avx2": ("avx2", "AVX2"), "generic": ("", "SSE41")}

spec = importlib.util.spec_from_file_location(
    "steps", os.path.join(os.path.dirname(os.path.abspath(__file__)), "step-vs-pytorch.py"))
steps = importlib.util.module_from_spec(spec)
spec.loader.exec_module(steps)


def library():
    for name in ("libdnnl.so.2", "libdnnl.so.3"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            pass
    sys.exit("engines-vs-onednn.py: libdnnl.so.2 is not installed: apt-get install libdnnl2")


def floats(count):
    """An array in pages as large as dt's."""
    memory = mmap.mmap(-1, (4 * count + (2 << 20) - 1) >> 21 << 21)
    memory.madvise(mmap.MADV_HUGEPAGE)
    memory.write(struct.pack("f", 0.5) * count)
    return (ctypes.c_float * count).from_buffer(memory)


def multiply():
    """Prints the highest rate of oneDNN's sgemm, measured as dt-bench gemm measures dt's."""
    sgemm, best, one = library().dnnl_sgemm, 0, ctypes.c_float(1)
    size = ctypes.c_int64
    for m, n, k in SHAPES:
        a, b, c = (floats(count) for count in (m * k, k * n, m * n))
        start, seconds = time.perf_counter(), 1e9
        while time.perf_counter() - start < 0.3:
            begin = time.perf_counter()
            sgemm(ctypes.c_char(b"N"), ctypes.c_char(b"N"), size(m), size(n), size(k), one, a,
                  size(k), b, size(n), ctypes.c_float(0), c, size(n))
            seconds = min(seconds, time.perf_counter() - begin)
        best = max(best, 2 * m * n * k / seconds)
    print(json.dumps({"gemm_gflops": best * 1e-9}))


def main():
    parser = argparse.ArgumentParser(description="The cpu engine's instruction sets and oneDNN.")
    parser.add_argument("-c", "--config", help="a configuration file of dt-train")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("-n", "--steps", type=int, default=5, help="steps a run (default 5)")
    parser.add_argument("-r", "--rounds", type=int, default=5, help="runs of each (default 5)")
    parser.add_argument("-j", "--threads", type=int, default=os.cpu_count())
    parser.add_argument("--multiply", action="store_true", help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.multiply:
        return multiply()
    library()
    flags = open("/proc/cpuinfo").read().split()
    names = [name for name, (flag, _) in ENGINES.items() if not flag or flag in flags]
    options = ["--json", "-j", str(a.threads), "step", "-n", str(a.steps)]
    options += ["-c", a.config] if a.config else []
    options += [word for assignment in a.set for word in ("--set", assignment)]
    runs = {name: [] for name in names}
    os.environ["OMP_NUM_THREADS"] = str(a.threads)
    for _ in range(a.rounds):
        for name in names:
            os.environ["ONEDNN_MAX_CPU_ISA"] = ENGINES[name][1]
            runs[name].append((steps.run(["dt-bench", "--device", "cpu-" + name] + options),
                               steps.run([sys.executable, __file__, "--multiply"])))
    print(f"{'':8} {'GFLOP/s':>8} {'oneDNN':>8} {'ratio':>6} {'from':>6} {'to':>5} "
          f"{'step ms':>9} {'of avx512':>9}")
    middle = statistics.median
    first = middle(dt["step_s"] for dt, _ in runs[names[0]])
    for name in names:
        ratios = [dt["gemm_gflops"] / other["gemm_gflops"] for dt, other in runs[name]]
        step = middle(dt["step_s"] for dt, _ in runs[name])
        print(f"{name:8} {middle(dt['gemm_gflops'] for dt, _ in runs[name]):8.1f} "
              f"{middle(other['gemm_gflops'] for _, other in runs[name]):8.1f} "
              f"{middle(ratios):6.2f} {min(ratios):6.2f} {max(ratios):5.2f} "
              f"{step * 1e3:9.1f} {step / first:9.2f}")


if __name__ == "__main__":
    main()
