# SPDX-License-Identifier: MIT
load ../helper

setup() {
    cd "$T"
    dt-synth -n 400 >docs.jsonl
    dt-vocab -q -s 320 -o tok.json docs.jsonl 2>/dev/null
    dt-tokenize -q -t tok.json -o all.dts docs.jsonl
}

# The ids of shards as one column.
column() {
    dt-cat --ids "$@" | tr ' ' '\n'
}

# has DIRECTORY PATTERN: a file name matches.
has() {
    ls -A "$1" 2>/dev/null | grep -q "$2"
}

assert_unfinished() {
    [ ! -e "$1/index.json" ]
    [ -z "$(ls -A "$1" | grep -E 'dts|tmp')" ]
}

@test "a plain pipe ends in shards that hold the stream's documents" {
    dt-synth -n 400 | dt-tokenize -t tok.json | dt-shard -o out/train
    [ "$(ls out/train)" = "$(printf 'index.json\ntrain-00000.dts')" ]
    dt-cat --ids all.dts | cmp - <(dt-cat --ids out/train)
    dt-cat --verify out/train
}

@test "zstd reads a shard: its bytes are the ids of dt-cat" {
    command -v zstd >/dev/null || skip "zstd is not installed"
    dt-shard -o out --level 5 all.dts
    dt-shard -o stored --level 0 all.dts
    zstd -tq out/train-00000.dts stored/train-00000.dts all.dts
    for f in out/train-00000.dts stored/train-00000.dts all.dts; do
        zstd -dcq "$f" | od -An -v -w2 -tu2 | tr -d ' ' | cmp - <(column "$f")
    done
}

@test "levels compress without changing the contents" {
    for level in 0 1 9; do dt-shard -o "l$level" --level $level all.dts; done
    [ "$(stat -c %s l0/train-00000.dts)" -gt "$(stat -c %s l1/train-00000.dts)" ]
    [ "$(stat -c %s l1/train-00000.dts)" -gt "$(stat -c %s l9/train-00000.dts)" ]
    dt-cat --ids l0 | cmp - <(dt-cat --ids l9)
    [ "$(grep '"hash"' l0/index.json)" = "$(grep '"hash"' l9/index.json)" ]
}

@test "the number of threads does not change a byte" {
    for _ in 1 2 3 4 5 6 7 8; do cat all.dts; done >many.dts # several frames
    dt-shard -o a -j 1 --split val=0.2 many.dts
    dt-shard -o b -j 4 --split val=0.2 many.dts
    diff -r a b
}

@test "--split moves documents by their content, whatever their order and number" {
    dt-shard -o a --split val=0.2 all.dts
    sort -R --random-source=<(yes) docs.jsonl >shuffled.jsonl
    cat shuffled.jsonl docs.jsonl | dt-tokenize -t tok.json | dt-shard -o b --split val=0.2
    dt-cat --ids a/val-00000.dts | sort >val
    dt-cat --ids a/train-00000.dts | sort >train
    cmp val <(dt-cat --ids b/val-00000.dts | sort -u)
    cmp train <(dt-cat --ids b/train-00000.dts | sort -u)
    cmp <(sort val train) <(dt-cat --ids all.dts | sort)
    [ "$(wc -l <val)" -gt 55 ]
    [ "$(wc -l <val)" -lt 105 ]
}

@test "a larger fraction keeps the documents of a smaller one" {
    dt-shard -o a --split val=0.1 all.dts
    dt-shard -o b --split val=0.3 --split test=0.3 all.dts
    [ -z "$(comm -23 <(dt-cat --ids a/val-*.dts | sort) <(dt-cat --ids b/val-*.dts | sort))" ]
    [ "$(cat b/*.dts | dt-cat --ids | wc -l)" -eq 400 ]
}

@test "--split-by tail takes the last tokens, and cuts a document where it must" {
    dt-shard -o out --split val=0.1 --split test=0.05 --split-by tail <all.dts
    n=$(column all.dts | wc -l)
    awk -v n="$n" 'BEGIN {print int(n * 0.85); print int(n * 0.95) - int(n * 0.85); print n - int(n * 0.95)}' >want
    for split in train val test; do column out/$split-00000.dts | wc -l; done | cmp - want
    cat out/train-00000.dts out/val-00000.dts out/test-00000.dts | column | cmp - <(column all.dts)
    [ -z "$(ls -A out | grep spool)" ]
}

