# SPDX-License-Identifier: MIT
# Small inputs that expand: memory is bounded by --max-document, or by the limit of the reader.
load ../helper

setup() {
    [[ "$(ldd "$(command -v dt-cat)")" != *asan* ]] || skip "sanitizers reserve terabytes"
    cd "$T"
}

# refused PROGRAM ARGUMENT...: one line, within 300 MB of address space and 20 s of processor time.
refused() {
    run bash -c 'ulimit -v 300000 -t 20; exec "$@"' - "$@"
    assert_one_line_error "$1"
}

@test "a line of a gigabyte in 34 kB of zstd data takes a few times --max-document" {
    command -v zstd >/dev/null || skip "no zstd"
    { printf '{"text":"'; head -c 1000000000 /dev/zero | tr '\0' a; printf '"}\n'; } | zstd -1 -q -o bomb.jsonl.zst
    refused dt-clean -q -j 1 --max-document 1000000 bomb.jsonl.zst
    [[ "$output" == *"document 1 has more than 1000000 bytes"* ]]
    refused dt-dedup sign -q -j 1 -o signatures --max-document 1000000 bomb.jsonl.zst
    refused dt-clean -q -j 1 --from text --max-document 1000000 bomb.jsonl.zst
}

@test "a page of a response that expands is dropped as too long" {
    need_plugin html libxml2
    { printf '<html>'; head -c 200000000 /dev/zero | tr '\0' a; } | gzip -1 -c >body
    { printf 'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n'; cat body; } >block
    { printf 'WARC/1.0\r\nWARC-Type: response\r\nContent-Length: %d\r\n\r\n' "$(wc -c <block)"
        cat block
        printf '\r\n\r\n'; } >web.warc
    refused dt-extract -q -j 1 --max-document 1000000 web.warc
    [[ "$output" == *"1 too-long"* ]]
}

@test "small values, of which a tree of JSON has the most a byte, take what dt-documents(5) says" {
    { printf '[[]'; head -c 3000000 /dev/zero | sed 's/\x0\x0\x0/,[]/g'; printf ']'; } >arrays
    [ "$(stat -c %s arrays)" -eq 3000004 ]
    refused dt-tokenize -q -t arrays /dev/null # 150 MB; 380 MB with json-c's own arrays
    [[ "$output" == *"is not a JSON object"* ]]
    head -c 5000000 /dev/zero | tr '\0' '#' >long.yaml
    refused dt-bench matrix -q -o rows -d long.yaml
    [[ "$output" == *"is larger than 4194304 bytes"* ]]
    printf 'GGUF\3\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0x\11\0\0\0\10\0\0\0\0\0\0\0\0\1\0\0' >many.gguf
    refused dt-tokenize -q -t many.gguf /dev/null
    [[ "$output" == *"an array is longer than the file"* ]]
}

@test "aliases of YAML, which multiply, and deep nesting are refused" {
    printf 'axes: {a: [1]}\nx: &x [1, 1]\ny: &y [*x, *x]\ncommand: echo\n' >bomb.yaml
    refused dt-bench matrix -q -o rows -d bomb.yaml
    head -c 200000 /dev/zero | tr '\0' '[' >deep
    refused dt-train -c deep --print-config
    cp deep deep.jsonl
    refused dt-clean -q deep.jsonl
    refused dt-tokenize -q -t deep /dev/null
    refused dt-eval choice -q -m . deep
}
