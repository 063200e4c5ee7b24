# SPDX-License-Identifier: MIT
load ../helper

small="--set model.vocab_size=1000 --set model.hidden_size=64 --set model.num_layers=4
    --set model.num_heads=4 --set model.max_seq_len=32 --set training.batch_size=2
    --set training.gradient_accumulation_steps=8"

setup() {
    cd "$T"
}

@test "predicted memory of a rank equals that of dt-train, to the byte" {
    make_data 50 300
    for more in "" "--set training.precision=bf16 --set training.recompute=full" \
        "--set model.name=llama --set model.num_kv_heads=2 --set training.optimizer=muon" \
        "--set training.ema_decay=0.9 --set checkpoint.background=true"; do
        dt-train --dry-run $small $more data |
            awk '/^memory/ { on = 1; next } on && !/^(total|snapshot|available)/ { print $1, $2 }' >taken
        [ "$(wc -l <taken)" -eq 7 ]
        dt-plan $small $more | awk '/^memory/ { on = 1; next } on && / total / { exit } on { print $1, $2 }' >planned
        diff taken planned
    done
}

@test "predicted memory equals that of dt-train in every layout, to the byte" {
    need_mpi
    make_data 50 300
    local layout settings more
    for layout in "2 zero_stage=1" "2 zero_stage=2" "2 zero_stage=3" "2 pp=2" "2 tp=2" \
        "2 tp=2 sequence_parallel=true" "3 tp=3" "6 tp=3 cp=2" "6 tp=3 pp=2 zero_stage=1" "2 cp=2" "4 cp=4 zero_stage=3" "4 cp=2 tp=2" \
        "4 cp=2 pp=2" "2 sync=diloco local_steps=10" \
        "4 zero_stage=2 shard_ranks=2" "4 zero_stage=3 shard_ranks=2 invariant=true"; do
        read -ra settings <<<"${layout// / --set distributed.}"
        more="--set training.precision=bf16 ${settings[*]:1}"
        mpirun -n ${layout%% *} dt-train --dry-run $small $more data |
            awk '/^memory/ { on = 1; next } on && !/^(total|snapshot|available)/ { print $1, $2 }' >taken
        [ "$(wc -l <taken)" -eq 7 ]
        dt-plan -n ${layout%% *} $small $more |
            awk '/^memory/ { on = 1; next } on && / total / { exit } on { print $1, $2 }' >planned
        diff taken planned || { echo "$layout"; return 1; }
    done
}

@test "tensor parallelism counts its communication buffers" {
    for t in 1 2 3 4; do
        dt-plan $small --set distributed.tp=$t --json >sliced
        jq -e ".memory.weights == $((t > 1 ? (t + 1) << 20 : 0))" sliced
    done
    dt-plan $small --set model.hidden_size=512 --set distributed.tp=2 --json | jq -e '.memory.weights == 3 * 1048576'
}

@test "the largest tensor-parallel rank decides whether a layout fits" {
    uneven="$small --set distributed.tp=3"
    dt-plan $uneven --json >plan.json
    # one more head: four matrices of 16 x 64 in each of 4 layers, 16 bytes per element
    jq -e '.memory.largest_slice > .memory.total + 4 * 4 * 16 * 64 * 16' plan.json
    most=$(jq .memory.largest_slice plan.json)
    dt-plan $uneven | grep -qE "^  largest rank +$most "
    dt-plan $uneven --json --machine device.reserved=0 --machine "device.memory=$(jq -n "$most / 1e9")" |
        jq -e .memory.fits
    dt-plan $uneven --json --machine device.reserved=0 --machine "device.memory=$(jq -n "($most - 1) / 1e9")" |
        jq -e '.memory.fits | not'
    dt-plan $small --set distributed.tp=2 >even
    refute grep 'largest rank' even
    run dt-plan $small --set distributed.tp=5
    assert_one_line_error dt-plan
    [[ "$output" == *"the model cannot be cut into 5 slices: num_heads is 4" ]]
}

