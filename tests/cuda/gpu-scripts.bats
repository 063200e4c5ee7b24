# SPDX-License-Identifier: MIT
# The scripts that run on a machine with a GPU, on a bundle of programs that stand for it.
load ../helper

setup() {
    mkdir -p "$T/path" "$T/bundle"/{bin,lib/dt,share,tests}
    export OUT=$T/out PATH="$T/path:$PATH"
    ln -s "$(command -v bash)" "$T/bundle/lib/dt/cuda.so"
    echo 0123 >"$T/bundle/commit"
    program path/nvidia-smi 'case $1 in *memory*) echo 321 ;; *cap*) echo 9.0 ;;
        *) echo "Some GPU, 1.2" ;; esac'
    program bundle/bin/op-speed 'echo "{\"op\": \"copy\", \"ms\": 1}"; sleep 1000'
    program bundle/bin/conformance 'echo no >&2; exit 1'
    program bundle/bin/dt-bench '[ "$DT_CUDA_WGMMA" = 1 ] && ms=10 || ms=20
        echo "{\"tokens_per_second\": 7, \"gflops\": 2, \"gemm_gflops\": 4,
        \"forward_s\": 0.0$ms, \"backward_s\": 0.02,
        \"streams_1\": {\"tokens_per_second\": 9${DT_CUDA_GRAPH:-0}, \"read_share\": 0.25}}" | tr -d "\n"'
    cp "$ROOT"/share/bench/*-vs-pytorch.py "$T/bundle/share"
}

program() {
    printf '#!/bin/sh\n%s\n' "$2" >"$T/$1"
    chmod +x "$T/$1"
}

without_torch() {
    program path/python3 'case "$*" in *find_spec*torch*) exit 1 ;; esac
        exec '"$(command -v python3)"' "$@"'
}

@test "without a GPU each says one line" {
    program path/nvidia-smi 'exit 9'
    for script in check bench losses; do
        run "$ROOT/tests/gpu/$script" "$T/bundle"
        assert_one_line_error $script
    done
}

@test "a C library or cuBLASLt that is missing is named" {
    program path/ldd 'echo "libcublasLt.so.13 => not found"'
    run "$ROOT/tests/gpu/bench" "$T/bundle"
    assert_one_line_error bench
    [[ "$output" == *"this machine has no libcublasLt.so.13 (dt-cuda(7), ON A GPU, says what is needed)" ]]
    program path/nvidia-smi 'exit 9' # all that is missing is named at once
    run "$ROOT/tests/gpu/bench" "$T/bundle"
    assert_one_line_error bench
    [[ "$output" == *"this machine has no libcublasLt.so.13, no GPU: nvidia-smi is missing or finds none ("* ]]
    program path/ldd "echo \"cuda.so: /lib/libc.so.6: version \\\`GLIBC_2.34' not found\" >&2"
    run "$ROOT/tests/gpu/bench" "$T/bundle"
    assert_one_line_error bench
    [[ "$output" == *"this machine has no C library as new as"* ]]
}

@test "what a step found stays when it and others fail, and in the time that there is" {
    without_torch
    GPU_SECONDS=12 run "$ROOT/tests/gpu/bench" "$T/bundle"
    echo "$output"
    [ "$status" -eq 0 ] # steps without time have not failed
    [ "$SECONDS" -lt 900 ]
    python3 - "$OUT/gpu-bench.json" <<'END'
import json, sys
report = json.load(open(sys.argv[1]))
steps = {s["step"]: s for s in report["steps"]}
assert report["device"] == "Some GPU" and report["driver"] == "1.2" and report["commit"] == "0123"
assert steps["ops"]["verdict"] == "not run" and steps["ops"]["reason"].startswith("over"), steps
assert steps["ops"]["values"] == [{"op": "copy", "ms": 1}], steps
assert steps["ops"]["gpu_mib"] == 321, steps
assert steps["step of gpt2-124m"]["reason"] == "no time left", steps
END
    program bundle/bin/op-speed 'echo "{\"op\": \"copy\", \"ms\": 1}"'
    run "$ROOT/tests/gpu/bench" "$T/bundle"
    echo "$output"
    [ "$status" -eq 0 ]
    [[ "$output" == *"not run         0 s  attention by PyTorch: Python has no module torch"* ]]
    AGAIN=1 run "$ROOT/tests/gpu/bench" "$T/bundle"
    [ "$status" -eq 0 ]
    program bundle/bin/op-speed 'exit 1'
    run "$ROOT/tests/gpu/bench" "$T/bundle" # goes on, and does nothing twice
    echo "$output"
    [ "$status" -eq 0 ]
    grep -qE '^done +before +ops$' <<<"$output"
    grep -qE '^gpt2-1558m +7 0\.500 +[0-9]+$' <<<"$output"
    grep -qE '^gpt2-124m, 1024 tokens, graphs +7 0\.500 +[0-9]+$' <<<"$output"
    grep -qE '^decoding +90 +0\.250 +nan +nan$' <<<"$output"
    grep -qE '^decoding, graphs +91 +0\.250 +nan +nan$' <<<"$output"
    # 2 products of 2 x 64 x 12 x 1024^2 x 64 / 2 operations in 20 ms, with wgmma in 10
    grep -qE '^64 x 12 heads, 1024 x 64 +5\.2 +12\.9 +10\.3 +12\.9 +nan' <<<"$output"
}

@test "a table sets dt's steps beside PyTorch's" {
    cat >"$T/found.json" <<'END'
{"steps": [
{"step": "step of tiny", "gpu_mib": 10, "values": [{"dt": {"gflops": 40, "tokens_per_second": 20, "gemm_gflops": 50}}]},
{"step": "step of tiny by PyTorch", "gpu_mib": 30, "values": [{"pytorch": {"tokens_per_second": 10, "gemm_gflops": 80}}]},
{"step": "attention by PyTorch", "values": [{"batch": 1, "heads": 2, "length": 3, "channels": 4,
 "flash": {"forward_tflops": 5, "backward_tflops": 6}, "cudnn": {"refused": "no"}}]}]}
END
    run "$ROOT/tests/gpu/table" "$T/found.json"
    echo "$output"
    [ "$status" -eq 0 ]
    grep -qE '^tiny +20 0\.500 +10 +10 0\.250 +30 +2\.000$' <<<"$output"
    grep -qE '^1 x 2 heads, 3 x 4 +nan +nan +nan +nan +5\.0 +6\.0 +nan +nan$' <<<"$output"
}

# runs NAME STEPS SETTINGS [TOKENS]: text and settings of short runs, as the scripts find them in a bundle.
runs() {
    cd "$T"
    cp -s "$(realpath "${DT_BUILD:-$ROOT/build}")"/lib/dt/cpu-*.so bundle/lib/dt
    dt-synth -n 300 -o docs.jsonl
    dt-vocab -q --size 300 -o tok.json docs.jsonl
    cp tok.json bundle/share
    dt-tokenize -q -t tok.json docs.jsonl | dt-shard -o "bundle/share/$1.dts"
    small=(--set model.vocab_size=300 --set model.hidden_size=64 --set model.num_layers=2
        --set model.num_heads=2 --set model.max_seq_len="${4:-32}" --set training.batch_size=4
        --set training.max_steps="$2" --set training.warmup_steps=4 --set training.weight_decay=1
        --set training.schedule=constant --set training.log_interval=1 --set data.shuffle=false
        --set training.learning_rate=3e-3 --set training.grad_clip=0.5)
    printf '%s\n' "${small[@]}" >"bundle/share/$3"
    canonical=(--set training.arithmetic=canonical --set training.max_steps=4
        --set model.max_seq_len=8)
    printf '%s\n' "${canonical[@]}" >bundle/share/canonical-settings
}

# canonical_hash PRECISION OPTION...: that of the processor, into the bundle.
canonical_hash() {
    dt-train -q "${small[@]}" "${canonical[@]}" --set training.precision="$1" "${@:2}" \
        -o "canonical-$1" bundle/share/data.dts
    sha256sum <"canonical-$1/latest/model.safetensors" >"bundle/share/canonical-$1.sum"
}

@test "a run whose losses are the processor's passes; instructions that differ do not" {
    runs data 60 settings 8
    for precision in fp32 bf16 fp16; do
        dt-train -q "${small[@]}" --set training.precision=$precision -o $precision \
            bundle/share/data.dts
        cp $precision/metrics.jsonl bundle/share/cpu-$precision.jsonl
    done
    sed -i '60s/"loss":/"loss":1/' bundle/share/cpu-bf16.jsonl
    canonical_hash fp32
    canonical_hash bf16 --set training.seed=5
    DT_CHECK_DEVICE=cpu run "$ROOT/tests/gpu/check" "$T/bundle"
    echo "$output"
    [ "$status" -eq 1 ]
    [[ "${lines[1]}" == "agrees "*"canonical fp32 has the processor's hash" ]]
    [[ "$output" == *"the GPU does not have the processor's bits"* ]]
    grep -qE "^differs .*canonical bf16 has the processor's hash" <<<"$output"
    grep -qE '^differs: [0-9a-f]{64}, the processor has [0-9a-f]{64}$' <<<"$output"
    grep -q '^agrees .*fp32 follows the processor' <<<"$output"
    grep -q '^agrees .*fp16 follows the processor' <<<"$output"
    grep -q '^agrees .*a run repeats itself' <<<"$output"
    grep -q '^agrees .*fp16 by graphs has the bits of launches' <<<"$output"
    grep -q '^agrees .*fp16 by wgmma follows the processor' <<<"$output"
    grep -q '^differs .*bf16 by wgmma follows the processor' <<<"$output"
    grep -q '^differs .*bf16 follows the processor' <<<"$output"
    grep -q '^differs .*instructions$' <<<"$output"
    grep -q '"fp32 follows the processor", "stage": "training", "options": "", "verdict": "agrees".*"losses": 60, "apart": 0}' \
        "$OUT/gpu-check.json"
    grep -q '^not run .*two ranks over NCCL: this machine has one GPU' <<<"$output"
    run dt-bench gpu "$OUT/gpu-check.json"
    echo "$output"
    [[ "${lines[0]}" == "Some GPU, driver 1.2: "* ]]
    [[ "${lines[1]}" == "wgmma   not proven: "*"; a step without options differs" ]]
    [ "$(grep -c '^=== ' "$OUT/gpu-check.log")" -ge 16 ] # nothing is lost of the log
}

@test "the time limits of a stage are less than 8 minutes, and of all stages less than the time that there is" {
    local stage all=0 limit
    program path/timeout 'shift 2; echo "$1" >>"$LIMITS"; exit 124' # each step takes its time
    program path/nvidia-smi 'case $1 in *cap*) echo 9.0 ;; *) echo "Some GPU, 1.2"; echo "Some GPU, 1.2" ;; esac'
    for stage in arithmetic training ops options links; do
        export LIMITS=$T/limits-$stage
        GPU_SECONDS=100000 "$ROOT/tests/gpu/check" "$T/bundle" $stage >/dev/null
        limit=$(awk '{ n += $1 } END { print n }' "$LIMITS")
        echo "$stage: $(wc -l <"$LIMITS") steps, $limit s"
        [ "$limit" -gt 0 ] && [ "$limit" -lt 480 ]
        all=$((all + limit))
    done
    [ "$all" -le "$(sed -nE 's/.*GPU_SECONDS:=([0-9]+).*/\1/p' "$ROOT/tests/gpu/check")" ]
}

