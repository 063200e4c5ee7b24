#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# The scripts of share/bench: they find dt's programs, name the packages that are missing, and are listed.
load ../helper

setup() {
    cd "$T"
    command -v python3 >/dev/null || skip "no python3"
}

scripts() { find "$ROOT/share/bench" -type f -perm -u+x -printf '%f\n' | sort; }

@test "dt-benchmarks(7) lists each script" {
    [ "$(scripts | wc -l)" -ge 15 ]
    scripts | grep -vx make-warc.py | while read -r name; do # which makes inputs only
        grep -qE "^\.(It Pa|Pa) $name( |$)" "$ROOT/man/man7/dt-benchmarks.7" || { echo "$name"; exit 1; }
    done
}

@test "a script whose package is missing says so in one line" {
    for call in extract-vs-datatrove.py generate-vs-llama.py loss-error.py score-vs-transformers.py step-vs-transformers.py tokenize-kinds.py; do
        run env -u PYTHONPATH TESTDATA="$T" python3 -S "$ROOT/share/bench/$call"
        [ "$status" -eq 1 ]
        [[ ${lines[-1]} == "$call: this Python has no "*": "*" -m pip install "* ]] || { echo "$output"; return 1; }
        [ "$(grep -c Traceback <<<"$output")" -eq 0 ]
    done
}

@test "a script without dt's programs says so in one line" {
    mkdir -p copy/share
    cp -r "$ROOT/share/bench" copy/share/bench
    for call in clean-vs-peers.py tokenize-vs-peers.py plan-vs-measured.py tokenize-worst-cases.py; do
        run env PATH="$(dirname "$(command -v python3)"):/usr/bin:/bin" python3 -S "copy/share/bench/$call"
        [ "$status" -eq 1 ]
        [[ ${#lines[@]} -eq 1 && $output == "$call: dt-"*": neither on PATH nor in build/bin;"* ]] || { echo "$output"; return 1; }
    done
}

@test "clean-vs-peers.py counts what dt keeps, without the packages of others" {
    # 12 texts of words that no two share
    python3 -c 'import itertools
words = map("".join, itertools.product("abcdefghijk", repeat=3))
for _ in range(12):
    print("{\"text\":\"%s\"}" % " ".join(itertools.islice(words, 110)))' >docs.jsonl
    python3 -S "$ROOT/share/bench/clean-vs-peers.py" --rounds 1 --copies 1 docs.jsonl >said
    cat said
    grep -qE '^near duplicates +dt +[0-9.]+ +[0-9.]+ +1\.0 +12 +0 +0$' said
    grep -qE '^rules +dt .* 0 +0 +0$' said # without stop words
    [ "$(wc -l <said)" -eq 4 ]
    head -n 1 said | grep -qx '0.0 MB of text in 24 documents'
}

@test "step-grid.py shows medians with intervals and the worst cell of each processor, and goes on where rows are missing" {
    row() { # processor, threads, milliseconds of dt and of torch; half of the processor's time
        jq -nc --arg processor "$1" --argjson j "$2" --argjson dt "$3" --argjson torch "$4" '{processor: $processor,
            width: 64, length: 128, vocabulary: 1024, precision: "fp32", threads: $j, tokens: 1024, steps: 9,
            dt_step_s: ($dt / 1e3), dt_processor_s: ($dt / 2e3), torch_step_s: ($torch / 1e3),
            torch_processor_s: ($torch / 1e3)}'
    }
    here=$(cd "$ROOT/share/bench" && python3 -S -c "__name__ = 'grid'; exec(open('step-grid.py').read()); print(find_processor())")
    [ -n "$here" ]
    for torch in 4 9 5 6 8 7 3; do row "$here" 1 5 $torch; row "$here" 2 5 $torch; done >rows.jsonl
    row ZX 1 10 4 >>rows.jsonl
    grid=(python3 -S "$ROOT/share/bench/step-grid.py" -o rows.jsonl --widths 64 --lengths 128 --vocabularies 1024
        --precisions fp32)
    "${grid[@]}" --threads 1,2 >said
    grep -qE '^ +64 +128 +1024 +fp32 +1 +7 +2\.50 +2\.40  1\.20 to 3\.60$' said # by processor time
    grep -qE '^ +64 +128 +1024 +fp32 +2 +7 +5\.00 +1\.20  0\.60 to 1\.80$' said # by wall time
    [ "$(head -n 1 said)" = "$here" ]
    [ "$(grep -m 1 worst said)" = 'worst: 1.20 at width 64, length 128, vocabulary 1024, precision fp32, threads 2' ]
    [ "$(grep -A 3 -x ZX said | tail -n 1)" = 'worst: 0.80 at width 64, length 128, vocabulary 1024, precision fp32, threads 1' ]
    run "${grid[@]}" --threads 3
    [ "$status" -eq 1 ]
    [[ "$output" == *"this Python has no torch"* ]]
    echo '{' >>rows.jsonl
    run "${grid[@]}" --threads 1
    [ "$status" -eq 1 ]
    [ "$output" = 'step-grid.py: rows.jsonl:16: not a row of this program; remove that line' ]
}
