# SPDX-License-Identifier: MIT
load ../helper

setup() {
    cd "$T"
    dt-synth -n 300 >docs.jsonl
    dt-vocab -q -s 320 -o tok.json docs.jsonl 2>/dev/null
    dt-tokenize -q -t tok.json -o all.dts docs.jsonl
    dt-shard -o out --split val=0.1 --tokens-per-shard 20000 all.dts
}

# flip FILE OFFSET BIT: flips one bit.
flip() {
    local byte
    byte=$(od -An -v -j "$2" -N 1 -tu1 "$1")
    printf "\\x$(printf %x $((byte ^ 1 << $3)))" |
        dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

@test "--info shows the contents of directories, files and streams, in 80 columns" {
    dt-cat out >table
    [ "$(wc -L <table)" -le 80 ]
    grep -qE '^total +300 ' table
    grep -qE 'vocabulary 320, end-of-text 319, ids of 2 bytes$' table
    dt-cat --info out/val-00000.dts | grep -q '^out/val-00000.dts'
    dt-cat <all.dts | grep -qE '^- +300 '
    cat all.dts all.dts | dt-cat | grep -qE '^- +600 '
}

@test "a named pipe is read once" {
    mkfifo pipe
    for options in --info --lineage "--ids --doc 7"; do
        cat all.dts >pipe &
        dt-cat $options pipe >got
        wait $! || true # --doc stops reading early
        [ -s got ]
    done
}

@test "--json has the same contents" {
    dt-cat --json all.dts >line
    [ "$(wc -l <line)" -eq 1 ]
    grep -qE '^\{"file":"all.dts","tokenizer":"[0-9a-f]{16}","vocab_size":320,"eot":319,"token_bytes":2,"layout":"list","documents":300,"tokens":[0-9]+,"bytes":[0-9]+,"hash":"[0-9a-f]{16}"\}$' line
    cmp <(cut -d, -f2- line) <(dt-cat --json <all.dts | cut -d, -f2-)
    [ "$(dt-cat --json out | wc -l)" -eq "$(ls out/*.dts | wc -l)" ]
}

@test "--ids prints what dt-tokenize --ids prints" {
    dt-cat --ids all.dts | cmp - <(dt-tokenize --ids -t tok.json docs.jsonl)
}

@test "--text prints the documents, which dt-clean separates again" {
    dt-cat --text -t tok.json all.dts >text
    dt-clean --from sep --separator '<|endoftext|>' text 2>/dev/null |
        dt-tokenize -t tok.json --ids | cmp - <(dt-cat --ids all.dts)
    dt-tokenize -t tok.json --frame none docs.jsonl | dt-cat --text -t tok.json |
        cmp - <(dt-tokenize -d -t tok.json all.dts)
}

@test "--doc finds a document in files, directories, pipes and joined streams" {
    cat all.dts all.dts >joined.dts
    for n in 0 7 149 299; do
        line=$(dt-cat --ids all.dts | sed -n "$((n + 1))p")
        [ "$(dt-cat --ids --doc $n all.dts)" = "$line" ]
        [ "$(dt-cat --ids --doc $n <all.dts)" = "$line" ]
        [ "$(dt-cat --ids --doc $((n + 300)) joined.dts)" = "$line" ]
        [ "$(dt-cat --ids --doc $((n + 300)) all.dts all.dts)" = "$line" ]
        [ "$(dt-cat --ids --doc $n out)" = "$(dt-cat --ids out | sed -n "$((n + 1))p")" ]
    done
    dt-cat --text -t tok.json --doc 2 all.dts | cmp - <(
        dt-tokenize -t tok.json <(sed -n 3p docs.jsonl) | dt-tokenize -d -t tok.json)
    for where in all.dts out -; do
        run dt-cat --ids --doc 300 $where <all.dts
        assert_one_line_error dt-cat
        [[ "$output" == *"document 300 is out of range: there are 300 documents, counted from 0"* ]]
    done
}

@test "--lineage lists the commands" {
    dt-cat --lineage out >lines
    grep -q '^dt-tokenize .*tok.json docs.jsonl$' lines
    grep -q '^dt-shard .*--split val=0.1 --tokens-per-shard 20000 all.dts$' lines
    [ "$(grep -n dt-tokenize lines | cut -d: -f1)" -lt "$(grep -n dt-shard lines | cut -d: -f1)" ]
}

@test "--verify lists valid shards" {
    dt-cat --verify out all.dts >said
    [ "$(wc -l <said)" -eq $(($(ls out/*.dts | wc -l) + 1)) ]
    [ -z "$(grep -v ' tokens: whole$' said)" ]
}

# tests/shard/test-stream.c flips every bit.
@test "--verify lists valid shards before the first damage" {
    head -c 100 all.dts >cut.dts
    refute dt-cat --verify all.dts cut.dts >said 2>complaint
    [[ "$(cat said)" == "all.dts: 300 documents, "*" tokens: whole" ]]
    [[ "$(cat complaint)" == "dt-cat: cut.dts: "* ]]
}

@test "--verify finds a flipped bit at any position" {
    for file in version-1 version-1-compressed; do
        size=$(stat -c %s "$ROOT/tests/shard/$file.dts")
        for ((i = 0; i < size; i += 9)); do
            cp "$ROOT/tests/shard/$file.dts" flipped.dts
            flip flipped.dts $i $((i % 8))
            run dt-cat --verify flipped.dts
            assert_one_line_error dt-cat
            [[ "$output" == *"flipped.dts: frame "*" at byte "* ]]
        done
    done
}

@test "--verify finds a truncation at any position" {
    for ((i = 0; i < 327; i += 11)); do
        head -c $i "$ROOT/tests/shard/version-1.dts" >cut.dts
        run dt-cat --verify cut.dts
        assert_one_line_error dt-cat
    done
}

@test "--verify compares a directory with its index.json" {
    cp -r out changed
    cp changed/train-00001.dts changed/train-00000.dts
    run dt-cat --verify changed
    assert_one_line_error dt-cat
    [[ "$output" == *"changed/train-00000.dts: differs from index.json in its "* ]]
    rm changed/train-00000.dts
    run dt-cat --verify changed
    assert_one_line_error dt-cat
    cp -r out/. changed
    flip changed/val-00000.dts 1500 3
    run dt-cat --verify changed
    [ "$status" -eq 1 ]
    [[ "$output" == *"dt-cat: changed/val-00000.dts: frame "* ]]
}

@test "a damaged index.json is an error" {
    cp out/index.json good.json
    : >empty.json
    head -c 100 good.json >cut.json
    sed 's/"version": 1/"version": 9/' good.json >version.json
    sed 's/train-00000.dts/..\/all.dts/' good.json >outside.json
    sed 's/"tokens": /"tokens": -/' good.json >negative.json
    sed 's/"vocab_size": 320/"vocab_size": 3/' good.json >vocabulary.json
    echo '[1]' >array.json
    for f in empty cut version outside negative vocabulary array; do
        cp $f.json out/index.json
        run dt-cat --verify out
        assert_one_line_error dt-cat
        [[ "$output" == *"out/index.json"* ]]
    done
    rm out/index.json
    run dt-cat out
    assert_one_line_error dt-cat
    [[ "$output" == *"does not contain index.json"* ]]
}

@test "concatenated streams of two tokenizers are refused" {
    dt-vocab -q -s 300 -o other.json docs.jsonl
    cat all.dts <(dt-tokenize -t other.json docs.jsonl) >mixed.dts
    run dt-cat --verify mixed.dts
    assert_one_line_error dt-cat
    [[ "$output" == *"another tokenizer"* ]]
}

@test "--text with another tokenizer is refused" {
    dt-vocab -q -s 300 -o other.json docs.jsonl
    run dt-cat --text -t other.json all.dts
    assert_one_line_error dt-cat
    [[ "$output" == *"all.dts: was made with another tokenizer "* ]]
}

@test "a full disk and a closed pipe end it" {
    run dt-cat --ids -o /dev/full all.dts
    assert_one_line_error dt-cat
    run bash -c 'dt-cat --ids all.dts >/dev/full'
    assert_one_line_error dt-cat
    run bash -c 'for _ in 1 2 3 4 5 6 7 8; do cat all.dts; done | dt-cat --ids | head -n 1 | wc -l; echo "${PIPESTATUS[1]}"'
    [ "${lines[0]}" = 1 ]
    [ "${lines[1]}" -eq 141 ]
}

@test "a file that is not a shard is an error" {
    : >empty
    for f in docs.jsonl empty missing /dev/null; do
        run dt-cat $f
        assert_one_line_error dt-cat
    done
}

@test "- is the standard input where a directory has that name too" {
    mkdir ./-
    run dt-cat --verify - <all.dts
    [ "$status" -eq 0 ]
    [[ "$output" == *": whole" ]]
}

@test "options that exclude each other are usage errors" {
    for options in "--ids --verify" "--text" "--ids -t tok.json" "--ids --as raw" "--from mds" \
        "--as dts --from mds" "--doc 1" "--json --lineage" "--info --json"; do
        run dt-cat $options all.dts
        [ "$status" -eq 2 ]
    done
}

@test "the bytes shown in dt-shard(5) are those of the file named there" {
    sed -nE 's/^ *[0-9]+  (([0-9a-f]{2} +)*[0-9a-f]{2})$/\1/p' "$ROOT/man/man5/dt-shard.5" |
        tr -s ' \n' '\n' >shown
    od -An -v -tx1 -w1 "$ROOT/tests/shard/version-1.dts" | tr -d ' ' | cmp - shown
}

@test "the table fits long paths" {
    mkdir -p a/directory/with/quite/a/long/name
    path=a/directory/with/quite/a/long/name/all.dts
    cp all.dts $path
    dt-cat $path | grep -qE "^$path +300 "
}

@test "on a terminal of 80 columns long paths are shortened" {
    need_terminal
    mkdir -p a/directory/with/quite/a/long/name
    path=a/directory/with/quite/a/long/name/all.dts
    cp all.dts $path
    script -qc "stty cols 80; dt-cat $path" /dev/null >screen
    grep -qE '^\.\.\.[a-z/]*/name/all.dts +300 ' screen
    [ "$(tr -d '\r' <screen | wc -L)" -le 80 ]
}

# layouts NAME...: shards of every layout, and of ids of 4 bytes, in NAME/train-00000.dts.
layouts() {
    dt-shard -o list all.dts
    dt-shard -o stored --level 0 all.dts
    dt-shard -o padded --layout padded --length 100 all.dts
    dt-shard -o packed --layout packed --length 100 all.dts
    dt-shard -o masked --loss-after 13 all.dts # a full stop
    cp "$ROOT/tests/shard/version-2-padded-wide.dts" wide.dts
}

@test "the Python of dt-shard(5) reads a shard of every layout" {
    need_python numpy zstandard
    layouts
    python=$(sed -n '/^numpy.frombuffer/,/^\.Ed/p' "$ROOT/man/man5/dt-shard.5" | grep -v '^\.')
    for name in list stored padded packed masked; do
        printf 'import numpy, sys, zstandard\nids = %s\nsys.stdout.buffer.write(ids.tobytes())\n' \
            "$python" >read.py
        (cd $name && "$PYTHON" ../read.py) | cmp - <(zstd -dcq $name/train-00000.dts)
        (cd $name && "$PYTHON" ../read.py) | cmp - <(dt-cat --as raw $name/train-00000.dts)
    done
}

@test "zstd and dt-cat --as raw agree for every layout" {
    layouts
    for f in list/*.dts stored/*.dts padded/*.dts packed/*.dts masked/*.dts wide.dts all.dts; do
        zstd -tq "$f"
        [ "$(zstd -dcq "$f" | sha256sum)" = "$(dt-cat --as raw "$f" | sha256sum)" ]
        dt-cat --as raw <"$f" | cmp - <(zstd -dcq "$f")
    done
}

@test "an unknown --as is refused with the names of all" {
    for word in ids ''; do
        run dt-cat out/train-00000.dts --as "$word"
        [ "$status" -eq 2 ]
        [[ "${lines[0]}" == "dt-cat: --as takes one of raw, dts, "*", not '$word'" ]]
    done
}

@test "--as dts is a token stream with the mask and the history" {
    layouts
    for name in list padded masked; do
        dt-cat --as dts $name >again.dts
        dt-cat --ids again.dts | cmp - <(dt-cat --ids $name)
        dt-cat --lineage again.dts | tail -n 1 | grep -q -e '--as dts'
    done
    dt-cat --as dts masked | dt-shard -o again
    [ "$(grep '"hash"' again/index.json)" = "$(grep '"hash"' masked/index.json)" ]
    run dt-cat --as dts -o none.dts list masked
    assert_one_line_error dt-cat
    [ ! -e none.dts ]
}

@test "conversion to files of other programs and back keeps the documents" {
    layouts
    dt-cat --json all.dts | grep -o '"hash":.*' >hash
    for format in mds megatron llmc; do
        dt-cat --as $format -o x.$format list
        dt-cat --from $format --as dts -t tok.json x.$format >back.dts
        dt-cat --ids back.dts | cmp - <(dt-cat --ids all.dts)
        dt-cat --json back.dts | grep -o '"hash":.*' | cmp - hash
    done
    dt-cat --as megatron -o y padded # padding is omitted
    dt-cat --as dts --from megatron -t tok.json y | dt-cat --ids | cmp - <(dt-cat --ids padded)
}

@test "streaming and megatron-core read what is written, and are read" {
    need_python numpy streaming
    need_python numpy torch megatron.core
    oracle="$ROOT/tests/oracles/foreign_oracle.py"
    dt-cat --ids all.dts >ids
    for format in mds megatron; do
        dt-cat --as $format -o ours all.dts
        "$PYTHON" "$oracle" $format ours 2>err | cmp - ids || { cat err; return 1; }
        "$PYTHON" "$oracle" write-$format theirs <ids >/dev/null 2>err || { cat err; return 1; }
        dt-cat --from $format --as dts -t tok.json theirs | dt-cat --ids | cmp - ids
        rm -r ours* theirs*
    done
}

@test "files of other programs that are damaged or not finished are errors" {
    for format in mds megatron llmc; do
        run dt-cat --as $format -o /dev/full/x all.dts
        assert_one_line_error dt-cat
        run dt-cat --as $format -o - all.dts
        assert_one_line_error dt-cat
        head -c 20000 all.dts >cut.dts
        run dt-cat --as $format -o x cut.dts
        assert_one_line_error dt-cat
        [[ ! -e x.idx && ! -e x.bin && ! -f x && ! -e x/index.json ]]
        rm -rf x
        run dt-cat --from $format --as dts -t tok.json -o y docs.jsonl
        assert_one_line_error dt-cat
        [ ! -e y ]
    done
    dt-cat --as llmc -o x all.dts
    dt-vocab -q -s 300 -o small.json docs.jsonl
    run dt-cat --from llmc --as dts -t small.json -o y x
    assert_one_line_error dt-cat
    [[ "$output" == *"x: "* ]]
    dt-vocab -q -s 320 --special '[PAD]' -o endless.json docs.jsonl
    run dt-cat --from llmc --as dts -t endless.json -o y x
    assert_one_line_error dt-cat
    [[ "$output" == "dt-cat: x: llmc separates documents by end-of-text tokens"* ]]
    head -c 3000 x >cut
    run dt-cat --from llmc --as dts -t tok.json -o y cut
    assert_one_line_error dt-cat
}

@test "--split selects the shards of one split, and --as does not mix splits" {
    dt-cat --ids --split val out | cmp - <(dt-cat --ids out/val-*.dts)
    dt-cat --ids --split train out/*.dts | cmp - <(dt-cat --ids out/train-*.dts)
    dt-cat --json --split val out >lines
    [ "$(jq -r .file lines)" = out/val-00000.dts ]
    for as in raw dts mds megatron llmc; do
        for mixed in out "out/train-00000.dts out/val-00000.dts" "all.dts out/val-00000.dts"; do
            run dt-cat --as $as -o mixed $mixed
            assert_one_line_error dt-cat
            [[ "$output" == *"out/val-00000.dts: belongs to another split than "*", and --as $as would mix them"*"--split" ]]
            [ ! -e mixed ]
        done
    done
    dt-cat --as raw --split val out | cmp - <(zstd -dcq out/val-00000.dts)
    dt-cat --as dts --split train out | dt-cat --ids | cmp - <(dt-cat --ids out/train-*.dts)
    run dt-cat --as raw -o twice out/val-00000.dts ./out/val-00000.dts
    assert_one_line_error dt-cat
    run dt-cat --split test out
    assert_one_line_error dt-cat
    [ "$output" = "dt-cat: no shard belongs to split 'test'" ]
    run dt-cat --split val all.dts
    assert_one_line_error dt-cat
    run dt-cat --split val --from mds --as dts -t tok.json x
    [ "$status" -eq 2 ]
}

@test "a shard of MDS has the bytes that its index says, and takes no more memory" {
    dt-cat --as mds -o x.mds all.dts
    shard=$(ls x.mds/*.mds | head -n 1)
    cp "$shard" whole
    printf x >>"$shard"
    run dt-cat --from mds --as dts -t tok.json -o y x.mds
    assert_one_line_error dt-cat
    [[ "$output" == *": has more bytes than the "* ]]
    head -c 1000 whole >"$shard"
    run dt-cat --from mds --as dts -t tok.json -o y x.mds
    [[ "$output" == *": has fewer bytes than the "* ]]
    head -c 300000000 /dev/zero | zstd -q >"$shard" # likewise with 3 GB
    run bash -c "ulimit -d 60000; dt-cat --from mds --as dts -t tok.json -o y x.mds"
    if [[ "${DT_BUILD:-}" != *asan* ]]; then
        [[ "$output" == *": has more bytes than the "* ]]
    fi
    [ ! -e y ]
}

@test "--verify -t finds shards of another tokenizer" {
    dt-cat --verify -t tok.json out
    dt-vocab -q -s 300 -o other.json docs.jsonl
    run dt-cat --verify -t other.json out
    assert_one_line_error dt-cat
    [[ "$output" == *"out/train-00000.dts: was made with another tokenizer "* ]]
}

@test "--lineage follows a checkpoint back to the text" {
    dt-train --set model.hidden_size=16 --set model.num_layers=1 --set model.num_heads=1 \
        --set model.max_seq_len=32 --set training.max_steps=2 --set training.warmup_steps=0 \
        --set training.batch_size=1 --set training.eval_interval=0 -q -j 1 -o run out
    for where in run run/latest run/step-00000002; do
        dt-cat --lineage $where >lines
        [ "$(sed -n 's/^\(dt-[a-z]*\) .*/\1/p' lines | paste -sd ' ')" = "dt-tokenize dt-shard dt-train" ]
    done
}

@test "two frames that were swapped are found" {
    for _ in 1 2 3 4; do cat all.dts; done | dt-shard -o many
    # Offsets of frames 1 and 2 with their indexes, from the seek table.
    python3 - many/train-00000.dts <<'END' || skip "no python3"
import struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
count = struct.unpack_from("<I", data, len(data) - 9)[0]
table = len(data) - 9 - 12 * count
sizes = [struct.unpack_from("<I", data, table + 12 * i)[0] for i in range(count)]
a, b = sum(sizes[:3]), sum(sizes[:5])
one, two = data[a:b], data[b:b + sizes[5] + sizes[6]]
open("swapped.dts", "wb").write(data[:a] + two + one + data[b + len(two):])
END
    run dt-cat --verify swapped.dts
    assert_one_line_error dt-cat
    [[ "$output" == *"swapped.dts: frame 3 at byte "*": is not the successor of the frame before it" ]]
}

@test "an output that is an input is refused" {
    cp out/train-00000.dts kept.dts
    cp out/index.json kept.json
    ln -s out/train-00000.dts link.dts
    for options in "--as dts -o out/train-00000.dts out/train-00000.dts" "--ids -o link.dts out" \
        "--verify -o out/train-00000.dts link.dts" "--as mds -o out out"; do
        run dt-cat $options
        [ "$status" -ne 0 ] || { echo "$options: $output"; return 1; }
        cmp out/train-00000.dts kept.dts
        cmp out/index.json kept.json
    done
    dt-cat --split train --as megatron -o m out
    cp m.bin kept.bin
    run dt-cat --from megatron --as dts -t tok.json -o m.bin m
    assert_one_line_error dt-cat
    cmp m.bin kept.bin
    dt-cat --split train --as mds -o mds out
    cp mds/index.json kept.json
    run dt-cat --from mds --as dts -t tok.json -o mds/index.json mds
    assert_one_line_error dt-cat
    cmp mds/index.json kept.json
}

@test "--verify compares the totals of index.json with its shards" {
    for member in tokens documents bytes; do
        cp -r out damaged
        awk -v m="\"$member\":" '!done && index($0, m) { sub(/[0-9]+/, "7"); done = 1 } { print }' \
            out/index.json >damaged/index.json
        refute cmp -s out/index.json damaged/index.json
        run dt-cat --verify damaged
        assert_one_line_error dt-cat
        [[ "$output" == *"damaged/index.json: split 'train' has 7 $member, but its shards have "* ]]
        rm -r damaged
    done
}

@test "--croissant describes a directory of shards, with the hash of each file" {
    dt-cat --croissant out >croissant.json
    jq -r '.distribution[] | .sha256 + "  out/" + .contentUrl' croissant.json | sha256sum -c
    [ "$(jq '.distribution | length' croissant.json)" -eq "$(ls out/*.dts | wc -l)" ]
    for file in out/*.dts; do
        jq -e --arg name "${file#out/}" --arg size "$(stat -c %s "$file") B" \
            '.distribution[] | select(."@id" == $name) | .contentSize == $size' croissant.json
    done
    # The rest is always the same, but for the version of dt.
    sed -E 's/"sha256": "[0-9a-f]{64}"/"sha256": "HASH"/; s/"contentSize": "[0-9]+ B"/"contentSize": "SIZE"/
        s/(dt-[a-z]+) [^ ]+:/\1 VERSION:/g' croissant.json | diff "$BATS_TEST_DIRNAME/golden/croissant.json" -
    run dt-cat --croissant out/*.dts out2
    assert_one_line_error dt-cat
    dt-cat --as dts --split train -o stream.dts out
    run dt-cat --croissant stream.dts
    assert_one_line_error dt-cat
}

@test "mlcroissant accepts the metadata" {
    need_python mlcroissant
    dt-cat --croissant out >out/croissant.json
    "$PYTHON" -c 'import mlcroissant
dataset = mlcroissant.Dataset(jsonld="out/croissant.json")
assert len(dataset.metadata.distribution) > 0'
    rm out/croissant.json
}