@test "--split-by tail shares the bytes of a document that it cuts" {
    dt-tokenize -t tok.json --from text "$ROOT/LICENSE" -o one.dts
    dt-shard -o out --split val=0.1 --split-by tail one.dts
    bytes=$(stat -c %s "$ROOT/LICENSE")
    dt-cat --json out | sed 's/.*"bytes":\([0-9]*\).*/\1/' >bytes
    awk -v n="$bytes" '{s += $1; b = $1} END {exit !(s == n && b > n * .09 && b < n * .11)}' bytes
    grep -q '"documents":1,' <(dt-cat --json out/val-00000.dts)
}

@test "no shard exceeds --tokens-per-shard, and together they are complete" {
    dt-shard -o out --tokens-per-shard 5000 all.dts
    [ "$(ls out | wc -l)" -gt 5 ]
    dt-cat --json out | sed 's/.*"tokens":\([0-9]*\).*/\1/' | awk '$1 > 5000 {exit 1}'
    dt-cat --ids out | cmp - <(dt-cat --ids all.dts)
    dt-shard -o each --tokens-per-shard 1 all.dts # a document each
    [ "$(ls each/*.dts | wc -l)" -eq 400 ]
}

@test "concatenated streams and several files are one input" {
    dt-tokenize -t tok.json <(head -n 10 docs.jsonl) >a.dts
    dt-tokenize -t tok.json <(tail -n +11 docs.jsonl) >b.dts
    cat a.dts b.dts | dt-shard -o joined
    dt-shard -o files a.dts b.dts
    dt-cat --ids joined | cmp - <(dt-cat --ids all.dts)
    dt-cat --ids files | cmp - <(dt-cat --ids all.dts)
}

@test "a command that is repeated leaves the same directory" {
    for i in 1 2 3; do
        dt-shard -o out --tokens-per-shard 5000 --split val=0.5 all.dts
        (cd out && sha256sum *) >sums.$i
        cmp sums.1 sums.$i
    done
}

@test "running again replaces the shards and removes those left over" {
    dt-shard -o out --tokens-per-shard 5000 --split val=0.5 all.dts
    echo mine >out/notes.txt
    dt-tokenize -t tok.json --from text "$ROOT/LICENSE" | dt-shard -o out
    [ "$(ls out)" = "$(printf 'index.json\nnotes.txt\ntrain-00000.dts')" ]
    dt-cat --verify out
    dt-shard -o out all.dts
    [ "$(ls out)" = "$(printf 'index.json\nnotes.txt\ntrain-00000.dts')" ]
}

@test "splits of an earlier run that are removed are named" {
    dt-shard -o out --split val=0.1 --split test=0.1 --tokens-per-shard 3000 all.dts
    before=$(ls out/val-* out/test-* | wc -l)
    dt-shard -o out --split val=0.1 --split test=0.1 all.dts 2>err
    [ ! -s err ]
    dt-shard -o out --split val=0.1 --split test=0.1 --tokens-per-shard 3000 all.dts 2>err
    dt-shard -o out all.dts 2>>err
    [[ "$(cat err)" =~ ^"dt-shard: out: $before shards of an earlier run removed, of splits that this one does not have: "(test, val|val, test)$ ]]
    [ "$(ls out)" = "$(printf 'index.json\ntrain-00000.dts')" ]
    dt-shard -o out --append all.dts 2>err
    [ ! -s err ]
}

@test "an empty split is an error that names a remedy" {
    dt-tokenize -t tok.json --from text "$ROOT/LICENSE" -o one.dts
    run dt-shard -o out --split val=0.1 one.dts
    assert_one_line_error dt-shard
    [[ "$output" == *"is empty: it got none of 1 documents"*", or use --split-by tail --split val=0.1; "*"dt-clean --from lines"* ]]
    [ ! -e out ]
    dt-shard -o out --split-by tail --split val=0.1 one.dts
    mkdir old
    run dt-shard -o old --split val=0.1 one.dts
    [ -d old ]
    assert_unfinished old
    rm -r out
    run dt-shard -o out --split val=0.00001 --split test=0.00001 --split-by tail one.dts
    assert_one_line_error dt-shard
    [ ! -e out ]
}

@test "input without tokens is an error" {
    printf '{"text":""}\n' | dt-tokenize -t tok.json --frame none >none.dts
    run dt-shard -o out none.dts
    assert_one_line_error dt-shard
    assert_unfinished out
}

@test "incomplete token streams and other input are errors" {
    head -c 20000 all.dts >cut.dts
    cp all.dts flipped.dts
    printf '\377' | dd of=flipped.dts bs=1 seek=20000 conv=notrunc status=none
    : >empty.dts
    for f in cut flipped; do
        run dt-shard -o out $f.dts
        assert_one_line_error dt-shard
        [[ "$output" == *"$f.dts: frame "*" at byte "* ]]
        [ ! -e out ] || assert_unfinished out
    done
    run dt-shard -o out empty.dts
    assert_one_line_error dt-shard
    [ "$output" = "dt-shard: empty.dts: is empty, not a .dts file" ]
    run dt-shard -o out docs.jsonl
    assert_one_line_error dt-shard
    [ "$output" = "dt-shard: docs.jsonl: is JSON Lines, not a .dts file" ]
    run dt-shard -o out missing.dts
    assert_one_line_error dt-shard
}

