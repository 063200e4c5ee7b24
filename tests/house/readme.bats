# SPDX-License-Identifier: MIT
# The commands of README.md work as they are written.
load ../helper

# README's $TESTDATA, with files of the right names.
setup() {
    cd "$T"
    mkdir testdata
    for name in tinyshakespeare.txt gpt2.tiktoken gpt2.vocab.json gpt2.merges.txt lambada.test.jsonl \
        wikitext2.test.txt; do
        echo text >"testdata/$name"
    done
    printf 'Ein Hund.\n' | gzip | tee testdata/multi30k.{train,val,test_2016_flickr}.{de,en}.gz >/dev/null
}

# A PATH without the programs of dt.
bare_path() { tr : '\n' <<<"$PATH" | grep -vF "$DT_BUILD/bin" | paste -sd :; }

# Commands of the measurements in dt-benchmarks(7), a line each.
measurements() {
    sed -n '/^\.Ss What does it do/,/^\.Ss How/p' "$ROOT/man/man7/dt-benchmarks.7" |
        sed -n "s/\\\\(aq/'/g; s/^\.It Li //p"
}

# Commands of the blocks that are indented, a line each, without comments.
blocks() {
    sed -E '/^```/,/^```/d; /^    /!d; s/^ +//; s/ +# .*//' "$ROOT/README.md" | sed -E ':a; /\\$/ { N; s/\\\n/ /; ba }'
}

