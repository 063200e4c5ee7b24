# SPDX-License-Identifier: MIT
# The scripts that run on a machine with a GPU, on a bundle of programs that stand for it.
load ../helper

setup() {
    mkdir -p "$T/path" "$T/bundle"/{bin,lib/dt,share,tests}
    export OUT=$T/out PATH="$T/path:$PATH"
    ln -s "$(command -v bash)" "$T/bundle/lib/dt/cuda.so"
    echo 0123 >"$T/bundle/commit"
    program path/nvidia-smi 'echo "Some GPU, 1.2"'
    program bundle/bin/op-speed 'echo "{\"op\": \"copy\", \"ms\": 1}"; sleep 30'
    program bundle/bin/conformance 'echo no >&2; exit 1'
    cp "$ROOT"/share/bench/*-vs-pytorch.py "$T/bundle/share"
}

program() {
    printf '#!/bin/sh\n%s\n' "$2" >"$T/$1"
    chmod +x "$T/$1"
}

@test "without a GPU each says one line" {
    program path/nvidia-smi 'exit 9'
    for script in check bench; do
        run "$ROOT/tests/gpu/$script" "$T/bundle"
        assert_one_line_error $script
    done
}

@test "what a step found stays when it and others fail, and in the time that there is" {
    program bundle/bin/dt-bench 'echo "{\"tokens_per_second\": 7}"'
    GPU_SECONDS=9 run "$ROOT/tests/gpu/bench" "$T/bundle"
    echo "$output"
    [ "$status" -eq 1 ]
    [ "$SECONDS" -lt 25 ]
    python3 - "$OUT/gpu-bench.json" <<'EOF'
import json, sys
report = json.load(open(sys.argv[1]))
steps = {s["step"]: s for s in report["steps"]}
assert report["device"] == "Some GPU" and report["driver"] == "1.2" and report["commit"] == "0123"
assert steps["step of GPT-2 124M"]["values"] == [{"dt": {"tokens_per_second": 7}}], steps
assert steps["ops"]["status"].startswith("over"), steps
assert steps["ops"]["values"] == [{"op": "copy", "ms": 1}], steps
EOF
}

@test "a run whose losses are the processor's passes; instructions that differ do not" {
    program bundle/bin/dt-train 'while [ "$1" != -o ]; do shift; done; mkdir "$2"
        for i in $(seq 60); do echo "{\"step\":$i,\"loss\":1.5}"; done >"$2/metrics.jsonl"'
    for i in $(seq 60); do echo "{\"loss\":1.501}"; done >"$T/bundle/share/cpu-fp32.jsonl"
    for i in $(seq 60); do echo "{\"loss\":1.7}"; done >"$T/bundle/share/cpu-bf16.jsonl"
    touch "$T/bundle/share/settings"
    run "$ROOT/tests/gpu/check" "$T/bundle"
    echo "$output"
    [ "$status" -eq 1 ]
    grep -q '^ok .*fp32 follows the processor' <<<"$output"
    grep -q '^failed .*bf16 follows the processor' <<<"$output"
    grep -q '^failed .*instructions$' <<<"$output"
    grep -q '"fp32 follows the processor", "status": "ok".*"losses": 60, "apart": 0.001' \
        "$OUT/gpu-check.json"
}
