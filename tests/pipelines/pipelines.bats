# SPDX-License-Identifier: MIT
# The pipelines with a model of a few thousand parameters, outside the tree.
load ../helper

setup() {
    command -v gnuplot >/dev/null || skip "no gnuplot"
}

# demo [VARIABLE=VALUE...]: the demo in $T/out, small.
demo() {
    make -C "$ROOT" --no-print-directory -f pipelines/demo.mk \
        B="${DT_BUILD:-build}" OUT="$T/out" STORY_COUNT=100 HELD_OUT=5 VOCAB_SIZE=400 LENGTH=20 \
        SET='model.hidden_size=16 model.num_layers=1 model.max_seq_len=64 training.batch_size=2 training.max_steps=4 training.warmup_steps=1' \
        "$@"
}

# The stages that ran, by their commands in the output of make.
stages() {
    grep -oE 'seconds/[a-z]+' <<<"$1" | sort -u | sed 's,seconds/,,' | paste -sd ' '
}

@test "the demo ends in a summary of at most 80 columns, and runs nothing twice" {
    demo >"$T/log" 2>"$T/err" || { cat "$T/log" "$T/err"; return 1; }
    [ "$(stages "$(cat "$T/log")")" = "clean eval plot shard story synth train vocab" ]
    summary=$(sed -n '/^----/,$p' "$T/log")
    for part in '100 documents' ' parameters, 1 layer, 16 wide' '4 steps' 'train [0-9.]+ s' \
        'validation loss +[0-9.]+ nats' 'floor +[0-9.]+' 'gap +[0-9.]+%' 'perplexity' 'loss.svg' 'eval.json'; do
        grep -qE "$part" <<<"$summary" || { echo "no '$part' in: $summary"; return 1; }
    done
    [ "$(grep -c '^----' <<<"$summary")" -eq 5 ]
    run awk -v out="$T/out" '{ gsub(out, "build/demo") } length > 80' <<<"$summary"
    [ -z "$output" ] || { echo "too long: $output"; return 1; }
    demo >"$T/log" 2>"$T/err"
    [ -z "$(stages "$(cat "$T/log")")" ]
}

@test "the summary has the sizes of models of any family" {
    demo CONFIG=share/configs/llama-tiny.yaml SET='model.hidden_size=16 model.num_layers=1 model.num_heads=2 model.num_kv_heads=1 model.max_seq_len=64 training.batch_size=2 training.max_steps=4 training.warmup_steps=1' >"$T/log" 2>"$T/err" || { cat "$T/log" "$T/err"; return 1; }
    grep -q ' parameters, 1 layer, 16 wide, 2 heads, context 64$' "$T/log" || { cat "$T/log"; return 1; }
}

@test "make -n is the plan of an experiment: each stage once, and nothing of what is done" {
    run demo -n
    [ "$status" -eq 0 ]
    [ "$(stages "$output")" = "clean eval plot shard story synth train vocab" ]
    [ "$(grep -c ' dt-train ' <<<"$output")" -eq 1 ]
    [ ! -e "$T/out" ]
    demo >/dev/null 2>&1
    run demo -n
    [ "$output" = "pipelines/summary $T/out 1 2 3" ]
    run demo -n PROMPT=Long
    [ "$(stages "$output")" = "story" ]
}

@test "LAUNCH stands before dt-train in every recipe, and make -n makes nothing" {
    dt-synth -n 2 -o "$T/docs.jsonl"
    touch "$T"/multi30k.{train,test_2016_flickr}.{de,en}.gz
    for recipe in demo mlm pretokenize precision sweep scaling parallelism compression tinystories openwebtext \
        gpt2-124m translate adapt; do
        make -n -C "$ROOT" -f "pipelines/$recipe.mk" OUT="$T/out" CORPUS="$T/docs.jsonl" \
            HELD="$T/docs.jsonl" DATA="$T" LAUNCH='srun -n 2' >"$T/plan" || { echo "$recipe"; return 1; }
        grep -q 'srun -n 2 dt-train ' "$T/plan" || { echo "$recipe"; return 1; }
        [ ! -e "$T/out" ]
    done
}

