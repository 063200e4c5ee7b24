# SPDX-License-Identifier: MIT
load ../helper

setup() {
    cd "$T"
}

@test "gemm prints engine, instruction set, threads and the peak" {
    run dt-bench -j 1 gemm
    [ "$status" -eq 0 ]
    [[ "${lines[0]}" == "engine "*"cpu, "*", 1 thread" ]]
    [[ "${lines[1]}" =~ ^"GEMM peak "+[0-9.]+" GFLOP/s of fp32, measured now"$ ]]
}

@test "step measures a step and its fraction of the peak" {
    unset DT_GEMM_PEAK
    run dt-bench --json -n 2 --set model.hidden_size=64 --set model.num_layers=2 \
        --set model.num_heads=4 --set model.vocab_size=500 --set training.sequence_length=32 step
    [ "$status" -eq 0 ]
    for name in isa threads gemm_gflops parameters tokens step_s tokens_per_second mfu; do
        [[ "$output" == *"\"$name\":"* ]]
    done
    # 2 layers of 12 C^2 + 13 C, embeddings (500 + 1024) C, final norm 2 C
    [[ "$output" == *"\"parameters\":$((2 * (12 * 64 * 64 + 13 * 64) + 1524 * 64 + 128)),"* ]]
}

@test "step counts a llama's parameters" {
    run dt-bench --json -n 1 --set model.name=llama --set model.hidden_size=64 \
        --set model.num_layers=2 --set model.num_heads=4 --set model.num_kv_heads=2 \
        --set model.vocab_size=500 --set training.sequence_length=32 step
    [ "$status" -eq 0 ]
    # 2 layers of 3 C^2 for attention, 3 x 192 C for the MLP and 2 C; embedding, final norm
    [[ "$output" == *"\"parameters\":$((2 * (3 * 64 * 64 + 3 * 192 * 64 + 128) + 501 * 64)),"* ]]
}

@test "decode prints the fraction of memory bandwidth that 1 and 16 streams reach" {
    unset DT_READ_SPEED
    for precision in fp32 bf16; do
        run dt-bench -j 1 --json -n 3 --set model.hidden_size=64 --set model.num_layers=2 \
            --set model.num_heads=4 --set model.vocab_size=500 --set training.precision=$precision decode
        [ "$status" -eq 0 ]
        for part in '"read_gb_per_second":[0-9]' '"streams_1":\{"tokens_per_second":[0-9]' \
            '"streams_16":\{' '"prefill_tokens_per_second":[0-9]' '"fastest_read_share":[0-9]'; do
            [[ "$output" =~ $part ]]
        done
    done
}

@test "decode measures models with few positions, and refuses one with a single position" {
    shape=(--set model.hidden_size=32 --set model.num_layers=1 --set model.num_heads=2
        --set model.vocab_size=100)
    for positions in 2 7 8; do
        dt-bench -j 1 --json -n 1 "${shape[@]}" --set model.max_seq_len=$positions decode >out
        grep -qE '"streams_16":\{"tokens_per_second":[0-9]' out
    done
    run dt-bench -n 1 "${shape[@]}" --set model.max_seq_len=1 decode
    assert_one_line_error dt-bench
    [[ "$output" == *"model.max_seq_len must be at least 2"* ]]
}

@test "attention is measured separately, for every family's shape" {
    shape=(--set model.hidden_size=64 --set model.num_layers=1 --set model.num_heads=4
        --set model.vocab_size=500 --set training.sequence_length=32 --set training.batch_size=2)
    dt-bench -j 1 --json --seconds 0.05 "${shape[@]}" attention >out
    # q k' and the product with v: 4 B T T C, half of it causal; over q, k, v and y of 4 B T C
    grep -q '"flops_per_byte":4.00,' out
    grep -qE '"gflops":[0-9.]+,"backward_gflops":[0-9.]+,' out
    dt-bench -j 1 --seconds 0.05 "${shape[@]}" --set model.name=llama --set model.num_kv_heads=2 attention |
        grep -qE '^backward +[0-9.]+ ms'
}

