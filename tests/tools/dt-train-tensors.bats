# SPDX-License-Identifier: MIT
# Norms of each tensor, metrics of each layer, and their heat maps.
load ../helper

small=(-q -j 1 --set model.name=llama --set model.hidden_size=32 --set model.num_layers=3
    --set model.num_heads=2 --set model.max_seq_len=32 --set training.batch_size=2
    --set training.gradient_accumulation_steps=2 --set training.warmup_steps=2
    --set training.max_steps=12 --set training.eval_interval=0 --set training.log_interval=4
    --set training.save_interval=6 --set distributed.invariant=true)

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    make_data 300 300
    dt-train "${small[@]}" --set training.tensor_metrics=true -o run data >hash
}

setup() {
    cd "$T"
    data=$BATS_FILE_TMPDIR/data run=$BATS_FILE_TMPDIR/run
}

@test "the squares of the norms of tensors sum to that of the gradients, and leave the bits as they are" {
    dt-train "${small[@]}" -o plain "$data" | cmp - "$BATS_FILE_TMPDIR/hash"
    refute test -e plain/tensors.jsonl
    python3 - "$run" <<'EOF'
import json, math, sys
lines = [json.loads(line) for line in open(sys.argv[1] + '/tensors.jsonl')]
steps = {m['step']: m for m in map(json.loads, open(sys.argv[1] + '/metrics.jsonl')) if 'loss' in m}
assert sorted({line['step'] for line in lines}) == sorted(steps) == [1, 4, 8, 12]
for step, metrics in steps.items():
    of = [line for line in lines if line['step'] == step]
    total = math.sqrt(sum(line['gradient_norm'] ** 2 for line in of))
    assert math.isclose(total, metrics['grad_norm'], rel_tol=1e-6), (total, metrics)
    for line in of:
        assert math.isclose(line['update_ratio'], line['update_norm'] / line['parameter_norm'], rel_tol=1e-6)
        # AdamW's first update is the learning rate in each element, of which decay takes little.
        assert 0 < line['update_norm'] < 10 * metrics['lr'] * 300 * 32
assert any(line['tensor'] == 'model.layers.2.mlp.up_proj.weight' for line in lines)
EOF
}

@test "a resumed run, and two ranks with shards, have the same norms" {
    cp -r "$run" parted
    rm -r parted/step-00000012 parted/latest
    dt-train "${small[@]}" --set training.tensor_metrics=true -o parted "$data"
    cmp parted/tensors.jsonl "$run/tensors.jsonl"
    for rank in 0 1; do
        RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank timeout 60 dt-train "${small[@]}" \
            --set training.tensor_metrics=true --set distributed.zero_stage=2 \
            --set distributed.rendezvous="$T/meet" -o two "$data" &
    done
    wait
    python3 - "$run" two <<'EOF'
import json, math, sys
one, two = ([json.loads(line) for line in open(run + '/tensors.jsonl')] for run in sys.argv[1:])
assert len(one) == len(two)
for a, b in zip(one, two):
    assert (a['step'], a['tensor']) == (b['step'], b['tensor'])
    for name in ('parameter_norm', 'gradient_norm', 'update_norm'):
        assert math.isclose(a[name], b[name], rel_tol=1e-6), (a, b)
EOF
}

layers=(--set training.layer_metrics=activation_rms,attention_entropy,dead_units,logits)

# ranks N DIR OPTION...: a run of N ranks.
ranks() {
    local size=$1 dir=$2 pids=() rank
    shift 2
    for ((rank = 0; rank < size; rank++)); do
        RANK=$rank WORLD_SIZE=$size LOCAL_RANK=$rank timeout 60 dt-train "${small[@]}" \
            --set distributed.rendezvous="$T/meet-$dir" -o "$dir" "$@" "$data" >/dev/null &
        pids+=($!)
    done
    for rank in "${pids[@]}"; do wait "$rank"; done
}

@test "metrics of layers leave the bits as they are, and are those of every parallel layout" {
    dt-train "${small[@]}" "${layers[@]}" -o one "$data" | cmp - "$BATS_FILE_TMPDIR/hash"
    ranks 2 dp "${layers[@]}" --set distributed.zero_stage=3
    ranks 2 tp "${layers[@]}" --set distributed.tp=2
    ranks 2 pp "${layers[@]}" --set distributed.pp=2
    ranks 2 cp "${layers[@]}" --set distributed.cp=2 --set distributed.sequence_parts=4
    dt-train "${small[@]}" "${layers[@]}" --set training.recompute=full -o full "$data"
    python3 - one dp tp pp cp full <<'EOF'
import json, math, sys
def close(a, b):
    if isinstance(a, list):
        return len(a) == len(b) and all(map(close, a, b))
    return math.isclose(a, b, rel_tol=2e-6, abs_tol=1e-12)
def read(run):
    layers = [json.loads(line) for line in open(run + '/tensors.jsonl')]
    steps = [m for m in map(json.loads, open(run + '/metrics.jsonl')) if 'loss' in m]
    return layers + [{n: m[n] for n in ('step', 'logit_rms', 'logit_max')} for m in steps]
one = read(sys.argv[1])
assert [(m['step'], m['layer']) for m in one if 'layer' in m] == [
    (s, l) for s in (1, 4, 8, 12) for l in range(4)]
assert all(len(m['head_entropies']) == 2 for m in one if m.get('layer', 3) < 3)
assert math.isclose(one[0]['attention_entropy'], sum(one[0]['head_entropies']) / 2, rel_tol=1e-6)
for run in sys.argv[2:]:
    for a, b in zip(one, read(run), strict=True):
        assert a.keys() == b.keys() and all(close(a[n], b[n]) for n in a), (run, a, b)
EOF
}

