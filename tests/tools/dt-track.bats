# SPDX-License-Identifier: MIT
load ../helper

setup() {
    cd "$T"
    mkdir -p run/latest/trainer
    awk 'BEGIN {
        print "{\"run\":\"tale\",\"project\":\"lessons\",\"tags\":\"a b\"}"
        for (s = 1; s <= 500; s++) {
            printf "{\"step\":%d,\"tokens\":%d,\"time\":%.3f,\"loss\":%.4f,\"grad_norm\":%s}\n", s, s * 64, s / 10, 9 / s, s == 7 ? "null" : "1.5"
            if (s % 100 == 0)
                printf "{\"step\":%d,\"tokens\":%d,\"time\":%.3f,\"val_loss\":%.4f}\n", s, s * 64, s / 10, 10 / s
        }
    }' >run/metrics.jsonl
    finish 500
    echo '{"step":1}' >nothing
}

# The run has a checkpoint of step $1, of 500.
finish() {
    printf 'training:\n  max_steps: 500\n  learning_rate: 1e-3\n  patience: 0\nmodel:\n  name: gpt2\n' >run/latest/trainer/config.yaml
    echo "{\"step\":$1}" >run/latest/trainer/state.json
}

teardown() {
    [ -z "${HOLDER:-}" ] || kill "$HOLDER" "$SERVER" 2>/dev/null || true
}

need_http() {
    command -v python3 >/dev/null || skip "no python3"
    [ -e "${DT_ENGINES:-$ROOT/build/lib/dt}/http.so" ] || skip "built without libcurl"
}

# Starts a server of kind $1, on the same port as before if there was one; $URL names it.
serve() {
    [ -e port ] || hold_port
    rm -f ready
    python3 "$ROOT/tests/track/faulty-mlflow.py" "$(cat port)" ready store.json "$1" 3>&- >/dev/null 2>&1 &
    SERVER=$!
    await $SERVER test -e ready
    URL=http://127.0.0.1:$(cat port)
}

# More points than $1 have come to the server.
stored() {
    [ -s store.json ] && [ "$(jq '.runs[0].metrics | length' store.json)" -gt "$1" ]
}

once() { python3 "$ROOT/tests/track/exactly-once.py" run/metrics.jsonl store.json; }

