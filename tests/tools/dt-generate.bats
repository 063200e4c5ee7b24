# SPDX-License-Identifier: MIT
load ../helper

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    make_data 300 300
    dt-train -q --set model.hidden_size=32 --set model.num_layers=2 --set model.num_heads=2 \
        --set model.max_seq_len=48 --set training.batch_size=8 --set training.max_steps=60 \
        --set training.warmup_steps=5 --set training.learning_rate=5e-3 -t tok.json -o run data
}

setup() {
    cd "$T"
    model=$BATS_FILE_TMPDIR/run/latest
}

@test "the prompt comes first, and the same seed gives the same text" {
    dt-generate -m "$model" -p 'Once upon' -n 40 --seed 3 >a
    dt-generate -m "$model" -p 'Once upon' -n 40 --seed 3 >b
    dt-generate -m "$model" -p 'Once upon' -n 40 --seed 4 >c
    cmp a b
    refute cmp -s a c
    [[ "$(cat a)" == "Once upon"?* ]]
}

@test "another tokenizer than the model's is named, and used" {
    dt-synth -n 100 --seed 9 | dt-vocab -q -s 290 -o other.json -
    dt-generate -m "$model" -t other.json -p 'Once' -n 4 2>said
    [ "$(cat said)" = "dt-generate: warning: other.json is not the tokenizer in $model: the model may take its ids for other tokens" ]
    dt-generate -m "$model" -t "$BATS_FILE_TMPDIR/tok.json" -p 'Once' -n 4 2>said
    [ ! -s said ]
}

@test "a model without a tokenizer is named with the option that gives one" {
    dt-train -q --set model.hidden_size=8 --set model.num_layers=1 --set model.num_heads=1 --set training.max_steps=1 \
        --set training.warmup_steps=0 -o run "$BATS_FILE_TMPDIR/data"
    mv "$(realpath run/latest)" bare
    run dt-generate -m bare -p 'Once' -n 4
    assert_one_line_error dt-generate
    [ "$output" = "dt-generate: bare: does not contain tokenizer.json or another tokenizer file: see dt-tokenizer(5); -t FILE names one" ]
    dt-generate -m bare -t "$model/tokenizer.json" -p 'Once' -n 4 >said
    echo "{\"text\":\"Once\"}" >docs.jsonl
    run dt-eval -q -m bare perplexity docs.jsonl
    assert_one_line_error dt-eval
    [[ "$output" == *"; -t FILE names one" ]]
}

@test "samples differ, and the first does not depend on their number" {
    dt-generate -m "$model" -n 30 -s 3 >three
    dt-generate -m "$model" -n 30 >one
    [ "$(head -c "$(stat -c %s one)" three)" = "$(cat one)" ]
    dt-generate -m "$model" -n 30 -s 2 --temperature 0 >greedy
    half=$(($(stat -c %s greedy) / 2))
    [ "$(head -c $half greedy)" = "$(tail -c $half greedy)" ]
}

@test "temperature 0, top-k 1 and a tiny top-p all take the most probable token" {
    dt-generate -m "$model" -p One -n 30 --temperature 0 >greedy
    dt-generate -m "$model" -p One -n 30 --top-k 1 --seed 9 | cmp - greedy
    dt-generate -m "$model" -p One -n 30 --top-p 0.000001 --seed 9 | cmp - greedy
}

@test "text continues beyond the model's positions" {
    words=$(dt-generate -m "$model" -p One -n 400 --temperature 1.5 --seed 2 | wc -c)
    [ "$words" -gt 100 ]
}

@test "any number of threads gives the same text" {
    dt-generate -m "$model" -n 60 -j 1 >a
    dt-generate -m "$model" -n 60 -j 3 | cmp - a
}

@test "in bf16 too, text depends on neither threads nor batch" {
    printf '{"prompt":"%s"}\n' Once 'One day' There She >prompts.jsonl
    dt-generate -m "$model" --precision bf16 --prompts prompts.jsonl -n 20 -j 1 --batch 1 >a
    dt-generate -m "$model" --precision bf16 --prompts prompts.jsonl -n 20 -j 3 --batch 4 | cmp - a
}