@test "a changed setting runs what depends on it, and nothing else" {
    demo >/dev/null 2>&1
    run demo PROMPT=Long
    [ "$(stages "$output")" = "story" ]
    # The stories of the summary are of this prompt.
    run demo PROMPT=Short STORIES=2
    grep -qF "$(head -c 20 "$T/out/story-2.txt")" <<<"$output"
    refute grep -qF "$(head -c 20 "$T/out/story-1.txt")" <<<"$output"
    run demo PROMPT=Long HELD_OUT=6
    [[ "$(stages "$output")" == *eval* ]]
    run demo PROMPT=Long HELD_OUT=6 VOCAB_SIZE=390
    [[ "$(stages "$output")" == *"shard story train vocab" ]]
    [ -e "$T/out/run.before/finished" ]
}

@test "another corpus, tokenizer or seed is used though its file is older" {
    echo 'a text' >"$T/one.txt"
    echo 'another text' >"$T/other.txt"
    touch -d 2020-01-01 "$T/other.txt"
    demo CORPUS="$T/one.txt" "$T/out/documents.jsonl" >/dev/null 2>&1
    demo CORPUS="$T/other.txt" "$T/out/documents.jsonl" >/dev/null 2>&1
    grep -q '"another text' "$T/out/documents.jsonl"
    run demo -n CORPUS="$T/other.txt" "$T/out/documents.jsonl"
    [[ "$output" == *"is up to date." ]]
    demo OUT="$T/stories" "$T/stories/tokenizer.json" "$T/stories/held-out.jsonl" >/dev/null 2>&1
    dt-vocab -q -s 300 -o "$T/tok.json" "$T/stories/documents.jsonl"
    touch -d 2020-01-01 "$T/tok.json"
    demo OUT="$T/stories" TOKENIZER="$T/tok.json" "$T/stories/tokenizer.json" >/dev/null 2>&1
    cmp "$T/tok.json" "$T/stories/tokenizer.json"
    cp "$T/stories/held-out.jsonl" "$T/before.jsonl"
    demo OUT="$T/stories" HELD_SEED=77 "$T/stories/held-out.jsonl" >/dev/null 2>&1
    refute cmp -s "$T/before.jsonl" "$T/stories/held-out.jsonl"
    for held in one other; do
        make -C "$ROOT" -f pipelines/mlm.mk B="${DT_BUILD:-build}" OUT="$T/mlm" CORPUS="$T/one.txt" \
            HELD="$T/$held.txt" "$T/mlm/held-out.jsonl" >/dev/null 2>&1
    done
    grep -q '"another text' "$T/mlm/held-out.jsonl"
}

@test "interrupted training resumes in the same run" {
    demo "$T/out/run/begun" >/dev/null 2>&1
    echo kept >"$T/out/run/witness"
    demo >/dev/null 2>&1
    [ -e "$T/out/run/witness" ]
    [ -e "$T/out/run/finished" ]
}

@test "CORPUS=FILE trains on FILE, split at its tail" {
    dt-synth -n 60 | sed 's/.*"text":"//; s/","meta.*//' >"$T/corpus.txt"
    demo CORPUS="$T/corpus.txt" >"$T/log" 2>"$T/err" || { cat "$T/log" "$T/err"; return 1; }
    grep -q -e '--split-by tail' "$T/log"
    grep -q 'validation loss' "$T/log"
    refute grep -q 'above the floor' "$T/log"
    grep -q '>corpus<' "$T/out/loss.svg" # the title
}

@test "a CORPUS that is not a text file is refused in one line" {
    : >"$T/empty.txt"
    for refused in '' "$T" "$T/none.txt" "$T/empty.txt" "$T/it's" "$T/a b"; do
        run demo CORPUS="$refused"
        [ "$status" -eq 2 ]
        [ "${#lines[@]}" -eq 1 ] || { echo "$output"; return 1; }
        [[ "$output" == *" CORPUS='$refused': "* ]]
        [ ! -e "$T/out/corpus" ]
    done
    run make -C "$ROOT" -f pipelines/tinystories.mk OUT="$T/out" CORPUS=
    [[ "$output" == *" CORPUS='': names no file"* ]]
}

@test "an OUT without a name, or of several, is refused in one line" {
    for recipe in demo adapt corpus web-corpus; do
        for out in '' "$T/a b"; do
            for goal in '' remove; do
                run make -n -C "$ROOT" --no-print-directory -f pipelines/$recipe.mk INPUTS="$ROOT/README.md" OUT="$out" $goal
                [ "$status" -eq 2 ]
                [[ "$output" == "pipelines/"*" OUT='$out': "*"make takes no blanks in a name.  Stop." ]] || { echo "$output"; return 1; }
                [ "${#lines[@]}" -eq 1 ]
            done
        done
    done
}