# A number of a point in the event file, found by its bytes: [tag] as it is written.
count_tag() {
    LC_ALL=C grep -aoE "$1" run/tb/* | wc -l
}

@test "an event file has every point once, though dt-track runs twice and was cut off" {
    dt-track -t run/tb run >out
    [ "$(cat out | head -n 1)" = "run          finished, step 500" ]
    [ "$(count_tag val_loss)" -eq 5 ]
    [ "$(count_tag grad_norm)" -eq 499 ]
    [ "$(count_tag _hparams_/session_start_info)" -eq 1 ]
    file=$(ls run/tb/*tfevents*)
    cp "$file" whole
    dt-track -q -t run/tb run
    cmp whole "$file"
    head -c 9000 whole >"$file"
    dt-track -q -t run/tb run
    [ "$(ls run/tb | wc -l)" -eq 1 ]
    cmp <(head -c 9000 whole) <(head -c 9000 "$file")
    [ "$(count_tag val_loss)" -eq 5 ]
    [ "$(count_tag grad_norm)" -eq 499 ]
}

@test "TensorBoard's reader reads every event, hyperparameters and texts" {
    need_python tensorboard
    echo 'Once upon a time' >story.txt
    dt-track -q -t run/tb --text story.txt run
    run "$PYTHON" "$ROOT/tests/oracles/tensorboard_oracle.py" run/metrics.jsonl run/tb story.txt
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "a server that answers is told all, once, with settings, files and state" {
    need_http
    serve well
    echo sample >sample.txt
    dt-track -m "$URL/" --artifact sample.txt run >out
    [ "$(once)" = FINISHED ]
    grep -q '^mlflow       run0$' out
    jq -e '.experiments == ["lessons"]' store.json
    jq -e '.runs[0].info.run_name == "tale"' store.json
    jq -e '.runs[0].params | index({"key":"training.learning_rate","value":"1e-3"})' store.json
    jq -e '.runs[0].tags | index({"key":"tags","value":"a b"})' store.json
    jq -e '.runs[0].files["sample.txt"] == "sample\n"' store.json
    jq -rj '.runs[0].files["metrics.jsonl"]' store.json | cmp - run/metrics.jsonl
    # the last point is 50 s after the first moment
    jq -e '[.runs[0] | (.metrics[] | select(.key == "loss" and .step == 500) | .timestamp) - .info.start_time] == [50000]' store.json
}

@test "a server that fails, and loses answers, has every point exactly once" {
    need_http
    serve badly
    dt-track -q -m "$URL" --interval 0.05 run
    [ "$(once)" = FINISHED ]
    dt-track -q -m "$URL" --interval 0.05 run
    [ "$(once)" = FINISHED ]
}

@test "a server killed in the middle and started again has every point exactly once" {
    need_http
    head -n 300 run/metrics.jsonl >part
    mv run/metrics.jsonl all
    cp part run/metrics.jsonl
    finish 100
    serve well
    dt-track -q -m "$URL" --interval 0.05 --patience 900 run &
    tracker=$!
    await $tracker stored 1000
    kill -9 "$SERVER"
    tail -n +301 all >>run/metrics.jsonl
    sleep 0.5
    serve well
    finish 500
    wait "$tracker"
    [ "$(once)" = FINISHED ]
    [ "$(jq '.requests' store.json)" -lt 60 ]
}

@test "dt-track killed in the middle goes on where the server is" {
    need_http
    serve badly
    finish 100
    dt-track -q -m "$URL" --interval 0.05 --patience 900 run &
    tracker=$!
    await $tracker stored 0
    kill -9 "$tracker"
    wait "$tracker" || true
    finish 500
    rm -r run/track/ # not even its memory is needed: but for the run
    mkdir run/track
    jq '{start: (.runs[0].info.start_time / 1000), key: (.runs[0].tags[] | select(.key == "dt.key") | .value), mlflow: {}}' store.json >run/track/state.json
    dt-track -q -m "$URL" --interval 0.05 run
    [ "$(once)" = FINISHED ]
}

@test "a server that is away at the end is an error, and the next call goes on" {
    need_http
    serve well
    kill "$SERVER"
    wait "$SERVER" || true
    run dt-track -m "$URL" --interval 0.05 --give-up 0.3 run
    [ "$status" -eq 1 ]
    [[ "${lines[0]}" == "dt-track: $URL/"*"; what is new waits in 'run/metrics.jsonl'" ]]
    [[ "${lines[1]}" == "dt-track: $URL does not answer; nothing is lost: the same command goes on" ]]
    serve well
    dt-track -q -m "$URL" run
    [ "$(once)" = FINISHED ]
}

@test "what a server refuses for good is one line, and event files go on" {
    need_http
    serve refusing
    run dt-track -q -m "$URL" -t run/tb run
    assert_one_line_error dt-track
    [[ "$output" == *"/runs/log-batch: status 400: not today" ]]
    [ "$(count_tag val_loss)" -eq 5 ]
}

@test "what a server says of its runs that makes no sense is passed over" {
    need_http
    serve odd
    dt-track -q -m "$URL" run
    [ "$(once)" = FINISHED ]
}

@test "a run that was stopped is KILLED, a broken one FAILED, and a resumed one goes on" {
    need_http
    serve well
    finish 500
    sed -i 's/max_steps: 500/max_steps: 900/' run/latest/trainer/config.yaml
    dt-track -q -m "$URL" --patience 0 run
    [ "$(once)" = KILLED ]
    echo '{"step":501,"time":51,"loss":1}' >>run/metrics.jsonl
    dt-track -q -m "$URL" --patience 0 run
    [ "$(once)" = FAILED ]
    # from the checkpoint of step 400: lines behind it come again, in a new file
    { head -n 405 run/metrics.jsonl; echo '{"step":401,"time":60,"loss":0.0224}'; } >new
    tail -n +407 run/metrics.jsonl >>new
    echo '{"step":900,"time":99,"loss":0.5}' >>new
    echo '{"step":900}' >run/latest/trainer/state.json
    cp run/metrics.jsonl old
    mv new run/metrics.jsonl
    dt-track -q -m "$URL" --patience 0 run
    cp run/metrics.jsonl new
    cp old run/metrics.jsonl && tail -n 1 new >>run/metrics.jsonl
    [ "$(once)" = FINISHED ]
}

@test "a run of dt-train is followed while it goes on, and its end is seen" {
    need_http
    make_data 200 300
    rm -r run
    serve badly
    dt-track -q -m "$URL" -t run/tb --interval 0.05 --patience 900 run &
    tracker=$!
    dt-train -q -j 1 --set model.hidden_size=32 --set model.num_layers=1 --set model.num_heads=2 \
        --set model.max_seq_len=64 --set training.batch_size=2 --set training.max_steps=1000 \
        --set training.log_interval=1 --set training.warmup_steps=2 -t tok.json -o run data >/dev/null
    wait "$tracker"
    [ "$(once)" = FINISHED ]
    [ "$(count_tag grad_norm)" -eq 1000 ]
}

@test "bad runs, addresses and builds are one line" {
    run dt-track run
    [ "$status" -eq 2 ]
    run dt-track -t tb
    [ "$status" -eq 2 ]
    for address in nonsense ftp://host file:runs http:/host; do
        run dt-track -m "$address" run
        [ "$status" -eq 2 ]
        [[ "${lines[0]}" == "dt-track: '$address' is no address of an MLflow server"* ]]
    done
    MLFLOW_TRACKING_URI= run dt-track -t tb
    [ "$status" -eq 2 ]
    run dt-track -q --once -t tb none
    assert_one_line_error dt-track
    [[ "$output" == *"there is no run: no 'none/metrics.jsonl'" ]]
    run env DT_ENGINES="$T" dt-track -q -m http://127.0.0.1:1 run
    assert_one_line_error dt-track
    [[ "$output" == *"built without libcurl"* ]]
    echo 'nonsense' >>run/metrics.jsonl
    run dt-track -q -t run/tb run
    assert_one_line_error dt-track
    [[ "$output" == *"run/metrics.jsonl:507: "* ]]
    run bash -c 'dt-track -q -t /proc/none run'
    assert_one_line_error dt-track
}

@test "a memory that is cut off is told with what to do, and without it event files go on" {
    head -n 300 run/metrics.jsonl >part
    mv run/metrics.jsonl all
    cp part run/metrics.jsonl
    dt-track -q -1 -t run/tb run
    cp all run/metrics.jsonl
    for memory in '' '{"start":1' '{"start":1}' '{"key":"a"}' '[]'; do
        printf '%s' "$memory" >run/track/state.json
        run dt-track -q -t run/tb run
        assert_one_line_error dt-track
        [[ "$output" == "dt-track: run/track/state.json: "*"; remove it to go on: "* ]]
    done
    rm run/track/state.json
    dt-track -q -t run/tb run
    [ "$(ls run/tb | wc -l)" -eq 1 ]
    [ "$(count_tag val_loss)" -eq 5 ]
    [ "$(count_tag grad_norm)" -eq 499 ]
}

@test "options that go with a server, or with more than one look, are refused without" {
    for wrong in "-e name" "--artifact run/metrics.jsonl" "--give-up 1"; do
        MLFLOW_TRACKING_URI= run dt-track -t run/tb $wrong run
        [ "$status" -eq 2 ]
        [[ "${lines[0]}" == "dt-track: --"*" goes with --mlflow" ]]
    done
    for wrong in --patience --interval; do
        run dt-track -t run/tb --once $wrong 3 run
        [ "$status" -eq 2 ]
        [ "${lines[0]}" = "dt-track: --once looks once, and takes no --interval or --patience" ]
    done
    [ ! -e run/tb ]
}
