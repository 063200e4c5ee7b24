# SPDX-License-Identifier: MIT
# Norms of each tensor, and their heat maps.
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

@test "dt-plot inside draws layers over steps" {
    dt-plot inside "$run" >map
    [ "$(grep -c '^layer [012]  *|....|$' map)" -eq 3 ]
    grep -q '^norm of the update / norm of the parameters: .* steps 1 to 12$' map
    dt-plot inside "$run" -v gradient_norm | grep -q '^L2 norm of the gradients: '
    run -1 dt-plot inside "$run" -v loss
    [[ $output == *"'loss' is not measured of tensors: choose parameter_norm,"* ]]
    mkdir none
    run -1 dt-plot inside none
    [[ $output == *"run 'none' has no tensors.jsonl: train with training.tensor_metrics=true" ]]
    command -v gnuplot >/dev/null || skip "no gnuplot"
    dt-plot inside -o map.svg "$run"
    grep -q 'layer 2' map.svg
}