@test "a run that fails or is killed leaves the older shards valid" {
    dt-shard -o out --tokens-per-shard 5000 all.dts
    dt-cat --ids out >before
    head -c 20000 all.dts >cut.dts
    run dt-shard -o out --tokens-per-shard 1000 cut.dts
    assert_one_line_error dt-shard
    mkfifo pipe
    dt-shard -o out --tokens-per-shard 1000 pipe &
    pid=$!
    exec 9>pipe
    cat all.dts all.dts >&9
    await $pid has out/.incomplete '\.b\.dts'
    kill -9 $pid
    exec 9>&-
    wait $pid || true
    has out/.incomplete '\.b\.dts'
    dt-cat --verify out
    cmp before <(dt-cat --ids out)
    dt-shard -o out --tokens-per-shard 1000 all.dts
    [ "$(ls -A out | sed 1d)" = "$(jq -r '.splits[].shards[].file' out/index.json)" ]
    cmp before <(dt-cat --ids out)
}

@test "streams of two tokenizers are refused before any work" {
    dt-vocab -q -s 300 -o other.json docs.jsonl
    dt-tokenize -t other.json -o other.dts docs.jsonl
    dt-shard -o out all.dts
    run dt-shard -o out all.dts other.dts
    assert_one_line_error dt-shard
    [[ "$output" == *"other.dts: was made with another tokenizer"* ]]
    dt-cat --verify out
    run dt-shard -o out --append other.dts
    assert_one_line_error dt-shard
    [[ "$output" =~ ^"dt-shard: out: was made with another tokenizer ("[0-9a-f]{16}", but that of the input is "[0-9a-f]{16}"): use the one " ]]
}

@test "inputs inside the output directory are refused" {
    dt-shard -o out all.dts
    run dt-shard -o out out/train-00000.dts
    assert_one_line_error dt-shard
    dt-cat --verify out
}

@test "invalid splits are usage errors" {
    for split in val val= =0.1 val=0 val=1 val=2 val=x va/l=0.1 val=-0.1 val=nan; do
        run dt-shard -o out --split "$split" all.dts
        [ "$status" -eq 2 ]
    done
    for splits in "train=0.1" "a=0.1 --split a=0.1" "a=0.5 --split b=0.5"; do
        run dt-shard -o out --split $splits all.dts
        [ "$status" -eq 2 ]
    done
    [ ! -e out ]
}

@test "a killed run is incomplete, and running again completes it" {
    mkfifo pipe
    dt-shard -o out --split val=0.1 --split-by tail pipe &
    pid=$!
    exec 9>pipe
    head -c 30000 all.dts >&9
    await $pid has out/.incomplete tmp
    kill -9 $pid
    exec 9>&-
    wait $pid || true
    [ "$(ls -A out)" = .incomplete ]
    dt-shard -o out --split val=0.1 --split-by tail all.dts
    [ "$(ls -A out)" = "$(printf 'index.json\ntrain-00000.dts\nval-00000.dts')" ]
    dt-cat --verify out
}

@test "after a signal no file looks like a shard, and the complete ones are refused" {
    mkfifo pipe
    dt-shard -o out --tokens-per-shard 1000 pipe &
    pid=$!
    exec 9>pipe
    cat all.dts all.dts >&9
    await $pid has out/.incomplete '00005.dts$'
    kill -TERM $pid
    exec 9>&-
    wait $pid || true
    [ "$(ls -A out)" = .incomplete ]
    for command in dt-cat "dt-cat --ids" "dt-shard -o new" "dt-tokenize -t tok.json -d" \
        "dt-train -q -o run" "dt-bench load"; do
        run $command out/.incomplete/train-00000.dts
        assert_one_line_error ${command%% *}
        [[ "$output" == *"train-00000.dts: is of shards that are not complete: "* ]]
    done
    cp out/.incomplete/train-00000.dts out # as between the first rename and that of index.json
    run dt-cat out/train-00000.dts
    assert_one_line_error dt-cat
    run dt-cat out
    assert_one_line_error dt-cat
    dt-shard -o out all.dts
    [ "$(ls -A out)" = "$(printf 'index.json\ntrain-00000.dts')" ]
}

