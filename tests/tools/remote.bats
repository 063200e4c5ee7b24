#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Documents from URLs, with the server tests/remote/objects.py.
load ../helper

setup() {
    engines=${DT_ENGINES:-${DT_BUILD:-$ROOT/build}/lib/dt}
    need_plugin http libcurl
    cd "$T"
    mkdir root
    dt-synth -n 400 >root/docs.jsonl
    gzip -k root/docs.jsonl
    size=$(wc -c <root/docs.jsonl)
    dt-clean -q root/docs.jsonl -o expected
    touch log
    python3 "$ROOT/tests/remote/objects.py" root log port 3>&- &
    SERVER=$!
    await $SERVER test -s port
    url=http://127.0.0.1:$(cat port)
    unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AWS_PROFILE AWS_REGION AWS_ENDPOINT_URL
    export HOME=$T
}

teardown() {
    end_process SERVER
}

# read_from NAME: documents of the URL, the same as of the file.
read_from() {
    dt-clean -q -o out "$1"
    cmp out expected
}

@test "an object is read as a file is, compressed or not, and lineage has its URL and hash" {
    read_from "$url/docs.jsonl"
    jq -e --arg url "$url/docs.jsonl" --arg sum "$(sha256sum <root/docs.jsonl | cut -d ' ' -f 1)" --argjson n "$size" \
        '.lineage[0].inputs == [{path: $url, bytes: $n, sha256: $sum}]' out.lineage.json
    dt-clean -q root/docs.jsonl.gz -o expected
    read_from "$url/docs.jsonl.gz"
    read_from "$url/to/to/docs.jsonl.gz"
    echo "$url/docs.jsonl.gz" >list
    dt-clean -q --files-from list -o out
    cmp out expected
    dt-vocab -q -s 300 -o a.json "$url/docs.jsonl"
    dt-vocab -q -s 300 -o b.json root/docs.jsonl
    cmp a.json b.json
    : >root/empty
    run dt-clean -q "$url/empty"
    [[ "$output" == *"no document came out"* ]]
}

@test "documents of a URL that ends with a slash have the host in their ids" {
    echo text >root/index
    dt-clean -q --from lines -o out "$url/"
    [ "$(jq -r .id out)" = "${url#http://}:1" ]
}

@test "a broken connection is continued at the byte that was reached" {
    read_from "$url/cut/$((size / 3 + 1))/docs.jsonl"
    [ "$(grep -c "^/cut" log)" -eq 3 ]
    grep -q "^/cut/.* bytes=$((size / 3 + 1))- None" log
    read_from "$url/fail/2/docs.jsonl"
    read_from "$url/norange/1000/docs.jsonl"
    read_from "$url/hints/$((size / 3 + 1))/docs.jsonl"
    run dt-clean -q -o out "$url/plain/docs.jsonl"
    [ "$status" -eq 0 ]
}

@test "a broken connection to a URL that was redirected to is redirected again, as it may have expired" {
    read_from "$url/signed/$((size / 3 + 1))/docs.jsonl"
    [ "$(grep -c "^/signed" log)" -eq 3 ]
    [ "$(grep -c "^/expiring.*?3 bytes=" log)" -eq 1 ]
}

# in_parts N COMMAND...: the outputs of the parts, one after the other.
in_parts() {
    local n=$1 i
    for ((i = 0; i < n; i++)); do "${@:2}" --part $i/$n || return; done
}

@test "parts of URLs are read by ranges, and have the documents, ids and bad lines of one command" {
    jq -c '{text}' root/docs.jsonl | awk 'NR % 60 == 0 { print "x" } { print }' >root/lines.jsonl
    split -n 9 root/lines.jsonl piece.
    for p in piece.*; do gzip -c $p; done >root/lines.jsonl.gz
    for p in piece.*; do zstd -qc $p; done >root/lines.jsonl.zst
    for list in lines.jsonl lines.jsonl.gz "plain/lines.jsonl.zst once/1000/docs.jsonl to/docs.jsonl.gz" \
        "cut/40000/lines.jsonl docs.jsonl.gz"; do
        for name in $list; do echo "$url/$name"; done >list
        echo root/docs.jsonl >>list
        dt-clean -q -j 1 --on-error quarantine=bad --files-from list -o whole 2>/dev/null
        for n in 2 7; do
            for ((i = 0; i < n; i++)); do
                dt-clean -q -j 1 --on-error quarantine=bad.$i --part $i/$n --files-from list -o part.$i 2>/dev/null
            done
            cat part.? | cmp - whole
            cat bad.? | cmp - bad
            [ "$(find . -name 'part.?' -size +0 | wc -l)" -eq $n ]
            rm part.* bad.*
        done
    done
    grep -qE '^/lines.jsonl bytes=[1-9][0-9]*- None' log
    grep -qE '^/lines.jsonl.gz bytes=[1-9][0-9]*- None' log
    # A part begins at the first byte that it may need.
    : >log
    dt-clean -q --on-error skip --part 3/4 -o out "$url/lines.jsonl" 2>/dev/null
    first=$(wc -c <root/lines.jsonl | awk '{ print int($1 / 4) * 3 }')
    [ "$(awk -v first="$first" '$2 != "None" && substr($2, 7) + 0 < first - 4' log | wc -l)" -eq 0 ]
    [ "$(grep -c bytes= log)" -ge 2 ]
    run dt-clean -q --part 0/2 "$url/endless/docs.jsonl"
    assert_one_line_error dt-clean
    [[ "$output" == *"endless/docs.jsonl: the server does not say where it ends"* ]]
    run dt-clean -q --part 0/2 "$url/absent"
    [[ "$output" == *"absent: does not exist: the server answers 404" ]]
}