@test "machine measures the peaks and stores them, one line for each number of threads" {
    export DT_PEAKS=$T/new/peaks.jsonl
    unset DT_GEMM_PEAK DT_READ_SPEED
    dt-bench machine -j 1 --seconds 0.01 >out 2>err
    grep -qE '^ 1 thread +fp32 [0-9.]+, bf16 [0-9.]+, fp16 [0-9.]+ GFLOP/s; memory is read at [0-9.]+ GB/s$' out
    grep -q "^stored in $DT_PEAKS$" out
    dt-bench machine -j 1 --seconds 0.01 --json >line 2>>err # takes its place
    cmp line "$DT_PEAKS"
    jq -e '.threads == 1 and .fp32_gflops > 0 and .bf16_gflops > 0 and .read_gb_per_second > 0 and
        .processor_share > 0 and .processor_share <= 1' line
    sed 's/"threads":1/"threads":7/' line >>"$DT_PEAKS"
    dt-bench machine -j 1 --seconds 0.01 >/dev/null 2>>err # and leaves the others
    [ "$(jq -sc 'map(.threads) | sort' "$DT_PEAKS")" = '[1,7]' ]
    dt-bench --json -j 1 -n 1 --set model.hidden_size=32 --set model.num_layers=1 --set model.num_heads=2 \
        --set model.vocab_size=100 --set model.max_seq_len=8 decode 2>>err |
        jq -e --slurpfile stored "$DT_PEAKS" '.gemm_origin | startswith("stored 20")'
    echo '{' >>"$DT_PEAKS"
    run dt-bench machine -j 1 --seconds 0.01
    assert_one_line_error dt-bench
    [[ "$output" == *"$DT_PEAKS:3:"* ]]
    DT_PEAKS=/proc/none/peaks.jsonl run dt-bench machine -j 1 --seconds 0.01
    assert_one_line_error dt-bench
}

@test "DT_GEMM_PEAK and DT_READ_SPEED give speeds in place of the measured ones" {
    shape=(--set model.hidden_size=32 --set model.num_layers=1 --set model.num_heads=2
        --set model.vocab_size=100 --set model.max_seq_len=8)
    DT_GEMM_PEAK=2e6 DT_READ_SPEED=5e5 dt-bench -j 1 --json -n 1 "${shape[@]}" decode >out
    jq -e '.gemm_gflops == 2e6 and .read_gb_per_second == 5e5 and .streams_1.read_share < 0.01' out
    DT_READ_SPEED=5e5 dt-bench -j 1 --json --seconds 0.01 "${shape[@]}" attention |
        jq -e '.memory_gb_per_second == 5e5'
    DT_GEMM_PEAK=1 dt-bench -j 1 --json gemm | jq -e '.gemm_gflops != 1' # which measures it
    for speed in 0 -1 nan fast ''; do
        DT_READ_SPEED=$speed run dt-bench -j 1 "${shape[@]}" decode
        [ "$status" -eq 1 ]
        [[ "${lines[-1]}" == "dt-bench: DT_READ_SPEED must be a number of GB/s above 0, not '$speed'" ]]
        DT_GEMM_PEAK=$speed run dt-bench -j 1 "${shape[@]}" decode
        assert_one_line_error dt-bench
        [[ "$output" == *"DT_GEMM_PEAK must be a number of GFLOP/s above 0, not '$speed'" ]]
    done
}

@test "bad input is named" {
    run dt-bench --set model.vocab_size=500 --set model.num_heads=7 step
    assert_one_line_error dt-bench
    [[ "$output" == *"not a multiple of num_heads"* ]]
    run dt-bench step
    assert_one_line_error dt-bench
    [[ "$output" == *"settings: model.vocab_size is needed, because no data set gives it"* ]]
    run dt-bench sleep
    [ "$status" -eq 2 ]
    run dt-bench
    [ "$status" -eq 2 ]
}

@test "error: canonical products are as near fp64 as fast ones, also with long sums" {
    run dt-bench -j 1 --json error
    [ "$status" -eq 0 ]
    jq -e '.products | length == 6 and all(.[]; .canonical > 1e-8 and .canonical < 1e-6)
        and all(.[]; .k != 4096 or .fast == null or .canonical <= 2 * .fast)' <<<"$output"
    run dt-bench -j 1 error
    [[ "${#lines[@]}" -eq 6 && "${lines[5]}" =~ ^bf16,\ sums\ of\ 4096\ +canonical\ [0-9.e-]+,\ fast ]]
}

@test "step-vs-pytorch.py prints a row for each, with ratios to dt" {
    need_python torch yaml
    run "$PYTHON" "$ROOT/share/bench/step-vs-pytorch.py" --json -r 1 -n 1 -j 1 \
        -c "$ROOT/share/configs/llama-tiny.yaml" --set model.vocab_size=300 \
        --set model.num_layers=1 --set training.batch_size=1 --set training.sequence_length=16
    [ "$status" -eq 0 ]
    line="${lines[-1]}"
    [[ "$line" == *'"dt": {"step_s": '*'"ratio": 1.0}'* ]]
    [[ "$line" == *'"PyTorch eager": {"step_s": '* && "$line" == *'"PyTorch compile": {"step_s": '* ]]
}

