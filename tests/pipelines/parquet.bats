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
    [ "$(wc -l <back.jsonl)" -eq 50 ]
    for f in documents back; do
        dt-clean -q --to nul $f.jsonl >$f.texts
        grep -o '^{"id":"[^"]*"' $f.jsonl >$f.ids
    done
    cmp documents.texts back.texts
    cmp documents.ids back.ids
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
}