@test "a layout that does not fit names stage, bytes and largest part" {
    run dt-plan $small --machine device.memory=0.005 --machine device.reserved=0
    [ "$status" -eq 0 ]
    total=$(awk '/^memory/ { on = 1 } on && $1 == "total" { print $2; exit }' <<<"$output")
    [[ "$output" == *"does not fit     stage 0 exceeds device memory by $((total - 5000000)) bytes"* ]]
    [[ "$output" == *"the largest part is moments"* ]]
    run dt-plan $small --json --machine device.memory=0.005 --machine device.reserved=0
    [[ "$output" == *'"fits":false'* ]]
}

@test "reports fit into 80 columns" {
    dt-plan $small -n 8 --set distributed.pp=2 --set distributed.tp=2 >out
    dt-plan $small --search 8 >>out
    dt-plan --validate >>out
    run awk 'length > 80 || / $/' out
    [ -z "$output" ]
}

@test "published and predicted values are aligned, without exponents" {
    dt-plan --validate >out
    awk '/%$/ && (length != 80 || /e\+/) { print; bad = 1 } END { exit bad }' out
}

@test "an output that cannot be written is an error, short or long" {
    for mode in --validate "--validate --json" "$small" "$small --json" "$small --search 8"; do
        run sh -c "dt-plan $(echo $mode) >/dev/full"
        assert_one_line_error dt-plan
    done
}

@test "too few micro-batches name the setting that raises them" {
    run dt-plan $small -n 16
    assert_one_line_error dt-plan
    [[ "$output" == *"training.gradient_accumulation_steps is less than dp"* ]]
}

@test "--json holds the values of the table" {
    need_python json
    dt-plan $small -n 8 --set distributed.pp=2 --set distributed.tp=2 --json >plan.json
    "$PYTHON" - <<'END'
import json
p = json.load(open("plan.json"))
assert p["layout"]["dp"] == 2 and p["layout"]["micro_batches"] == 4, p["layout"]
m = p["memory"]
assert m["total"] == sum(m[k] for k in ("parameters", "weights", "gradients", "moments", "average",
                                        "scratch", "activations", "sampler"))
t = p["traffic"]
assert t["total"] == t["data"] + t["context"] + t["tensor"] + t["pipeline"] and t["pipeline"] > 0
s = p["step"]
whole = s["computing"] + s["tensor"] + s["pipeline_wait"] + s["data_wait"] + s["update"]
assert abs(whole - s["seconds"]) < 1e-9, s
END
}

@test "ranks can share devices" {
    run dt-plan $small --cluster cpu-box -n 4
    assert_one_line_error dt-plan
    [[ "$output" == *"has 2 ranks, but 4 are needed: raise cluster.nodes, or device.ranks to put several ranks on a device" ]]
    run dt-plan $small --cluster cpu-box --search 4
    assert_one_line_error dt-plan
    dt-plan $small --cluster cpu-box -n 4 --machine device.ranks=2 >out
    grep -q '^cluster  *cpu-box, 4 of 4 ranks on shared devices ' out
    dt-plan $small --cluster cpu-box --search 4 --machine device.ranks=2 | grep -q ' simulated$'
}

