# SPDX-License-Identifier: MIT
# dt for AArch64, under qemu: the bytes of this machine's programs.
load ../helper
load ../one-hash
steps=50
limit=7200 # qemu took 26 to 53 s a step beside other work

setup_file() {
    local status=0
    DT_AARCH64=$("$ROOT/tests/aarch64" "${DT_BUILD:-$ROOT/build}" 2>"$BATS_FILE_TMPDIR/messages") ||
        status=$?
    [ $status = 0 ] || [ $status = 77 ] || { cat "$BATS_FILE_TMPDIR/messages" && return 1; }
    export DT_AARCH64
    make_hash_data
}

setup() {
    cd "$T"
    [ -n "$DT_AARCH64" ] || skip "$(tail -n 1 "$BATS_FILE_TMPDIR/messages")"
    compared=0
}

# there COMMAND...: with the programs of AArch64.
there() {
    (unset DT_ENGINES && PATH="$DT_AARCH64/bin:$PATH" && "$@")
}

@test "AArch64: documents, tokenizers, ids, shards and checkpoints of this machine" {
    # the fast arithmetic of 16 bits depends on the machine
    "$ROOT/tests/bits" "${DT_BUILD:-$ROOT/build}" | grep -v 'bf16\|fp16' | sort -k 2 >here
    "$ROOT/tests/bits" "$DT_AARCH64" | grep -v 'bf16\|fp16' | sort -k 2 >there
    join -1 2 -2 2 there here >both
    [ "$(wc -l <both)" -ge 21 ]
    awk '$2 != $3 { print "differs: " $1; bad = 1 } END { exit bad }' both
}

@test "AArch64: the same hash after 50 steps of each model" {
    for of in "${!family[@]}"; do
        train first "$of" one -j 1
        rm -rf run
        there train run "$of" one -j 2
        [ "$(hash run)" = "$(hash first)" ] || { echo "other hashes: $of" && return 1; }
        compared=$((compared + 1))
        rm -rf first
    done
    [ $compared = 5 ]
}

@test "AArch64: README's tour, with less text and fewer steps, has this machine's documents, ids, shards, checkpoint and story" {
    mkdir -p tree/debian/tests
    cp "$ROOT/debian/tests/tour" tree/debian/tests
    sed 's/--bytes 5M/--bytes 300K/' "$ROOT/README.md" >tree/README.md # a step takes half a minute under qemu
    refute cmp tree/README.md "$ROOT/README.md"
    for of in here there; do
        mkdir $of
        export AUTOPKGTEST_TMP=$T/$of STEPS=4
        if [ $of = here ]; then run=env; else run=there; fi
        (cd tree && $run debian/tests/tour) >$of.log
        sed -n '/^Once upon a time/,$p' $of.log >$of/build/tour/story
        [ -s $of/build/tour/story ]
    done
    cd here/build/tour
    for file in stories.jsonl clean.jsonl tokenizer.json story shards/*.dts \
        run/latest/model.safetensors run/latest/trainer/*.safetensors; do
        cmp "$file" "$T/there/build/tour/$file"
        compared=$((compared + 1))
    done
    [ $compared -eq 8 ]
}
