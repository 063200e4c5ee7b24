# SPDX-License-Identifier: MIT
# Files whose type is not that of their name.
load ../helper

small=(--set model.hidden_size=16 --set model.num_layers=1 --set model.num_heads=2
    --set model.max_seq_len=16 --set training.batch_size=2 --set training.max_steps=2
    --set training.warmup_steps=1 --set training.sequence_length=16)

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    make_data 100 300 --split val=0.2
    dt-train -q -j 1 "${small[@]}" -t tok.json -o run data >/dev/null
}

setup() {
    cd "$T"
    cp -rL "$BATS_FILE_TMPDIR/run/latest" model
    cp -r "$BATS_FILE_TMPDIR/data" data
    cp "$BATS_FILE_TMPDIR/tok.json" .
}

# refused TEXT COMMAND...: fails in time, with one line that ends with TEXT.
refused() {
    run timeout -s KILL 60 "${@:2}"
    assert_one_line_error "$2"
    [[ "$output" == *"$1" ]] || { echo "$output"; return 1; }
}

@test "a FIFO in place of a list, a configuration or weights is refused, not waited for" {
    fifo() { rm "$1" && mkfifo "$1"; }
    fifo data/index.json
    refused "'data/index.json': is not a regular file, but a FIFO" dt-train -q "${small[@]}" -o new data
    refused "'data/index.json': is not a regular file, but a FIFO" dt-cat data
    for file in trainer/manifest.json trainer/optimizer.safetensors; do
        rm -rf broken && cp -r model broken
        fifo broken/$file
        refused "'broken/$file': is not a regular file, but a FIFO" dt-eval -q -m broken perplexity "$BATS_FILE_TMPDIR/data"
        refused "'broken/$file': is not a regular file, but a FIFO" \
            dt-train -q -j 1 "${small[@]}" --resume broken -o new "$BATS_FILE_TMPDIR/data"
    done
    rm model/trainer/manifest.json
    for file in config.json model.safetensors tokenizer.json; do
        rm -rf broken && cp -r model broken
        fifo broken/$file
        refused "'broken/$file': is not a regular file, but a FIFO" dt-generate -m broken -n 1
    done
    mkdir run-dir && mkfifo run-dir/metrics.jsonl
    refused "'run-dir/metrics.jsonl': is not a regular file, but a FIFO" dt-plot loss run-dir
    mkfifo settings.yaml
    refused "'settings.yaml': is not a regular file, but a FIFO" dt-train -c settings.yaml -o new data
}

@test "settings may come through a pipe that the shell hands over" {
    dt-train --print-config -c <(printf 'training:\n  seed: 7\n') -o x data | grep -q 'seed: 7'
    printf 'training:\n  seed: 8\n' | dt-train --print-config -c /dev/stdin -o x data | grep -q 'seed: 8'
}

@test "a list names files of its directory only" {
    for name in ../../etc/hostname /etc/hostname trainer/../../tok.json ..; do
        rm -rf broken && cp -r model broken
        jq --arg name "$name" '.files[$name] = {"bytes": 1, "xxh3": "0123456789abcdef"}' \
            model/trainer/manifest.json >broken/trainer/manifest.json
        refused "broken/trainer/manifest.json: '$name' is not a file of this directory" \
            dt-generate -m broken -n 1
        jq --arg name "$name" '.splits.train.shards[0].file = $name' \
            "$BATS_FILE_TMPDIR/data/index.json" >data/index.json
        refused "data/index.json: '$name' is not a file of this directory" dt-cat data
    done
    jq '.splits.train.shards[0].file = "train-00000.dts\u0000x"' \
        "$BATS_FILE_TMPDIR/data/index.json" >data/index.json
    refused "data/index.json: member \"file\" holds a zero byte" dt-cat data
}

@test "an engine is a name, not a path" {
    for name in ../../x ../build/lib/dt/cpu-generic . /tmp/x "" "cpu generic"; do
        refused "no engine '$name': a name has letters, digits, '-' and '_' alone" \
            dt-generate -m model -n 1 --device "$name"
    done
}