@test "traffic is predicted for every sync and compress, and the report says that time is not" {
    dt-plan $small -n 2 --json >all
    dt-plan $small -n 2 --json --set distributed.compress=bf16 >bf16
    dt-plan $small -n 2 --json --set distributed.sync=diloco --set distributed.local_steps=10 >diloco
    # half of each element; parameters and two moments in fp32, every 10 steps
    jq -es 'map(.traffic.data) | .[0] / 2 == .[1] and (.[0] * 3 / 10 - .[2] | fabs) < 1' all bf16 diloco
    local -a nccl=(--set distributed.backend=nccl --set distributed.collectives=nccl_bf16)
    dt-plan $small -n 2 --json "${nccl[@]}" >nccl
    jq -es '.[0] == .[1]' <(jq .traffic.data bf16) <(jq .traffic.data nccl)
    # ZeRO: gradients in 2 bytes, weights in 4
    dt-plan $small -n 2 --json --set distributed.zero_stage=2 >all
    dt-plan $small -n 2 --json "${nccl[@]}" --set distributed.zero_stage=2 >nccl
    jq -es '.[0] * 6 / 8 == .[1]' <(jq .traffic.data all) <(jq .traffic.data nccl)
    [ "$(jq -c .step.not_timed all bf16 diloco | paste -sd ' ')" = \
        '[] ["distributed.compress"] ["distributed.sync"]' ]
    dt-plan $small -n 2 >plain
    refute grep '^not timed ' plain
    for more in compress=topk "sync=local_sgd --set distributed.local_steps=10" sync=parameter_server; do
        dt-plan $small -n 2 --set distributed.$more >out
        grep -q '^not timed  *distributed.sync and distributed.compress: predicted as allreduce$' out
        dt-plan $small --search 2 --set distributed.$more | grep -q '^not timed '
    done
}

@test "--search lists the fastest layouts first, and why others are rejected" {
    run dt-plan $small --search 8 --best 4
    [ "$status" -eq 0 ]
    [[ "$output" == *"tok/s is that of one device"* ]]
    [ "$(grep -cE '^( +[0-9]+){5} +[0-3] ' <<<"$output")" -eq 4 ]
    awk '/^( +[0-9]+){5} +[0-3] / { if ($(NF-2) < last) exit 1; last = $(NF-2) }' \
        <<<"$output"
    [[ "$output" == *"tp leaves a rank without a head, channel or token, or is above 256"* ]]
    run dt-plan $small --search 6
    [[ "$output" == *"tp does not divide the attention heads"* ]]
    run dt-plan $small --search 8 --set distributed.compress=bf16
    [ "$status" -eq 0 ]
    [[ "$output" == *"gradient compression does not support ZeRO"* ]]
    run dt-plan $small --search 8 --machine device.memory=0.001 --machine device.reserved=0
    [[ "$output" == *"no layout fits"*"needs more memory than a device has"*"GiB too large"* ]]
}

# kept CONDITION SETTING...: a search with the settings finds only layouts that meet CONDITION.
kept() {
    local is=$1
    shift
    dt-plan $small --search 8 --best 50 --json "${@/#/--set=}" >kept.json
    jq -es ".[0].best | length > 1 and all(.[]; .layout.$is)" kept.json
}

@test "--search keeps the settings of --set fixed, and ignores those of a file" {
    kept 'pp == 2' distributed.pp=2
    kept 'cp == 4' distributed.cp=4
    kept 'tp == 2' distributed.tp=2
    kept 'zero_stage == 2' distributed.zero_stage=2
    kept 'zero_stage == 2' fsdp.sharding_strategy=SHARD_GRAD_OP # its alias
    kept 'shard_ranks == 2' distributed.shard_ranks=2
    kept 'schedule == "afab"' distributed.pp=2 distributed.schedule=afab
    kept 'virtual_stages == 2' distributed.virtual_stages=2
    kept 'recompute == "full"' training.recompute=full
    kept 'recompute == "full"' model.gradient_checkpointing=true
    printf 'distributed:\n  tp: 3\n  zero_stage: 2\n' >own.yaml
    dt-plan $small --search 8 >any
    dt-plan -c own.yaml $small --search 8 | diff any -
    for none in pp=99 shard_ranks=3 tp=3; do
        run dt-plan $small --search 8 --set distributed.$none
        assert_one_line_error dt-plan
        [[ "$output" == *"no layout of a search on 8 devices has the settings of --set" ]]
    done
}