@test "without dt's programs, one line says what to do" {
    run env PATH=/usr/bin:/bin make -C "$ROOT" -s -f pipelines/demo.mk B="$T/none" OUT="$T/out"
    [ "$status" -eq 2 ]
    [ "${lines[0]}" = "timed: dt-synth not found: build dt with make" ]
}

@test "a failing stage leaves no file, and its time is not recorded" {
    run demo VOCAB_SIZE=10
    [ "$status" -eq 2 ]
    [ ! -e "$T/out/tokenizer.json" ]
    [ ! -e "$T/out/seconds/vocab" ]
    [ -e "$T/out/documents.jsonl" ]
}

# --- download ------------------------------------------------------------------------------------

download() { "$ROOT/pipelines/download" "$@"; }

need_curl() { command -v curl >/dev/null || skip "no curl"; }

@test "a download is atomic, and resumes from a part" {
    need_curl
    dt-synth -n 100 -o "$T/source"
    download "file://$T/source" "$T/a" 2>/dev/null
    cmp "$T/source" "$T/a"
    [ ! -e "$T/a.part" ] && [ ! -e "$T/a.part.url" ]
    # The part's own bytes stay: what is there is not fetched again.
    { printf 'X'; head -c 1000 "$T/source" | tail -c +2; } >"$T/b.part"
    echo "file://$T/source" >"$T/b.part.url"
    download "file://$T/source" "$T/b" 2>/dev/null
    [ "$(head -c 1 "$T/b")" = X ]
    tail -c +2 "$T/b" | cmp - <(tail -c +2 "$T/source")
    # A part of another URL is not of this one.
    head -c 1000 "$T/source" | tr a-z A-Z >"$T/c.part"
    echo "file://$T/other" >"$T/c.part.url"
    download "file://$T/source" "$T/c" 2>/dev/null
    cmp "$T/source" "$T/c"
}

@test "the size of a download is that of the last answer, not of a redirection" {
    need_curl
    command -v python3 >/dev/null || skip "no python3"
    cat >"$T/server.py" <<'END'
import http.server, os, sys
class Server(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self, body=b""):
        self.send_response(200 if self.path == "/file" else 302)
        if self.path != "/file":
            self.send_header("Location", "/file")
            self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        self.do_HEAD(b"a text of more bytes\n" if self.path == "/file" else b"no\n")
    def log_message(self, *words):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Server)
with open(sys.argv[1] + ".new", "w") as f:
    print(server.server_port, file=f)
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
END
    python3 "$T/server.py" "$T/port" 3>&- &
    SERVER=$!
    await $SERVER test -e "$T/port"
    run download "http://127.0.0.1:$(cat "$T/port")/moved" "$T/a"
    end_process SERVER
    [ "$status" -eq 0 ] || { echo "$output"; return 1; }
    [ "$(cat "$T/a")" = 'a text of more bytes' ]
}

@test "a download with a wrong sum, an empty one, and a missing one fail" {
    need_curl
    dt-synth -n 10 -o "$T/source"
    sum=$(sha256sum <"$T/source" | cut -d' ' -f1)
    download "file://$T/source" "$T/a" "$sum" 2>/dev/null
    cmp "$T/source" "$T/a"
    run download "file://$T/source" "$T/b" "${sum/[0-9]/x}"
    [ "$status" -eq 1 ]
    [[ "${lines[-1]}" == "download: file://$T/source: its SHA-256 sum is not "* ]]
    : >"$T/empty"
    run download "file://$T/empty" "$T/b"
    [ "$status" -eq 1 ]
    run download "file://$T/none" "$T/b"
    assert_one_line_error download
    [ ! -e "$T/b" ]
    [ ! -e "$T/b.part" ] || [ ! -s "$T/b.part" ]
    run download http://127.0.0.1:9/none "$T/b"
    assert_one_line_error download
    [[ "$output" == *"CORPUS=FILE takes a file that is here" ]]
}

