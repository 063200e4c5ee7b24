#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Parquet in the pipe, as dt(7) shows it.
load ../helper

setup() {
    cd "$T"
}

# duckdb -c SQL: the program, or Python's module.
duckdb() {
    if type -P duckdb >/dev/null; then
        command duckdb "$@"
    else
        "$PYTHON" -c 'import sys, duckdb; duckdb.sql(sys.argv[2])' "$@"
    fi
}

need_duckdb() {
    type -P duckdb >/dev/null || need_python duckdb
}

@test "DuckDB turns Parquet into documents, and back" {
    need_duckdb
    dt-synth -n 50 | dt-clean -q -o documents.jsonl
    duckdb -c "copy (from 'documents.jsonl') to 'documents.parquet'"
    duckdb -c "copy (from 'documents.parquet') to '/dev/stdout' (format json)" |
        dt-clean -q --field text -o back.jsonl
    if type -P duckdb >/dev/null; then dt-clean -q -o direct.jsonl documents.parquet && cmp back.jsonl direct.jsonl; fi
    [ "$(wc -l <back.jsonl)" -eq 50 ]
    for f in documents back; do
        dt-clean -q --to nul $f.jsonl >$f.texts
        grep -o '^{"id":"[^"]*"' $f.jsonl >$f.ids
    done
    cmp documents.texts back.texts
    cmp documents.ids back.ids
}

@test "an output named .parquet has the same documents for all readers" {
    type -P duckdb >/dev/null || skip "no duckdb on PATH"
    dt-synth -n 3000 | jq -c 'del(.dt_stream) | .meta += {n: (.text | length), f: 0.5, o: {l: [.id, null]}, b: true,
        mix: (if (.text | length) % 2 == 0 then 1 else "x" end), big: 18446744073709551615, d: "2024-01-01T00:00:00Z"}' >in.jsonl
    dt-clean -q in.jsonl -o out.parquet
    dt-clean -q out.parquet | jq -cS 'del(.dt_stream)' >back
    jq -cS . in.jsonl | cmp - back
    dt-dedup substrings --length 100000 -q -o unique.parquet out.parquet
    dt-clean -q unique.parquet | wc -l | grep -qx 3000
    duckdb -csv -c "select count(*), count(distinct id), sum(n), typeof(any_value(d)) from 'out.parquet'" | tail -n 1 |
        diff - <(jq -s -r '"3000,3000,\(map(.meta.n) | add),VARCHAR"' in.jsonl)
    need_python pyarrow
    "$PYTHON" -c 'if True:
        import json, pyarrow.parquet
        rows = pyarrow.parquet.read_table("out.parquet").to_pylist()
        for row, line in zip(rows, open("in.jsonl"), strict=True):
            d = json.loads(line)
            assert (row["id"], row["text"], row["n"]) == (d["id"], d["text"], d["meta"]["n"])
            assert json.loads(row["o"]) == d["meta"]["o"]'
}

@test "pyarrow does too" {
    need_python pyarrow
    "$PYTHON" -c 'if True:
        import pyarrow, pyarrow.parquet
        table = pyarrow.table({"body": ["one\n\"text\"", "caf\u00e9"], "url": ["a", "b"]})
        pyarrow.parquet.write_table(table, "web.parquet")'
    "$PYTHON" -c 'if True:
        import json, pyarrow.parquet
        for batch in pyarrow.parquet.ParquetFile("web.parquet").iter_batches():
            for row in batch.to_pylist():
                print(json.dumps(row))' | dt-clean -q --field body >out
    [ "$(cat out)" = '{"id":"stdin:1","text":"one\n\"text\"","meta":{"url":"a"}}
{"id":"stdin:2","text":"café","meta":{"url":"b"}}' ]
    "$PYTHON" -c 'if True:
        import pyarrow, pyarrow.feather
        rows = {"text": [f"text {i}" for i in range(5000)], "n": list(range(5000)), "s": [{"a": [1, None]}] * 5000}
        table = pyarrow.table(rows)
        with pyarrow.OSFile("file", "wb") as f, pyarrow.ipc.new_file(f, table.schema) as w: w.write_table(table, 100)
        with pyarrow.OSFile("stream", "wb") as f, pyarrow.ipc.new_stream(f, table.schema) as w: w.write_table(table, 100)
        pyarrow.feather.write_feather(table, "feather")
        import json
        with open("rows", "w") as f:
            for row in table.to_pylist(): f.write(json.dumps(row) + "\n")'
    mkdir bin
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$(command -v "$PYTHON")" >bin/python3
    chmod +x bin/python3
    dt-clean -q --to text rows | sha256sum >texts
    for f in file stream feather; do
        PATH=$T/bin:$PATH dt-clean -q --to text $f | sha256sum | diff texts -
        head -c 3000 $f >cut
        PATH=$T/bin:$PATH run dt-clean -q -o out cut
        assert_one_line_error dt-clean
        [[ "$output" == "dt-clean: cut: 'python3' failed with status 1: "[A-Z]*": "* ]]
    done
    PATH=$T/bin:$PATH dt-clean -q -o out stream
    [ "$(sed -n 2p out)" = '{"id":"stream:2","text":"text 1","meta":{"n":1,"s":{"a":[1,null]}}}' ]
}

@test "two columns of an Arrow file with one name are an error, as in CSV" {
    need_python pyarrow
    mkdir bin
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$(command -v "$PYTHON")" >bin/python3
    chmod +x bin/python3
    "$PYTHON" -c 'if True:
        import pyarrow
        table = pyarrow.table([pyarrow.array(["one"]), pyarrow.array(["two"])], names=["text", "text"])
        with pyarrow.OSFile("twice", "wb") as f, pyarrow.ipc.new_file(f, table.schema) as w: w.write_table(table)'
    PATH=$T/bin:$PATH run dt-clean -q -o out twice
    assert_one_line_error dt-clean
    [[ "$output" == *"two columns are named 'text'"* ]]
}

@test "binary columns are text, or refused; NaN and Infinity become strings" {
    need_python pyarrow
    mkdir bin
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$(command -v "$PYTHON")" >bin/python3
    chmod +x bin/python3
    "$PYTHON" -c 'if True:
        import pyarrow, pyarrow.feather, pyarrow.parquet
        table = pyarrow.table({"text": ["caf\u00e9 NaN\"".encode(), b"b", b"c"],
            "x": [float("nan"), 1.5, float("-inf")], "s": [{"a": [float("inf")]}] * 3})
        pyarrow.parquet.write_table(table, "t.parquet")
        pyarrow.feather.write_feather(table, "t.feather")
        table = pyarrow.table({"text": [b"\xff"]})
        pyarrow.parquet.write_table(table, "bad.parquet")
        pyarrow.feather.write_feather(table, "bad.feather")'
    kinds=feather
    if type -P duckdb >/dev/null; then kinds="feather parquet"; fi
    for kind in $kinds; do
        PATH=$T/bin:$PATH dt-clean -q t.$kind -o out
        [ "$(cut -d , -f 2- out)" = '"text":"café NaN\"","meta":{"x":"NaN","s":{"a":["Infinity"]}}}
"text":"b","meta":{"x":1.5,"s":{"a":["Infinity"]}}}
"text":"c","meta":{"x":"-Infinity","s":{"a":["Infinity"]}}}' ]
        PATH=$T/bin:$PATH run dt-clean -q -o bad bad.$kind
        assert_one_line_error dt-clean
        [ ! -e bad ]
    done
}