@test "messages name the setting, and have correct singulars" {
    dt-plan $small --search 8 --set distributed.sync=diloco --set distributed.local_steps=10 >local
    grep -q 'local SGD does not support cp above 1' local
    refute grep invariant local
    dt-plan $small --search 8 --set distributed.invariant=true | grep -q 'distributed.invariant with cp above 1 needs distributed.sequence_parts'
    dt-plan $small --search 8 | grep -q 'interleaving needs micro-batches in multiples of pp'
    dt-plan $small --search 1 | grep -q ' layouts on 1 device of '
    run dt-plan $small -n 16 --set training.gradient_accumulation_steps=16
    [[ "$output" == "dt-plan: 8xh100 has 8 ranks, but 16 are needed: "* ]]
    run dt-plan $small -n 4 --set training.gradient_accumulation_steps=7 --set distributed.pp=2 \
        --set distributed.schedule=interleaved --set distributed.virtual_stages=2
    [[ "$output" == *"micro-batches for each data-parallel rank, and there are 3" ]]
    run dt-plan $small --cluster nosuch
    assert_one_line_error dt-plan
    [[ "$output" == "dt-plan: 'nosuch' is neither a file nor a cluster in "*": 512xh200 8xa100 8xh100 alps-gh200 cpu-box grand-teton" ]]
}

@test "--trace writes a timeline whose compute spans do not overlap" {
    need_python json
    dt-plan $small --set distributed.pp=4 --trace t.json >/dev/null
    "$PYTHON" - <<'END'
import json
events = [e for e in json.load(open("t.json"))["traceEvents"] if e["ph"] == "X"]
for stage in range(4):
    lane = sorted((e["ts"], e["dur"], e["name"]) for e in events if e["pid"] == stage and e["tid"] == 0)
    assert [n for _, _, n in lane].count("forward") == 8, lane
    for a, b in zip(lane, lane[1:]):
        assert a[0] + a[1] <= b[0] + 2e-3, (a, b)
END
    run dt-plan $small --trace /dev/full
    assert_one_line_error dt-plan
    run dt-plan $small --trace missing/t.json
    assert_one_line_error dt-plan
}

@test "--measured replaces predicted compute by measured compute" {
    cat >one.json <<'END'
{"parameters": 266112, "tokens": 64, "forward_backward_s": 2.0, "update_s": 0.5}
END
    dt-plan $small --measured one.json --set training.gradient_accumulation_steps=1 >out
    grep -qE '^  computing +2000.000 ms' out
    grep -qE '^  update +500.000 ms' out
    run dt-plan $small --measured one.json --set model.num_layers=5
    assert_one_line_error dt-plan
    [[ "$output" == *"one.json: measured with 266112 parameters, but the settings have"* ]]
    for bad in '{}' '[]' 'x' '{"parameters": 266112, "tokens": 64, "forward_backward_s": 0, "update_s": 1}'; do
        echo "$bad" >one.json
        run dt-plan $small --measured one.json
        assert_one_line_error dt-plan
    done
}

@test "stragglers and failures depend on the seed" {
    dt-plan $small -n 8 --stragglers 0.1 --seed 1 >a
    dt-plan $small -n 8 --stragglers 0.1 --seed 1 >b
    dt-plan $small -n 8 --stragglers 0.1 --seed 2 >c
    diff a b
    refute diff a c >/dev/null
    grep -q '^failures ' a
    grep -qE '^checkpoints +optimal every .* \(Young ' a
}

