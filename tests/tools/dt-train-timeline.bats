# SPDX-License-Identifier: MIT
# The timeline of a training step.
load ../helper

small=(-q -j 1 --set model.name=llama --set model.hidden_size=64 --set model.num_layers=3
    --set model.num_heads=2 --set model.max_seq_len=64 --set training.batch_size=4
    --set training.gradient_accumulation_steps=2 --set training.warmup_steps=2
    --set training.max_steps=6 --set training.eval_interval=4 --set training.eval_batches=1
    --set training.save_interval=4)

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    make_data 300 300 --split val=0.1
}

setup() {
    cd "$T"
    data=$BATS_FILE_TMPDIR/data
}

# check TRACE FIRST LAST: the steps of a trace, whose phases fill them; layers are in phases and
# operations within steps.
check() {
    python3 - "$@" <<'EOF'
import json, sys
trace = [e for e in json.load(open(sys.argv[1]))['traceEvents'] if e['ph'] == 'X']
of = {c: [e for e in trace if e['cat'] == c] for c in ('step', 'phase', 'layer', 'operation')}
first, last = int(sys.argv[2]), int(sys.argv[3])
assert [e['name'] for e in of['step']] == [f'step {s}' for s in range(first, last + 1)], of['step']
total = sum(e['dur'] for e in of['step'])
assert abs(sum(e['dur'] for e in of['phase']) / total - 1) < 0.03, 'phases do not fill the steps'
def inside(inner, outer):
    return any(o['ts'] - 1 <= inner['ts'] and
               inner['ts'] + inner['dur'] <= o['ts'] + o['dur'] + 1 for o in outer)
assert all(inside(e, of['phase']) for e in of['layer'])
assert all(inside(e, of['step']) for e in of['operation'])
for kind in ('forward', 'backward'):
    names = {e['name'] for e in of['layer'] if e['name'].startswith(kind)}
    assert names == {f'{kind} {layer}' for layer in range(3)}, names
product = next(e for e in of['operation'] if e['name'] == 'matmul')
assert product['args']['operations'] > 0 and product['args']['bytes'] > 0
names = {e['name'].rstrip(' 0123456789') for e in of['phase']}
assert {'load', 'forward', 'backward', 'reduce gradients', 'update', 'log'} <= names, names
assert ('validation' in names) and ('checkpoint' in names)
EOF
}

@test "the phases of a recorded step fill it, and recording changes no bit" {
    dt-train "${small[@]}" -o plain "$data" >plain.hash
    dt-train "${small[@]}" --set training.timeline_steps=3:5 -o run "$data" >hash
    cmp plain.hash hash
    refute test -e plain/timeline-0.json
    check run/timeline-0.json 3 5
    # A resumed run may record other steps.
    rm -r run/step-00000006 run/latest
    dt-train "${small[@]}" --set training.timeline_steps=6 -o run "$data" | cmp - hash
    [ "$(grep -c '"cat":"step"' run/timeline-0.json)" -eq 1 ]
    run -1 dt-train "${small[@]}" --set training.timeline_steps=5:3 -o other "$data"
    [[ $output == *"training.timeline_steps must be a step from 1 on, or two as 5:7, not '5:3'" ]]
}

@test "the phases fill a step that is hashed and measured" {
    dt-train "${small[@]}" --set training.timeline_steps=3:5 --set training.trace_steps=3:5 \
        --set training.log_interval=1 --set training.tensor_metrics=true \
        --set training.layer_metrics=activation_rms,logits -o run "$data"
    check run/timeline-0.json 3 5
    grep -q '"name":"measurements"' run/timeline-0.json
}

@test "steps to record that the run does not reach are named" {
    dt-train "${small[@]}" --set training.timeline_steps=7:9 --set training.trace_steps=8 -o run "$data" 2>err
    [ "$(cat err)" = "dt-train: training.trace_steps 8: the last step is 6, so nothing is recorded
dt-train: training.timeline_steps 7:9: the last step is 6, so nothing is recorded" ]
    dt-train "${small[@]}" --set training.timeline_steps=6:9 -o other "$data" 2>err
    [ ! -s err ]
}

@test "each rank records its steps, with the transfers" {
    for rank in 0 1; do
        RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank timeout 60 dt-train "${small[@]}" \
            --set training.timeline_steps=2:4 --set distributed.rendezvous="$T/meet" -o run "$data" &
    done
    wait
    for rank in 0 1; do
        check run/timeline-$rank.json 2 4
        grep -q '"cat":"transfer","ph":"X","pid":'$rank run/timeline-$rank.json
    done
}

@test "dt-plot draws the timeline and compares it with the plan" {
    dt-train "${small[@]}" --set training.timeline_steps=3:4 -o run "$data"
    dt-plot timeline run/timeline-0.json >drawing
    grep -qE '^rank 0 phase +\|[A-Z.]+\|$' drawing
    dt-plan -c run/latest/trainer/config.yaml --cluster cpu-box --trace planned.json >/dev/null
    dt-plot difference planned.json run/timeline-0.json >table
    grep -qE '^forward +[0-9.]+ +[0-9.]+ +[-+][0-9.]+ +[0-9.]+$' table
    grep -qE '^validation +- +[0-9.]+ ' table
    # Each operation by the plan's rates: as plain arithmetic on the traces has it.
    python3 - <<'EOF'
import collections, json, math
plan, run = (json.load(open(f)) for f in ('planned.json', 'run/timeline-0.json'))
rates, spans = plan['otherData'], [e for e in run['traceEvents'] if e['ph'] == 'X' and e['dur'] > 0]
steps = sum(e['cat'] == 'step' for e in spans)
want = collections.defaultdict(lambda: [0, 0])
for e in spans:
    if e['cat'] == 'operation':
        name, args = e['name'], e.get('args', {'operations': 0, 'bytes': 0})
        rate = rates['attention_flops_per_second' if name.startswith('attention') else 'gemm_flops_per_second']
        want[name][0] += 1e3 / steps * (rates['launch_seconds'] + max(
            args['operations'] / rate, args['bytes'] / rates['bytes_per_second']))
        want[name][1] += e['dur'] / 1e3 / steps
lines = open('table').read().split('milliseconds per step')[0].splitlines()
assert lines[0].startswith('operation, ms per step')
got = {line.split()[0]: [float(x) for x in line.split()[1:3]] for line in lines[1:]}
assert got.keys() == want.keys() and {'matmul', 'attention_backward', 'update'} <= got.keys()
for name, values in got.items():
    assert all(math.isclose(a, b, abs_tol=6e-4) for a, b in zip(values, want[name])), (name, values, want[name])
EOF
    [ "$(tail -n 1 table | cut -d ' ' -f 1)" = step ]
    run -2 dt-plot difference planned.json
    run -2 dt-plot difference -o x.svg planned.json run/timeline-0.json
}
