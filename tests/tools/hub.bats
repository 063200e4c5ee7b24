# SPDX-License-Identifier: MIT
# Names of a hub, with the server tests/hub/hub.py.
load ../helper

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    make_data 60 300
    dt-train -q --set model.hidden_size=64 --set model.num_layers=2 --set model.num_heads=4 \
        --set model.max_seq_len=48 --set training.batch_size=4 --set training.warmup_steps=1 \
        --set training.max_steps=3 -t tok.json -o run data
    dt-export -m run/latest -o whole
    dt-export -m run/latest --max-shard 100k -o cut
    dt-export -m run/latest --to gguf -o m.gguf
}

setup() {
    engines=${DT_ENGINES:-${DT_BUILD:-$ROOT/build}/lib/dt}
    need_plugin http libcurl
    cd "$T"
    mkdir -p root/owner/whole root/owner/cut root/owner/gguf root/owner/torch
    cp "$BATS_FILE_TMPDIR"/whole/* root/owner/whole/
    cp "$BATS_FILE_TMPDIR"/cut/* root/owner/cut/
    cp "$BATS_FILE_TMPDIR/m.gguf" root/owner/gguf/
    cp "$BATS_FILE_TMPDIR/docs.jsonl" root/owner/gguf/
    echo '{}' | tee root/owner/torch/config.json >root/owner/torch/pytorch_model.bin
    ln -s "$BATS_FILE_TMPDIR"/{whole,data,docs.jsonl,tok.json} .
    touch log
    python3 "$ROOT/tests/hub/hub.py" root log port 3>&- &
    SERVER=$!
    await $SERVER test -s port
    export HF_ENDPOINT=http://127.0.0.1:$(cat port) HF_HOME=$T/home
    unset HF_TOKEN HF_HUB_CACHE HF_HUB_OFFLINE HUGGING_FACE_HUB_TOKEN
    cache=home/hub/models--owner--whole
    commit=0123456789abcdef0123456789abcdef01234567
}

teardown() {
    end_process SERVER
}

text() { dt-generate -m "$1" ${2:+-t "$2"} -p Once -n 6; }

@test "a model is fetched into the cache that Python shares, and only what dt reads" {
    echo other >root/owner/whole/training.log
    [ "$(text hf://owner/whole)" = "$(text whole)" ]
    [ "$(cat $cache/refs/main)" = "$commit" ]
    [ "$(readlink $cache/snapshots/$commit/model.safetensors)" = "../../blobs/$(sha256sum <whole/model.safetensors | cut -d ' ' -f 1)" ]
    cmp $cache/snapshots/$commit/model.safetensors whole/model.safetensors
    cmp $cache/snapshots/$commit/tokenizer.json whole/tokenizer.json
    [ ! -e $cache/snapshots/$commit/training.log ]
    [ ! -e $cache/snapshots/$commit/README.md ]
    [ -z "$(ls $cache/blobs | grep incomplete)" ]
    before=$(grep -c "store GET" log)
    [ "$(text hf://owner/whole)" = "$(text whole)" ]
    [ "$(grep -c "store GET" log)" -eq "$before" ]
    [ "$(text hf://owner/cut@v1%2Fx)" = "$(text whole)" ]
    [ "$(cat home/hub/models--owner--cut/refs/v1/x)" = "$commit" ]
    [ ! -e home/hub/models--owner--cut/snapshots/$commit/model.safetensors ]
}

@test "Python and dt share one cache" {
    need_python huggingface_hub
    python_fetch() { # ARGUMENTS of hf_hub_download
        "$PYTHON" -c "import huggingface_hub as h
for name in ['config.json', 'generation_config.json', 'tokenizer.json', 'tokenizer_config.json', 'model.safetensors']:
    h.hf_hub_download('owner/whole', name, local_files_only=$1)"
    }
    text hf://owner/whole >/dev/null
    python_fetch True
    rm -rf home
    python_fetch False
    [ "$(HF_HUB_OFFLINE=1 text hf://owner/whole)" = "$(text whole)" ]
}

@test "files, tokenizers and lineage" {
    dt-eval -q -m whole -t hf://owner/whole@$commit/tokenizer.json perplexity docs.jsonl >/dev/null
    rm $cache/snapshots/$commit/tokenizer.json
    dt-tokenize -t hf://owner/whole@$commit docs.jsonl -o a.dts
    [ ! -e $cache/snapshots/$commit/model.safetensors ]
    [ "$(text hf://owner/gguf/m.gguf)" = "$(text whole)" ]
    dt-tokenize -t hf://owner/whole@$commit hf://owner/gguf/docs.jsonl -o b.dts
    cmp <(dt-cat a.dts | head -1) <(dt-cat b.dts | head -1)
    for i in 0 1 2; do dt-clean -q --part $i/3 --to text hf://owner/gguf/docs.jsonl; done | cmp - <(dt-clean -q --to text docs.jsonl)
    dt-export -m hf://owner/whole -o out
    grep -q "\"hf://owner/whole@$commit\"" out/lineage.json
    refute grep -q "$T/home" out/lineage.json
    dt-train -q --init-from hf://owner/whole -t hf://owner/whole --set training.max_steps=1 \
        --set training.warmup_steps=0 -o next data
    cmp next/latest/tokenizer.json whole/tokenizer.json
    grep -q -- "--init-from hf://owner/whole@$commit" next/latest/trainer/lineage.txt
}

@test "a task reads all Parquet files of its split from the hub" {
    part=root/datasets/owner/words/small/test
    mkdir -p $part bin
    printf '#!/bin/sh\ntail -n +2 /dev/stdin\n' >bin/duckdb # in place of the program that reads Parquet
    chmod +x bin/duckdb
    PATH=$T/bin:$PATH
    { printf 'PAR1\025\004\025\000\n' && head -n 9 docs.jsonl; } >$part/0000.parquet
    { printf 'PAR1\025\004\025\000\n' && sed -n 10,12p docs.jsonl; } >$part/0001.parquet
    cat >words.yaml <<'END'
task: words
dataset_path: owner/words
dataset_name: small
output_type: loglikelihood_rolling
test_split: test
doc_to_text: ""
doc_to_target: "{{text}}"
metric_list: [{metric: word_perplexity}]
END
    dt-eval -q -m whole --json tasks ./words.yaml >hub
    head -n 12 docs.jsonl >local.jsonl
    dt-eval -q -m whole --json --data test=local.jsonl tasks ./words.yaml | cmp - hub
    HF_HUB_OFFLINE=1 dt-eval -q -m whole --json tasks ./words.yaml | cmp - hub
    rm -r root/datasets home
    run dt-eval -q -m whole tasks ./words.yaml
    [ "$status" -eq 1 ]
    [[ "$output" == *"words.yaml: to read files of yours, give --data test=FILE"* ]]
}

@test "an interrupted download continues, and a server without ranges sends the whole" {
    touch root/cut
    [ "$(text hf://owner/whole)" = "$(text whole)" ]
    grep -q "store GET /owner/whole/model.safetensors None bytes=10000-" log
    for how in kill no-range; do
        rm -rf home
        mkdir -p $cache/blobs
        [ $how = kill ] || touch root/no-range
        head -c 5000 whole/model.safetensors >"$cache/blobs/$(sha256sum <whole/model.safetensors | cut -d ' ' -f 1).incomplete"
        [ "$(text hf://owner/whole)" = "$(text whole)" ]
        grep -q "bytes=5000-" log
        cmp $cache/snapshots/$commit/model.safetensors whole/model.safetensors
    done
}

@test "a hub that is busy is asked again, and one that refuses leaves the part" {
    echo 429 2 >root/busy
    [ "$(text hf://owner/whole)" = "$(text whole)" ]
    [ "$(grep -c "store GET" log)" -eq 3 ]
    rm -rf home
    touch root/cut
    echo 400 1 >root/busy
    run text hf://owner/whole
    assert_one_line_error dt-generate
    [[ "$output" == *"hf://owner/whole: the hub answers 400" ]]
    [ "$(wc -c <"$(echo $cache/blobs/*.incomplete)")" -eq 10000 ]
    : >log
    [ "$(text hf://owner/whole)" = "$(text whole)" ]
    grep -q "^store GET .* bytes=10000-" log
}

@test "data with another hash are discarded" {
    touch root/corrupt
    run text hf://owner/whole
    assert_one_line_error dt-generate
    [[ "$output" == *"what the hub sent has another hash than it names: it was discarded" ]]
    [ -z "$(ls $cache/blobs)" ]
    rm root/corrupt
    [ "$(text hf://owner/whole)" = "$(text whole)" ]
    rm -rf home
    touch root/missing-hash
    run text hf://owner/whole
    assert_one_line_error dt-generate
    [[ "$output" == *"the hub names no hash of it" ]]
}

@test "the token goes to the hub alone, and is recorded nowhere" {
    echo hf_secret >root/token
    run text hf://owner/whole
    assert_one_line_error dt-generate
    [[ "$output" == *"hf://owner/whole: the hub answers 401: it does not exist, is private, or asks to accept its terms at $HF_ENDPOINT/owner/whole; set HF_TOKEN, or run: hf auth login" ]]
    export HF_TOKEN=hf_wrong
    run text hf://owner/whole
    [[ "$output" == *"the token has no access" ]]
    HF_TOKEN=hf_secret dt-export -m hf://owner/whole -o out
    refute grep -r hf_secret out home
    refute grep -E "^store .*hf_" log
    unset HF_TOKEN
    echo hf_secret >home/token
    rm -rf home/hub
    [ "$(text hf://owner/whole)" = "$(text whole)" ]
    unset HF_HOME
    export XDG_CACHE_HOME=$T/cache
    mkdir -p cache/huggingface
    mv home/token cache/huggingface/
    [ "$(text hf://owner/whole)" = "$(text whole)" ]
}

@test "a token has no line ends and blanks around it, and an empty one is none" {
    echo hf_secret >root/token
    HF_TOKEN=$' hf_secret\r\n' dt-tokenize -q -t hf://owner/whole -o a.dts docs.jsonl
    rm -r home/hub
    printf '\n hf_secret \n' >home/token
    dt-tokenize -q -t hf://owner/whole -o b.dts docs.jsonl
    cmp a.dts b.dts
    rm -r home/hub root/token
    echo >home/token
    : >log
    dt-tokenize -q -t hf://owner/whole -o b.dts docs.jsonl
    refute grep -q Bearer log
    HF_TOKEN=' ' dt-tokenize -q -t hf://owner/whole -o b.dts docs.jsonl
    refute grep -q Bearer log
}

@test "names that are wrong get a line that helps" {
    wrong() { # NAME REASON
        run text "$1"
        assert_one_line_error dt-generate
        [[ "$output" == *"$2"* ]] || { echo "$output"; return 1; }
    }
    wrong hf://owner/none "hf://owner/none@main: does not exist"
    wrong hf://owner/whole@old "hf://owner/whole@old: has no such revision"
    wrong hf://owner/whole/a.gguf "a.gguf: hf://owner/whole@main: has no such file"
    wrong hf://owner/gguf "hf://owner/gguf: has GGUF files: name one of them, for example hf://owner/gguf/m.gguf"
    wrong hf://owner/torch "has weights of PyTorch only, and not model.safetensors"
    for name in hf://owner hf:// hf://a/b/../c hf://../b hf://a/b@ hf://a--b/c hf://a/b@../x; do
        wrong $name ""
    done
    run dt-tokenize -t hf://owner/torch docs.jsonl
    assert_one_line_error dt-tokenize
    [[ "$output" == *"hf://owner/torch@main: has no tokenizer: tokenizer.json, "* ]]
    run dt-tokenize -t tok.json hf://owner/gguf
    assert_one_line_error dt-tokenize
    [[ "$output" == *"hf://owner/gguf: names no file: add /FILE" ]]
}

@test "offline, and while the hub cannot be reached, the cache is used" {
    HF_HUB_OFFLINE=1 run text hf://owner/whole
    assert_one_line_error dt-generate
    [[ "$output" == *"HF_HUB_OFFLINE is set: hf://owner/whole@main: is not in the cache" ]]
    ours=$(text hf://owner/whole)
    [ "$(HF_HUB_OFFLINE=1 text hf://owner/whole)" = "$ours" ]
    before=$(wc -l <log)
    [ "$(text hf://owner/whole@$commit)" = "$ours" ]
    [ "$(wc -l <log)" -eq "$before" ]
    end_process SERVER
    run text hf://owner/whole
    [ "$status" -eq 0 ]
    [[ "$output" == *"using the commit $commit of the cache"*"$ours" ]]
    run text hf://owner/cut
    assert_one_line_error dt-generate
    rm $cache/snapshots/$commit/model.safetensors
    HF_HUB_OFFLINE=1 run text hf://owner/whole
    assert_one_line_error dt-generate
}

@test "two processes fetch one model at a time" {
    for i in 1 2 3; do
        text hf://owner/whole >text-$i &
    done
    wait $(jobs -p | grep -v "^$SERVER$")
    [ "$(cat text-1 text-2 text-3 | sort -u | wc -l)" -eq "$(text whole | sort -u | wc -l)" ]
    [ "$(grep -c "store GET" log)" -eq 1 ]
}

@test "without libcurl the program hf fetches" {
    mkdir engines bin
    ln -s "$engines"/* engines/
    rm engines/http.so
    DT_ENGINES=$T/engines run text hf://owner/whole
    assert_one_line_error dt-generate
    [[ "$output" == *"built without libcurl (make deps-track, or install libcurl4-openssl-dev; then make), and the program hf is missing"* ]]
    text hf://owner/whole >expected
    DT_ENGINES=$T/engines text hf://owner/whole 2>err | cmp - expected
    grep -q "the program hf is missing.*: using the commit $commit of the cache" err
    rm -r home
    cat >bin/hf <<END
#!/bin/sh
echo "\$@" >>"$T/arguments"
[ "\$#" -eq 8 ] || exit 1 # newer releases take one pattern after --include, and others for files
mkdir -p $T/$cache/snapshots/$commit
for file in $BATS_FILE_TMPDIR/whole/\$8; do
    [ ! -e "\$file" ] || cp "\$file" $T/$cache/snapshots/$commit/
done
echo "$T/$cache/snapshots/$commit"
END
    chmod +x bin/hf
    [ "$(DT_ENGINES=$T/engines PATH=$T/bin:$PATH text hf://owner/whole)" = "$(text whole)" ]
    grep -q "^download owner/whole --revision main --repo-type model --include tokenizer\*$" arguments
    grep -q "^download owner/whole --revision $commit --repo-type model --include model.safetensors$" arguments
    printf '#!/bin/sh\nexit 3\n' >bin/hf
    DT_ENGINES=$T/engines PATH=$T/bin:$PATH run text hf://owner/whole@v2
    assert_one_line_error dt-generate
}

@test "an answer of a hub without a commit, or with names that are not text, is refused" {
    for odd in '{}' '[]' '{"sha":5,"siblings":[]}' '{"sha":"main","siblings":[]}' '{"sha":"'$commit'"}' \
        '{"sha":"'$commit'","siblings":[{"rfilename":null}]}' '{"sha":"'$commit'","siblings":[5]}' \
        '{"sha":"'$commit'","siblings":[{"rfilename":["config.json"]}]}'; do
        echo "$odd" >root/odd
        run dt-generate -m hf://owner/whole -p Once -n 6
        assert_one_line_error dt-generate
        [ ! -e $cache ] || [ -z "$(ls $cache/snapshots)" ]
    done
    rm root/odd
    for odd in null 5 '["model.safetensors"]'; do
        echo '{"weight_map":{"x":'$odd'}}' >root/owner/cut/model.safetensors.index.json
        rm -rf home
        run dt-generate -m hf://owner/cut -p Once -n 6
        assert_one_line_error dt-generate
        [[ "$output" == *"model.safetensors.index.json: the file of tensor 'x' is not a string" ]]
    done
}
