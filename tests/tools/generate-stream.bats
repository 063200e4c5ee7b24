# SPDX-License-Identifier: MIT
# dt-generate answers prompts as they come.
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

prompts() { # COUNT: lines of JSON, all of which begin alike
    for ((i = 0; i < $1; i++)); do
        words=(Once there was a young lion named Mia who)
        echo "{\"id\":$i,\"prompt\":\"${words[*]:0:i % 8 + 1}\"}"
    done
}

@test "a prompt is answered while the input is open, also when its line comes in pieces" {
    prompts 3 >in.jsonl
    dt-generate -m "$model" --prompts in.jsonl -n 9 >want
    mkfifo to from
    dt-generate -m "$model" --prompts - -n 9 <to >from 3>&- &
    exec 8>to 9<from
    sed -n 1p in.jsonl >&8
    read -r -t 60 line <&9
    [ "$line" = "$(sed -n 1p want)" ]
    printf '%s' "$(sed -n 2p in.jsonl | head -c 9)" >&8
    sleep 0.1
    sed -n 2p in.jsonl | tail -c +10 >&8
    read -r -t 60 line <&9
    [ "$line" = "$(sed -n 2p want)" ]
    sed -n 3p in.jsonl | tr -d '\n' >&8
    exec 8>&-
    read -r -t 60 line <&9
    [ "$line" = "$(sed -n 3p want)" ]
    wait $!
}

@test "an answer depends neither on when its prompt comes, nor on those with the same beginning" {
    prompts 24 >in.jsonl
    dt-generate -m "$model" --prompts in.jsonl -n 30 -s 2 --batch 1 >want
    dt-generate -m "$model" --prompts in.jsonl -n 30 -s 2 --batch 5 | cmp - want
    { head -n 7 in.jsonl; sleep 0.2; sed -n 8,9p in.jsonl; sleep 0.2; tail -n 15 in.jsonl; } |
        dt-generate -m "$model" --prompts - -n 30 -s 2 --batch 5 | cmp - want
    for i in 3 11; do # alone, nothing is in the KV cache
        sed -n ${i}p in.jsonl | dt-generate -m "$model" --prompts - -n 30 --temperature 0 >alone
        dt-generate -m "$model" --prompts in.jsonl -n 30 --temperature 0 --batch 2 | sed -n ${i}p | cmp - alone
    done
}

@test "prompts before a line that is none are answered, then it is named" {
    { prompts 3; echo '{"text":"x"}'; prompts 2; } >bad.jsonl
    dt-generate -m "$model" --prompts bad.jsonl -n 5 >out 2>err && status=0 || status=$?
    [ "$status" -eq 1 ]
    [ "$(cat err)" = 'dt-generate: bad.jsonl:4: lacks the member "prompt"' ]
    prompts 3 | dt-generate -m "$model" --prompts - -n 5 | cmp - out
    dt-generate -m "$model" --prompts bad.jsonl -n 5 -o file 2>err && status=0 || status=$?
    [ "$status" -eq 1 ]
    [ ! -e file ]
}

@test "a closed pipe ends generation without a message" {
    { dt-generate -m "$model" -p Once --temperature 0 -n 1000000000 2>err || echo $? >status; } | head -c 9 >/dev/null
    [ "$(cat status)" -eq 141 ]
    prompts 256 >in.jsonl
    { dt-generate -m "$model" --prompts in.jsonl -n 3 -s 100 2>>err || echo $? >status; } | head -n 1 >/dev/null
    [ "$(cat status)" -eq 141 ]
    [ ! -s err ]
}

@test "SIGINT ends a beam search with the best beam so far" {
    dt-train -q --set model.name=llama --set model.hidden_size=32 --set model.num_layers=1 --set model.num_heads=2 \
        --set model.max_seq_len=20000 --set training.sequence_length=32 --set training.batch_size=4 \
        --set training.max_steps=1 --set training.warmup_steps=0 --set training.eval_interval=0 \
        -t "$BATS_FILE_TMPDIR/tok.json" -o long "$BATS_FILE_TMPDIR/data"
    mkfifo to
    dt-generate -m long/latest --chat --template "$ROOT/share/templates/chatml.jinja" --beams 8 \
        -n 1000000000 -j 1 <to >answers 2>err 3>&- &
    pid=$!
    exec 8>to
    echo hello >&8
    searches() { # has used a second of processor time, which loading does not
        [ "$(awk '{ print $14 }' "/proc/$pid/stat")" -ge "$(getconf CLK_TCK)" ]
    }
    await "$pid" searches
    kill -INT "$pid"
    await "$pid" test -s answers
    [ "$(stat -c %s answers)" -lt 20000 ] # the context would hold more
    exec 8>&-
    wait "$pid"
    [ ! -s err ]
}