@test "canonical bf16 has the same text with every instruction set, and needs --precision" {
    for engine in cpu-generic cpu-avx2 cpu; do
        dt-generate -m "$model" --precision bf16 --arithmetic canonical --device $engine -p Once -n 30 >$engine ||
            [ $engine = cpu-avx2 ]
        [ ! -s $engine ] || cmp cpu-generic $engine
    done
    run dt-generate -m "$model" --arithmetic canonical -p Once
    [ $status = 2 ]
    [[ "$output" == *--precision* ]]
    run dt-generate -m "$model" --precision bf16 --arithmetic exact -p Once
    [ $status = 2 ]
}

@test "greedy text is that of transformers" {
    need_python torch transformers
    dt-generate -m "$model" -p 'Once upon a time' -n 30 --temperature 0 -o a
    "$PYTHON" "$ROOT/tests/oracles/greedy_oracle.py" "$model" 'Once upon a time' 30 | cmp - a
}

train_llama() {
    dt-train -q --set model.name=llama --set model.hidden_size=32 --set model.num_layers=2 \
        --set model.num_heads=4 --set model.num_kv_heads=1 --set model.max_seq_len=48 \
        --set model.tie_word_embeddings=false --set training.batch_size=8 \
        --set training.max_steps=60 --set training.warmup_steps=5 \
        --set training.learning_rate=5e-3 -t "$BATS_FILE_TMPDIR/tok.json" -o llama \
        "$BATS_FILE_TMPDIR/data"
}

@test "a llama writes the same text with any number of threads, beyond its positions" {
    train_llama
    dt-generate -m llama/latest -n 100 -j 1 >a
    dt-generate -m llama/latest -n 100 -j 3 | cmp - a
    [ "$(wc -c <a)" -gt 50 ]
}

@test "greedy text of a llama is that of transformers" {
    need_python torch transformers
    train_llama
    dt-generate -m llama/latest -p 'Once upon a time' -n 30 --temperature 0 -o a
    "$PYTHON" "$ROOT/tests/oracles/greedy_oracle.py" llama/latest 'Once upon a time' 30 | cmp - a
}

prompts() { # COUNT: lines of JSON
    for ((i = 0; i < $1; i++)); do
        words=(Once there was a young lion named Mia who)
        echo "{\"id\":$i,\"prompt\":\"${words[*]:0:i % 8 + 1}\"}"
    done
}

texts() { sed -E 's/.*"text":"(.*)","tokens".*/\1/'; }

@test "prompts in JSON Lines come back with text, in order, whatever the batch" {
    prompts 40 >in.jsonl
    dt-generate -m "$model" --prompts in.jsonl -n 30 >a
    [ "$(wc -l <a)" -eq 40 ]
    [ "$(sed -E 's/.*"id":([0-9]+).*/\1/' a | paste -sd ' ')" = "$(seq -s ' ' 0 39)" ]
    for batch in 1 7 64; do
        dt-generate -m "$model" --prompts - --batch $batch -j 1 -n 30 <in.jsonl | cmp - a
    done
    head -n 9 in.jsonl | dt-generate -m "$model" --prompts - -n 30 | cmp - <(head -n 9 a)
    [ "$(texts <a | sort -u | wc -l)" -gt 30 ]
    dt-generate -m "$model" --prompts in.jsonl -n 200 --batch 3 >long # beyond the context
    dt-generate -m "$model" --prompts in.jsonl -n 200 --batch 1 | cmp - long
}

@test "outputs can be inputs, and members are not duplicated" {
    echo '{"prompt":"Once","log_probability":-1,"sample":0}' >in.jsonl
    dt-generate -m "$model" --prompts in.jsonl -n 3 >once
    dt-generate -m "$model" --prompts once -n 3 | cmp - once
    [ "$(grep -o '"[a-z_]*":' once | paste -sd ' ')" = '"prompt": "text": "tokens": "finish":' ]
}

