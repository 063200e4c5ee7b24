# SPDX-License-Identifier: MIT
# pipelines/web-corpus.mk: pages of packages, or WARC files, to shards and a table.
load ../helper

setup() {
    cd "$T"
    need_plugin html libxml2
    mkdir -p pages bin
    dt-synth -n 240 | jq -r '"<p>" + .text + "</p>"' >paragraphs
    for i in {1..12}; do
        printf '<html lang=en><title>Page %d</title><nav><a href=/>Home</a></nav><article>' "$i"
        sed -n "$((20 * i - 19)),$((20 * i))p" paragraphs
        echo '</article>'
    done | awk '/^<html/ { n++ } { print >"pages/" n ".html" }'
    echo '<nav><a href=/>Home</a></nav>' >pages/empty.html
}

# corpus VARIABLE=VALUE ...
corpus() {
    make -C "$ROOT" -s --no-print-directory -f pipelines/web-corpus.mk B="${DT_BUILD:-build}" OUT="$T/out" \
        CLEAN_FLAGS=--identify SHARD_FLAGS= VOCAB_SIZE=300 CHUNKS=2 THREADS=1 "$@"
}

# Replaces apt: it knows one package, `pages`, which is in $T.
fake_apt() {
    printf '#!/bin/sh\n[ "$2" = pages ]\n' >bin/apt-cache
    printf '#!/bin/bash\n[ "${*: -1}" = pages ] && cp "%s"/pages_1_all.deb .\n' "$T" >bin/apt-get
    chmod +x bin/*
    PATH=$T/bin:$PATH
}

@test "WARC files become shards, and a table says what each step kept" {
    "$ROOT"/share/bench/make-warc.py pages >web.warc.gz
    corpus WARC="$T/web.warc.gz" >table
    dt-verify files out/data
    [ "$(awk '/^pages/ { print $2 }' table)" = 13 ]
    [ "$(awk '/^main text/ { print $3 }' table)" = 12 ]
    [ "$(awk '/^kept by rules/ { print $4 }' table)" = 12 ]
    [ "$(awk '/^without near/ { print $4 }' table)" = 12 ]
    tokens=$(dt-cat --json out/data/*.dts | jq -s 'map(.tokens) | add')
    [ "$(awk '/^shards: tokens/ { gsub(",", ""); print $3 }' table)" = "$tokens" ]
    [ "$(awk 'length > 80' table)" = "" ]
}

@test "pages of packages become shards; a package that apt does not know is named" {
    command -v dpkg-deb >/dev/null || skip "no dpkg-deb"
    fake_apt
    mkdir -p tree/DEBIAN tree/usr/share/doc
    printf 'Package: pages\nVersion: 1\nArchitecture: all\nMaintainer: x <x@a.example>\nDescription: x\n' >tree/DEBIAN/control
    cp -r pages tree/usr/share/doc
    dpkg-deb -b tree pages_1_all.deb >/dev/null
    corpus PACKAGES='other pages' >table 2>said
    grep -qx 'packages-to-warc: apt does not know other: skipped' said
    [ "$(awk '/^main text/ { print $3 }' table)" = 12 ]
    [ "$(ls out/warc)" = pages.warc.gz ]
}

@test "without a network the message says so, and nothing is made" {
    fake_apt
    printf '#!/bin/sh\necho "E: Failed to fetch http://a.example/x.deb" >&2\nexit 100\n' >bin/apt-get
    run corpus PACKAGES=pages
    [ "$status" -ne 0 ]
    grep -qF "cannot download packages: E: Failed to fetch http://a.example/x.deb; WARC='FILE ...' takes" <<<"$output"
    [ -z "$(ls out/warc)" ]
    [ ! -e out/data ]
}
