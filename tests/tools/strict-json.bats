# SPDX-License-Identifier: MIT
# With NaN, infinities and huge numbers too, programs write JSON that strict parsers accept: Python's,
# without NaN, and jq's.
load ../helper

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    make_data 60 300 --split val=0.2
    train() {
        dt-train -q --set model.hidden_size=32 --set model.num_layers=1 --set model.num_heads=2 \
            --set model.max_seq_len=32 --set training.batch_size=2 --set training.max_steps=4 \
            --set training.warmup_steps=1 --set training.log_interval=1 "$@"
    }
    train -t tok.json -o run data
    train --set model.name=distilbert -t tok.json -o masked data 2>/dev/null || true
    dt-vocab -q --model wordpiece -s 300 -o pieces.json docs.jsonl
    dt-tokenize -q -t pieces.json docs.jsonl | dt-shard -o masked-data
    rm -rf masked
    train --set model.name=distilbert -t pieces.json -o masked masked-data
    # Losses are finite, but so large that perplexities are infinite.
    python3 "$ROOT/tests/tools/poison-weights.py" run/latest huge ln_f.weight 0 $(yes 1e6 | head -n 32)
    python3 "$ROOT/tests/tools/poison-weights.py" masked/latest huge-masked vocab_layer_norm.weight 0 \
        $(yes 1e6 | head -n 32)
    python3 "$ROOT/tests/tools/poison-weights.py" run/latest broken wpe.weight 0 $(yes 3e38 | head -n 32)
}

setup() {
    cd "$T"
    ln -s "$BATS_FILE_TMPDIR"/{run,masked,data,masked-data,huge,huge-masked,broken,docs.jsonl,tok.json,pieces.json} .
}

strict() { # [--least N] FILE...
    python3 "$ROOT/tests/tools/strict-json.py" "$@"
    [ "$1" != --least ] || shift 2
    jq -c . "$@" >/dev/null
}

@test "the check itself refuses what is not JSON" {
    local text
    for text in '{"a":NaN}' '{"a":nan}' '{"a":-nan}' '{"a":Infinity}' '{"a":-inf}' '{"a":1.}' '{"a":01}'; do
        echo "$text" >a
        refute python3 "$ROOT/tests/tools/strict-json.py" a
        printf '{}\n%s\n' "$text" >a
        refute python3 "$ROOT/tests/tools/strict-json.py" a
    done
    echo '{"a":null,"b":1e308}' >a
    strict a
    refute python3 "$ROOT/tests/tools/strict-json.py" --least 2 a
}