@test "step-vs-transformers.py compares models of the same shape, and takes no setting it cannot give" {
    need_python torch transformers
    compare() { run "$PYTHON" "$ROOT/share/bench/step-vs-transformers.py" -r 1 -n 1 -j 1 -t 8 "$@"; }
    # Unequal numbers of parameters would end the program.
    compare --json --set=model.{num_layers=1,vocab_size=64,hidden_size=64,intermediate_size=96} \
        --set=model.{num_heads=4,num_kv_heads=2} \
        "$ROOT"/share/configs/{llama3.2-1b,gemma3-270m,qwen2.5-0.5b,qwen3-0.6b,olmo2-1b}.yaml
    [ "$status" -eq 0 ]
    [ "$(grep -cE '"planned_bytes": [0-9]+, .*"bytes": [0-9]+, "ratio": 1.0}, "transformers": ' \
        <<<"$output")" -eq 5 ]
    compare --set model.attention_bias=all "$ROOT/share/configs/llama3.2-1b.yaml"
    [ "$status" -eq 1 ]
    [ "$output" = "model.attention_bias=all: no member of config.json is known for it" ]
    compare --set model.num_layers=1000 "$ROOT/share/configs/olmo2-1b.yaml"
    [ "$status" -eq 0 ]
    [[ "${lines[-1]}" == "olmo2-1b "*"does not fit: "*" MiB planned, "*" MiB available" ]]
}

@test "load measures sequential and shuffled reading, and its memory" {
    dt-synth -n 300 >docs.jsonl
    dt-vocab -q -s 300 -o tok.json docs.jsonl 2>/dev/null
    dt-tokenize -q -t tok.json -o all.dts docs.jsonl
    dt-shard -o data all.dts
    dt-shard -o padded --layout padded --length 64 all.dts
    for options in "" "-j 2"; do
        dt-bench --seconds 0.1 --set training.sequence_length=64 $options load data >out
        grep -qE '^sequential +[0-9.]+ M tokens/s, .* 100.0% of them targets, memory up to [0-9.]+ [KMG]iB$' out
        grep -qE '^shuffled +[0-9.]+ M tokens/s' out
    done
    run dt-bench --json --seconds 0.1 --set training.sequence_length=64 load padded
    [[ "$output" == '{"sequential":{"tokens_per_second":'*'},"shuffled":{'*'}}' ]]
    run dt-bench --json --seconds 0.1 --set training.sequence_length=64 \
        --set data.shuffle_block=640 load padded
    [[ "$output" == '{"sequential":{'*'},"shuffled":{'*'},"blocks":{"tokens_per_second":'*'}}' ]]
    run dt-bench --seconds 0.1 --set training.sequence_length=63 load padded
    assert_one_line_error dt-bench
    [[ "$output" == *"padded: has rows for sequences of 64 tokens, not of 63" ]]
    run dt-bench -t tok.json load data
    [ "${lines[0]}" = "dt-bench: load of 'data' takes no --tokenizer: it holds tokens" ]
    for wrong in "load" "load data data" "gemm data" "-t tok.json load data"; do
        run dt-bench $wrong
        [ "$status" -eq 2 ]
    done
}

@test "tokenize measures encoding, and counts the tokens that dt-tokenize gives" {
    golden="$BATS_TEST_DIRNAME/../token/golden"
    for threads in 1 2; do
        dt-bench --json -j $threads -t "$golden/tokenizer.json" --seconds 0.01 tokenize "$golden/corpus.txt" >out
        grep -q "\"threads\":$threads,\"bytes\":$(stat -c %s "$golden/corpus.txt")," out
        grep -q "\"tokens\":$(dt-tokenize -t "$golden/tokenizer.json" --ids --frame none --from text "$golden/corpus.txt" | wc -w)," out
    done
    : >empty
    dt-bench --json --pattern o200k -t "$golden/tokenizer.json" --seconds 0.01 tokenize "$golden/corpus.txt" >other
    grep -q "\"tokens\":$(dt-tokenize -t "$golden/tokenizer.json" --pattern o200k --ids --frame none --from text "$golden/corpus.txt" | wc -w)," other
    [ "$(jq .tokens out)" != "$(jq .tokens other)" ]
    dt-vocab -q --model wordpiece -s 200 -o words.json "$golden/corpus.txt"
    echo >blank
    run dt-bench -t words.json tokenize blank
    assert_one_line_error dt-bench
    run dt-bench -t "$golden/tokenizer.json" tokenize empty
    assert_one_line_error dt-bench
    run dt-bench tokenize empty
    [ "$status" -eq 2 ]
}

