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
    end_process HOLDER SERVER
}

need_http() {
    command -v python3 >/dev/null || skip "no python3"
    need_plugin http libcurl
}

# Starts a server of kind $1 at $URL, on the port of the previous one if any.
serve() {
    [ -e port ] || hold_port
    rm -f ready
    python3 "$ROOT/tests/track/faulty-mlflow.py" "$(cat port)" ready store.json "$1" 3>&- >/dev/null 2>&1 &
    SERVER=$!
    await $SERVER test -e ready
    URL=http://127.0.0.1:$(cat port)
}

# The server has more than $1 points.
stored() {
    [ -s store.json ] && [ "$(jq '.runs[0].metrics | length' store.json)" -gt "$1" ]
}

once() { python3 "$ROOT/tests/track/exactly-once.py" run/metrics.jsonl store.json; }

# The number of occurrences of a tag in the event file.
count_tag() {
    LC_ALL=C grep -aoE "$1" run/tb/* | wc -l
}

@test "an event file has every point once, after a second run and a truncation" {
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

@test "runs in one directory of event files have one each, also two of the same command" {
    sed 's/"time":0.100,/"time":0.101,/' run/metrics.jsonl >metrics.jsonl
    for again in 1 2; do
        mkdir second
        cp metrics.jsonl second
        dt-track -q -1 -t tb run
        dt-track -q -1 -t tb second
        rm -r second
        [ "$(ls tb | wc -l)" -eq 2 ]
        [ "$(LC_ALL=C grep -aoE val_loss tb/* | wc -l)" -eq 10 ]
    done
    mv run elsewhere
    dt-track -q -1 -t tb elsewhere
    [ "$(ls tb | wc -l)" -eq 2 ]
}

@test "results of tasks are points of their step, all 2200 of a line and those of later checkpoints" {
    awk 'BEGIN { printf "{\"step\":100"; for (i = 0; i < 2200; i++) printf ",\"boolq/acc%d\":0.5", i; print "}" }' >run/tasks.jsonl
    dt-track -q -t run/tb run
    [ "$(count_tag boolq/acc)" -eq 2200 ]
    [ "$(count_tag val_loss)" -eq 5 ]
    (cat run/tasks.jsonl; echo '{"step":200,"boolq/acc7":0.75}') >later
    mv later run/tasks.jsonl # as dt-eval watch replaces the file
    dt-track -q -t run/tb run
    [ "$(count_tag boolq/acc)" -eq 2201 ]
    need_http
    serve well
    dt-track -q -m "$URL/" run
    cat run/metrics.jsonl run/tasks.jsonl >both
    [ "$(python3 "$ROOT/tests/track/exactly-once.py" both store.json)" = FINISHED ]
    jq -rj '.runs[0].files["tasks.jsonl"]' store.json | cmp - run/tasks.jsonl
}

@test "TensorBoard's reader reads every event, hyperparameters and texts" {
    need_python tensorboard
    echo 'Once upon a time' >story.txt
    dt-track -q -t run/tb --text story.txt run
    run "$PYTHON" "$ROOT/tests/oracles/tensorboard_oracle.py" run/metrics.jsonl run/tb story.txt
    echo "$output"
    [ "$status" -eq 0 ]
}

@test "a server receives every point once, settings, files and status" {
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
    # the last point is 50 s after the start
    jq -e '[.runs[0] | (.metrics[] | select(.key == "loss" and .step == 500) | .timestamp) - .info.start_time] == [50000]' store.json
}

@test "a server that fails and loses responses has every point exactly once" {
    need_http
    serve badly
    dt-track -q -m "$URL" --interval 0.05 run
    [ "$(once)" = FINISHED ]
    dt-track -q -m "$URL" --interval 0.05 run
    [ "$(once)" = FINISHED ]
}

@test "a server killed and restarted has every point exactly once" {
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

@test "a server that ends between two requests of one line has every point exactly once" {
    need_http
    echo '{"run":"tale"}' >run/metrics.jsonl
    awk 'BEGIN { printf "{\"step\":100"; for (i = 0; i < 2200; i++) printf ",\"boolq/acc%d\":0.5", i; print "}" }' >run/tasks.jsonl
    cp -r run new
    local kind
    for kind in halfway:1000 halfway-late:2000; do
        rm -rf run store.json
        cp -r new run
        serve "${kind%:*}"
        run dt-track -q --once -m "$URL" run
        [ "$status" -eq 1 ]
        [ "$(jq '.runs[0].metrics | length' store.json)" -eq "${kind#*:}" ]
        serve well
        dt-track -q --once -m "$URL" run
        [ "$(python3 "$ROOT/tests/track/exactly-once.py" run/tasks.jsonl store.json)" = FINISHED ]
        end_process SERVER
    done
}

@test "dt-track killed and restarted continues from the server's state" {
    need_http
    serve badly
    finish 100
    dt-track -q -m "$URL" --interval 0.05 --patience 900 run &
    tracker=$!
    await $tracker stored 0
    kill -9 "$tracker"
    wait "$tracker" || true
    finish 500
    rm -r run/track/ # its state is not needed
    mkdir run/track
    jq '{start: (.runs[0].info.start_time / 1000), key: (.runs[0].tags[] | select(.key == "dt.key") | .value), mlflow: {}}' store.json >run/track/state.json
    dt-track -q -m "$URL" --interval 0.05 run
    [ "$(once)" = FINISHED ]
}

@test "a server unreachable at the end is an error, and the next call continues" {
    need_http
    serve well
    end_process SERVER
    run dt-track -m "$URL" --interval 0.05 --give-up 0.3 run
    [ "$status" -eq 1 ]
    [[ "${lines[0]}" == "dt-track: $URL/"*"; new points wait in 'run/metrics.jsonl'" ]]
    [[ "${lines[1]}" == "dt-track: $URL does not respond; nothing is lost: run the same command again" ]]
    serve well
    dt-track -q -m "$URL" run
    [ "$(once)" = FINISHED ]
}

@test "a file that cannot be read is an error after all others and the status are sent" {
    need_http
    serve well
    echo sample >sample.txt
    run timeout 60 dt-track -m "$URL" --interval 0.05 --give-up 0.3 --artifact none.txt --artifact sample.txt run
    assert_one_line_error dt-track
    [[ "$output" == "dt-track: cannot open 'none.txt': No such file or directory" ]]
    [ "$(once)" = FINISHED ]
    jq -e '.runs[0].files["sample.txt"] == "sample\n"' store.json
}

@test "a file that is too large, or a text that is missing, does not keep the rest from the server" {
    need_http
    serve well
    truncate -s 257M large.bin
    run timeout 60 dt-track -m "$URL" --interval 0.05 --give-up 0.3 --artifact large.bin --artifact nothing run
    assert_one_line_error dt-track
    [[ "$output" == "dt-track: 'large.bin' is larger than 268435456 bytes" ]]
    [ "$(once)" = FINISHED ]
    jq -e '.runs[0].files | has("nothing") and (has("large.bin") | not)' store.json
    rm -r run/track
    run timeout 60 dt-track -t run/tb -m "$URL" --interval 0.05 --give-up 0.3 --text none.txt run
    assert_one_line_error dt-track
    [[ "$output" == "dt-track: cannot open 'none.txt': No such file or directory" ]]
    [ "$(count_tag session_end_info)" -eq 1 ]
    jq -e '.runs[1].info.status == "FINISHED"' store.json
}

@test "--once sends what the run holds, and does not wait for an unreachable server" {
    need_http
    serve well
    dt-track -q --once -m "$URL" run
    [ "$(once)" = FINISHED ]
    end_process SERVER
    run timeout 60 dt-track -q --once -m "$URL" -t run/tb run
    assert_one_line_error dt-track
    [[ "$output" == "dt-track: $URL does not respond; "* ]]
    [ "$(count_tag val_loss)" -eq 5 ]
}

@test "a permanent refusal is one line, and event files are still written" {
    need_http
    serve refusing
    run dt-track -q -m "$URL" -t run/tb run
    assert_one_line_error dt-track
    [[ "$output" == *"/runs/log-batch: status 400: not today" ]]
    [ "$(count_tag val_loss)" -eq 5 ]
}

# odd PATH STATUS TEXT [HEADER]: sets the server's response to PATH; if PATH creates an object, the
# object does not exist yet.
odd() {
    jq -n --arg p "$1" --argjson s "$2" '{"experiments/create": {"experiments/get-by-name": [404, "{}"]},
        "runs/create": {"runs/search": [200, "{}"]}}[$p] + {($p): ([$s] + $ARGS.positional)}' \
        --args "${@:3}" >odd.json
}

# The response TEXT to PATH is an error that ends with WHY.
refused_response() { # PATH TEXT WHY
    odd "$1" 200 "$2"
    run dt-track -q --once -m "$URL" run
    assert_one_line_error dt-track
    [[ "$output" == "dt-track: $URL"*"$1"*"$3" ]] || { echo "$1 $2: $output"; return 1; }
}

@test "a response that is not a JSON object is refused in one line" {
    need_http
    serve odd
    for path in experiments/create runs/search runs/create runs/get runs/log-batch; do
        refused_response $path nonsense ": the response is not MLflow's: expected a JSON object"
        rm -rf run/track
    done
    for text in '' '[]' 1 null '"run"' '{"run":'; do
        refused_response experiments/get-by-name "$text" ": the response is not MLflow's: expected a JSON object"
    done
}

@test "missing or mistyped members of a response are named" {
    need_http
    serve odd
    refused_response experiments/create '{}' 'member "experiment_id" is missing'
    refused_response experiments/get-by-name '{}' 'member "experiment" is missing'
    refused_response experiments/get-by-name '{"experiment":[]}' 'member "experiment" is not an object'
    refused_response experiments/get-by-name '{"experiment":{"experiment_id":0}}' 'is not a string'
    refused_response runs/search '{"runs":{"run":1}}' 'member "runs" is not an array'
    refused_response runs/search '{"runs":[1]}' ': is not a JSON object'
    refused_response runs/create '{}' 'member "run" is missing'
    for path in runs/get runs/create; do
        refused_response $path '{"run":1}' 'member "run" is not an object'
        refused_response $path '{"run":{}}' 'member "info" is missing'
        refused_response $path '{"run":{"info":{}}}' 'member "run_id" is missing'
        refused_response $path '{"run":{"info":{"run_id":null}}}' 'member "run_id" is not a string'
    done
    for id in '' '../x' 'a\nb' "$(printf 'x%.0s' {1..300})"; do
        refused_response runs/create '{"run":{"info":{"run_id":"'"$id"'"}}}' "'"
        [[ "$output" == *'member "run_id" is not an id: '* ]]
    done
    refused_response runs/create '{"run":{"info":{"run_id":"run0","artifact_uri":1}}}' \
        'member "artifact_uri" is not a string'
}

@test "nothing is sent if the server's state of a run is malformed" {
    need_http
    serve odd
    refused_response runs/get '{"run":{"info":{"run_id":"run1"}}}' 'describes run run1 instead of run0'
    local begin='{"run":{"info":{"run_id":"run0"},"data":'
    refused_response runs/get "$begin[]}}" 'member "data" is not an object'
    refused_response runs/get "$begin"'{"metrics":{"loss":1}}}}' 'member "metrics" is not an array'
    refused_response runs/get "$begin"'{"metrics":[1]}}}' ': metrics: is not a JSON object'
    refused_response runs/get "$begin"'{"metrics":[{"step":1}]}}}' 'metrics: member "key" is missing'
    for step in 1.5 '"x"' '""' '"99999999999999999999"'; do
        refused_response runs/get "$begin"'{"metrics":[{"key":"loss","step":'"$step"'}]}}}' 'is not a whole number'
    done
    for step in 1e999 Infinity NaN null; do
        refused_response runs/get "$begin"'{"metrics":[{"key":"a","step":'$step'}]}}}' 'is not a whole number'
    done
    refused_response runs/get "$begin"'{"params":[{"key":1}]}}}' 'params: member "key" is not a string'
    refused_response runs/get "$begin"'{"params":[null]}}}' 'params: is not a JSON object'
    [ "$(jq '.runs[0].metrics | length' store.json)" -eq 0 ] # nothing was sent
    echo '{}' >odd.json
    dt-track -q -m "$URL" run
    [ "$(once)" = FINISHED ]
}

@test "an oversized response and a redirection are refused in one line" {
    need_http
    serve odd
    MLFLOW_TRACKING_TOKEN=secret
    export MLFLOW_TRACKING_TOKEN
    for code in 301 307; do
        odd experiments/get-by-name $code '' "Location: $URL/api/2.0/mlflow/elsewhere"
        run dt-track -q --once -m "$URL" run
        assert_one_line_error dt-track
        [[ "$output" == *": status $code: redirections are not followed: use the address to which it redirects" ]]
    done
    [ "$(jq .requests store.json)" -eq 2 ]
    python3 -c 'import json; json.dump({"experiments/get-by-name": [200, " " * (65 << 20)]}, open("odd.json", "w"))'
    run dt-track -q --once -m "$URL" run
    assert_one_line_error dt-track
    [[ "$output" == *": the response exceeds 67108864 bytes" ]]
}

@test "a password in the address is sent, but not shown or stored" {
    need_http
    serve well
    safe=$URL
    URL="http://me:se%3acr%40et@${URL#http://}"
    run dt-track -m "$URL//" run
    [ "$status" -eq 0 ]
    [[ "$output" != *cr* ]]
    [ "$(jq -r '.logins[]' store.json)" = "Basic $(printf 'me:se:cr@et' | base64)" ]
    jq -e --arg url "$safe" '.mlflow == {($url): "run0"}' run/track/state.json
    refute grep -rE 'cr(%40|@)et' run
    MLFLOW_TRACKING_URI=$URL dt-track -q run # it is the same run
    [ "$(jq '.runs | length' store.json)" -eq 1 ]
    end_process SERVER
    run dt-track -m "$URL" --interval 0.05 --give-up 0.1 run
    [ "$status" -eq 1 ]
    [[ "${lines[0]}" == "dt-track: $safe/"* ]]
    [[ "$output" != *cr* ]]
    for wrong in "ftp://me:secret@host" "http://me:sec/ret@host" "http://me:secret@" "me:secret@host"; do
        run dt-track -m "$wrong" run
        [ "$status" -eq 2 ]
        [[ "$output" != *sec* ]]
    done
}

@test "a password that an earlier version stored is removed, and the run continues" {
    need_http
    serve well
    dt-track -q -m "$URL" run
    sed -i "s|http://|http://me:secret@|" run/track/state.json
    grep -q secret run/track/state.json
    dt-track -q -m "$URL" run
    refute grep -q secret run/track/state.json
    [ "$(jq '.runs | length' store.json)" -eq 1 ]
}

@test "a token or password needs this machine, https or --cleartext" {
    need_http
    serve well
    export http_proxy=$URL MLFLOW_TRACKING_TOKEN=secret
    for host in host 127.0.0.1.host localhost.host 10.0.0.1 127.1 '[::2]' '127.0.0.1@host'; do
        run dt-track -q -m "http://$host:5000" run
        assert_one_line_error dt-track
        [[ "$output" == *": a token would be sent in cleartext: use https://, or --cleartext to allow that" ]]
        [[ "$output" != *secret* ]]
        MLFLOW_TRACKING_TOKEN= run dt-track -q -m "http://me:secret@${host#*@}" run
        assert_one_line_error dt-track
        [[ "$output" == *": a password would be sent in cleartext: "* ]]
        [[ "$output" != *secret* ]]
    done
    [ ! -e store.json ] # the proxy got no request
    dt-track -q --cleartext -m http://host run
    [ "$(jq -r '.logins[]' store.json)" = "Bearer secret" ]
    run dt-track -q --interval 0.05 --give-up 0 -m https://127.0.0.1:1 run # no error about cleartext
    [[ "$output" == *"does not respond"* ]]
    MLFLOW_TRACKING_TOKEN=$'secret\n' run dt-track -q -m "$URL" run
    assert_one_line_error dt-track
    [[ "$output" == "dt-track: MLFLOW_TRACKING_TOKEN contains a control character"* ]]
}

@test "no proxy is used for a server on this machine" {
    need_http
    serve well
    export http_proxy=http://127.0.0.1:1 MLFLOW_TRACKING_TOKEN=secret MLFLOW_TRACKING_PASSWORD=other
    export MLFLOW_TRACKING_USERNAME=me
    dt-track -q -m "$URL" run
    MLFLOW_TRACKING_TOKEN= dt-track -q -m "${URL/127.0.0.1/localhost}" run
    [ "$(jq -r '.logins[]' store.json)" = "$(printf 'Bearer secret\nBasic %s' "$(printf me:other | base64)")" ]
}

@test "a stopped run is KILLED, a broken one FAILED, and a resumed one continues" {
    need_http
    serve well
    finish 500
    sed -i 's/max_steps: 500/max_steps: 900/' run/latest/trainer/config.yaml
    dt-track -q -m "$URL" --patience 0 run
    [ "$(once)" = KILLED ]
    echo '{"step":501,"time":51,"loss":1}' >>run/metrics.jsonl
    dt-track -q -m "$URL" --patience 0 run
    [ "$(once)" = FAILED ]
    # from the checkpoint of step 400: lines after it are repeated, in a new file
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

@test "a stopped run has no final status in its event file before it is resumed and ends" {
    # Field 4 of the plug-in's content is the end, whose field 1 is the status: 1 is success.
    success() { LC_ALL=C grep -aqP '"\x0b\x08\x01\x11.{8}' run/tb/*; }
    sed -i 's/max_steps: 500/max_steps: 900/' run/latest/trainer/config.yaml
    dt-track -t run/tb --patience 0 run | grep -q '^run  *stopped, step 500$'
    [ "$(count_tag session_end_info)" -eq 0 ]
    echo '{"step":900,"time":99,"loss":0.5}' >>run/metrics.jsonl
    echo '{"step":900}' >run/latest/trainer/state.json
    dt-track -t run/tb --patience 0 run | grep -q '^run  *finished, step 900$'
    [ "$(count_tag session_end_info)" -eq 1 ]
    success
}

@test "the last step is that of the metrics, also after a resumed run has repeated steps" {
    finish 400
    dt-track -t run/tb --interval 0.05 --patience 2 run >out &
    HOLDER=$!
    await $HOLDER sh -c 'test -s "$(ls run/tb/*)"'
    { head -n 405 run/metrics.jsonl; echo '{"step":410,"time":60,"loss":0.02}'; } >new
    echo '{"step":410}' >run/latest/trainer/state.json
    mv new run/metrics.jsonl
    wait $HOLDER
    HOLDER=
    [ "$(head -n 1 out)" = "run          stopped, step 410" ]
}

@test "dt-track follows a run of dt-train to its end" {
    need_http
    make_data 200 300
    rm -r run
    serve badly
    dt-track -q -m "$URL" -t run/tb --interval 0.05 --patience 900 run &
    tracker=$!
    dt-train -q -j 1 --set model.hidden_size=32 --set model.num_layers=1 --set model.num_heads=2 \
        --set model.max_seq_len=64 --set training.batch_size=2 --set training.max_steps=300 \
        --set training.log_interval=1 --set training.warmup_steps=2 -t tok.json -o run data >/dev/null
    wait "$tracker"
    [ "$(once)" = FINISHED ]
    [ "$(count_tag grad_norm)" -eq 300 ]
}

@test "bad runs, bad addresses and a missing plug-in are one line" {
    run dt-track run
    [ "$status" -eq 2 ]
    run dt-track -t tb
    [ "$status" -eq 2 ]
    for address in nonsense ftp://host file:runs http:/host http:// http://:80 http://host:x http://host:99999 \
        'http://host?a' 'http://host/a#b' 'http://a b' 'http://[::1' 'http://host\x'; do
        run dt-track -m "$address" run
        [ "$status" -eq 2 ]
        [[ "${lines[0]}" == "dt-track: '$address' is not the address of an MLflow server"* ]]
    done
    MLFLOW_TRACKING_URI= run dt-track -t tb
    [ "$status" -eq 2 ]
    run dt-track -q --once -t tb none
    assert_one_line_error dt-track
    [[ "$output" == *"no run: 'none/metrics.jsonl' does not exist" ]]
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

@test "a damaged state.json is an error that says what to do; without it event files continue" {
    head -n 300 run/metrics.jsonl >part
    mv run/metrics.jsonl all
    cp part run/metrics.jsonl
    dt-track -q -1 -t run/tb run
    cp all run/metrics.jsonl
    for memory in '' '{"start":1' '{"start":1}' '{"key":"a"}' '[]' '{"start":1,"key":"a"}' \
        '{"start":1,"key":"a","mlflow":[]}' '{"start":1,"key":"a","mlflow":{"http://h":1}}' \
        '{"start":1,"key":"a","mlflow":{"h":"run0"}}'; do
        printf '%s' "$memory" >run/track/state.json
        run dt-track -q -t run/tb run
        assert_one_line_error dt-track
        [[ "$output" == "dt-track: run/track/state.json: "*"; remove it to continue: "* ]]
    done
    rm run/track/state.json
    dt-track -q -t run/tb run
    [ "$(ls run/tb | wc -l)" -eq 1 ]
    [ "$(count_tag val_loss)" -eq 5 ]
    [ "$(count_tag grad_norm)" -eq 499 ]
}

@test "files of one name are refused" {
    mkdir a b
    touch a/s.txt b/s.txt
    for wrong in "--text a/s.txt --text b/s.txt" "--artifact a/s.txt --text b/s.txt" \
        "--artifact a/s.txt --artifact b/s.txt"; do
        run dt-track -m http://127.0.0.1:1 -t run/tb $wrong run
        [ "$status" -eq 2 ]
        [[ "${lines[0]}" == "dt-track: '"?"/s.txt' and '"?"/s.txt' would be sent under one name" ]]
    done
}

@test "options without effect are refused" {
    for wrong in "-e name" "--artifact run/metrics.jsonl" "--give-up 1" --cleartext; do
        MLFLOW_TRACKING_URI= run dt-track -t run/tb $wrong run
        [ "$status" -eq 2 ]
        [[ "${lines[0]}" == "dt-track: --"*" goes with --mlflow" ]]
    done
    for wrong in --patience --interval --give-up; do
        run dt-track -m http://127.0.0.1:1 -t run/tb --once $wrong 3 run
        [ "$status" -eq 2 ]
        [ "${lines[0]}" = "dt-track: $wrong cannot be combined with --once" ]
    done
    [ ! -e run/tb ]
}