@test "on two GPUs two ranks over NCCL have the bits of one" {
    runs data 2 settings
    printf '%s\n' "${small[@]}" --set training.warmup_steps=1 --set model.max_seq_len=8 \
        --set model.hidden_size=16 >bundle/share/settings
    cp -s "$(realpath "${DT_BUILD:-$ROOT/build}")"/lib/dt/{cuda-emulated,crypto}.so bundle/lib/dt
    program path/nvidia-smi 'echo "Some GPU, 1.2"; echo "Some GPU, 1.2"'
    export CUDA_EMULATOR=gpus=2 DT_CHECK_DEVICE=cuda-emulated
    small+=(--set training.warmup_steps=1 --set model.max_seq_len=8 --set model.hidden_size=16)
    canonical_hash bf16
    export LD_LIBRARY_PATH="${DT_BUILD:-$ROOT/build}/tests/cuda/nccl"
    run "$ROOT/tests/gpu/check" "$T/bundle" arithmetic options links
    echo "$output"
    head -30 "$OUT/gpu-check.log"
    grep -q "^agrees .*canonical bf16 has the processor's hash" <<<"$output"
    grep -q '^agrees .*two ranks over NCCL' <<<"$output"
    grep -q "^agrees .*sums by NCCL have the losses of dt's" <<<"$output"
    grep -q '"losses": 2, "nccl_apart": ' "$OUT/gpu-check.json"
    grep -q '^agrees .*bf16 by graphs has the bits of launches' <<<"$output"
    export CUDA_EMULATOR=gpus=1
    AGAIN=1 run "$ROOT/tests/gpu/check" "$T/bundle" links
    grep -q '^differs .*two ranks over NCCL' <<<"$output"
}