@test "a full disk is an error and leaves no complete output" {
    mkdir small
    mount -t tmpfs -o size=64k none small 2>/dev/null || skip "cannot mount a small tmpfs"
    run dt-shard -o small/out --level 0 all.dts
    left=$(ls -A small)
    umount small
    assert_one_line_error dt-shard
    [[ "$output" == *"No space left"* ]]
    [ -z "$left" ]
}

@test "standard output is refused as the directory" {
    run dt-shard -o - all.dts
    [ "$status" -eq 2 ]
    [ ! -e ./- ]
}

@test "a directory that cannot be created is an error" {
    : >file
    run dt-shard -o file/out all.dts
    assert_one_line_error dt-shard
    run dt-shard -o /dev/null all.dts
    assert_one_line_error dt-shard
}

@test "rows hold the documents, and zstd sees the padding" {
    for layout in padded packed; do
        dt-shard -o $layout --layout $layout --length 63 --padding-id 5 all.dts
        dt-cat --verify $layout
        cmp <(column all.dts | sort) <(column $layout | sort)
        zstd -dcq $layout/train-00000.dts | od -An -v -w128 -tu2 >rows
        zstd -tq $layout/train-00000.dts
        json=$(dt-cat --json $layout/train-00000.dts)
        [[ "$json" == *'"layout":"padded","length":63,"padding_id":5,'* ]]
        padding=$(sed 's/.*"padding":\([0-9]*\).*/\1/' <<<"$json")
        [ $(($(wc -l <rows) * 64 - padding)) -ge "$(column all.dts | wc -l)" ]
        wc -l <rows >$layout.rows
    done
    cmp <(column all.dts) <(column padded)
    [ "$(cat packed.rows)" -lt "$(cat padded.rows)" ]
    dt-shard -o again padded # rows are input, too
    cmp <(column all.dts) <(column again)
}

@test "--tokens-per-shard counts rows, and shards have complete rows" {
    dt-shard -o out --layout packed --length 31 --tokens-per-shard 2000 all.dts
    [ "$(ls out | wc -l)" -gt 5 ]
    dt-cat --json out | sed 's/.*"tokens":\([0-9]*\).*/\1/' | awk '$1 > 2000 || $1 % 32 {exit 1}'
    cmp <(column all.dts | sort) <(column out | sort)
}

@test "--loss-after excludes prompts from the loss" {
    colon=$(printf '{"text":":"}' | dt-tokenize -t tok.json --frame none --ids)
    seq 50 | sed 's/.*/{"text":"number &: & times &"}/' | dt-tokenize -t tok.json -o sums.dts
    dt-shard -o out --loss-after "$colon" sums.dts
    after=$(dt-cat --ids sums.dts | awk -v c="$colon" '{ f = 0
        for (i = 1; i <= NF; i++) { n += f; if ($i == c) f = 1 } } END { print n }')
    [[ "$(dt-cat --json out)" == *"\"layout\":\"list\",\"targets\":$after,"* ]]
    dt-cat --ids out | cmp - <(dt-cat --ids sums.dts)
    dt-shard -o twice --split-by tail --split val=0.1 out # masks are kept
    [ "$(dt-cat --json twice | jq -s 'map(.targets) | add')" = "$after" ]
    run dt-shard -o out --loss-after "$colon" all.dts
    assert_one_line_error dt-shard
    [[ "$output" == *"document 0: does not contain id $colon"* ]]
    eot=$(dt-cat --json all.dts | grep -o '"eot":[0-9]*' | cut -d: -f2)
    run dt-shard -o nothing --loss-after "$eot" all.dts
    assert_one_line_error dt-shard
    [[ "$output" == *"no token of split 'train' carries loss" ]]
    [ -z "$(ls nothing)" ]
}

@test "--shuffle orders documents by the seed, within the memory" {
    dt-shard -o a --shuffle all.dts
    dt-shard -o b --shuffle --memory 5k -j 1 all.dts
    dt-shard -o c --shuffle --seed 2 all.dts
    cmp <(grep '"hash"' a/index.json) <(grep '"hash"' b/index.json)
    refute cmp -s <(dt-cat --ids a) <(dt-cat --ids c)
    refute cmp -s <(dt-cat --ids a) <(dt-cat --ids all.dts)
    cmp <(dt-cat --ids a | sort) <(dt-cat --ids all.dts | sort)
    cmp <(dt-cat --ids c | sort) <(dt-cat --ids all.dts | sort)
    [ -z "$(ls -A b | grep tmp)" ]
}

