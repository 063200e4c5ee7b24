#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# --part of compressed files: they are cut where a frame or member begins.
load ../helper

setup() {
    cd "$T"
}

# in_parts N COMMAND...: the outputs of the parts, one after the other.
in_parts() {
    local n=$1 i
    for ((i = 0; i < n; i++)); do "${@:2}" --part $i/$n || return; done
}

# Lines without ids, blank and bad ones, and frames that end inside lines.
lines() {
    dt-synth -n 300 | jq -c '{text}' | awk 'NR % 7 == 0 { print "" } NR % 50 == 0 { print "x" } { print }' >lines.jsonl
    split -n 6 lines.jsonl piece.
}

@test "parts of frames, members and streams have the documents, ids and bad lines of one command" {
    lines
    for p in piece.*; do gzip -c $p >>a.gz; done
    for p in piece.*; do gzip -c $p && head -c 3000 /dev/zero; done >b.gz
    for p in piece.*; do
        printf '\120\052\115\030\003\0\0\0abc' # a skippable frame
        zstd -qc $p
    done >a.zst
    files="a.gz b.gz a.zst"
    if type xz bzip2 lz4 >/dev/null && ls "${DT_ENGINES:-$DT_BUILD/lib/dt}"/codec-{xz,bzip2,lz4}.so >/dev/null; then
        for p in piece.*; do xz -0c $p && head -c 8 /dev/zero; done >a.xz
        xz -0c --block-size=1000 lines.jsonl >b.xz
        { xz -c </dev/null && xz -0c --block-size=7000 piece.aa && head -c 4 /dev/zero; } >c.xz
        cat piece.a[b-f] | xz -0c --block-size=4000 --check=sha256 >>c.xz
        for p in piece.*; do bzip2 -c $p; done >a.bz2
        for p in piece.*; do lz4 -qc $p; done >a.lz4
        files="$files a.xz b.xz c.xz a.bz2 a.lz4"
    fi
    for file in $files; do
        dt-clean -q --on-error quarantine=bad -o whole $file 2>/dev/null
        [ "$(wc -l <whole)" -eq 300 ]
        for n in 3 9; do
            for ((i = 0; i < n; i++)); do
                dt-clean -q -j 1 --on-error quarantine=bad.$i --part $i/$n $file >part.$i 2>>log
            done
            cat part.* | cmp - whole
            cat bad.? | cmp - bad
            [ "$(find . -name 'part.*' -size +0 | wc -l)" -ge $((n < 6 ? n : 6)) ]
            rm part.* bad.*
        done
    done
    refute grep -v skipped log
}

@test "outputs of dt named .gz and .zst have pieces of a few MB" {
    dt-synth -n 14000 -o a.jsonl
    dt-clean -q a.jsonl -o a.zst
    dt-clean -q a.jsonl -o a.gz
    for f in a.zst a.gz; do
        dt-clean -q -j 1 --part 0/2 $f >p0
        dt-clean -q -j 1 --part 1/2 $f >p1
        cat p0 p1 | cmp - a.jsonl
        [ -s p0 ]
        [ -s p1 ]
    done
    zstd -qdc a.zst | cmp - a.jsonl
    gzip -dc a.gz | cmp - a.jsonl
}

@test "compressed data of one piece is one part, which says so" {
    lines
    gzip -c lines.jsonl >a.gz
    dt-clean -q --on-error skip -o whole a.gz 2>/dev/null
    run dt-clean -q -j 1 --on-error skip --part 0/3 -o p0 a.gz
    [[ "$output" == *"a.gz: is one piece of compressed data, which is not divided: this part has all its documents"* ]]
    cmp p0 whole
    for i in 1 2; do
        run dt-clean -q --part $i/3 -o p$i a.gz
        [ "$status" -eq 0 ]
        [ -z "$output" ]
        [ ! -s p$i ]
    done
    run dt-clean -q --on-error skip --part 0/1 -o p0 a.gz
    [[ "$output" != *"one piece"* ]]
}