# check_command WORD...: it exists, knows its options, and finds what it names of the tree.
check_command() {
    local word path
    for word in "$@"; do
        path=${word#*=}
        [[ $path != @(share|pipelines|man|tests)/* ]] || [ -e "$path" ] || { echo "there is no $path"; return 1; }
        [[ $path != "$T"/* ]] || [ -e "$path" ] || { echo "$path is not in TESTDATA"; return 1; }
    done
    case $1 in
    time) check_command "${@:2}" ;;
    mpirun) while [[ $1 != dt-* ]]; do shift; done && check_command "$@" ;;
    make) make -n B="$DT_BUILD" "${@:2}" >/dev/null ;;
    dt-*) "$@" --help >/dev/null ;;
    build/oracles/bin/python) python3 tests/house/until-parsed.py "${@:2}" ;;
    share/bench/*.py) [ -x "$1" ] && python3 tests/house/until-parsed.py "$@" ;;
    share/bench/*) [ -x "$1" ] && bash -n "$1" ;;
    sbatch) [ -x "$2" ] || [ -r "$2" ] ;;
    build/oracles/bin/pip | apt-get | python3 | . | pip | export) ;;
    cd) [ "$2" = build/tour ] ;;
    *) echo "nothing checks '$1'" && return 1 ;;
    esac
}

# check_commands LINE: those that ; and && part.
check_commands() {
    local command
    while read -r command; do
        command=${command//\$TESTDATA/$T/testdata}
        command=${command//=dir/=$T/testdata}
        (cd "$ROOT" && eval "check_command $command") >"$T/why" 2>&1 || { echo "$command: $(head -n 3 "$T/why")"; return 1; }
    done < <(sed 's/ *&& */\n/g; s/; */\n/g' <<<"$1")
}

@test "the tour of README runs as it is typed" {
    command -v gnuplot >/dev/null || skip "no gnuplot"
    [ -n "${DT_BUILD:-}" ] || skip "DT_BUILD does not name what was built"
    mkdir build
    ln -s "$DT_BUILD/bin" build/bin
    awk '/^```sh$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$ROOT/README.md" >tour
    [ "$(grep -c '^dt-' tour)" -ge 8 ]
    grep -qx make tour
    # Programs are built already; the model is smaller.
    cat >typed - tour <<'END'
make() { [ $# -eq 0 ]; }
dt-train() {
    command dt-train "$@" --set model.hidden_size=32 --set model.max_seq_len=32 \
        --set training.max_steps=100
}
END
    echo 'touch the-end' >>typed
    run env PATH="$(bare_path)" bash -eo pipefail typed
    [ -e the-end ] || { echo "$output"; return 1; }
    [ "$(ls -A)" = "$(printf '%s\n' build testdata the-end tour typed)" ] # build/tour has the rest
    [[ "$output" == *"Once upon a time"* ]]
}

@test "dt tour has the commands of README's tour" {
    awk '/^```sh$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$ROOT/README.md" >tour
    diff <(grep -A 3 '^dt-' tour | grep -vE '^(--|cd .*)$') <(grep -vE '^(#.*)?$' "$ROOT/share/tour")
}

@test "README's Python runs in the directory of the tour" {
    need_python numpy torch
    make_data 100 300
    mv data shards && mv tok.json tokenizer.json
    mkdir run && printf '{"step":1,"tokens":8,"time":1,"loss":2}\n' >run/metrics.jsonl
    awk '/^```python$/ { inside = 1; next } /^```$/ { inside = 0 } inside' "$ROOT/README.md" >snippet.py
    "$PYTHON" -c 'import pandas' 2>/dev/null || sed -i '/pandas/d' snippet.py
    eval "$(blocks | grep '^export PYTHONPATH=' | sed "s,\$PWD,$ROOT,")"
    DT_LIBRARY="$DT_BUILD/lib/libdt.so.0" "$PYTHON" snippet.py >said 2>&1 || { cat said; return 1; }
    grep -qx 'gopher.*' said
}

@test "README names pages and pictures that exist" {
    grep -oE '`dt help [a-z]+`' "$ROOT/README.md" | tr -d '`' | while read -r _ _ page; do
        ls "$ROOT"/man/man?/dt-"$page".? || { echo "$page"; return 1; }
    done
    grep -oE '\]\([^)]*\)' "$ROOT/README.md" | tr -d '])(' >files
    [ "$(wc -l <files)" -ge 3 ]
    while read -r file; do [ -e "$ROOT/$file" ] || { echo "$file"; return 1; }; done <files
}

# README without its blocks of commands, a line for each paragraph, item or row of a table.
paragraphs() {
    sed -E '/^```/,/^```/d; /^    /d' "${1:-$ROOT/README.md}" |
        awk '/^(- |\||$)/ { print text; text = "" } { text = text " " $0 } END { print text }'
}

# Paragraphs with a measured number, but neither a link to share/results nor a command.
unsourced() {
    paragraphs "$1" | grep -iE '([0-9] ?|\ban? )(%|times|minutes?|hours?|seconds?|ms|s|[GM]B(/s)?|tokens/s)($|[^a-z0-9])' |
        grep -vE '\]\(share/results/[^)]*\)|`(make|dt|dt-[a-z]+|mpirun|man)( [^`]*)?`' || true
}

# Paragraphs with a measured number that has no interval: "2 to 3 times", "2.5 times as fast (2 to 3".
without_interval() {
    paragraphs "$1" | sed -E 's/[0-9.]+ times as fast \([0-9.]+ to [0-9.]+//g; s/[0-9.]+ to [0-9.]+ times//g' |
        grep -iE '([0-9] ?|\ban? )(%|times|minutes?|hours?|seconds?|ms|s|[GM]B(/s)?|tokens/s)($|[^a-z0-9])' || true
}

@test "each measured number of README has an interval" {
    [ "$(without_interval "$ROOT/README.md")" = '' ]
    for claim in 'dt is 3 times as fast, 2 to 4 times on two cores.' '- 1.5 times as fast (data): an item' '| 5% |' 'In a minute.'; do
        printf '%s\n' 'It is 1.5 to 2 times as fast.' '' "$claim" >claim.md
        [ "$(without_interval claim.md | wc -l)" -eq 1 ] || { echo "$claim"; return 1; }
    done
}

@test "each measured number of README has a link to its data or a command beside it" {
    [ "$(unsourced "$ROOT/README.md")" = '' ]
    [ "$(paragraphs | grep -cE '[0-9] times')" -ge 2 ]
    for claim in 'dt is 3 times as fast.' '- An item: it takes 20 s.' '| in a row 5% | less |' 'In a minute.'; do
        printf '%s\n' "A \`make demo\`, in 3 s." '' "$claim" >claim.md
        [ -n "$(unsourced claim.md)" ] || { echo "$claim"; return 1; }
    done
}

@test "the measured numbers of README are those of its data" {
    local pictures=$ROOT/share/results/pictures peer range floor cells processor said
    jq -rs 'map(select(.cell)) | group_by(.cell.peer)[] | map(.values["times as fast"]) as $v |
        [(.[0].cell.peer | split(":")[0]), ([$v | min, max] | unique | map(tostring | if test("^[0-9]$") then . + ".0" else . end) | join(" to "))] | @tsv' \
        "$pictures/speed.jsonl" >ratios
    [ "$(wc -l <ratios)" -eq 4 ]
    while IFS=$'\t' read -r peer range; do
        grep -qE "$range times as (fast as )?$peer" "$ROOT/README.md" || { echo "$peer: $range"; return 1; }
    done <ratios
    range=$(awk -F '\t' '$1 == "torch.compile" { print $2 }' ratios)
    grep -qF "$range times as fast as torch.compile's" "$ROOT/README.md"
    said=$(paragraphs)
    jq -rs 'def hundredths: (. * 100 | round) as $n | "\($n / 100 | floor).\($n % 100 + 100 | tostring | .[1:])";
        map((if .threads == 1 then "processor_s" else "step_s" end) as $s |
            . + {ratio: (.["torch_" + $s] / .["dt_" + $s])}) | group_by(.processor)[] | .[0].processor as $processor |
        group_by([.width, .length, .vocabulary, .precision, .threads]) |
        (map(map(.ratio) | sort) | min_by(.[length / 2 | floor])) as $worst |
        [length, ($worst[$worst | length / 2 | floor] | hundredths), "\($worst | min | hundredths) to \($worst | max | hundredths)",
            ($processor | split("[ (]"; "")[0])] | @tsv' "$ROOT/share/results/two-cores/step-grid.jsonl" >grids
    [ "$(wc -l <grids)" -ge 2 ]
    while IFS=$'\t' read -r cells floor range processor; do
        tr -s ' ' <<<"$said" | grep -qF "$processor" || { echo "README does not name $processor"; return 1; }
        tr -s ' ' <<<"$said" | grep -qF "the worst of $cells shapes is $floor times as fast ($range" ||
            { echo "$processor: the worst of $cells shapes is $floor times as fast ($range"; return 1; }
    done <grids
}

@test "the commands of measurements are complete" {
    command -v python3 >/dev/null || skip "no python3"
    measurements >lines
    [ "$(wc -l <lines)" -ge 20 ]
    while read -r line; do check_commands "$line"; done <lines
}

@test "the commands of README's other blocks are complete" {
    blocks >lines
    [ "$(wc -l <lines)" -ge 9 ]
    while read -r line; do check_commands "$line"; done <lines
}

@test "the ranks of README train, here with a smaller model" {
    need_mpi
    mkdir -p build/tour
    ln -s "$ROOT/share" share
    (cd build/tour && make_data 200 300 && mv data shards && mv tok.json tokenizer.json)
    command=$(blocks | grep '^mpirun.*dt-train')
    [ -n "$command" ]
    DT_SET='model.hidden_size=16 model.max_seq_len=32 training.max_steps=1 training.warmup_steps=0' \
        timeout 900 bash -c "$command" >said 2>&1 || { cat said; return 1; }
    grep -q '^parameters ' said
    [ -e build/run/latest/model.safetensors ]
}

@test "a command of README with a wrong option or file is found" {
    for wrong in 'dt-clean --no-such-option' 'dt-train -c share/configs/none.yaml' 'make no-such-target' \
        'share/bench/none' 'build/oracles/bin/python share/bench/step-vs-pytorch.py' 'cp a b' \
        'dt-synth -n 1 -o build/s; dt-clean -x' 'make demo CORPUS=$TESTDATA/none.txt'; do
        refute check_commands "$wrong"
    done
}

@test "the losses of precisions are compared step by step" {
    dt-synth -n 300 -o docs.jsonl
    dt-vocab -q --size 300 -o tokenizer.json docs.jsonl
    dt-tokenize -q -t tokenizer.json docs.jsonl | dt-shard -o data --split val=0.1
    # a model that takes no time: the settings that count are the script's
    mkdir -p share/bench share/configs
    cp "$ROOT"/share/bench/losses-of-{precisions,arithmetics} share/bench
    sed -E 's/hidden_size: .*/hidden_size: 16/; s/num_layers: .*/num_layers: 1/; s/eval_batches: .*/eval_batches: 1/' \
        "$ROOT/share/configs/nanogpt-cpu.yaml" >share/configs/nanogpt-cpu.yaml
    share/bench/losses-of-precisions . 5 >said
    [ "$(sed -E 's/by [0-9.e-]+% /by N% /' said)" = "$(printf '%s  differs from fp32 by N%% at most, over 5 steps\n' bf16 fp16)" ]
    run share/bench/losses-of-precisions none
    [ "$status" -eq 2 ]
    share/bench/losses-of-arithmetics . 2 1 >said
    [ "$(grep -cE '^(bf16-fast|bf16-canonical|fp32) +[0-9.]+  mean [0-9.]+, deviation 0.00000$' said)" -eq 3 ]
    grep -qx 'bf16-fast and bf16-canonical: training losses differ by [0-9.e-]*% at most' said
    run share/bench/losses-of-arithmetics none
    [ "$status" -eq 2 ]
}