@test "roofline counts a step on a device that is not here" {
    dt-bench roofline --json --device h100 --set model.vocab_size=50257 --set training.precision=bf16 \
        --set training.batch_size=32 >counts
    jq -e '.device == "H100 SXM5 80 GB" and .tokens == 32768 and (.parts | length) == 16' counts
    jq -e '.parts[-1] | .flops / 1e12 > 26.4 and .flops / 1e12 < 26.5 and .likely_s > .least_s' counts
    jq -e '[.parts[:-1][].flops] | add' counts >sum
    jq -e --slurpfile sum sum '.parts[-1].flops == $sum[0]' counts
    dt-bench roofline --device h100 --set model.vocab_size=50257 \
        --machine device.attention_efficiency=0.1 >slow
    grep -q 'attention 10%' slow
    refuses() {
        run dt-bench roofline "${@:2}"
        [ "$status" -eq 1 ]
        grep -qF "$1" <<<"$output"
    }
    refuses "model.vocab_size is needed" --device h100
    refuses "is neither a file nor a cluster" --device v100 --set model.vocab_size=99
    refuses "does not use distributed.tp" --device h100 --set model.vocab_size=99 --set distributed.tp=2
    run dt-bench roofline --set model.vocab_size=99
    [ "$status" -eq 2 ]
}

@test "collective measures collectives between ranks" {
    need_mpi
    cd "$T"
    timeout 900 mpirun -n 3 dt-bench --json collective >speeds
    [ "$(jq -r '.ranks' speeds)" = 3 ]
    [ "$(jq '.collectives | length' speeds)" = 9 ]
    [ "$(jq '[.collectives[] | select(.seconds > 0)] | length' speeds)" = 9 ]
    # The first rank of three sends a third of an array to each of two others, and in a
    # broadcast all of it.
    [ "$(jq '.collectives[0].sent' speeds)" = 2732 ]
    [ "$(jq '.collectives[8].sent' speeds)" = 134217728 ]
    run dt-bench collective
    assert_one_line_error dt-bench
    skip_sleeps "$T/slept"
    OMPI_COMM_WORLD_RANK=1 run dt-bench collective --no-such # rank 0 prints it
    [ "$status" -eq 2 ]
    [ "$(cat slept)" = 5 ]
}

@test "shard measures compression of the tokens of dt-tokenize at each level" {
    cd "$T"
    dt-synth -n 300 >docs.jsonl
    dt-vocab -q -s 300 -o tok.json docs.jsonl
    dt-tokenize -q -t tok.json -o all.dts docs.jsonl
    tokens=$(dt-cat --json all.dts | jq .tokens)
    for level in 0 3 9; do
        dt-shard -o "level-$level" --level "$level" all.dts
        dt-bench --json -j 2 --level "$level" --seconds 0.01 shard all.dts >out
        [ "$(jq -c '[.threads, .level, .tokens, .bytes]' out)" = "[2,$level,$tokens,$(dt-cat --json all.dts | jq .bytes)]" ]
        [ "$(jq '.tokens_per_second > 0 and .tokens_per_core_second > 0 and .mb_per_second > 0' out)" = true ]
        # except for the provenance
        written=$(($(stat -c %s "level-$level"/train-00000.dts) - $(jq .shard_bytes out)))
        [ "$written" -ge 0 ] && [ "$written" -lt 400 ]
    done
    dt-shard -o padded --layout padded --length 64 all.dts
    dt-bench --seconds 0.01 shard padded/train-00000.dts |
        grep -qE '^shard +[0-9.]+ M tokens/s on 1 thread at level 3, '
    for wrong in missing.dts docs.jsonl; do
        run dt-bench shard "$wrong"
        assert_one_line_error dt-bench
    done
}

