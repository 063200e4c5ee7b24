# SPDX-License-Identifier: MIT
# make STATIC=1: programs that need no file of the system.
load ../helper

setup_file() {
    make -s -C "$ROOT" B="${DT_BUILD:-$ROOT/build}/static" STATIC=1 all
}

setup() {
    STATIC=${DT_BUILD:-$ROOT/build}/static/bin
    cd "$T"
}

@test "each program is one file, statically linked, and prints its version" {
    for source in "$ROOT"/tools/dt-*.c; do
        program=$STATIC/$(basename "$source" .c)
        refute grep -q INTERP <<<"$(readelf -lW "$program")"
        "$program" --version
    done
}

# A model from text; prints the hash of its parameters. $in begins each command.
train() {
    $in dt-synth --bytes 1M -o stories.jsonl
    $in dt-clean -q --normalize nfc --dedup stories.jsonl -o clean.jsonl
    $in dt-vocab -q --size 512 -o tokenizer.json clean.jsonl
    $in dt-tokenize -q -t tokenizer.json clean.jsonl -o ids
    $in dt-shard -o shards --split val=0.05 ids 2>messages
    $in dt-train -t tokenizer.json -o run shards --set model.num_layers=2 --set model.num_heads=4 \
        --set model.hidden_size=64 --set model.max_seq_len=64 --set training.max_steps=50 --set training.warmup_steps=10 | grep ^parameters
    $in dt-generate -m run/latest -p 'Once upon a time' -n 20 >story
}

@test "in an empty chroot they train the model that the others train" {
    [ "$(id -u)" -eq 0 ] || skip "chroot needs root"
    mkdir empty there
    cp "$STATIC"/* empty
    (cd empty && in="chroot $T/empty" && PATH=/:$PATH && train) >static.log
    (cd there && in= train) >shared.log
    grep -q '^parameters ' shared.log
    diff shared.log static.log
    cmp there/story empty/story
}

@test "xz, bzip2 and lz4 files and web pages are read; what is not linked is named" {
    dt-synth -n 50 -o s.jsonl
    dt-clean -q s.jsonl -o expected
    for name in xz bzip2 lz4; do
        if command -v $name >/dev/null; then
            $name -c s.jsonl >s.$name
            "$STATIC/dt-clean" -q s.$name -o read
            cmp read expected
        fi
    done
    echo '<html><body><p>A page of one sentence, which is a paragraph of some length.</p></body></html>' >page.html
    [[ "$("$STATIC/dt-extract" -q page.html)" == *"A page of one sentence"* ]]
    run "$STATIC/dt-clean" http://localhost:1/x.jsonl
    [ "$status" -eq 1 ]
    [[ "$output" == *"no HTTP client 'http': this program is statically linked, without it"* ]]
    run env DT_ENGINES="$DT_BUILD/lib/dt" "$STATIC/dt-bench" step --device http -c "$ROOT/share/configs/demo.yaml" --set model.vocab_size=300
    [ "$status" -eq 1 ]
    [ "$output" = "dt-bench: no engine 'http': this program is statically linked, without it" ]
}