@test "every shipped cluster can be read" {
    for file in "$ROOT"/share/clusters/*.yaml; do
        dt-plan $small --cluster "$file" >/dev/null
        name="$(basename "$file" .yaml)"
        dt-plan $small --cluster "$name" | grep -q "^cluster  *$name, "
    done
}

@test "predictions of published figures are within 20%, or say why not" {
    need_python json
    dt-plan --validate --json >v.json
    "$PYTHON" - <<'END'
import json
rows = json.load(open("v.json"))
assert len(rows) > 40
assert all(r["source"] for r in rows)
far = [r["name"] for r in rows if abs(r["error"]) > 0.2 and not r["explained"]]
assert not far, far
memory = [r for r in rows if r["metric"].endswith("_gb")]
assert memory and all(abs(r["error"]) < 0.05 for r in memory), memory
END
}

@test "a figure is compared with the prediction for its cluster and settings" {
    mkdir clusters configs
    printf 'model:\n  vocab_size: 1000\n' >configs/m.yaml
    line='{"table":"T","name":"n","metric":"memory_gb","source":"s","cluster":"8xh100","config":"m.yaml"'
    echo "$line,\"set\":[\"training.batch_size=1\"],\"published\":1.5}" >clusters/f.jsonl
    run dt-plan --validate clusters/f.jsonl
    [ "$status" -eq 0 ]
    [[ "${lines[2]}" == "  n "*" 1.5 "*% ]]
    for bad in '{}' 'x' '[]' "$line}" "$line,\"published\":0}" "$line,\"published\":1,\"set\":[1]}" \
        "${line/memory_gb/speed},\"published\":1}" "${line/memory_gb/efficiency},\"published\":1}" \
        "${line/m.yaml/n.yaml},\"published\":1}" "$line,\"published\":1,\"devices\":-1}"; do
        echo "$bad" >clusters/f.jsonl
        run dt-plan --validate clusters/f.jsonl
        assert_one_line_error dt-plan
        [[ "$output" == *"clusters/f.jsonl:1"* ]]
    done
    : >clusters/f.jsonl
    run dt-plan --validate clusters/f.jsonl
    assert_one_line_error dt-plan
}

@test "context-parallel ranks may exchange more than 1 GiB of a layer" {
    wide="$small --set distributed.cp=2 --set training.batch_size=1048576 --set training.sequence_length=32"
    dt-plan $wide --json | jq -e '.layout.cp == 2'
}

@test "invalid layouts are refused with a reason" {
    for wrong in "-n 3 --set distributed.pp=2" "--set distributed.tp=5" "--set distributed.cp=3" "--set distributed.pp=5" \
        "-n 16" "--set distributed.zero_stage=4" "--set distributed.pp=x" \
        "--set distributed.virtual_stages=2" "--set model.num_heads=5" "--cluster none" \
        "--machine device.memory=-1" "--machine device.memory=1 --machine device.reserved=1" \
        "-n 8 --machine cluster.devices=4" "--search 16" "--measured none.json"; do
        run dt-plan $small $wrong
        echo "$wrong: $output"
        assert_one_line_error dt-plan
    done
    run dt-plan
    assert_one_line_error dt-plan
    [[ "$output" == *"model.vocab_size is needed"* ]]
    for wrong in "x" "--validate a b" "-n 2 --search 2" "--search 2 --trace t" "--stragglers -1"; do
        run dt-plan $small $wrong
        [ "$status" -eq 2 ]
    done
    run bash -c "dt-plan $(tr -d '\n' <<<"$small") >/dev/full"
    [ "$status" -eq 1 ]
}

@test "a million micro-batches and thousands of ranks take seconds, in every schedule" {
    million="$small --set training.gradient_accumulation_steps=1048576 --machine cluster.nodes=4096"
    for more in "--set distributed.pp=4" "--set distributed.pp=4 --set distributed.schedule=afab" \
        "--set distributed.pp=4 -n 16384 --stragglers 0.05" \
        "--set distributed.pp=2 --set distributed.zero_stage=3 -n 4096 --stragglers 0.05" \
        "--set distributed.pp=2 --set distributed.schedule=interleaved --set distributed.virtual_stages=2"; do
        in_time 60 dt-plan $million $more >out
        grep -q '^speed ' out
    done
    # after the warm-up, twice the micro-batches take twice the time
    seconds=$(dt-plan $million --set distributed.pp=4 --json | jq .step.seconds)
    half=$(dt-plan $million --set distributed.pp=4 --json \
        --set training.gradient_accumulation_steps=524288 | jq .step.seconds)
    jq -en "$seconds / $half | . > 1.9999 and . < 2.0001"
    in_time 100 dt-plan $million --search 1024 | grep -q ' simulated$'
    in_time 60 dt-plan -c "$ROOT/share/configs/llama-8b.yaml" --set model.vocab_size=128256 \
        --set model.num_layers=8 --set training.batch_size=1 \
        --set training.gradient_accumulation_steps=131072 \
        --machine cluster.nodes=16384 --search 131072 | grep -q ' simulated$'
}

@test "a cluster that fails all the time has goodput 0, and the simulation ends" {
    in_time 20 dt-plan $small --machine reliability.device_mtbf=1e-4 >out
    grep -qE '^goodput +0.00% expected' out
}

@test "a long search shows its progress on a terminal" {
    need_terminal
    run script -qec "dt-plan $(echo $small) --machine cluster.nodes=64 --search 512 \
        --set training.gradient_accumulation_steps=65536" /dev/null
    [ "$status" -eq 0 ]
    [[ "$output" == *" layouts tried, "* ]]
}

@test "a timeline larger than its limit is refused" {
    run dt-plan $small --set training.gradient_accumulation_steps=1048576 --trace t.json
    assert_one_line_error dt-plan
    [[ "$output" == *"--trace t.json: 2.1e+06 spans exceed"*"use fewer than 1048576 micro-batches" ]]
    [ ! -e t.json ]
}

@test "an option of another mode is refused" {
    for wrong in "--best 3" "--search 2 -n 2" "--search 2 --trace t" "--validate --json --set a=b" \
        "--validate --search 2" "--validate -c x"; do
        run dt-plan $wrong
        [ "$status" -eq 2 ] || { echo "$wrong: $status: $output"; return 1; }
        [ "${#lines[@]}" -eq 2 ]
    done
    run dt-plan $small --best 3
    [ "${lines[0]}" = "dt-plan: --best goes with --search" ]
}

@test "required keys of a cluster are named" {
    sed '/^#/d; s/ *#.*//' "$ROOT/share/clusters/8xh100.yaml" >whole.yaml
    for key in nodes devices memory tflops_16 tflops_32 bandwidth inside between; do
        sed "/^  $key:/d" whole.yaml >cut.yaml
        run dt-plan $small --cluster cut.yaml
        assert_one_line_error dt-plan
        [[ "$output" == "dt-plan: cut.yaml: "*".$key is needed" ]]
    done
    : >empty.yaml
    run dt-plan $small --cluster empty.yaml
    assert_one_line_error dt-plan
    [ "$output" = "dt-plan: empty.yaml: cluster.nodes is needed" ]
    dt-plan $small --cluster cut.yaml --machine link.between=1 >out # supplies the missing key
}

