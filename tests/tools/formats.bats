#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Tables of other programs as documents.
load ../helper

setup() {
    cd "$T"
}

# fake_duckdb COMMANDS: a program of that name, which finds the table as its standard input.
fake_duckdb() {
    mkdir -p bin
    printf '#!/bin/sh\n%s\n' "$1" >bin/duckdb
    chmod +x bin/duckdb
    PATH=$T/bin:$PATH
}

parquet() { printf 'PAR1\025\004\025\000 rows' >"$1"; }

@test "rows of Parquet are documents, from a file, a pipe and compressed" {
    parquet x.parquet
    gzip -k x.parquet
    fake_duckdb 'cmp -s /dev/stdin '"$T"'/x.parquet || exit 1
        echo "{\"id\":7,\"text\":null,\"body\":\"a\",\"n\":1}"; echo "{\"text\":\"c\",\"body\":\"b\"}"'
    expected='{"id":"7","text":"a","meta":{"text":null,"n":1}}'
    for from in x.parquet x.parquet.gz - "--from parquet x.parquet"; do
        # shellcheck disable=SC2086
        cat x.parquet | dt-clean -q --field body $from >out
        [ "$(head -n 1 out)" = "$expected" ]
        [ "$(wc -l <out)" -eq 2 ]
    done
    [ "$(dt-clean -q --field body x.parquet -o d.jsonl && jq -r '.lineage[0].inputs[0].sha256' d.jsonl.lineage.json)" = \
        "$(sha256sum <x.parquet | cut -d ' ' -f 1)" ]
    run dt-clean -q -o out2 x.parquet
    assert_one_line_error dt-clean
    [[ "$output" == *"x.parquet:1: "*'"text"'* ]]
    [ "$(dt-clean -q --on-error skip x.parquet 2>/dev/null | jq -r .text)" = c ]
}

@test "NaN and Infinity in rows become strings" {
    parquet x.parquet
    printf '%s\n' '{"text":"NaN,\"NaN","n":[NaN,-Infinity,1]}' '{"text":Nan}' >rows
    fake_duckdb "cat $T/rows"
    dt-clean -q --on-error skip -o out x.parquet
    [ "$(cat out)" = '{"id":"x.parquet:1","text":"NaN,\"NaN","meta":{"n":["NaN","-Infinity",1]}}' ]
}

@test "a duckdb that fails, is killed or is not there makes no short result" {
    parquet x.parquet
    fake_duckdb 'echo "{\"text\":\"a\"}"; echo "Error: truncated" >&2; echo more >&2; exit 3'
    run dt-clean -q -o out x.parquet
    assert_one_line_error dt-clean
    [[ "$output" == "dt-clean: x.parquet: 'duckdb' failed with status 3: Error: truncated" ]]
    fake_duckdb 'echo "{\"text\":\"a\"}"; printf "{\"text\":"; kill -9 $$'
    run dt-clean -q -o out x.parquet
    assert_one_line_error dt-clean
    [[ "$output" == *"x.parquet: 'duckdb' was ended by signal 9" ]]
    mkdir empty
    dt=$(command -v dt-clean)
    PATH=$T/empty run "$dt" -q -o out x.parquet
    [ "$status" -eq 1 ]
    [[ "$output" == *"x.parquet: is a Parquet file, which 'duckdb' reads, and that is not on PATH: install DuckDB"* ]]
    [ ! -e out ]
    run dt-clean -q --from lines x.parquet
    assert_one_line_error dt-clean
    [[ "$output" == *"is a Parquet file, not plain text"* ]]
}

@test "a program that stops early ends duckdb" {
    parquet x.parquet
    fake_duckdb 'echo $$ >'"$T"'/pid; seq 2000; exec sleep 1000'
    run timeout 300 dt-clean -q -o out x.parquet
    assert_one_line_error dt-clean
    refute kill -0 "$(cat pid)"
}

