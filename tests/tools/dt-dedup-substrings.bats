#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Passages that occur more than once.
load ../helper

setup() {
    cd "$T"
}

passage() {
    seq "$1" "$2" | tr '\n' ' '
}

@test "passages that occur before are removed, the first occurrence stays" {
    need_plugin suffixes libdivsufsort
    {
        echo "begin $(passage 100 180)end"
        echo "other"
        echo "another $(passage 100 180)text"
        passage 110 170
        echo
        echo "short $(passage 100 140)text"
    } >in
    run dt-dedup substrings --from lines --spans spans -o out in
    [ "$status" -eq 0 ]
    [[ "${lines[0]}" == *"5 documents, "*" MB: "*" MB of memory to find repeated passages" ]]
    [[ "${lines[1]}" == *"removed "*" MB ("*" %) and 1 documents of nothing else" ]]
    [ "$(jq -r .text out | sed -n '2,$p')" = "other
anothertext
short $(passage 100 140)text" ]
    [ "$(jq -r .text out | head -n 1)" = "begin $(passage 100 180)end" ]
    [ "$(cut -d ' ' -f 1,3- spans)" = "3 7-332
4 0-244" ]
    [ "$(jq -r .id out | tr '\n' ' ')" = "in:1 in:2 in:3 in:5 " ]
    dt-dedup substrings -q --length 100 --from lines -o out in
    [ "$(jq -r .text out | tail -n 1)" = "shorttext" ]
    # what was cut has nothing repeated, and is read as documents
    dt-dedup substrings -q --length 100 -o again out
    cmp <(jq -c 'del(.meta)' out) <(jq -c 'del(.meta)' again)
}

@test "documents are UTF-8, whatever their ids, texts and meta were" {
    need_plugin suffixes libdivsufsort
    printf '{"id":"a\xff","text":"b\xffc","meta":{"d\xff":1}}\n' >in.jsonl
    dt-dedup substrings -q -o out in.jsonl
    [ "$(cat out)" = '{"id":"a�","text":"b�c","meta":{"d�":1}}' ]
}

@test "without the plug-in the error says what to install" {
    mkdir none
    echo text >in
    DT_ENGINES=$PWD/none run dt-dedup substrings -q --from lines -o out in
    assert_one_line_error dt-dedup
    [[ "$output" == *"libdivsufsort-dev"* ]]
    [ ! -e out ]
}

