# SPDX-License-Identifier: MIT
# dt-eval bleu: files of translations. The other modes: dt-eval.bats.
load ../helper

setup() {
    cd "$T"
    printf 'The cat is on the mat.\nHello, world (again)!\nA third line.\n' >right
    printf 'A cat sat on a mat.\nHello world, again!\nThe third line.\n' >right2
    printf 'The cat sat on the mat.\nHello, world again!\nA third line!\n' >ours
    printf 'A dog sat.\nHello.\nA line.\n' >worse
}


@test "each system has its scores under sacreBLEU's signatures" {
    dt-eval -r right bleu ours worse >out
    [ "$(grep -c version:2.6.0 out)" -eq 3 ]
    [ "$(grep -c ' ours$' out)" -eq 3 ]
    [ "$(grep -c ' worse$' out)" -eq 3 ]
    grep -q '^BLEU  nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0$' out
    dt-eval -r right -r right2 --words char bleu ours | grep -q 'nrefs:2|.*tok:char'
    dt-eval -r right bleu - <ours | grep -qE '^ +36.96  -$'
    dt-eval -r right bleu right | grep -qE '^ +100.00  right$'
}

@test "compressed files and the end of the last line do not matter" {
    gzip -k right
    printf %s "$(cat ours)" >ours.txt
    dt-eval -r right --json bleu ours | sed 's/"file":"[^"]*"//' >a
    dt-eval -r right.gz --json bleu ours.txt | sed 's/"file":"[^"]*"//' >b
    cmp a b
}

@test "the scores of segments are written on request" {
    dt-eval -r right --items items.jsonl bleu ours worse >/dev/null
    [ "$(wc -l <items.jsonl)" -eq 6 ]
    head -n 1 items.jsonl | grep -q '^{"file":"ours","line":1,"BLEU":[0-9.]*,"chrF2":[0-9.]*,"chrF2++":[0-9.]*}$'
}

@test "bootstrap p-values are reproducible" {
    for i in 1 2 3 4 5; do cat right >>rights; cat ours >>ourses; cat worse >>worses; done
    dt-eval -r rights --bootstrap 300 bleu worses ourses >a
    dt-eval -r rights --bootstrap 300 bleu worses ourses | cmp - a
    grep -q 'baseline .*worses' a
    grep -qE 'p = 0\.00[0-9]+ \*  ourses' a
    dt-eval -r rights --bootstrap 300 bleu ourses ourses | grep -q 'p = 1.0000'
    dt-eval -r rights --bootstrap 300 --json bleu worses ourses | grep -q '"p":0.00'
}

@test "the scores are those of sacrebleu, to 1e-9" {
    need_python sacrebleu
    files=(right ours worse)
    if [ -e "${TESTDATA:-}/multi30k.val.en.gz" ]; then
        zcat "$TESTDATA/multi30k.val.en.gz" >val.en
        zcat "$TESTDATA/multi30k.val.de.gz" >val.de
        awk '{ $(NR % 5 + 1) = "the"; print }' val.en >val.changed
        files=(val.en val.de val.changed)
    fi
    "$PYTHON" "$ROOT/tests/oracles/bleu_oracle.py" "${files[@]}"
}

@test "bad input is named" {
    run dt-eval -r right bleu nowhere
    assert_one_line_error dt-eval
    head -n 2 ours >short
    run dt-eval -r right bleu ours short
    assert_one_line_error dt-eval
    [ "$output" = "dt-eval: short: has 2 lines, right has 3" ]
    run dt-eval -r right -r short bleu ours
    assert_one_line_error dt-eval
    printf 'a\nb\xff\nc\n' >bytes
    run dt-eval -r right bleu bytes
    assert_one_line_error dt-eval
    [ "$output" = "dt-eval: bytes:2: byte 2: invalid UTF-8" ]
    : >empty
    run dt-eval -r empty bleu empty
    assert_one_line_error dt-eval
    run dt-eval -r right -o /dev/full bleu ours
    assert_one_line_error dt-eval
    run dt-eval -r right --items /dev/full bleu ours
    assert_one_line_error dt-eval
    run dt-eval bleu ours
    [ "$status" -eq 2 ]
    run dt-eval -r right bleu
    [ "$status" -eq 2 ]
    run dt-eval -r right --words spm bleu ours
    [ "$status" -eq 2 ]
}