@test "the largest settings are planned in little memory" {
    case "$(ldd "$(command -v dt-plan)")" in *asan*) skip "AddressSanitizer takes all addresses" ;; esac
    ulimit -v 4000000
    most="--set model.vocab_size=16777216 --set model.hidden_size=131072 --set model.num_heads=1024
        --set model.max_seq_len=1048576 --set training.batch_size=4096
        --set training.gradient_accumulation_steps=1048576 --machine cluster.nodes=131072"
    for more in "" "-n 4 --set distributed.tp=4" "-n 131072" "-n 131072 --set distributed.zero_stage=3" \
        "-n 8 --set distributed.pp=8 --set model.num_layers=1024 --set training.batch_size=1"; do
        dt-plan $most $more >out
        grep -q '^does not fit' out
    done
    run dt-plan $most --set training.batch_size=1048576
    assert_one_line_error dt-plan
    [[ "$output" == *"the activations of a micro-batch overflow 64 bits" ]]
    dt-plan $most --search 8 >out
    grep -q '^  no layout fits' out
}

@test "a model in place of settings is refused by what it is" {
    printf 'GGUF\3\0\0\0' >model.gguf
    run dt-plan -c model.gguf
    assert_one_line_error dt-plan
    [[ "$output" == "dt-plan: model.gguf: is a GGUF file, a model, and not settings in YAML"* ]]
}

@test "asynchronous updates are not planned" {
    run dt-plan --cluster cpu-box -n 2 $small --set distributed.sync=async
    [ "$status" -eq 1 ]
    grep -qF "distributed.sync async is not planned" <<<"$output"
}