@test "outputs are UTF-8, whatever the bytes of the prompt and the end of the text" {
    for i in {1..40}; do echo '{"text":"äöü€ über schöne grüße, äöü€ über"}'; done >umlauts.jsonl
    dt-vocab -q --size 257 -o bytes.json umlauts.jsonl # each token is a byte
    dt-tokenize -q -t bytes.json umlauts.jsonl | dt-shard -o umlauts
    dt-train -q --set model.hidden_size=32 --set model.num_layers=1 --set model.num_heads=2 \
        --set model.max_seq_len=48 --set training.batch_size=8 --set training.max_steps=60 \
        --set training.warmup_steps=5 --set training.learning_rate=1e-2 -t bytes.json -o bytes umlauts
    printf '{"prompt":"\xff\xc3"}\n{"prompt":"ä"}\n' >in.jsonl
    for tokens in 1 2 3 4 5; do
        dt-generate -m bytes/latest --prompts in.jsonl -n $tokens >out
        iconv -f UTF-8 -t UTF-8 out >/dev/null
        [ "$(jq -s length out)" -eq 2 ]
    done
    all=$(dt-generate -m bytes/latest -p ä -n 30 --temperature 0)
    text=${all#ä} stop=${text:6:4} # of several tokens
    [ -n "$stop" ]
    dt-generate -m bytes/latest -p ä -n 30 --temperature 0 --stop "$stop" >cut
    [ "$(cat cut)" = "ä${text%%"$stop"*}" ]
}

@test "a prompt in a file is continued as on the command line" {
    dt-generate -m "$model" -p 'Once there' -n 20 >a
    echo '{"prompt":"Once there"}' | dt-generate -m "$model" --prompts - -n 20 >b
    [ "Once there$(texts <b)" = "$(cat a)" ]
    echo '{"prompt":"Once there"}' | dt-generate -m "$model" --prompts - -n 20 -s 3 >c
    [ "$(grep -c '"sample":' c)" -eq 3 ]
    [ "$(texts <c | sort -u | wc -l)" -eq 3 ]
    [ "$(sed -n 1p c | sed 's/"sample":0,//')" = "$(cat b)" ]
}

@test "text ends before a stop string, also while it streams" {
    dt-generate -m "$model" -p Once -n 60 --temperature 0 >all
    word=$(cut -d ' ' -f 4 all)
    dt-generate -m "$model" -p Once -n 60 --temperature 0 --stop "zzz" --stop " $word" >cut
    [ "$(cat cut)" = "$(sed "s/ $word.*//" all)" ]
    echo '{"prompt":"Once"}' |
        dt-generate -m "$model" --prompts - -n 60 --temperature 0 --stop " $word" >b
    [ "Once$(texts <b)" = "$(cat cut)" ]
    grep -q '"finish":"stop"' b
}

@test "the repetition penalty reduces repetition, and min-p 1 is greedy" {
    dt-generate -m "$model" -p Once -n 60 --temperature 0 >greedy
    dt-generate -m "$model" -p Once -n 60 --min-p 1 | cmp - greedy
    dt-generate -m "$model" -p Once -n 60 --temperature 0 --repetition-penalty 3 >less
    words() { tr -c 'A-Za-z' '\n' <"$1" | sort -u | wc -l; }
    [ "$(words less)" -gt "$(words greedy)" ]
}

@test "more beams find more probable text, whatever else is in the batch" {
    prompts 6 >in.jsonl
    last=-1000000
    for beams in 2 8; do
        dt-generate -m "$model" --prompts in.jsonl -n 12 --length-penalty 0 --beams $beams >b
        [ "$(wc -l <b)" -eq 6 ]
        sum=$(sed -E 's/.*"log_probability":([-0-9.e]+).*/\1/' b | awk '{ s += $1 } END { print s }')
        awk -v a="$last" -v b="$sum" 'BEGIN { exit !(b >= a) }'
        last=$sum
    done
    tail -n 1 in.jsonl | dt-generate -m "$model" --prompts - -n 12 --length-penalty 0 --beams 8 |
        cmp - <(tail -n 1 b)
}

# penalized PROMPT N: the most probable continuation, with tokens of the prompt preferred.
penalized() {
    jq -cn --arg p "$1" '{prompt: $p}' | dt-generate -m "$model" --prompts - -n "$2" --beams 2 \
        --length-penalty 0 --repetition-penalty 0.5
}

@test "beams have the same number of positions after prompts of any length" {
    words=$(for i in $(seq 60); do printf 'Once upon a time '; done)
    for size in 40 60 80 100 120 140 160 200 400; do
        jq -cn --arg p "${words:0:size}" '{prompt: $p}'
    done >in.jsonl
    dt-generate -m "$model" --prompts in.jsonl -n 24 --beams 2 --length-penalty 9 >a
    [ "$(jq -s 'length' a)" -eq 9 ]
    [ "$(jq -r 'select(.finish == "length") | .tokens' a | sort -u)" = 24 ]
    dt-generate -m "$model" --prompts in.jsonl -n 5 --beams 2 --length-penalty 9 >a
    [ "$(jq -r 'select(.finish == "length") | .tokens' a | sort -u)" = 5 ]
}

@test "blank lines among prompts are skipped, and line numbers count them" {
    prompts 3 >in.jsonl
    dt-generate -m "$model" --prompts in.jsonl -n 8 >a
    { echo; head -n 1 in.jsonl; printf ' \t\r\n\n'; tail -n 2 in.jsonl; printf '\n\n'; } |
        dt-generate -m "$model" --prompts - -n 8 | cmp - a
    printf '\n\n7\n' >bad.jsonl
    run dt-generate -m "$model" --prompts bad.jsonl
    assert_one_line_error dt-generate
    [[ "$output" == "dt-generate: bad.jsonl:3: "* ]]
    printf '\n\n' >bad.jsonl
    run dt-generate -m "$model" --prompts bad.jsonl
    assert_one_line_error dt-generate
    [[ "$output" == *"contains no prompt" ]]
}

@test "a tokenizer that is a pipe or a device is refused without blocking" {
    cp -rL "$model" bad
    rm bad/tokenizer.json
    mkfifo bad/tokenizer.json
    run timeout 900 dt-generate -m bad -n 1 # the hashes of its files are compared first
    assert_one_line_error dt-generate
    [[ "$output" == *"bad/tokenizer.json': is not a regular file, but a FIFO" ]]
    rm bad/trainer/manifest.json
    for command in "dt-generate -m bad -n 1" "dt-eval -m bad --split train perplexity $BATS_FILE_TMPDIR/data" \
        "dt-export -m bad -o out" \
        "dt-train --init-from bad -o run $BATS_FILE_TMPDIR/data"; do
        run timeout 900 $command
        assert_one_line_error "${command%% *}"
        [[ "$output" == *"bad/tokenizer.json': is not a regular file, but a FIFO" ]]
        [ ! -e out ]
    done
}

@test "beams penalize each token of prompt and text once" {
    prompt='Once upon a time there was a cat'
    x=$(penalized "$prompt" 1 | jq -r .text)
    y=$(penalized "$prompt$x" 1 | jq -r .text)
    [[ -n "$x" && "$prompt" == *"$x"* ]]
    penalized "$prompt" 2 | jq -r .log_probability >both
    { penalized "$prompt" 1; penalized "$prompt$x" 1; } | jq -r .log_probability >parts
    [ "$(penalized "$prompt" 2 | jq -r .text)" = "$x$y" ]
    awk 'NR == 1 { both = $1 } NR > 1 { both -= $1 } END { exit both < -1e-4 || both > 1e-4 }' \
        both parts
    # The penalty is of the log-probability.
    dt-generate -m "$model" -p "$prompt" -n 1 --json --logprobs 100 >plain
    jq -e --arg x "$x" --argjson penalized "$(penalized "$prompt" 1 | jq .log_probability)" '
        .logprobs[0].top_logprobs[] | select(.token == $x) | .logprob * 0.5 - $penalized | fabs < 1e-5' plain
}

@test "beams that do not end are as many with several ends of text" {
    dt-train -q --set model.hidden_size=16 --set model.num_layers=2 --set model.num_heads=2 \
        --set model.max_seq_len=48 --set training.batch_size=1 --set training.max_steps=1 \
        --set training.warmup_steps=0 -t "$model/tokenizer.json" -o fresh "$BATS_FILE_TMPDIR/data"
    cp -rL fresh/latest peaked && rm -r peaked/trainer
    python3 - peaked >found <<'EOF'
import itertools, json, struct, subprocess, sys
directory = sys.argv[1]
path = directory + "/model.safetensors" # with a final norm that makes tokens more and less probable
data = bytearray(open(path, "rb").read())
size = struct.unpack("<Q", data[:8])[0]
begin, end = (8 + size + at for at in json.loads(data[8:8 + size])["transformer.ln_f.weight"]["data_offsets"])
norm = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
data[begin:end] = struct.pack(f"<{len(norm)}f", *(10 * x for x in norm))
open(path, "wb").write(data)

def best(prompts): # the most probable next tokens of each
    lines = "".join(json.dumps({"prompt": p}) + "\n" for p in prompts)
    done = subprocess.run(["dt-generate", "-m", directory, "--prompts", "-", "-n", "1", "--logprobs", "5",
                           "--temperature", "0"],
                          input=lines, capture_output=True, text=True, check=True)
    answers = [json.loads(line)["logprobs"] for line in done.stdout.splitlines()]
    return [answer[0]["top_logprobs"] if answer else None for answer in answers]

words = ["Once", " upon", " a", " time", " the", " cat", " was", ",", " and", "."]
prompts = ["".join(p) for p in itertools.product(words, repeat=2)]
for prompt, top in zip(prompts, best(prompts)):
    if top is None or not all(0x20 <= ord(c) < 0x7f for c in top[0]["token"] + top[4]["token"]):
        continue
    second = best([prompt + top[i]["token"] for i in (0, 4)])
    if None in second:
        continue
    after = [top[i]["logprob"] + then[0]["logprob"] for i, then in zip((0, 4), second)]
    if after[1] > after[0] + 0.05: # the fifth token leads to more than the first
        print(json.dumps({"prompt": prompt, "ends": [t["id"] for t in top[1:4]], "best": after[1]}))
        break
EOF
    jq '{eos_token_id: .ends}' found >peaked/generation_config.json
    dt-generate -m peaked --json -p "$(jq -r .prompt found)" -n 2 --beams 2 --length-penalty 3 >answer
    jq -es '(.[0].best - .[1].log_probability) | fabs < 1e-4' found answer
}

@test "beams are those of transformers" {
    need_python torch transformers
    prompts 6 >in.jsonl
    for beams in 2 5; do
        dt-generate -m "$model" --prompts in.jsonl -n 20 --beams $beams >b
        "$PYTHON" "$ROOT/tests/oracles/beam_oracle.py" "$model" b 20 $beams
    done
    for penalties in '1.5 0.5' '0.8 2'; do
        set -- $penalties
        dt-generate -m "$model" --prompts in.jsonl -n 20 --beams 3 --repetition-penalty $1 --length-penalty $2 >b
        "$PYTHON" "$ROOT/tests/oracles/beam_oracle.py" "$model" b 20 3 $1 $2
    done
}

@test "invalid prompts are named with their line" {
    printf '{"prompt":"a"}\n{"text":"b"}\n' >bad.jsonl
    run dt-generate -m "$model" --prompts bad.jsonl -o out
    assert_one_line_error dt-generate
    [ "$output" = 'dt-generate: bad.jsonl:2: lacks the member "prompt"' ]
    [ ! -e out ]
    for line in '[]' '{' '{"prompt":1}' '7'; do
        echo "$line" >bad.jsonl
        run dt-generate -m "$model" --prompts bad.jsonl
        assert_one_line_error dt-generate
        [[ "$output" == "dt-generate: bad.jsonl:1: "* ]]
    done
    : >empty.jsonl
    run dt-generate -m "$model" --prompts empty.jsonl
    assert_one_line_error dt-generate
    run dt-generate -m "$model" --prompts bad.jsonl -p x
    [ "$status" -eq 2 ]
    run dt-generate -m "$model" --stop ''
    [ "$status" -eq 2 ]
}

@test "bad input is named" {
    run dt-generate -m nowhere
    assert_one_line_error dt-generate
    cp -r "$BATS_FILE_TMPDIR/run" .
    rm run/latest/tokenizer.json
    run dt-generate -m run/latest
    assert_one_line_error dt-generate
    run dt-generate -m "$model" -o /dev/full
    assert_one_line_error dt-generate
    run dt-generate -m "$model" -o nowhere/file
    assert_one_line_error dt-generate
}

@test "usage errors end with status 2" {
    run dt-generate
    [ "$status" -eq 2 ]
    run dt-generate -m "$model" --top-p 1.5
    [ "$status" -eq 2 ]
    run dt-generate -m "$model" text
    [ "$status" -eq 2 ]
    run dt-generate -m "$model" --beams 2 -s 2
    [ "$status" -eq 2 ]
}

@test "variants of GPT-2 that compute something else are refused" {
    cp -r "$(readlink -f "$model")" other
    rm -r other/trainer
    for change in 's/"tie_word_embeddings": *true/"tie_word_embeddings":false/' \
        's/^{/{"scale_attn_weights":false,/' 's/^{/{"scale_attn_by_inverse_layer_idx":true,/'; do
        sed "$change" "$model/config.json" >other/config.json
        run dt-generate -m other -n 2
        assert_one_line_error dt-generate
        [[ "$output" == *"other/config.json: "*" must be "*", dt knows no other" ]]
    done
}