@test "tinystories takes documents between separators, from a URL or a file" {
    need_curl
    dt-synth -n 60 | sed 's/.*"text":"//; s/","meta.*//; s/$/\n<|endoftext|>/' >"$T/stories.txt"
    tinystories() {
        make -C "$ROOT" --no-print-directory -f pipelines/tinystories.mk B="${DT_BUILD:-build}" \
            OUT="$T/tiny" "$@" "$T/tiny/documents.jsonl"
    }
    tinystories TINYSTORIES_URL="file://$T/stories.txt" >/dev/null 2>&1
    [ "$(wc -l <"$T/tiny/documents.jsonl")" -eq 60 ]
    rm -r "$T/tiny"
    tinystories CORPUS="$T/stories.txt" >/dev/null 2>&1
    [ "$(wc -l <"$T/tiny/documents.jsonl")" -eq 60 ]
    rm -r "$T/tiny"
    echo '<html>not found</html>' >"$T/page"
    run tinystories TINYSTORIES_URL="file://$T/page"
    [ "$status" -eq 2 ]
    [[ "$output" == *"holds no <|endoftext|>"* ]]
    [ ! -e "$T/tiny/corpus" ]
}

@test "pretokenize compares four ways over batches, in a table of 80 columns and a plot" {
    make -C "$ROOT" --no-print-directory -f pipelines/pretokenize.mk B="${DT_BUILD:-build}" \
        OUT="$T/out" STORY_COUNT=60 VOCAB_SIZE=400 LENGTH=16 BATCHES='1 2' STEPS=2 SECONDS=0.02 \
        MODEL='model.hidden_size=16 model.num_layers=1 model.num_heads=1' PYTHON=false \
        >"$T/log" 2>&1 || { cat "$T/log"; return 1; }
    for part in '^60 documents, sequences of 16 tokens' '^fly-padded .* s$' '^pre-list ' \
        '^cold-list ' 'pre-list / fly-list +[0-9.]+x' '^batch +1 +2$' '^pre-padded( +[0-9]+){2}$'; do
        grep -qE "$part" "$T/out/table.txt" || { echo "no '$part'"; cat "$T/out/table.txt"; return 1; }
    done
    [ "$(wc -L <"$T/out/table.txt")" -le 80 ]
    [ "$(wc -l <"$T/out/training.dat")" -eq 2 ]
    [ "$(jq -c '[.documents, .batches, (."pre-list".training_tokens_per_second | length)]' "$T/out/results.json")" = '[60,[1,2],2]' ]
    grep -q 'list, tokenized before' "$T/out/plot.svg"
    [ -s "$T/out/plot.png" ]
}

@test "mlm scores masked models after each quarter, beside frequencies alone" {
    mlm() {
        make -C "$ROOT" --no-print-directory -f pipelines/mlm.mk B="${DT_BUILD:-build}" OUT="$T/out" \
            VOCAB_SIZE=300 STORY_COUNT=200 HELD_OUT=10 ALONE=2 STEPS=8 \
            SET='model.hidden_size=16 model.num_layers=1 model.num_heads=1 training.batch_size=2 training.warmup_steps=1 training.eval_interval=4' \
            "$@" >"$T/log" 2>&1 || { cat "$T/log"; return 1; }
    }
    mlm
    for part in '^8 steps, ' '^held-out documents +accuracy +loss +perplexity$' \
        '^frequencies alone +[0-9.]+% +[0-9.]+ +[0-9.]+$' '^after step 2 ' '^after step 8 +[0-9.]+%' \
        '^pseudo-perplexity of 2 documents after step 8: [0-9.]+$'; do
        grep -qE "$part" "$T/out/table.txt" || { echo "no '$part'"; cat "$T/out/table.txt"; return 1; }
    done
    [ "$(grep -c '^after step' "$T/out/table.txt")" -eq 4 ]
    [ "$(wc -L <"$T/out/table.txt")" -le 80 ]
    [ "$(wc -l <"$T/out/mlm.dat")" -eq 2 ]
    [[ "$(cat "$T/out/mlm.json")" == '{"steps":8,'*'"frequencies":{"accuracy":0.'*'"predicted":'*']}' ]]
    grep -q 'masked tokens found' "$T/out/plot.svg"
    [ -s "$T/out/plot.png" ]
    mlm
    [ -z "$(stages "$(cat "$T/log")")" ]
    dt-synth -n 9 --seed 3 -o "$T/other.jsonl"
    mlm CORPUS="$T/out/documents.jsonl" HELD="$T/other.jsonl"
    [ "$(wc -l <"$T/out/held-out.jsonl")" -eq 9 ]
}