@test "an output named .parquet is written by duckdb" {
    fake_duckdb 'if [ "$1" = --version ]; then exit; fi; echo "$6" >sql; zstd -dc >rows; printf PAR1'
    printf '%s\n' '{"id":"a","text":"one","n":1,"f":1,"mix":1,"big":9007199254740993,"o":{"x":[1]}}' \
        '{"id":"b","text":"two","f":2.5,"mix":"}","big":0.5,"nul":null,"it'"'"'s":true}' '{"text":"three"}' >in.jsonl
    dt-clean -q in.jsonl -o out.parquet
    [ "$(cat out.parquet)" = PAR1 ]
    [ "$(jq -r .sha256 out.parquet.lineage.json)" = "$(sha256sum <out.parquet | cut -d ' ' -f 1)" ]
    [ "$(cat rows)" = '{"id":"a","text":"one","n":1,"f":1,"mix":1,"big":9007199254740993,"o":{"x":[1]}}
{"id":"b","text":"two","f":2.5,"mix":"}","big":0.5,"nul":null,"it'"'"'s":true}
{"id":"in.jsonl:3","text":"three"}' ]
    [[ "$(cat sql)" == *"columns = {'id': 'VARCHAR', 'text': 'VARCHAR', 'n': 'BIGINT', 'f': 'DOUBLE', 'mix': 'JSON', \
'big': 'JSON', 'o': 'JSON', 'nul': 'VARCHAR', 'it''s': 'BOOLEAN'})) to '/dev/stdout' (format parquet, compression zstd, "* ]]
    for meta in '"URL":1,"url":2' '"meta":{"text":1}' '"meta":{"":1}' '"x":1,"x":1'; do
        echo '{"text":"a",'"$meta"'}' >bad.jsonl
        run dt-clean -q bad.jsonl -o bad.parquet
        assert_one_line_error dt-clean
        [[ "$output" == "dt-clean: bad.parquet: the member \""*"\" of meta "*"; write JSON Lines (.jsonl.zst), "* ]]
    done
    run dt-clean -q --to text in.jsonl -o bad.parquet
    assert_one_line_error dt-clean
    [ ! -e bad.parquet ]
}

@test "a duckdb that fails or is not there makes no Parquet file" {
    echo '{"text":"a"}' >in.jsonl
    fake_duckdb 'if [ "$1" = --version ]; then exit; fi; printf PAR1; echo "Error: no" >&2; exit 3'
    run dt-clean -q in.jsonl -o out.parquet
    assert_one_line_error dt-clean
    [ "$output" = "dt-clean: out.parquet: 'duckdb' failed with status 3: Error: no" ]
    mkdir empty
    dt=$(command -v dt-clean)
    PATH=$T/empty run "$dt" -q in.jsonl -o out.parquet
    [ "$status" -eq 1 ]
    [[ "$output" == *"out.parquet: is named as a Parquet file, which 'duckdb' writes, and that is not on PATH: install DuckDB"* ]]
    [ "$(ls -A)" = "$(printf 'bin\nempty\nin.jsonl')" ]
}

@test "a table in CSV goes through all programs" {
    printf 'id,text,lang\n1,"Some, text",en\n2,"More\ntext",de\n' >x.csv
    printf 'id\ttext\tlang\r\n1\tSome, text\ten\r\n2\t"More\ntext"\tde\r\n' >x.tsv
    for f in x.csv x.tsv; do
        dt-clean -q -o out $f
        [ "$(cat out)" = '{"id":"1","text":"Some, text","meta":{"lang":"en"}}
{"id":"2","text":"More\ntext","meta":{"lang":"de"}}' ]
    done
    [ "$(dt-clean -q --language de x.csv | jq -r .id)" = 2 ]
    dt-vocab -q -s 260 --min-frequency 1 -o tok.json x.csv
    dt-tokenize -q -t tok.json -o csv.dts x.csv
    dt-tokenize -q -t tok.json -o tsv.dts x.tsv
    cmp <(dt-cat --text -t tok.json csv.dts) <(dt-cat --text -t tok.json tsv.dts)
    run dt-clean -q --field body x.csv
    assert_one_line_error dt-clean
    [[ "$output" == *"x.csv: has no column 'body', but id, text, lang; --field NAME"* ]]
}

@test "a quoted value without its end stops, whatever --on-error says" {
    { echo id,text; echo '1,a'; printf '2,"x\ny"\n'; echo '3,"stray'; seq -f '%g,text' 4 99; } >x.csv
    for policy in stop skip quarantine=q; do
        run dt-clean -q --on-error $policy -o out x.csv
        assert_one_line_error dt-clean
        [[ "$output" == "dt-clean: x.csv:5: the input ends inside a quoted value, which begins in this line: remove "* ]]
        [ ! -e out ]
        [ ! -e q ]
    done
    { echo id,text; echo '1,"long'; seq -f '%g,line' 99; echo '"'; echo 2,b; echo c; } >x.csv
    run dt-clean -q --on-error skip --max-document 50 -o out x.csv
    [ "$status" -eq 0 ]
    [ "$(jq -r .text out)" = b ]
    run dt-clean -q --max-errors 1 --on-error skip --max-document 50 -o out x.csv
    assert_one_line_error dt-clean
    [[ "$output" == "dt-clean: x.csv:104: "* ]]
    sed -i '102,$d' x.csv
    run dt-clean -q --on-error skip --max-document 50 -o out2 x.csv
    assert_one_line_error dt-clean
    [[ "$output" == "dt-clean: x.csv:2: the input ends inside a quoted value"* ]]
    [ ! -e out2 ]
}

@test "patterns and lists name files, in the order of their bytes" {
    mkdir -p d/sub
    for f in b a B '[x]' 'with space' 'c*'; do printf '{"id":"%s","text":"t"}\n' "$f" >"d/$f.jsonl"; done
    ids() { dt-clean -q -o out "$@" && jq -r .id out | tr '\n' ' '; }
    [ "$(ids 'd/*')" = 'B [x] a b c* with space ' ]
    dt-clean -q -o d/e.jsonl d/a.jsonl
    [ -e d/e.jsonl.lineage.json ]
    [ "$(ids 'd/[d-z]*')" = 'a with space ' ]
    rm d/e.jsonl*
    [ "$(ids 'd/[ab].jsonl' 'd/[x].jsonl' 'd/c*.jsonl')" = 'a b [x] c* ' ]
    printf 'd/b.jsonl\n\nd/?.jsonl\n' >list
    [ "$(ids --files-from list)" = 'b B a b ' ]
    [ "$(ids d/a.jsonl --files-from list)" = 'a b B a b ' ]
    [ "$(gzip -c list | ids --files-from -)" = 'b B a b ' ]
    [ "$(find d -name '* *' -print0 | ids --files-from -)" = 'with space ' ]
    ids --files-from list
    jq -e '.lineage[0].inputs | map(.path) == ["list", "d/b.jsonl", "d/B.jsonl", "d/a.jsonl", "d/b.jsonl"]' \
        out.lineage.json
    for program in 'dt-vocab -q -s 260 --min-frequency 1 -o tok.json' 'dt-tokenize -t tok.json -o x.dts' \
        'dt-dedup -q sign -o x.sig'; do
        $program --files-from list
    done
    [ "$(dt-cat x.dts | wc -l)" -ge 1 ]
    run dt-clean 'd/*.gz'
    assert_one_line_error dt-clean
    [[ "$output" == "dt-clean: no file matches 'd/*.gz'" ]]
    : >empty
    run dt-clean --files-from empty
    assert_one_line_error dt-clean
    [[ "$output" == "dt-clean: empty: names no file" ]]
    run dt-clean --files-from absent
    assert_one_line_error dt-clean
    run dt-clean -q d
    assert_one_line_error dt-clean
    [[ "$output" == *"cannot read 'd': is a directory; its files are 'd/*'" ]]
    run dt-clean -q 'nosuch/e/*.html'
    assert_one_line_error dt-clean
    [[ "$output" == *"no file matches 'nosuch/e/*.html': the directory 'nosuch/e' does not exist" ]]
    run dt-dedup -q sign -o d/a.jsonl --files-from list
    [ "$status" -eq 2 ]
    [[ "$output" == *"'d/a.jsonl' is also an input"* ]]
}

@test "of a pipeline the last program alone shows its progress" {
    need_terminal
    for i in $(seq 3); do dt-synth --bytes 2M --seed "$i"; done >docs.jsonl
    line='documents'
    run script -qec "dt-clean docs.jsonl -o out" /dev/null
    [[ "$output" == *"$line"* ]]
    run script -qec "dt-clean -j 1 docs.jsonl 2>/dev/tty | cat >out" /dev/null
    [[ "$output" != *"%, "* ]]
}

@test "an output named .gz or .zst is compressed, atomically, and other endings are refused" {
    dt-synth -n 300 -o docs.jsonl
    dt-synth -n 300 -o docs.jsonl.gz
    gzip -dc docs.jsonl.gz | cmp - docs.jsonl
    dt-clean -q docs.jsonl -o expected
    dt-clean -q docs.jsonl --max-chars 900 --rejects rejects.jsonl.gz -o out.jsonl.zst
    zstd -dc out.jsonl.zst | cat - <(gzip -dc rejects.jsonl.gz | jq -c 'del(.meta.reject)') | wc -l | grep -qx 300
    dt-clean -q docs.jsonl.gz --to nul -o texts.gz
    gzip -dc texts.gz | cmp - <(dt-clean -q docs.jsonl --to nul)
    dt-clean -q -j 1 docs.jsonl -o a.zst
    dt-clean -q -j 4 docs.jsonl -o b.zst
    cmp a.zst b.zst
    [ "$(jq -r .sha256 a.zst.lineage.json)" = "$(sha256sum <a.zst | cut -d ' ' -f 1)" ]
    for c in xz bz2 lz4; do
        run dt-clean -q docs.jsonl -o out.$c
        assert_one_line_error dt-clean
        [[ "$output" == *"out.$c: is named as "*", which dt does not write: name it .gz or .zst" ]]
        [ ! -e out.$c ]
    done
    echo '{' >>docs.jsonl
    run dt-clean -q docs.jsonl -o none.gz
    assert_one_line_error dt-clean
    [ ! -e none.gz ]
}

@test "a file that is refused after one that was read is named" {
    echo '{"text":"a"}' >first.jsonl
    printf '\377\330\377\340\0\20JFIF\0' >second.jpg
    for from in auto jsonl lines; do
        run dt-clean -q --from $from -o out first.jsonl second.jpg
        assert_one_line_error dt-clean
        [[ "$output" == *second.jpg* ]]
        [ ! -e out ]
    done
}