@test "dt-train: metrics, state, settings and manifest, of losses that are not finite too" {
    inject_faults
    small=(--set model.hidden_size=32 --set model.num_layers=1 --set model.num_heads=2
        --set model.max_seq_len=32 --set training.batch_size=2 --set training.max_steps=4
        --set training.warmup_steps=1 --set training.log_interval=1)
    DT_DEBUG_POISON=2 dt-train -q "${small[@]}" --set training.patience=3 --set training.eval_interval=1 \
        --set training.ema_decay=0.9 -t tok.json -o poisoned data 2>/dev/null
    [ "$(grep -c '"grad_norm":null' poisoned/metrics.jsonl)" -eq 1 ]
    for value in fp16 bf16; do
        DT_DEBUG_POISON=3 dt-train -q "${small[@]}" --set training.precision=$value -o $value data 2>/dev/null
    done
    run dt-train -q "${small[@]}" --set training.eval_interval=0 --init-from broken -o diverged data
    [ "$status" -eq 1 ]
    [ "$(grep -c '"loss":null' diverged/metrics.jsonl)" -eq 4 ]
    # Losses of a million nats, and very large gradients.
    dt-train -q "${small[@]}" --set training.eval_interval=1 --set training.learning_rate=1e-9 \
        --init-from huge -o large data >/dev/null
    strict --least 4 {poisoned,fp16,bf16,diverged,large}/metrics.jsonl
    strict {poisoned,fp16,bf16,large}/latest/{config.json,trainer/*.json,tokenizer*.json} 2>/dev/null ||
        strict $(find poisoned/latest/ fp16/latest/ bf16/latest/ large/latest/ -name '*.json')
}

@test "dt-eval: reports and items of losses beyond any perplexity" {
    printf '{"id":"%s","context":"Once","choices":[" upon"," a dog"],"gold":0}\n' a b >q.jsonl
    printf '{"context":"Once upon","target":" a time"}\n%.0s' 1 2 >guess.jsonl
    dt-eval -q --json --items items.perplexity -m huge -m run/latest perplexity docs.jsonl >perplexity
    [ "$(jq -c '[.perplexity, (.loss > 1000)]' perplexity | head -n 1)" = '[null,true]' ]
    dt-eval -q --json --items items.choice -m huge -m run/latest choice q.jsonl >choice
    dt-eval -q --json --items items.guess -m huge -m run/latest choice guess.jsonl >guess
    [ "$(jq -c .perplexity guess | head -n 1)" = null ]
    for how in "" --alone; do
        dt-eval -q --json $how --items items.masked -m huge-masked -m masked/latest masked docs.jsonl >masked.json
        [ "$(jq -c '.perplexity // .pseudo_perplexity' masked.json | head -n 1)" = null ]
        strict --least 2 masked.json items.masked
    done
    echo 'a b c' | tee one two three >references
    echo >empty
    dt-eval -q --json --bootstrap 5 --items items.bleu -r references bleu one empty >bleu
    strict bleu
    strict --least 2 perplexity choice guess items.*
}

@test "dt-generate: prompts with numbers of every kind" {
    {
        echo '{"prompt":"Once","a":NaN,"b":[-Infinity,1e400,1e308,-0.0],"text":"old"}'
        echo '{"prompt":"Once","a":123456789012345678901234567890,"b":{"c":Infinity}}'
    } >prompts.jsonl
    for how in "" "--beams 2" "--temperature 1e-300" "--samples 2"; do
        for model in run/latest huge; do
            dt-generate -m $model --prompts prompts.jsonl -n 3 $how -o out
            strict --least 2 out
            [ "$(grep -c '"a":null' out)" -ge 1 ]
            [ "$(grep -c '"a":123456789012345678901234567890' out)" -ge 1 ]
        done
    done
    echo '{"prompt":"Once","a":1.}' >prompts.jsonl
    run dt-generate -m run/latest --prompts prompts.jsonl -n 3
    assert_one_line_error dt-generate
    [[ "$output" == *"prompts.jsonl:1: byte 21: is not a number of JSON" ]]
}

@test "dt-clean, dt-synth and dt-shard: documents, findings, statistics and shards" {
    for number in 1e400 -1e308 1e-400 123456789012345678901234567890; do
        printf '{"text":"Once upon a time, %s.","meta":{"n":%s}}\n' "$number" "$number"
    done >in.jsonl
    for text in '' '.' '0' '\\n\\n' 'é' '!!!!!!!!!' 'a a a a a a a a'; do
        printf '{"text":"%s","n":1e400}\n' "$text"
    done >>in.jsonl
    for rules in gopher c4 fineweb dolma; do
        dt-clean -q --min-chars 0 --rules $rules --rejects rejects.$rules --stats stats.$rules -o out.$rules in.jsonl || [ $? -eq 1 ]
        dt-clean -q --min-chars 0 --rules $rules --attributes -o attributes.$rules in.jsonl
        strict stats.$rules attributes.$rules
        strict rejects.$rules
        [ ! -s out.$rules ] || strict out.$rules
    done
    for word in NaN -Infinity nan 1.; do
        echo "{\"text\":\"Once\",\"n\":$word}" >bad.jsonl
        run dt-clean -q bad.jsonl
        assert_one_line_error dt-clean
    done
    dt-synth -n 3 >synth
    dt-tokenize -q -t tok.json in.jsonl | dt-shard -o shards
    dt-cat --json shards/*.dts >listing
    dt-cat --as mds -o mds shards/*.dts
    strict synth listing shards/index.json mds/index.json tok.json
}

@test "dt-export: settings and index" {
    for model in run/latest huge; do
        dt-export -m $model --max-shard 20000 -o out
        strict $(find out -name '*.json')
        [ -e out/model.safetensors.index.json ]
        rm -r out
    done
    run dt-export -m broken --to gguf -o - --verify
    [ "$status" -ne 0 ]
}

@test "dt-plan: plans, searches, timelines and comparisons of absurd machines" {
    settings=(--set model.vocab_size=300 --set model.hidden_size=32 --set model.num_heads=2
        --set training.gradient_accumulation_steps=4)
    number=0
    for machine in device.bandwidth=1e6 device.bandwidth=1e-3 device.tflops_32=1e-6 device.launch=1e6 \
        device.tflops_32=1e6 link.inside=1e-6 link.inside_latency=1e6 device.spread=10 \
        reliability.device_mtbf=0 reliability.device_mtbf=1e-12 reliability.device_mtbf=1e9 \
        reliability.checkpoint_speed=1e-6; do
        number=$((number + 1))
        dt-plan "${settings[@]}" --machine $machine --machine reliability.restart=1e6 -n 2 --json >plan.$number
        dt-plan "${settings[@]}" --machine $machine -n 2 --trace trace.$number >/dev/null
        strict plan.$number trace.$number
    done
    dt-plan "${settings[@]}" --json --search 4 >search
    dt-plan --validate --json >validation
    strict search validation
}

@test "dt-bench: measurements, rows, reports and comparisons" {
    small=(--set model.vocab_size=300 --set model.hidden_size=32 --set model.num_layers=1
        --set model.num_heads=2 --set model.max_seq_len=32 --set training.batch_size=1)
    dt-bench --json -j 1 gemm >gemm
    dt-bench --json -j 1 -n 1 "${small[@]}" step >step
    dt-bench --json -j 1 -n 1 "${small[@]}" decode >decode
    dt-bench --json -j 1 --seconds 0.01 "${small[@]}" attention >attention
    dt-bench --json --seconds 0.01 -t tok.json tokenize docs.jsonl >tokenize
    dt-tokenize -q -t tok.json docs.jsonl >stream.dts
    dt-bench --json --seconds 0.01 shard stream.dts >shard
    dt-bench --json --seconds 0.01 --set model.max_seq_len=32 load data >load
    strict gemm step decode attention tokenize shard load
    for output in '{"a":NaN,"b":1}' '{"a":1e400,"b":-Infinity,"c":2}' '{"a":1e300,"b":-1e300}' \
        '{"a":0,"b":5e-324}' 'nan'; do
        rm -f rows other
        dt-bench matrix -q -w 0 -r 3 -o rows --json -- echo "$output" >table
        dt-bench matrix -q -w 0 -r 3 -o other -- echo '{"a":0,"b":1e300}' >/dev/null
        dt-bench report rows --json >report
        dt-bench compare rows other --json >comparison || true
        strict table report comparison
        strict --least 5 rows other
    done
}

@test "dt-bench: ranks" {
    need_mpi
    mpirun -n 2 dt-bench --json collective >collective
    strict collective
}

@test "dt-track: requests and state" {
    command -v python3 >/dev/null || skip "no python3"
    need_plugin http libcurl
    mkdir -p log/latest/trainer
    {
        echo '{"step":1,"time":0.1,"loss":NaN,"a":1e400,"b":1e308,"c":-Infinity,"d":2}'
        echo '{"step":2,"time":1e300,"loss":1}'
        echo '{"step":1e300,"time":1,"loss":1}'
        echo '{"step":3,"time":null,"loss":1}'
        echo '{"step":4,"time":0.4,"loss":null,"e":123456789012345678901234567890}'
    } >log/metrics.jsonl
    hold_port
    python3 "$ROOT/tests/track/faulty-mlflow.py" "$(cat port)" ready store.json well 3>&- >/dev/null 2>&1 &
    server=$!
    await $server test -e ready
    dt-track -q -1 -t tb -m "http://127.0.0.1:$(cat port)" log
    end_process server HOLDER
    strict store.json $(find log tb -name '*.json')
    [ "$(jq -c '[.runs[0].metrics[] | [.key, .value, .step]]' store.json)" = \
        '[["time",0.1,1],["b",1e+308,1],["d",2,1],["time",0.4,4],["e",123456789012345680000000000000,4]]' ]
}