@test "--append adds shards and keeps existing ones" {
    dt-tokenize -t tok.json <(head -n 300 docs.jsonl) >a.dts
    dt-tokenize -t tok.json <(tail -n +301 docs.jsonl) >b.dts
    dt-shard -o out --split val=0.2 a.dts
    sum=$(cat out/train-00000.dts | md5sum)
    dt-shard -o out --split val=0.2 --append b.dts
    [ "$sum" = "$(cat out/train-00000.dts | md5sum)" ]
    [ "$(ls out | wc -l)" -eq 5 ]
    dt-cat --verify out
    dt-shard -o all --split val=0.2 all.dts
    for split in train val; do cmp <(column out/$split-*.dts) <(column all/$split-*.dts); done
    for other in "--layout padded --length 9" "--loss-after 319"; do
        run dt-shard -o out --append $other b.dts
        assert_one_line_error dt-shard
        [[ "$output" == *"another layout or mask"* ]]
    done
    head -c 3000 b.dts >cut.dts
    run dt-shard -o out --append cut.dts
    assert_one_line_error dt-shard
    dt-cat --verify out
    run dt-shard -o none --append b.dts
    assert_one_line_error dt-shard
}

# parts: directories a and b, two halves of the documents, each with a split val.
parts() {
    dt-tokenize -q -t tok.json <(head -n 200 docs.jsonl) | dt-shard -o a --split val=0.2 --tokens-per-shard 5000
    dt-tokenize -q -t tok.json <(tail -n +201 docs.jsonl) | dt-shard -o b --split val=0.3 --split test=0.1
}

@test "directories are merged split by split, shuffled or not, in rows or not" {
    parts
    dt-shard -o merged a b
    dt-cat --verify merged
    [ "$(jq -c '.splits | keys_unsorted' merged/index.json)" = '["train","val","test"]' ]
    cmp <(column merged/train-*.dts) <(column a/train-*.dts b/train-*.dts)
    cmp <(column merged/val-*.dts) <(column a/val-*.dts b/val-*.dts)
    cmp <(column merged/test-*.dts) <(column b/test-*.dts)
    dt-shard -o shuffled --shuffle b a
    dt-shard -o rows --layout packed --length 63 a b
    for split in train val test; do
        cmp <(column merged/$split-*.dts | sort) <(column shuffled/$split-*.dts | sort)
        cmp <(column merged/$split-*.dts | sort) <(column rows/$split-*.dts | sort)
    done
    refute cmp -s <(dt-cat --ids merged/train-*.dts) <(dt-cat --ids shuffled/train-*.dts)
    dt-shard -o a2 a
    dt-shard -o a2 --append b
    cmp <(column merged) <(column a2)
    run dt-shard -o a a
    assert_one_line_error dt-shard
}

