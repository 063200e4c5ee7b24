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
5 docs:3
end of" ]
    [ "$(tail -n 1 docs.drop)" = "end 2 of 5" ]
    dt-clean -q --from lines --drop docs.drop --rejects r lines >kept
    run dt-clean -q docs.drop
    assert_one_line_error dt-clean
    [[ "$output" == *"docs.drop: is a list of dt-dedup, not plain text; dt-clean --drop reads it" ]]
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
    [ "$(cut -d ' ' -f 1,3 lists/a.drop)" = $'2 a:1\nend of' ]
    [ "$(cut -d ' ' -f 1,3 lists/b.drop)" = $'3 b:1\nend of' ]
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

@test "a list without its end, or for another number of documents, is refused" {
    near_documents
    dt-dedup sign -q --from lines -o docs.sig lines
    dt-dedup match -q -o . docs.sig
    head -n 1 docs.drop >cut
    head -c 10 docs.drop >inside
    head -c -1 docs.drop >last
    : >empty
    for list in cut inside last empty; do
        run dt-clean -q --from lines --drop $list -o o lines
        assert_one_line_error dt-clean
        [[ "$output" == "dt-clean: $list: is incomplete: its last line "* ]]
    done
    sed 1d docs.drop >lacks
    run dt-clean -q --from lines --drop lacks -o o lines
    assert_one_line_error dt-clean
    [[ "$output" == "dt-clean: lacks: has 1 lines of documents, and its last line says 2"* ]]
    cat docs.drop docs.drop >twice
    run dt-clean -q --from lines --drop twice -o o lines
    assert_one_line_error dt-clean
    [[ "$output" == "dt-clean: twice: has lines after its end"* ]]
    sed 's/^end 2 of 5/end 2 of 4/' docs.drop >small
    run dt-clean -q --from lines --drop small -o o lines
    assert_one_line_error dt-clean
    (cat lines; echo more) >longer
    run dt-clean -q --from lines --drop docs.drop -o o longer
    assert_one_line_error dt-clean
    [ "$output" = "dt-clean: docs.drop: is for an input of 5 documents, and this one has 6" ]
    echo 'end 0 of 5' >none
    [ "$(dt-clean -q --from lines --drop none lines | wc -l)" -eq 5 ]
    [ ! -e o ]
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

@test "near duplicates are found in scripts without blanks, and equal short texts" {
    local zh=我们昨天在公园里看见了一只很大的黑色的狗它正在追赶一只白色的小猫后来他们都跑到河边去了
    local th=เมื่อวานนี้เราเห็นสุนัขสีดำตัวใหญ่ในสวนสาธารณะมันกำลังไล่แมวสีขาวตัวเล็กแล้วพวกมันก็วิ่งไปที่ริมแม่น้ำด้วยกันทั้งหมด
    printf '%s\n' "$zh" "$th" "$zh吗" "ครับ$th" ok no "OK!" "!!" "!!" "??" >lines
    dt-dedup sign -q --from lines -o docs.sig lines
    dt-dedup match -q -o . docs.sig
    [ "$(cut -d ' ' -f 1,3 docs.drop)" = "3 docs:1
4 docs:2
7 docs:5
9 docs:8
end of" ]
}

@test "signatures of an older version are refused" {
    near_documents
    dt-dedup sign -q --from lines -o docs.sig lines
    printf '\1' | dd of=docs.sig bs=1 seek=8 conv=notrunc status=none
    run dt-dedup match -q -o . docs.sig
    assert_one_line_error dt-dedup
    [[ "$output" == *"docs.sig: version 1 of signatures, expected 2; sign its documents again" ]]
}

# 400 documents, of which some are equal or similar, as lines.
many_documents() {
    awk 'BEGIN {
        srand(5)
        for (i = 0; i < 400; i++) {
            k = int(rand() * 250); line = ""
            for (j = 0; j < 12 + k % 9; j++)
                line = line sprintf("w%c%c%c ", 97 + (k * 7 + j) % 26, 97 + (k * 11 + j * 3) % 26, 97 + j)
            print (rand() < 0.3 ? "x " : "") line
        }
    }'
}

# The lists of the parts as one list of numbers of all documents: "NUMBER HASH FIRST".
global_lists() { # PART-SIZE DIR
    awk -v n="$1" '/^end/ { next } {
        part = FILENAME; sub(/.*\//, "", part); sub(/\.drop/, "", part)
        split($3, like, ":"); print part * n + $1, $2, like[1] * n + like[2]
    }' "$2"/*.drop | sort -n
}

@test "any number of parts and tasks gives the same lists, of near duplicates and of equal texts" {
    many_documents >lines
    for mode in "" --exact; do
        rm -rf reference
        for parts in 1 2 8 64; do
            rm -rf p lists one
            mkdir p
            split -a 2 -d -l $(((400 + parts - 1) / parts)) lines p/
            for f in p/??; do dt-dedup sign -q --from lines $mode -o $f.sig $f; done
            dt-dedup match -q -o one p/*.sig
            pairs=()
            for ((i = parts; i > 0; i--)); do
                ((parts < 64 || i % 8 == 0)) || continue
                task=$((i - 1))/$parts
                ((parts < 64)) || task=$((i / 8 - 1))/8
                dt-dedup pairs -q --task $task -o p/pairs-$i p/*.sig
                pairs+=(--pairs p/pairs-$i)
            done
            dt-dedup match -q -o lists "${pairs[@]}" p/*.sig
            diff -r -x "*.lineage.json" one lists
            global_lists $(((400 + parts - 1) / parts)) one >list
            [ -e reference ] || cp list reference
            cmp list reference
        done
        [ "$(wc -l <reference)" -gt 100 ]
        cp reference "found$mode"
    done
    # equal texts by another program
    awk 'seen[$0]++ { print NR }' lines >expected
    [ "$(cut -d ' ' -f 1 found--exact)" = "$(cat expected)" ]
    run cmp -s found found--exact
    [ "$status" -ne 0 ]
}

@test "pairs of other files, of missing tasks and damaged ones are refused" {
    near_documents
    head -n 2 lines >a
    tail -n 3 lines >b
    for f in a b; do dt-dedup sign -q --from lines -o $f.sig $f; done
    dt-dedup pairs -q --task 0/2 -o 1 a.sig b.sig
    dt-dedup pairs -q --task 1/2 -o 2 a.sig b.sig
    dt-dedup pairs -q --task 1/2 -o other b.sig a.sig
    head -c -16 2 >cut
    printf '\377' | dd of=cut bs=1 seek=50 conv=notrunc status=none
    { cat 2; echo; } >longer
    for pairs in "--pairs 1" "--pairs 1 --pairs 1" "--pairs 1 --pairs other" "--pairs 1 --pairs cut" \
        "--pairs 1 --pairs longer" "--pairs a.sig --pairs 1" "--pairs absent"; do
        run dt-dedup match -q -o lists $pairs a.sig b.sig
        assert_one_line_error dt-dedup
        [ ! -e lists ]
    done
    dt-dedup match -q -o lists --pairs 2 --pairs 1 a.sig b.sig
    [ "$(cut -d ' ' -f 1,3 lists/b.drop)" = $'3 b:1\nend of' ]
    for task in 2/2 3/2 2 /2 1/ x/y -1/2; do
        run dt-dedup pairs --task $task -o p a.sig
        [ "$status" -eq 2 ]
    done
}

@test "equal texts are dropped across parts, the first one stays" {
    printf 'one two three four five six\nshort\n' >a
    printf 'Short\nshort\nONE two three four five six\none two three four five six\n' >b
    for f in a b; do dt-dedup sign -q --exact --from lines -o $f.sig $f; done
    run dt-dedup match -o lists a.sig b.sig
    [[ "${lines[0]}" == *"6 documents in 2 runs: "*" MB of memory; hashes equal by chance: 5e-38 pairs" ]]
    [[ "${lines[1]}" == *"2 of 6 documents are equal to others" ]]
    [ "$(cat lists/a.drop)" = "end 0 of 2" ]
    [ "$(cut -d ' ' -f 1,3 lists/b.drop)" = "2 a:2
4 a:1
end of" ]
    [ "$(dt-clean -q --from lines --to text --drop lists/b.drop b)" = "Short
ONE two three four five six" ]
    dt-dedup sign -q --from lines -o c.sig a
    run dt-dedup match -q -o out a.sig c.sig
    assert_one_line_error dt-dedup
    [[ "$output" == *"c.sig: was signed with other settings than 'a.sig'"* ]]
    run dt-dedup sign --exact --bands 3 -o x.sig a
    [ "$status" -eq 2 ]
}

@test "the plan states the memory of a billion documents" {
    run dt-dedup plan --documents 1G --parts 1000 --tasks 64
    [ "$status" -eq 0 ]
    [ "$output" = "sign   1000 x 1000000 documents: 30.4 MB of memory and the documents at work; writes 176.0 MB
pairs  64 x: 201.9 MB of memory; reads 2625.0 MB, writes at most 3500.0 MB
match  1 x with --pairs: 8000.0 MB of memory
match  1 x without pairs: 8201.9 MB of memory; reads 176000.0 MB" ]
    run dt-dedup plan --documents 1M --exact
    [[ "${lines[1]}" == *"reads 12.0 MB, writes at most 16.0 MB" ]]
}

@test "paragraphs of earlier parts are removed by a filter" {
    printf '{"text":"one\\n\\ntwo\\n\\nthree\\nfour"}\n{"text":"five"}\n' >a.jsonl
    printf '{"text":"six\\n\\n two\\n\\nthree\\nfour\\n\\nsix"}\n{"text":"five"}\n' >b.jsonl
    printf '{"text":"seven\\n\\nsix\\n\\nfive"}\n' >c.jsonl
    run dt-dedup filter --size 4k -o a.bloom a.jsonl
    [ "$status" -eq 0 ]
    [[ "${lines[0]}" == *"filter of paragraphs: 0.0 MB; rate of false positives 0, below 1e-06 until 1108" ]]
    [[ "${lines[1]}" == *"2 documents, 4 different paragraphs" ]]
    dt-dedup filter -q --size 4k -o b.bloom b.jsonl
    [ "$(dt-clean -q --to text --dedup-parts paragraphs --seen a.bloom b.jsonl)" = six ]
    dt-dedup merge -q -o ab.bloom a.bloom b.bloom
    for seen in "--seen ab.bloom" "--seen b.bloom --seen a.bloom"; do
        [ "$(dt-clean -q --to text --dedup-parts paragraphs $seen c.jsonl)" = seven ]
    done
    dt-dedup filter -q --size 4k --unit lines -o lines.bloom a.jsonl
    dt-dedup filter -q --size 5k -o large.bloom a.jsonl
    head -c 100 a.bloom >cut.bloom
    cp a.bloom bad.bloom
    printf 'x' | dd of=bad.bloom bs=1 seek=300 conv=notrunc status=none
    { cat a.bloom; echo; } >tail.bloom
    for seen in lines.bloom cut.bloom bad.bloom tail.bloom a.jsonl absent "a.bloom --seen large.bloom"; do
        run dt-clean -q -o o --dedup-parts paragraphs --seen $seen c.jsonl
        assert_one_line_error dt-clean
        [ ! -e o ]
    done
    run dt-clean --seen a.bloom c.jsonl
    [ "$status" -eq 2 ]
}

@test "a filter that is too full is refused" {
    seq 10000 >numbers
    run dt-dedup filter -q --from text --unit lines --size 4k -o f numbers
    assert_one_line_error dt-dedup
    [[ "$output" == *"above --rate 1e-06, which 1108 reach; give it a larger --size" ]]
    [ ! -e f ]
    dt-dedup filter -q --from text --unit lines --size 40k -o f numbers
    seq 10001 60000 >others
    # no line of the first is missed, and at most one in a million of the others is taken for seen
    [ "$(cat numbers others | dt-clean -q --from text --to text --dedup-parts lines --seen f | wc -l)" -ge 49998 ]
    [ "$(cat numbers others | dt-clean -q --from text --to text --dedup-parts lines --seen f | head -n 1)" -ge 10001 ]
}

@test "parts without documents are signed, matched and filtered like others" {
    near_documents
    : >none
    dt-dedup sign -q --from lines -o a.sig lines
    run dt-dedup sign -q -o none.sig none
    assert_one_line_error dt-dedup
    [[ "$output" == *"no document to read; if that is right, give --allow-empty" ]]
    dt-dedup sign -q --allow-empty -o none.sig none
    head -n 1 lines >one
    for i in 0 1; do dt-dedup sign -q --from lines --part $i/2 -o part$i.sig one; done # part 1 is empty
    dt-dedup match -q -o alone a.sig
    dt-dedup match -q -o with none.sig a.sig part1.sig
    cmp alone/a.drop with/a.drop
    [ "$(cat with/none.drop with/part1.drop)" = "$(printf 'end 0 of 0\nend 0 of 0')" ]
    for i in 0 1; do dt-dedup pairs -q --task $i/2 -o $i.pairs none.sig a.sig part1.sig; done
    dt-dedup match -q --pairs 0.pairs --pairs 1.pairs -o pairs none.sig a.sig part1.sig
    cmp alone/a.drop pairs/a.drop
    dt-dedup match -q -o empty none.sig part1.sig
    [ "$(<empty/none.drop)" = "end 0 of 0" ]
    [ -z "$(dt-clean -q --from lines --allow-empty --drop empty/none.drop none)" ]
    dt-dedup filter -q --size 1M --from lines -o a.filter lines
    dt-dedup filter -q --size 1M --allow-empty -o none.filter none
    dt-dedup merge -q -o merged a.filter none.filter
    cmp merged a.filter
    [ ! -e "${DT_ENGINES:-${DT_BUILD:-$ROOT/build}/lib/dt}/suffixes.so" ] ||
        dt-dedup substrings -q --allow-empty -o cut.jsonl none
    [ ! -s cut.jsonl ]
}

@test "of hundreds of files of signatures, each list has one record of them all" {
    near_documents
    dt-dedup sign -q --from lines -o first.sig lines
    mkdir sigs
    for ((i = 1000; i < 1300; i++)); do ln first.sig sigs/$i.sig; done
    dt-dedup match -q -o drops sigs/*.sig
    [ "$(jq -c '[.lineage[] | .inputs[] | .path]' drops/1299.drop.lineage.json)" = '["sigs/1000.sig and 299 others"]' ]
    [ "$(jq -r '.lineage[0].inputs[0].sha256' drops/1000.drop.lineage.json)" = \
        "$(sha256sum sigs/*.sig | sha256sum | cut -d ' ' -f 1)" ]
    [ "$(stat -c %s drops/1000.drop.lineage.json)" -lt 20000 ]
    [ "$(jq -s 'map(.lineage[0].inputs[0].bytes) | unique | length' drops/100?.drop.lineage.json)" -eq 1 ]
}

@test "wrong usage ends with status 2" {
    for options in "plan" "plan --documents 1 x" "pairs -o x a.sig" "filter -o x in" "merge -o x" "" "sign" "-o x" "-o x clean" "-o x match" "-o x --bands 0 sign in" "-o x -j 2 match a.sig" "-o x --rows 8 match a.sig" "-o x --rows 65 sign in" \
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
    [[ "$output" == *"'./a.drop' would be written, and is the input 'a.drop'"* ]]
    cmp a.sig a.drop
    run dt-dedup sign -q --from lines -o words words
    [ "$status" -eq 2 ]
}