@test "a run that goes on without norms has none of the steps that it does again" {
    cp -r "$run" shorter
    rm -r shorter/step-00000012 shorter/latest
    dt-train "${small[@]}" --set training.max_steps=8 -o shorter "$data"
    [ "$(jq .step shorter/tensors.jsonl | sort -u | xargs)" = "1 4" ]
    cmp <(jq -c 'select(.step < 6)' "$run/tensors.jsonl") <(jq -c . shorter/tensors.jsonl)
}

@test "logits of more than a million ids are measured" {
    timeout -k 1 60 dt-train "${small[@]}" --set model.name=gpt2 --set model.hidden_size=2 --set model.max_seq_len=4 \
        --set model.vocab_size=1048577 --set training.batch_size=1 --set training.max_steps=1 \
        --set training.warmup_steps=0 --set training.layer_metrics=logits -o wide "$data"
    jq -e '.logit_rms > 0 and .logit_max > .logit_rms' wide/metrics.jsonl
}

@test "the gradient noise is that of the norms of single micro-batches, on one rank and on two" {
    small+=(--set distributed.invariant=false --set training.max_steps=2
        --set training.log_interval=1 --set training.warmup_steps=0 --set training.learning_rate=0)
    noise=(--set training.layer_metrics=gradient_noise)
    dt-train "${small[@]}" "${noise[@]}" -o one "$data"
    ranks 2 two "${noise[@]}"
    ranks 2 sharded "${noise[@]}" --set distributed.zero_stage=2
    ranks 2 tp "${noise[@]}" --set distributed.tp=2
    # Nothing is learned: its steps are the micro-batches of the first steps of the others.
    dt-train "${small[@]}" --set training.gradient_accumulation_steps=1 -o single "$data"
    python3 - <<'EOF'
import json, math
def steps(run):
    return [m for m in map(json.loads, open(run + '/metrics.jsonl')) if 'loss' in m]
first, second = (m['grad_norm'] ** 2 for m in steps('single'))
both = (first + second) / 2
for run, one in (('one', first), ('two', both), ('sharded', both), ('tp', first)):
    step = steps(run)[0]
    whole = step['grad_norm'] ** 2
    assert math.isclose(step['gradient_signal'], 2 * whole - one, rel_tol=1e-5), (run, step)
    assert math.isclose(step['gradient_noise'], (one - whole) * 2 * 64, rel_tol=1e-5), (run, step)
EOF
}

@test "what cannot be measured of layers and tensors is refused by name" {
    refused() { # METRIC TEXT OPTION...
        run -1 dt-train "${small[@]}" --set training.layer_metrics="$1" "${@:3}" -o no "$data"
        [[ $output == *"training.layer_metrics"*"$2"* ]] || { echo "$output" && return 1; }
    }
    refused entropy "'entropy' is not one of activation_rms,"
    refused logits, "ends with a comma"
    refused logits "not in minutes" --set training.log_interval='1 minutes'
    refused gradient_noise gradient_accumulation_steps --set training.gradient_accumulation_steps=1
    refused gradient_noise tie_word_embeddings --set model.tie_word_embeddings=true
    refused gradient_noise "distributed.cp 1" --set distributed.cp=2 --set distributed.sequence_parts=4
    refused logits,attention_entropy "attention_entropy needs model.attention_softcap 0" \
        --set model.name=gemma2 --set model.num_layers=2 --set model.attention_softcap=50
    run -1 dt-train "${small[@]}" --set distributed.invariant=false --set training.save_interval=0 \
        --set distributed.sync=local_sgd --set training.tensor_metrics=true -o local "$data"
    [[ $output == *"training.tensor_metrics true needs distributed.sync allreduce, parameter_server or async"* ]]
}

@test "dt-plot inside draws metrics of layers" {
    dt-train "${small[@]}" "${layers[@]}" -o run "$data"
    [ "$(dt-plot inside run -v input_rms | grep -c '^layer [0123]  *|....|$')" -eq 4 ]
    dt-plot inside run -v attention_entropy | grep -q '^mean entropy of attention, in nats: 0 . to .* linear;'
    [ "$(dt-plot inside run -v head_entropies | grep -c '^layer [012] head [01]  *|')" -eq 6 ]
    run -1 dt-plot inside run
    [[ $output == *"has no update_ratio: name another --value, or train with training.tensor_metrics=true" ]]
    command -v gnuplot >/dev/null || skip "no gnuplot"
    dt-plot inside -o map.svg run -v dead_units
    grep -q 'layer 2' map.svg
    grep -q '>dead units of the MLP (never activated), fraction<' map.svg
    dt-plot inside -o map.svg run -v input_rms
    grep -q ', log scale<' map.svg
}

@test "dt-plot inside draws layers over steps" {
    dt-plot inside "$run" >map
    [ "$(grep -c '^layer [012]  *|....|$' map)" -eq 3 ]
    grep -q '^norm of the update / norm of the parameters: .* steps 1 to 12$' map
    dt-plot inside "$run" -v gradient_norm | grep -q '^L2 norm of the gradients: '
    run -1 dt-plot inside "$run" -v loss
    [[ $output == *"'loss' is not measured of layers: choose update_ratio, parameter_norm,"* ]]
    mkdir none diverged
    printf '{"step":%d,"tensor":"a","parameter_norm":%s,"update_norm":%s}\n' 1 2 1 2 null null >diverged/tensors.jsonl
    [ "$(dt-plot inside diverged | head -n 1)" = 'a                    |. |' ]
    run -1 dt-plot inside none
    [[ $output == *"run 'none' has no tensors.jsonl: train with training.tensor_metrics=true" ]]
    command -v gnuplot >/dev/null || skip "no gnuplot"
    dt-plot inside -o map.svg "$run"
    grep -q 'layer 2' map.svg
}
