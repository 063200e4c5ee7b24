# SPDX-License-Identifier: MIT
# Each program where an allocation fails: the same bytes, or status 1 and one line. $ALLOCATION_RUNS
# allocations of each command fail; in tests/full/allocations.bats all do.
load ../helper
load allocations

tiny=(--set model.hidden_size=32 --set model.num_layers=2 --set model.num_heads=2
    --set model.max_seq_len=32 --set training.batch_size=4 --set training.max_steps=10
    --set training.warmup_steps=2 --set training.eval_interval=5 --set training.eval_batches=2
    --set training.save_interval=5 --set training.log_interval=5)

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    make_data 100 300 --split val=0.1
    dt-dedup sign -q -o signatures docs.jsonl
    dt-tokenize -q -t tok.json docs.jsonl >tokens
    dt-train -q -j 1 "${tiny[@]}" -t tok.json -o run data
    dt-bench matrix -q -o rows -r 2 -w 0 -a a=1,2 -- sh -c 'echo "{\"n\":3}"' '{a}' >/dev/null
    printf 'A lion drew a picture.\nThe owl read a book.\n' >lines
    printf '{"id":1,"prompt":"Once upon"}\n{"id":2,"prompt":"One day"}\n' >prompts
}

setup() {
    [[ "$(ldd "$(command -v dt-cat)")" != *asan* ]] || skip "sanitizers allocate for themselves"
    cd "$T"
    S=$BATS_FILE_TMPDIR
}

# try COMMAND...: shell commands.
try() {
    local command
    for command in "$@"; do
        fail_allocations "${ALLOCATION_RUNS:-8}" "$command"
    done
}

@test "dt-synth, dt-clean and dt-dedup where an allocation fails" {
    try "dt-synth -n 20" \
        "dt-clean -q -j 1 --rules gopher --rules fineweb --normalize nfc --casefold --dedup \
            --dedup-parts lines --mojibake --mask all --space squeeze --stats s --rejects r \
            $S/docs.jsonl && sed -i /second/d s" \
        "dt-clean -q -j 2 --rules c4 --attributes $S/docs.jsonl" \
        "dt-dedup sign -q -o signatures $S/docs.jsonl" \
        "dt-dedup match -q -o lists $S/signatures"
}

@test "dt-extract where an allocation fails" {
    need_plugin html libxml2
    printf '<title>A</title><meta charset=latin1><article><p>First caf\351, of some length.</p></article>' \
        | gzip -c >body
    { printf 'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n'
        cat body; } >block
    { printf 'WARC/1.0\r\nWARC-Type: response\r\nContent-Length: %d\r\n\r\n' "$(wc -c <block)"
        cat block
        printf '\r\n\r\n'; } >"$T/web.warc"
    try "dt-extract -q -j 1 $T/web.warc"
}

@test "dt-vocab and dt-tokenize where an allocation fails" {
    try "dt-vocab -q -s 300 $S/docs.jsonl" \
        "dt-vocab -q --model wordpiece -s 300 $S/docs.jsonl" \
        "dt-tokenize -q -j 1 -t $S/tok.json $S/docs.jsonl" \
        "dt-tokenize -q -j 2 -t $S/tok.json $S/docs.jsonl"
}

@test "dt-shard and dt-cat where an allocation fails" {
    local shard=$S/data/train-00000.dts
    try "dt-shard -o d <$S/tokens" \
        "dt-shard --shuffle --memory 20000 --layout packed --length 1024 --split val=0.1 \
            -o d <$S/tokens" \
        "dt-cat --json $shard" "dt-cat --lineage $shard" "dt-cat --text -t $S/tok.json $shard" \
        "dt-cat --verify -t $S/tok.json $shard" "dt-cat --as mds -o mds $shard" \
        "dt-cat --as megatron -o megatron $shard"
}

@test "dt-train where an allocation fails" {
    # Times and host names differ from run to run.
    try "dt-train ${tiny[*]} --print-config" \
        "dt-train -q -j 1 ${tiny[*]} -t $S/tok.json -o run $S/data >/dev/null && \
            rm -f run/metrics.jsonl run/step-*/trainer/{lineage.txt,manifest.json,state.json}"
}

@test "dt-eval, dt-generate and dt-export where an allocation fails" {
    try "dt-eval perplexity -q -j 1 -m $S/run/latest --items items -o /dev/null $S/data" \
        "dt-eval bleu -q -r $S/lines --bootstrap 3 --json $S/lines" \
        "dt-generate -m $S/run/latest --prompts $S/prompts -n 5 -j 1" \
        "dt-generate -m $S/run/latest -p Once -n 5 -j 1 --beams 3" \
        "dt-export -m $S/run/latest -o model" \
        "dt-export -m $S/run/latest --to gguf --type q8_0 -o model.gguf"
}

@test "dt-verify where an allocation fails" {
    try "dt-verify files $S/data $S/run/latest" \
        "cd $S && dt-verify replay --plan run" \
        "cd $S && dt-verify document --documents docs.jsonl run \
            \"\$(sed -n 3p docs.jsonl | jq -r .id)\""
}

@test "dt-plan, dt-bench, dt-plot and dt-track where an allocation fails" {
    local settings="-c $ROOT/share/configs/llama-8b.yaml"
    try "dt-plan $settings --set distributed.tp=2 -n 8 --json --trace trace" \
        "dt-plan $settings --search 4 --json" "dt-plan --validate --json" \
        "dt-bench report --json $S/rows" \
        "dt-bench matrix -q -o rows -r 2 -w 0 -a a=1,2 -- echo '{a}' >/dev/null && rm rows" \
        "dt-bench tokenize -j 1 --seconds 0.01 -t $S/tok.json $S/docs.jsonl >/dev/null" \
        "cp -r $S/run . && dt-track -q -1 -t events run && rm -r events run" \
        "cp -r $S/run . && dt-plot loss -o p.txt run && rm -r run"
}