@test "runs in each precision begin with the same weights, and are compared" {
    runs long 12 long-settings
    without_torch
    DT_LOSSES_DEVICE=cpu run "$ROOT/tests/gpu/losses" "$T/bundle"
    echo "$output"
    [ "$status" -eq 0 ]
    python3 - "$OUT/gpu-losses.json" <<'END'
import json, sys
steps = {s["step"]: s for s in json.load(open(sys.argv[1]))["steps"]}
values = steps["losses apart"]["values"]
runs = {v["run"]: v for v in values if "run" in v}
pairs = {tuple(v["pair"]): v for v in values if "pair" in v}
assert set(runs) == {"bf16", "fp32", "tf32", "fp16"} and runs["bf16"]["steps"] == 12, runs
assert abs(pairs["bf16", "fp32"]["first"]) < 0.01 and 0 < pairs["bf16", "fp32"]["rms"] < 0.05, pairs
assert pairs["tf32", "fp32"]["rms"] == 0, pairs
END
    tar -tzf "$OUT/gpu-losses-runs.tgz" | grep -qx bf16.jsonl
}

@test "losses that are further apart than bf16 makes them are an error" {
    for run in bf16 fp32 tf32 fp16 torch-bf16 torch-fp32; do
        for step in 1 2 3; do
            echo "{\"step\": $step, \"tokens\": $step, \"time\": $step, \"loss\": 1.5}"
        done >"$T/$run.jsonl"
    done
    sed -i s/1.5/1.51/ "$T/torch-fp32.jsonl"
    python3 "$ROOT/share/bench/losses-vs-pytorch.py" compare "$T" | grep -q '"rms": 0.01'
    sed -i s/1.5/1.53/ "$T/bf16.jsonl"
    run python3 "$ROOT/share/bench/losses-vs-pytorch.py" compare "$T"
    [ "$status" -eq 1 ]
    [[ "$output" == *"dt and PyTorch are 0.03 apart, more than twice the 0.01 of"* ]]
    rm "$T/fp16.jsonl"
    run python3 "$ROOT/share/bench/losses-vs-pytorch.py" compare "$T"
    [ "$status" -eq 1 ]
    [[ "$output" == *"lacks losses of fp16" ]]
}

@test "PyTorch, given dt's weights and batches, has dt's losses" {
    need_python torch
    runs long 12 long-settings
    dt-train -q "${small[@]}" --set training.max_steps=1 --set training.learning_rate=0 \
        --set training.warmup_steps=0 -o begin bundle/share/long.dts
    dt-train -q "${small[@]}" --init-from begin/latest -o fp32 bundle/share/long.dts
    dt-cat --as raw -o ids bundle/share/long.dts
    "$PYTHON" "$ROOT/share/bench/losses-vs-pytorch.py" run --model begin/latest --ids ids \
        --precision fp32 --device cpu --output torch-fp32.jsonl "${small[@]}"
    "$PYTHON" - <<'END'
import json
ours, peers = ([json.loads(line)["loss"] for line in open(path)]
               for path in ("fp32/metrics.jsonl", "torch-fp32.jsonl"))
assert len(ours) == len(peers) == 12, (ours, peers)
assert max(abs(a - b) for a, b in zip(ours, peers)) < 2e-4, list(zip(ours, peers))
assert peers[-1] < peers[0] - 0.5, peers
END
}