@test "--json writes a record of --prompt, as of a file of prompts" {
    dt-generate -m "$model" -p 'Once there' -n 9 -s 2 --json >a
    echo '{"prompt":"Once there"}' | dt-generate -m "$model" --prompts - -n 9 -s 2 | cmp - a
    dt-generate -m "$model" --chat --template "$ROOT/share/templates/chatml.jinja" -p hello -n 5 --json >b
    [ "$(jq -r '.messages[0].content, .tokens' b | paste -sd ' ')" = 'hello 5' ]
    run dt-generate -m "$model" --chat --template "$ROOT/share/templates/chatml.jinja" --json
    [ "$status" -eq 2 ]
}

@test "log-probabilities are those of the model, the most probable first" {
    dt-generate -m "$model" -p Once -n 8 --json --logprobs 3 --repetition-penalty 1.5 --temperature 2 >a
    jq -e '(.logprobs | length) == 8 and .tokens == 8 and ([.logprobs[].token] | add) == .text' a
    jq -e '.logprobs | all(.top_logprobs | length == 3)' a
    jq -e '.logprobs | all(.logprob <= .top_logprobs[0].logprob)' a
    jq -e '.logprobs | all([.top_logprobs[].logprob] | . == (sort | reverse) and (map(exp) | add) < 1)' a
    dt-generate -m "$model" -p Once -n 1 --json --logprobs 0 --temperature 0 >greedy
    jq -e '.logprobs[0] | has("top_logprobs") | not' greedy
    best=$(dt-generate -m "$model" -p Once -n 1 --json --beams 2 --length-penalty 0 | jq .log_probability)
    jq -e --argjson best "$best" '(.logprobs[0].logprob - $best) | fabs < 1e-6' greedy
    dt-generate -m "$model" -p Once -n 8 --json --repetition-penalty 1.5 --temperature 2 >without
    [ "$(jq -c 'del(.logprobs)' a)" = "$(jq -c . without)" ] # the text is the same
    jq '.added_tokens = [.added_tokens[0] | .id = 0] | .model.vocab = {"<|endoftext|>": 0, "O": 1, "n": 2} | .model.merges = []' \
        "$model/tokenizer.json" >small.json
    dt-generate -m "$model" -t small.json -p On -n 1 --json --logprobs 5 >a # of a vocabulary of 3
    jq -e '.logprobs[0].top_logprobs | length == 3 and (map(.id) | unique | length == 3)' a
    for refused in '--json --logprobs 1 --beams 2' '--logprobs 1'; do
        run dt-generate -m "$model" -p x $refused
        [ "$status" -eq 2 ]
    done
}

@test "neither text nor log-probabilities tell what follows the beginning of a stop string" {
    text=$(dt-generate -m "$model" -p Once -n 40 --seed 5 --json | jq -r .text)
    for size in 1 2 5; do
        stop=${text:7:size} # whatever tokens it begins and ends in
        dt-generate -m "$model" -p Once -n 40 --seed 5 --json --stop "$stop" --logprobs 0 >cut
        jq -e --arg stop "$stop" --arg all "$text" '.finish == "stop" and .text == ($all | split($stop)[0])' cut
        # the last token that is told gave some of the text
        jq -e '([.logprobs[:-1][].token] | add // "") as $but | .text | startswith($but) and . != $but or . == ""' cut
        jq -e '([.logprobs[].token] | add // "") as $told | .text as $text | $told | startswith($text)' cut
        [ "Once$(jq -r .text cut)" = "$(dt-generate -m "$model" -p Once -n 40 --seed 5 --stop "$stop")" ]
    done
}

@test "SIGINT ends an answer of a conversation, and between answers the program" {
    mkfifo to
    : >answers # opened after the FIFO, for which this waits
    dt-generate -m "$model" --chat --template "$ROOT/share/templates/chatml.jinja" --temperature 0 \
        -n 1000000000 <to >answers 2>err 3>&- &
    pid=$!
    exec 8>to
    for turn in 1 2; do
        size=$(stat -c %s answers)
        echo hello >&8
        await "$pid" eval '[ "$(stat -c %s answers)" -gt "$size" ]'
        kill -INT "$pid"
        await "$pid" eval '[ "$(tail -c 1 answers | od -An -tx1)" = " 0a" ]' # the end of an answer
    done
    kill -INT "$pid"
    wait "$pid" && status=0 || status=$?
    [ "$status" -eq 130 ]
    [ ! -s err ]
}