@test "shards named one by one keep the split that index.json lists" {
    parts
    dt-shard -o merged b/val-00000.dts a/*.dts
    cmp <(column merged/val-*.dts) <(column b/val-00000.dts a/val-*.dts)
    cmp <(column merged/train-*.dts) <(column a/train-*.dts)
    (cd b && dt-shard -o ../held val-00000.dts)
    [ "$(ls held)" = "$(printf 'index.json\nval-00000.dts')" ]
    run dt-train -q -o run held
    assert_one_line_error dt-train
    [[ "$output" == *"held: split 'train' does not exist; choose one of: val" ]]
}

@test "copies of shards without their index.json are refused unless their split is known" {
    parts
    mkdir copies
    cp b/*.dts copies
    run dt-shard -o out copies/*.dts
    assert_one_line_error dt-shard
    [[ "$output" == *"copies/test-00000.dts: is a shard of data that were divided into splits"* ]]
    run dt-cat --as raw -o out copies/*.dts
    assert_one_line_error dt-cat
    [[ "$output" == *"would mix"* ]]
    [ ! -e out ]
    dt-shard -o out copies/train-00000.dts
    mv copies/val-00000.dts copies/part-00000.dts
    mv copies/test-00000.dts copies/part-00001.dts
    for copy in part-00000 part-00001; do # neither header nor name has the split
        run dt-shard -o new copies/train-00000.dts copies/$copy.dts
        assert_one_line_error dt-shard
        [[ "$output" == *"copies/$copy.dts: is a shard of data that were divided into splits"*"dt-cat --as dts"* ]]
    done
    cp b/val-00000.dts copies
    run dt-shard -o new copies/val-00000.dts
    assert_one_line_error dt-shard
    ln b/val-00000.dts link.dts
    for options in "" "--split test=0.1"; do
        run dt-shard -o new $options link.dts
        assert_one_line_error dt-shard
        [[ "$output" == *"link.dts: is a shard of data that were divided into splits"* ]]
    done
    [ ! -e new ]
    dt-shard -o undivided all.dts
    cp undivided/train-00000.dts copies/whole.dts
    dt-shard -o new copies/whole.dts
    dt-cat --as dts link.dts >stream.dts # a stream does not have a split
    for i in 0 1; do dt-cat --as dts all.dts >"part-0000$i.dts"; done
    dt-shard -o parts part-*.dts stream.dts
}

@test "splits are not divided again, nor mixed with documents of no split, nor counted twice" {
    parts
    run dt-shard -o out --split val=0.1 a
    assert_one_line_error dt-shard
    [[ "$output" == *"a/val-00000.dts: already belongs to split 'val'"* ]]
    run dt-shard -o out a all.dts
    assert_one_line_error dt-shard
    [[ "$output" == *"all.dts: is not listed in an index.json, so its split is unknown, but a/val-00000.dts belongs to split 'val'"* ]]
    run dt-shard -o out a - <all.dts
    assert_one_line_error dt-shard
    ln -s a same
    for twice in "a a" "a a/val-00000.dts" "a same" "all.dts ./all.dts"; do
        run dt-shard -o out $twice
        assert_one_line_error dt-shard
        [[ "$output" == *"is named twice"* ]]
    done
    [ ! -e out ]
    dt-shard -o whole all.dts # all is train, which may be divided, or merged with streams
    dt-shard -o divided --split val=0.2 whole
    cmp <(column divided | sort) <(column all.dts | sort)
    dt-tokenize -q -t tok.json <(head -n 9 docs.jsonl) | dt-shard -o more whole -
    cmp <(column more) <(cat <(column all.dts) <(dt-cat --ids all.dts | head -n 9 | tr ' ' '\n'))
    run dt-shard -o out --split-by tail all.dts
    [ "$status" -eq 2 ]
}

@test "a shard that index.json does not list is refused wherever it is named" {
    dt-shard -o out --tokens-per-shard 5000 all.dts
    cp out/train-00000.dts out/train-00000.b.dts # left by a killed run
    for command in "dt-cat" "dt-cat --ids" "dt-shard -o new" "dt-tokenize -t tok.json -d" \
        "dt-cat --as raw -o raw"; do
        run $command out/*.dts
        assert_one_line_error ${command%% *}
        [[ "$output" == *"out/train-00000.b.dts: is not listed in the index.json of its directory"* ]]
    done
    for command in "dt-train -q -o run" "dt-bench load"; do
        run $command out/train-00000.b.dts
        assert_one_line_error ${command%% *}
        [[ "$output" == *"out/train-00000.b.dts: is not listed in the index.json of its directory"* ]]
    done
    (cd out && run dt-cat train-00000.b.dts && [ "$status" -eq 1 ])
    dt-cat - <out/train-00000.b.dts # dt-cat still reads it from standard input
    mkdir other
    cp out/train-00000.b.dts other
    dt-cat other/train-00000.b.dts
    dt-shard -o out --append all.dts
    cmp <(column out/*.dts) <(column all.dts all.dts)
}

@test "contradictory options of rows are usage errors" {
    for options in "--layout padded" "--length 5" "--padding-id 3" "--layout packed --length 0" \
        "--append --split-by tail --split val=0.1"; do
        run dt-shard -o out $options all.dts
        [ "$status" -eq 2 ]
    done
    run dt-shard -o out --layout padded --length 5 --padding-id 320 all.dts
    assert_one_line_error dt-shard
    [ ! -e out ]
}

@test "a kill at any moment leaves the older shards valid, or the new ones" {
    for _ in 1 2 3 4 5 6 7 8; do cat all.dts; done >many.dts
    dt-shard -o out --tokens-per-shard 9000 many.dts
    dt-cat --ids out | md5sum >old
    dt-cat --ids many.dts | sort | md5sum >sorted
    for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
        dt-shard -o out --tokens-per-shard 9000 --shuffle --seed $i --memory 100k many.dts &
        sleep "0.0$((i * 7 % 10))$i"
        kill -9 $! 2>/dev/null || true
        wait $! 2>/dev/null || true
        dt-cat --verify out >/dev/null
        dt-cat --ids out | sort | md5sum | cmp - sorted
    done
    dt-shard -o out --tokens-per-shard 9000 many.dts
    dt-cat --ids out | md5sum | cmp - old
    [ -z "$(ls -A out | grep -E 'tmp|incomplete')" ]
    [ "$(ls out/*.dts | wc -l)" -eq "$(grep -c '"file"' out/index.json)" ]
}

@test "many shards are durable before they have their names, by one syncfs" {
    command -v strace >/dev/null || skip "strace is not installed"
    dt-shard --tokens-per-shard 1 -j 1 -o data all.dts
    strace -f -o trace -e trace=write,fsync,syncfs,rename dt-shard --tokens-per-shard 1 -j 1 -o other all.dts
    if ! grep -q syncfs trace; then
        [ "$(grep -c 'fsync(' trace)" -gt 400 ] # of another file system, each file
        skip "the file system of $T is not known to report errors by syncfs"
    fi
    diff -r data other
    [ "$(grep -c 'fsync(' trace)" -lt 20 ]
    [ "$(grep -c 'syncfs(' trace)" -eq 1 ]
    # After it no shard is written, before it none is moved out of .incomplete.
    sed '/syncfs/,$!d' trace >after
    sed '/syncfs/,$d' trace >before
    [ "$(grep -c 'rename("other/.incomplete/train-[0-9]*.dts", "other/train' after)" -eq 400 ]
    refute grep -q '"other/train' before
    refute grep -q 'rename("other/.incomplete/[.]train' after
    # What could not be written is an error, and the older shards stay.
    run strace -f -o trace -e inject=syncfs:error=EIO dt-shard --tokens-per-shard 2 -o data all.dts
    [ "$status" -eq 1 ]
    [ "$output" = "dt-shard: cannot sync the files of 'data': Input/output error" ]
    diff -r data other
}

@test "two programs do not write into one directory" {
    dt-shard -o out all.dts
    mkfifo pipe
    dt-shard -o out pipe &
    pid=$!
    exec 9>pipe
    cat all.dts >&9
    await $pid has out/.incomplete tmp
    run dt-shard -o out all.dts
    exec 9>&-
    wait $pid
    assert_one_line_error dt-shard
    [[ "$output" == *"another program is writing shards into 'out'" ]]
    dt-cat --verify out
}

@test "a symbolic link of any name has the split of its shard" {
    dt-shard -o a --split val=0.2 all.dts
    mkdir c
    ln -s ../a/val-00000.dts c/v.dts
    ln -s c/v.dts w.dts
    for link in c/v.dts w.dts; do
        dt-shard -o new a/train-*.dts $link
        cmp <(column new/val-*.dts) <(column a/val-*.dts)
        cmp <(column new/train-*.dts) <(column a/train-*.dts)
        run dt-cat --as raw -o raw a/train-00000.dts $link
        assert_one_line_error dt-cat
        [[ "$output" == *"$link: belongs to another split than a/train-00000.dts"* ]]
        run dt-train -q -o run $link
        assert_one_line_error dt-train
        [[ "$output" == *"$link: belongs to split 'val', but split 'train' was requested"* ]]
        rm -r new
    done
}

@test "shards that differ from index.json are not copied" {
    dt-shard -o a --split val=0.2 all.dts
    sed 's/"hash": *"[0-9a-f]*"/"hash":"0123456789abcdef"/' a/index.json >changed.json
    refute cmp -s a/index.json changed.json
    mv changed.json a/index.json
    run dt-shard -o new a
    assert_one_line_error dt-shard
    run dt-cat --as raw --split val -o raw a
    assert_one_line_error dt-cat
    [ ! -e new ]
    [ ! -e raw ]
}

# in_parts N: the documents in N parts of the directory part, each a directory of shards.
in_parts() {
    mkdir part
    split -n "l/$1" -d docs.jsonl part/text-
    for text in part/text-*; do
        dt-tokenize -q -t tok.json "$text" |
            dt-shard -o "part/${text##*-}" --split val=0.2 --tokens-per-shard 4000
    done
}

# same DIRECTORY DIRECTORY: the same tokens and documents in each split.
same() {
    for split in train val; do
        cmp <(dt-cat --split $split --ids "$1") <(dt-cat --split $split --ids "$2")
    done
}

@test "--join links parts into the set of one process, in the same order for training" {
    in_parts 3
    dt-shard -o whole --split val=0.2 --tokens-per-shard 4000 all.dts
    dt-shard -o out --join part/0?
    same out whole
    [ out/train-00000.dts -ef part/00/train-00000.dts ]
    sizes() { jq -c '.splits | map_values({tokens, documents, bytes})' "$1/index.json"; }
    [ "$(sizes out)" = "$(sizes whole)" ]
    dt-verify files out
    for d in out whole; do
        dt-train -q -j 1 -o run-$d --set training.max_steps=3 --set training.warmup_steps=1 \
            --set training.batch_size=2 --set model.max_seq_len=32 --set model.hidden_size=16 \
            --set model.num_layers=1 --set model.num_heads=1 $d
    done
    losses() { jq -c '[.step, .loss]' "$1/metrics.jsonl"; }
    [ "$(losses run-out)" = "$(losses run-whole)" ]
    [ "$(losses run-out | grep -c '[0-9]')" -ge 3 ]
}

@test "--join --symbolic makes relative links, which a moved tree keeps" {
    in_parts 2
    mkdir tree
    mv part tree
    dt-shard -o tree/deep/out --join --symbolic tree/part/00 tree/part/01
    [ "$(readlink tree/deep/out/train-00000.dts)" = ../../part/00/train-00000.dts ]
    mv tree moved
    dt-verify files moved/deep/out
    dt-shard -o hard --join moved/deep/out # the shard, not the link
    [ ! -L hard/train-00000.dts ]
    rm -r moved
    dt-verify files hard
}

@test "--join refuses changed shards, other tokenizers and layouts, and repeated inputs" {
    in_parts 2
    cp -r part/00 changed
    printf x | dd of=changed/train-00000.dts bs=1 seek=1000 conv=notrunc status=none
    run dt-shard -o out --join part/01 changed
    assert_one_line_error dt-shard
    [[ "$output" == *"changed/train-00000.dts: differs from index.json in its SHA-256" ]]
    dt-shard -o rows --layout padded --length 9 all.dts
    dt-vocab -q -s 300 -o other.json docs.jsonl
    dt-tokenize -t other.json docs.jsonl | dt-shard -o other
    for wrong in "part/00 rows" "part/00 other" "part/00 part/01 part/00" "part/00 part/00/" \
        "part/00 part/none" "part/00 all.dts"; do
        run dt-shard -o out --join $wrong
        assert_one_line_error dt-shard
        [ ! -e out/index.json ]
    done
    run dt-shard -o part/00 --join part/00 part/01
    assert_one_line_error dt-shard
    dt-verify files part/00
    for wrong in "--join" "--join --level 3 part/00" "--symbolic part/00" "--join --append part/00"; do
        run dt-shard -o out $wrong
        [ "$status" -eq 2 ]
    done
}

@test "--join refuses a shard that it has already, in a joined set or a copy" {
    in_parts 2
    dt-shard -o joined --join part/00 part/01
    cp -r part/00 copy
    for inputs in "joined part/01" "part/00 joined" "part/00 part/01 copy"; do
        run dt-shard -o out --join $inputs
        assert_one_line_error dt-shard
        [[ "$output" == *": has the same content as "*".dts, which would duplicate its documents"* ]]
        [ ! -e out ]
    done
    for name in empty none; do
        dt-tokenize -q -t tok.json --allow-empty --from jsonl </dev/null | dt-shard -o $name --allow-empty
    done
    dt-shard -o out --join empty part/00 none
    [ "$(dt-cat --ids out | wc -l)" -eq "$(dt-cat --ids part/00 | wc -l)" ]
}

@test "--allow-empty writes parts without documents, which --join skips" {
    : >empty.jsonl
    run dt-tokenize -t tok.json -o empty.dts empty.jsonl
    assert_one_line_error dt-tokenize
    dt-tokenize -t tok.json --allow-empty -o empty.dts empty.jsonl
    run dt-shard -o none --split val=0.2 empty.dts
    assert_one_line_error dt-shard
    dt-shard -o none --split val=0.2 --allow-empty empty.dts
    dt-verify files none
    run dt-train -q -o run none
    assert_one_line_error dt-train
    [[ "$output" == *"split 'train' is empty"* ]]
    head -n 1 docs.jsonl | dt-tokenize -t tok.json | dt-shard -o one --split val=0.2 --allow-empty
    dt-shard -o whole --split val=0.2 all.dts
    dt-shard -o out --join none whole one
    [ "$(dt-cat --ids out | wc -l)" -eq 401 ]
    run dt-shard -o nothing --join none none/../none
    assert_one_line_error dt-shard
    run dt-shard -o nothing --join none
    assert_one_line_error dt-shard
    [[ "$output" == *"split 'train' is empty in all inputs" ]]
}

@test "--join replaces an older set as a whole" {
    in_parts 2
    dt-shard -o out all.dts
    dt-shard -o out --join part/00 part/01
    dt-shard -o whole --split val=0.2 all.dts
    same out whole
    dt-shard -o out --join part/01
    [ -e out/train-00000.dts ]
    [ -e part/00/train-00000.dts ]
}

@test "whichever sync fails, index.json names shards that are there" {
    [[ "$(ldd "$(command -v dt-shard)")" != *asan* ]] || skip "sanitizers allocate for themselves"
    local fail_call=${DT_BUILD:-$ROOT/build}/tests/faults/fail-call.so status=1
    for ((n = 1; status != 0; n++)); do
        rm -rf out
        dt-shard -o out all.dts
        run env FAIL_CALL="fsync $n 5" LD_PRELOAD="$fail_call" dt-shard -o out --tokens-per-shard 10k all.dts
        dt-cat --verify out
        dt-cat --ids out | cmp - <(dt-cat --ids all.dts)
    done
    [ $n -gt 6 ]
}