@test "the blocks of xz are checked against their index, and parts against their blocks" {
    command -v xz >/dev/null && ls "${DT_ENGINES:-$DT_BUILD/lib/dt}"/codec-xz.so >/dev/null || skip "xz is not there"
    dt-synth -n 300 >lines.jsonl
    xz -0c --block-size=8000 lines.jsonl >a.xz
    size=$(stat -c %s a.xz)
    # Of the middle, of the index, of the footer; and cut in each.
    for at in 9 $((size / 2)) $((size - 40)) $((size - 6)); do
        cp a.xz damaged.xz
        printf '\125' | dd of=damaged.xz bs=1 seek=$at conv=notrunc status=none
        refute cmp -s a.xz damaged.xz
        run dt-clean -q -o out damaged.xz
        [ "$status" -eq 1 ]
        [[ "$output" == *"damaged.xz: near byte "*" xz "* ]]
        head -c $at a.xz >cut.xz
        run dt-clean -q -o out cut.xz
        [ "$status" -eq 1 ]
        [[ "$output" == *"cut.xz: near byte "*": compressed data ends too early" ]]
    done
    printf '\125' | dd of=a.xz bs=1 seek=$((size / 2)) conv=notrunc status=none
    failed=0
    for i in 0 1 2 3; do
        run dt-clean -q -o out --part $i/4 a.xz
        failed=$((failed + status))
    done
    [ $failed -eq 1 ]
}

@test "a compressed file without a byte is an error of one part, wherever it is in the list" {
    printf '{"text":"a"}\n{"text":"b"}\n' >a.jsonl
    : >empty.gz
    for files in 'a.jsonl empty.gz' 'empty.gz a.jsonl' 'empty.gz'; do
        failed=0
        for part in 0 1 2; do
            # shellcheck disable=SC2086
            dt-clean -q --part $part/3 $files >/dev/null 2>>said || failed=$((failed + 1))
        done
        [ "$failed" -eq 1 ]
    done
    grep -q '^dt-clean: empty.gz: ' said
}

@test "a damaged frame between parts is an error of one of them" {
    lines
    for p in piece.*; do zstd -qc $p; done >a.zst
    at=$(for p in piece.aa piece.ab piece.ac; do zstd -qc $p; done | wc -c)
    printf '\377' | dd of=a.zst bs=1 seek=$((at + 5)) conv=notrunc status=none
    for n in 2 3 6 9; do
        failed=0
        for ((i = 0; i < n; i++)); do
            run dt-clean -q --on-error skip --part $i/$n -o p a.zst
            [[ "$status" -eq 0 || "$output" == *"a.zst: near byte "* ]]
            failed=$((failed + status))
        done
        [ $failed -ge 1 ]
    done
}

# page NUMBER: a record of a WARC file.
page() {
    local text http
    text="<html><body><p>$(printf 'Page %s has some words, and a few more of them. ' $1 $1 $1 $1)</p></body></html>"
    http=$'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n'"$text"
    printf 'WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:%s>\r\nWARC-Target-URI: http://e.org/%s\r\n' $1 $1
    printf 'Content-Type: application/http\r\nContent-Length: %s\r\n\r\n%s\r\n\r\n' ${#http} "$http"
}

@test "a WARC file with a member for each record is cut between records" {
    need_plugin html libxml2
    for i in {1..40}; do page $i | gzip -nc; done >a.warc.gz
    dt-extract -q -o whole a.warc.gz
    [ "$(wc -l <whole)" -eq 40 ]
    for n in 1 3 11; do in_parts $n dt-extract -q -j 1 a.warc.gz >parts && cmp parts whole; done
    dt-extract -q -j 1 --part 1/3 a.warc.gz | wc -l | grep -qE '^1[0-9]$'
    for i in {1..40}; do page $i; done >a.warc
    split -n 6 a.warc cut.
    for p in cut.*; do gzip -c $p; done >b.warc.gz
    dt-extract -q -j 1 b.warc.gz -o b.jsonl
    cmp b.jsonl whole
    run dt-extract -q --part 0/3 b.warc.gz
    assert_one_line_error dt-extract
    [[ "$output" == *"b.warc.gz: cannot be divided: a part of its compressed data does not begin with 'WARC/'; read it without --part"* ]]
}