@test "a file that cannot be inspected is an error" {
    rm model/trainer/manifest.json
    for file in tokenizer.json tokenizer_config.json; do
        for kind in loop dangling; do
            rm -rf broken && cp -r model broken && rm broken/$file
            ln -s $([ $kind = loop ] && echo $file || echo gone) broken/$file
            run dt-export -m broken -o out
            assert_one_line_error dt-export
            [[ "$output" == *"cannot open 'broken/$file': "* ]]
            [ ! -e out ]
        done
    done
    rm -rf broken && cp -r model broken && ln -sf model.safetensors broken/model.safetensors
    refused "cannot open 'broken/model.safetensors': Too many levels of symbolic links" \
        dt-generate -m broken -n 1
    ln -sf tokenizer.json model/tokenizer.json
    refused "cannot open 'model/tokenizer.json': Too many levels of symbolic links" \
        dt-train -q -j 1 "${small[@]}" --init-from model -o new data
    refused "cannot open 'model/tokenizer.json': Too many levels of symbolic links" \
        dt-eval -q -m model perplexity data
}

@test "a tokenizer without read permission is an error" {
    [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null || skip "needs root and setpriv"
    chmod 755 . && mkdir -m 700 closed && mv model/tokenizer.json closed
    ln -s ../closed/tokenizer.json model/tokenizer.json
    rm model/trainer/manifest.json
    mkdir -m 777 open
    run setpriv --reuid=65534 --clear-groups "$(command -v dt-export)" -m model -o open/out
    [ "$status" -eq 1 ]
    [[ "$output" == *"cannot open 'model/tokenizer.json': Permission denied" ]] ||
        skip "another user cannot get here: $output"
    [ ! -e open/out ]
}

@test "running out of memory ends a program with one line, never by a signal" {
    [[ "$(ldd "$(command -v dt-train)")" != *asan* ]] || skip "AddressSanitizer takes all addresses"
    ended=0
    for limit in 62 64 70 76 82 88 94 100 112; do # MB, around what loading and opening take
        run bash -c 'ulimit -v $(($1 * 1000)) && rm -rf new && exec dt-train -q -j 1 "${@:2}"' - \
            $limit "${small[@]}" -o new data
        [ "$status" -le 1 ] || [ "$status" -eq 127 ] || { echo "$limit: $status: $output"; return 1; }
        [ "$status" -eq 0 ] || [ "${#lines[@]}" -eq 1 ] || { echo "$limit: $output"; return 1; }
        ended=$((ended + status))
    done
    [ "$ended" -gt 0 ] || skip "libraries are smaller here than the limits"
}

@test "running out of memory while kernels are created ends dt-eval with one line" {
    [[ "$(ldd "$(command -v dt-eval)")" != *asan* ]] || skip "AddressSanitizer takes all addresses"
    dt-synth --bytes 300K -o s.jsonl
    dt-vocab -q --size 512 -o t.json s.jsonl
    dt-tokenize -q -t t.json s.jsonl | dt-shard -o shards --split val=0.1
    dt-train -q -j 1 "${small[@]}" --set model.hidden_size=32 --set model.max_seq_len=32 \
        --set training.sequence_length=32 -t t.json -o larger shards
    ended=0
    for limit in $(seq 60 2 84); do # MiB, around what libraries, model and kernels take
        run bash -c 'ulimit -v $(($1 * 1024)) && exec dt-eval -j 1 -q -m larger/latest perplexity shards' - $limit
        [ "$status" -le 1 ] || [ "$status" -eq 127 ] || { echo "$limit: $status: $output"; return 1; }
        [ "$status" -eq 0 ] || [ "${#lines[@]}" -eq 1 ] || { echo "$limit: $output"; return 1; }
        ended=$((ended + status))
    done
    [ "$ended" -gt 0 ] || skip "libraries are smaller here than the limits"
}

@test "what goes to a closed descriptor gets into no file" {
    dt-synth -n 200 >docs.jsonl
    refute dt-clean --rejects rejected.jsonl <docs.jsonl >&- 2>messages
    grep -qx 'dt-clean: cannot write to stdout: Bad file descriptor' messages
    [ ! -s rejected.jsonl ]
    dt-clean -o out.jsonl <docs.jsonl 2>&-
    cmp out.jsonl docs.jsonl
}