@test "each command refuses options of other commands" {
    for wrong in "gemm --config x" "shard --set a=b x" "compare -o x a b" "load --level 3 x" "step -q"; do
        run dt-bench $wrong
        [ "$status" -eq 2 ]
        [[ "$output" == "dt-bench: ${wrong%% *} takes no --"* ]]
    done
    run dt-bench matrix true
    [ "$status" -eq 2 ]
    [[ "$output" == "dt-bench: matrix needs --output"* ]]
    [ "$(dt-bench --help | grep -cE '^(usage:|      ) dt-bench ')" -eq 15 ]
}

@test "settings that a measurement does not use are refused by name" {
    cd "$T"
    small="--set model.vocab_size=99 --set model.hidden_size=16 --set model.num_layers=1 --set model.num_heads=2"
    for what in step decode attention; do
        for setting in distributed.tp=2 distributed.zero_stage=1 data.layout=padded; do
            run dt-bench -j 1 $small --set $setting $what
            assert_one_line_error dt-bench
            [ "$output" = "dt-bench: $what does not use ${setting%=*}: remove that setting" ]
        done
    done
    for objective in dpo 'grpo --set grpo.max_new_tokens=8'; do
        run dt-bench -j 1 $small --set training.objective=$objective step
        assert_one_line_error dt-bench
        [ "$output" = "dt-bench: step does not use training.objective ${objective%% *}: remove that setting" ]
    done
    printf 'distributed:\n  compress: bf16\n' >config.yaml
    run dt-bench -j 1 -c config.yaml $small step
    assert_one_line_error dt-bench
    [ "$output" = "dt-bench: step does not use distributed.compress: remove that setting" ]
    dt-synth -n 50 -o docs.jsonl
    dt-vocab -q -s 300 -o tok.json docs.jsonl
    dt-tokenize -q -t tok.json docs.jsonl | dt-shard -o data
    run dt-bench --seconds 0.01 --set data.layout=padded load data
    assert_one_line_error dt-bench
    [ "$output" = "dt-bench: data.layout is padded, but the shards of 'data' are not: remove that setting" ]
    run dt-bench --seconds 0.01 -t tok.json --set distributed.cp=2 load docs.jsonl
    assert_one_line_error dt-bench
    [ "$output" = "dt-bench: load does not use distributed.cp: remove that setting" ]
    dt-bench --seconds 0.01 -t tok.json --set training.sequence_length=32 --set data.layout=padded load docs.jsonl
}

@test "gpu records what a check proves, and the engine uses it" {
    local engine gpu='"stage": "x", "reason": "", "seconds": 1, "gpu_mib": 0, "values": []'
    export DT_GPU_RECORDS=$T/new/gpus DT_GPU_DRIVER=580.1
    engine=$(sha256sum <"$DT_ENGINES/cuda-emulated.so")
    cat >check.json <<END
{"device": "emulated", "driver": "580.1", "engine": "${engine%% *}", "commit": "1", "steps": [
{"step": "a", "options": "", "verdict": "agrees", $gpu},
{"step": "b", "options": "graph", "verdict": "agrees", $gpu},
{"step": "c", "options": "wgmma graph", "verdict": "not run", $gpu},
{"step": "d", "options": "", "verdict": "not run", $gpu}]}
END
    run dt-bench gpu check.json
    [ "$status" -eq 0 ]
    [ "${lines[0]}" = "emulated, driver 580.1: 2 agree, 0 differ, 2 not run" ]
    [ "${lines[1]}" = "wgmma   not proven: 0 agree, 0 differ, 1 not run" ]
    [ "${lines[2]}" = "graph   not proven: 1 agree, 0 differ, 1 not run" ]
    [ ! -e new ]
    sed -i '/"c"/s/not run/agrees/' check.json
    run dt-bench gpu --adopt check.json
    [ "$status" -eq 0 ]
    [ "${lines[3]}" = "recorded in $T/new/gpus" ]
    sed -i '/"a"/s/agrees/differs/' check.json
    run dt-bench gpu check.json
    [ "${lines[2]}" = "graph   not proven: 2 agree, 0 differ, 0 not run; a step without options differs" ]
    # graphs are used without DT_CUDA_GRAPH, and not with another driver
    local decode=(dt-bench --json -n 4 --device cuda-emulated --set model.hidden_size=32
        --set model.num_layers=3 --set model.num_heads=2 --set model.vocab_size=50
        --set model.max_seq_len=16 decode)
    export CUDA_EMULATOR=count
    [[ "$("${decode[@]}" 2>&1)" =~ "emulator: "[1-9] ]]
    [[ "$(DT_GPU_DRIVER=580.2 "${decode[@]}" 2>&1)" == *"emulator: 0 graphs made"* ]]
}
