#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
load ../helper

setup() {
    cd "$T"
}

# The numbers from $1 to $2 as words of letters, since numbers count as one word.
words() {
    seq "$1" "$2" | tr 0-9 a-j | tr '\n' ' '
}

# Five documents: the second differs from the first in the last word, the fifth is the third in
# capitals.
near_documents() {
    {
        echo "$(words 100 160)"
        echo "$(words 100 159)other"
        echo "$(words 300 360)"
        echo "$(words 500 560)"
        echo "$(words 300 360)!" | tr a-z A-Z
    } >lines
}

@test "near duplicates are listed, and dropped by dt-clean" {
    near_documents
    run dt-dedup sign --from lines -o docs.sig lines
    [ "$status" -eq 0 ]
    [[ "${lines[0]}" == *"similarity 0.5, 0.6, 0.7, 0.8, 0.9 are found with probability 0.053, 0.211, 0.565, 0.924, 1.000" ]]
    [[ "${lines[1]}" == *"memory: 30 MB"*"176 bytes a document" ]]
    run dt-dedup match -o . docs.sig
    [ "$status" -eq 0 ]
    [[ "$output" == *"5 documents in 1 runs: "*" MB of memory; keys equal by chance: "* ]]
    [[ "$output" == *"2 of 5 documents are near duplicates of others" ]]
    [ "$(cut -d ' ' -f 1,3 docs.drop)" = "2 docs:1
5 docs:3" ]
    dt-clean -q --from lines --drop docs.drop --rejects r lines >kept
    [ "$(sed -E 's/.*"id":"([^"]*)".*/\1/' kept)" = "lines:1
lines:3
lines:4" ]
    grep -q '"id":"lines:5".*"reject":{"rule":"near-duplicate","value":"docs:3"}' r
}

@test "shards are signed separately and matched together" {
    near_documents
    head -n 2 lines >a
    tail -n 3 lines >b
    for f in a b; do dt-dedup sign -q --from lines -o $f.sig $f; done
    dt-dedup match -q -o lists a.sig b.sig
    [ "$(cut -d ' ' -f 1,3 lists/a.drop)" = "2 a:1" ]
    [ "$(cut -d ' ' -f 1,3 lists/b.drop)" = "3 b:1" ]
    [ "$(cat a b | dt-clean -q --from lines | wc -l)" -eq 5 ]
    [ "$(dt-clean -q --from lines --drop lists/b.drop b | wc -l)" -eq 2 ]
}

@test "signatures do not depend on the number of threads" {
    dt-synth --bytes 2M -o in.jsonl
    dt-dedup sign -q -j 1 -o 1.sig in.jsonl
    dt-dedup sign -q -j 3 -o 3.sig in.jsonl
    cmp 1.sig 3.sig
}

@test "a list of other documents is refused" {
    near_documents
    dt-dedup sign -q --from lines -o docs.sig lines
    dt-dedup match -q -o . docs.sig
    sed 's/^/x/' lines >others
    run dt-clean -q --from lines --drop docs.drop -o o others
    assert_one_line_error dt-clean
    [ "$output" = "dt-clean: docs.drop: document 2 is another one than listed" ]
    head -n 1 lines >fewer
    run dt-clean -q --from lines --drop docs.drop -o o fewer
    assert_one_line_error dt-clean
    [ ! -e o ]
    run dt-clean -q --from lines --drop lines -o o lines
    assert_one_line_error dt-clean
}

@test "bad input is one line, and leaves no file" {
    near_documents
    dt-dedup sign -q --from lines -o good.sig lines
    dt-dedup sign -q --from lines --bands 3 -o other.sig lines
    head -c 100 good.sig >cut.sig
    cp good.sig flipped.sig
    printf 'x' | dd of=flipped.sig bs=1 seek=300 conv=notrunc status=none
    mkdir d
    cp good.sig d/good.sig
    : >empty
    for files in absent lines cut.sig flipped.sig "good.sig other.sig" "good.sig d/good.sig" . empty; do
        run dt-dedup match -q -o out $files
        assert_one_line_error dt-dedup
        [ ! -e out ]
    done
    run dt-dedup sign -q -o o.sig empty
    assert_one_line_error dt-dedup
    run dt-dedup sign -q -o o.sig absent
    assert_one_line_error dt-dedup
    run dt-dedup sign -q -o /dev/full lines
    assert_one_line_error dt-dedup
    [ ! -e o.sig ]
    [ -z "$(find . -name '.*.tmp*')" ]
}

@test "wrong usage ends with status 2" {
    for options in "" "sign" "-o x" "-o x clean" "-o x match" "-o x --bands 0 sign in" "-o x -j 2 match a.sig" "-o x --rows 8 match a.sig" "-o x --rows 65 sign in" \
        "-o x --from sep sign in"; do
        run dt-dedup $options </dev/null
        [ "$status" -eq 2 ] || { echo "$options: $status: $output"; return 1; }
    done
}

@test "a list does not overwrite a file of signatures" {
    printf 'one two three four five six seven\n' >words
    dt-dedup sign -q --from lines -o a.sig words
    cp a.sig a.drop
    run dt-dedup match -q -o . a.sig a.drop
    assert_one_line_error dt-dedup
    [[ "$output" == *"'./a.drop' is an input and would be the list of 'a.sig'"* ]]
    cmp a.sig a.drop
    run dt-dedup sign -q --from lines -o words words
    [ "$status" -eq 2 ]
}