@test "a WARC file at a URL is cut between its members" {
    need_plugin html libxml2
    for i in {1..40}; do
        http=$'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n'"<html><body><p>Page $i has some words, and a few more of them follow here."
        printf 'WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://e.org/%s\r\nContent-Type: application/http\r\nContent-Length: %s\r\n\r\n%s\r\n\r\n' $i ${#http} "$http" | gzip -nc
    done >root/web.warc.gz
    dt-extract -q -o whole "$url/web.warc.gz"
    [ "$(wc -l <whole)" -eq 40 ]
    in_parts 5 dt-extract -q -j 1 "$url/web.warc.gz" >parts
    cmp parts whole
    [ "$(dt-extract -q --part 2/5 "$url/web.warc.gz" | wc -l)" -eq 8 ]
}

@test "what changed or has no known end is an error" {
    failure() {
        run timeout 60 dt-clean -q -o none "$url/$1"
        assert_one_line_error dt-clean
        [[ "$output" == "dt-clean: $url/$1: $2"* ]] || { echo "$output"; return 1; }
        [ ! -e none ]
    }
    cp root/docs.jsonl root/cut
    failure changes/1000/docs.jsonl "was changed while it was read, at byte 1000"
    failure endless/docs.jsonl "the server does not say where it ends"
    failure identity/docs.jsonl "the server does not say where it ends"
    failure plain/cut "the connection broke at byte 1000, and the server names neither ETag nor date"
    failure absent "does not exist: the server answers 404"
    failure status/403/x "the server answers 403: it needs credentials"
    failure status/418/x "the server answers 418"
    run dt-clean -q -o none "$url/to/$url/to/absent"
    [[ "$output" == *"does not exist"* ]]
    DT_ENGINES=$T run dt-clean -q "$url/docs.jsonl"
    assert_one_line_error dt-clean
    [[ "$output" == *"built without libcurl"* ]]
}

# Side by side, since each waits some seconds between its attempts.
@test "an error ends the program while a server is silent" {
    { echo "no document"; seq 30000; } >root/bad
    run timeout 20 dt-clean -q --from jsonl -o none "$url/silent/40000/bad"
    assert_one_line_error dt-clean
    [[ "$output" == *"/bad:1: byte 0: '{' expected"* ]]
}

@test "what stays broken is an error after several attempts" {
    try() { # NAME URL
        local status=0
        timeout 60 dt-clean -q -o none.$1 "$2" >output.$1 2>&1 || status=$?
        echo $status >status.$1
    }
    try stuck "$url/stuck/1000/docs.jsonl" 3>&- &
    local first=$!
    try fail "$url/fail/9/docs.jsonl" 3>&- &
    local second=$!
    try refused "http://me:Passw0rd@127.0.0.1:1/x?sig=S3cret" 3>&-
    wait $first $second
    for name in stuck fail refused; do
        status=$(cat status.$name) output=$(cat output.$name)
        mapfile -t lines <output.$name
        assert_one_line_error dt-clean
        [ ! -e none.$name ]
    done
    grep -q "the server answers 503" output.fail
    refute grep -q "Passw0rd\|S3cret" output.refused
}

@test "secrets of a URL are in no message and no record" {
    read_from "${url/\/\//\/\/me:Passw0rd@}/docs.jsonl?X-Amz-Signature=S3cret&x=1#f"
    grep -q "Basic " log
    refute grep -qr "Passw0rd\|S3cret" out out.lineage.json
    jq -e --arg url "$url/docs.jsonl" '.lineage[0].inputs[0].path == $url' out.lineage.json
    run dt-clean -q "${url/\/\//\/\/me:Passw0rd@}/absent?token=S3cret"
    [ "$status" -eq 1 ]
    [[ "$output" == *"$url/absent: does not exist"* && "$output" != *assw0rd* && "$output" != *S3cret* ]]
}

@test "requests to S3 are signed with the keys of the environment or a profile, or not at all" {
    mkdir -p root/bucket .aws
    cp root/docs.jsonl "root/bucket/a b+c.jsonl"
    export AWS_ENDPOINT_URL=$url/
    cp root/docs.jsonl root/x
    run dt-clean -q "s3://bucket/x y"
    [[ "$output" == *"s3://bucket/x y: does not exist"* ]]
    grep -q "^/bucket/x%20y None None" log
    AWS_ACCESS_KEY_ID=AKIAEXAMPLE AWS_SECRET_ACCESS_KEY=S3cret AWS_REGION=eu-west-1 \
        dt-clean -q "s3://bucket/x" || true
    grep -q "^/bucket/x None AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/[0-9]*/eu-west-1/s3/aws4_request" log
    printf '[other]\naws_access_key_id = AKIAOTHER\naws_secret_access_key=b\n[default]\naws_access_key_id=AKIADEFAULT\naws_secret_access_key = S3cret\n' >.aws/credentials
    printf '[default]\nregion = us-west-2\n' >.aws/config
    dt-clean -q "s3://bucket/y" || true
    grep -q "^/bucket/y None AWS4-HMAC-SHA256 Credential=AKIADEFAULT/[0-9]*/us-west-2/s3/" log
    AWS_PROFILE=other dt-clean -q "s3://bucket/z" || true
    grep -q "^/bucket/z None AWS4-HMAC-SHA256 Credential=AKIAOTHER/[0-9]*/us-east-1/s3/" log
    refute grep -q S3cret log
    cp root/docs.jsonl root/bucket/docs
    dt-clean -q -o whole s3://bucket/docs
    for i in 0 1 2; do dt-clean -q -j 1 -o part.$i --part $i/3 s3://bucket/docs; done
    cat part.? | cmp - whole
    grep -qE '^/bucket/docs bytes=[0-9]+- AWS4-HMAC-SHA256 Credential=AKIADEFAULT' log
    run dt-clean -q "s3://status/301/x"
    assert_one_line_error dt-clean
    [[ "$output" == *"s3://status/301/x: its bucket is in another region: set AWS_REGION=eu-west-3" ]]
    for bad in s3:// s3://bucket s3://bucket/ s3:///key "s3://b c/key"; do
        run dt-clean -q "$bad"
        assert_one_line_error dt-clean
        [[ "$output" == *"expected s3://BUCKET/KEY"* ]]
    done
}

@test "settings of S3 that are incomplete or cannot be obeyed are refused by name" {
    refused() { # MESSAGE URL
        run dt-clean -q -o out "$2"
        assert_one_line_error dt-clean
        [[ "$output" == *"$1"* ]] || { echo "$output"; return 1; }
        [ ! -s log ]
    }
    mkdir -p root/bucket .aws
    cp root/docs.jsonl root/bucket/docs
    export AWS_ENDPOINT_URL=$url
    AWS_ACCESS_KEY_ID=AKIA refused "AWS_ACCESS_KEY_ID is set, and AWS_SECRET_ACCESS_KEY is not" s3://bucket/docs
    AWS_SECRET_ACCESS_KEY=x refused "AWS_SECRET_ACCESS_KEY is set, and AWS_ACCESS_KEY_ID is not" s3://bucket/docs
    printf '[half]\naws_access_key_id = AKIAHALF\n' >.aws/credentials
    AWS_PROFILE=half refused "the profile 'half' of $T/.aws/credentials has no aws_secret_access_key" s3://bucket/docs
    AWS_PROFILE=absent refused "the profile 'absent' of $T/.aws/credentials has no aws_access_key_id" s3://bucket/docs
    AWS_ENDPOINT_URL=127.0.0.1:1 refused "AWS_ENDPOINT_URL: '127.0.0.1:1' is not a URL: http:// or https:// is missing" s3://bucket/docs
    for key in a/../docs ./docs docs/..; do
        refused "dt cannot request a key with '.' or '..' between slashes" s3://bucket/$key
    done
    printf '[default]\naws_access_key_id = AKIA\naws_secret_access_key = S\n' >.aws/credentials
    printf '[default]\nregion = us-west-2\n' >.aws/config
    AWS_PROFILE=default dt-clean -q -o out s3://bucket/docs
    grep -q "Credential=AKIA/[0-9]*/us-west-2/s3/" log
}
