# SPDX-License-Identifier: MIT
load ../helper

tiny=(--set model.hidden_size=32 --set model.num_layers=1 --set model.num_heads=2
    --set model.max_seq_len=32 --set training.batch_size=4 --set training.max_steps=8
    --set training.warmup_steps=2 --set training.eval_interval=0 --set training.save_interval=4)

# The pipelines of README.md and of make demo, smaller, in the directory of the file.
setup_file() {
    cd "$BATS_FILE_TMPDIR"
    cp "$ROOT/share/configs/demo.yaml" .
    dt-synth -n 100 -o stories.jsonl
    dt-clean -q --normalize nfc --dedup --stats stats.json stories.jsonl -o clean.jsonl
    dt-vocab -q --size 300 -o tok.json clean.jsonl
    dt-clean -q --min-chars 20 clean.jsonl | dt-tokenize -q -t tok.json | dt-shard -o data --split val=0.1
    dt-train -q -j 1 --config demo.yaml "${tiny[@]}" --resume auto -t tok.json -o run data
    dt-export -m run/latest -o model 2>/dev/null
}

setup() {
    cd "$T"
    S=$BATS_FILE_TMPDIR
}

# fails COMMAND...: ends with status 1; its output is in $output.
fails() {
    run "$@"
    [ "$status" -eq 1 ] || { echo "status $status: $output"; return 1; }
}

# flip STEP FILE...: changes one bit in every STEP-th part of each file, in turn; dt-verify files must
# name the file for each.
flip() {
    python3 - "$@" <<'END'
import os, subprocess, sys
for path in sys.argv[2:]:
    size = os.path.getsize(path)
    for byte in sorted({size - 1, *range(0, size, max(1, size // int(sys.argv[1])))}):
        with open(path, "r+b") as f:
            f.seek(byte)
            old = f.read(1)
            f.seek(byte)
            f.write(bytes([old[0] ^ 1 << byte % 8]))
            f.flush()
            found = subprocess.run(["dt-verify", "files", path.split("/")[0]], capture_output=True)
            f.seek(byte)
            f.write(old)
        said = (found.stdout + found.stderr).decode(errors="replace")
        assert found.returncode == 1 and path in said, (path, byte, found.returncode, said)
END
}

# edit FILE PYTHON: changes the JSON value v of FILE; keeps no seal and no ids.
edit() {
    python3 -c "
import json, sys
v = json.load(open('$1'))
$2
json.dump(v, open('$1', 'w'))"
}

# reseal FILE: gives changed records new ids, and the file a new seal, as an attacker can.
reseal() {
    python3 - "$1" <<'END'
import hashlib, json, sys
v = json.load(open(sys.argv[1]))
compact = lambda x: json.dumps(x, separators=(",", ":")).encode()
names = {}
for record in v.get("lineage", []):
    old = record.pop("id")
    for i in record["inputs"]:
        if "from" in i:
            i["from"] = names.get(i["from"], i["from"])
    record["id"] = names[old] = hashlib.sha256(compact(record)).hexdigest()
v.pop("seal", None)
v["seal"] = hashlib.sha256(compact(v)).hexdigest()
text = json.dumps(v, indent=2)
open(sys.argv[1], "w").write(text.replace("[]", "[\n" + "]") + "\n")
END
}

@test "files accepts runs, checkpoints, shards, exports and files as they were written" {
    dt-verify files "$S"/run "$S"/run/latest "$S"/data "$S"/model "$S"/tok.json \
        "$S"/clean.jsonl.lineage.json >out
    [ "$(wc -l <out)" -eq 7 ]
    refute grep -v agree out
}

@test "files finds one changed bit anywhere in a checkpoint or a set of shards" {
    cp -r "$S/run/latest/." checkpoint
    cp -r "$S/data" "$S/model" .
    flip 4 $(find checkpoint data model -type f)
    dt-verify files checkpoint data model
}

@test "files finds changed bits all over the manifests" {
    cp -r "$S/run/latest/." checkpoint
    cp -r "$S/data" .
    flip 40 data/index.json checkpoint/trainer/manifest.json
}

@test "files names what is missing and what is not listed" {
    cp -r "$S/run/latest/." checkpoint
    cp -r "$S/data" .
    rm checkpoint/trainer/optimizer.safetensors data/val-00000.dts
    touch checkpoint/trainer/more data/train-00007.dts
    fails dt-verify files checkpoint data
    [[ "$output" == *"checkpoint/trainer/optimizer.safetensors"*"checkpoint/trainer/more: is not listed"* ]]
    [[ "$output" == *"data/val-00000.dts"*"data/train-00007.dts: is not listed"* ]]
}

@test "files reads no file outside of a directory, and refuses what states no hashes" {
    cp -r "$S/run/latest/." checkpoint
    edit checkpoint/trainer/manifest.json "v['files']['../tok.json'] = v['files']['config.json']"
    reseal checkpoint/trainer/manifest.json
    cp "$S/tok.json" .
    fails dt-verify files checkpoint
    [[ "$output" == *"../tok.json"* ]]
    mkdir empty
    for path in empty tok.json none; do
        run dt-verify files $path
        assert_one_line_error dt-verify
    done
    run dt-verify files
    [ "$status" -eq 2 ]
}

@test "a record has the hash of each input, by whatever path it came" {
    printf 'a b\nc d\n' >text
    gzip -k text
    dt-clean -q -o o text.gz
    [ "$(jq -r '.lineage[-1].inputs[0].sha256' o.lineage.json)" = "$(sha256sum text.gz | cut -c 1-64)" ]
    dt-clean -q -o o <text
    [ "$(jq -r '.lineage[-1].inputs[0] | .path + .sha256' o.lineage.json)" = \
        "-$(sha256sum text | cut -c 1-64)" ]
    [ "$(jq -r .sha256 o.lineage.json)" = "$(sha256sum o | cut -c 1-64)" ]
    [ "$(jq -r '.lineage[-1].version' o.lineage.json)" = "$(dt-clean --version | cut -d ' ' -f 3)" ]
}

@test "the lineage of a pipe reaches the shards and the checkpoint" {
    jq -r '.lineage[].program' "$S/run/latest/trainer/lineage.json" | tr '\n' ' ' >names
    [ "$(cat names)" = "dt-synth dt-clean dt-vocab dt-clean dt-tokenize dt-shard dt-train " ]
    [ "$(jq -r '.lineage[-1].inputs[] | .path' "$S/run/latest/trainer/lineage.json" | tr '\n' ' ')" = \
        "demo.yaml tok.json data " ]
}

@test "a file that was changed after its record was written is a raw input" {
    cp "$S/clean.jsonl" "$S/clean.jsonl.lineage.json" .
    echo '{"text":"more"}' >>clean.jsonl
    dt-clean -q -o o clean.jsonl
    [ "$(jq -c '[.lineage | length, (.[0].inputs[0] | has("from"))]' o.lineage.json)" = "[1,false]" ]
}

@test "records are written only beside files that are named, and hold no passwords" {
    dt-synth -n 3 >o
    dt-synth -n 3 -o /dev/null
    dt-synth -n 3 | cat >p
    [ "$(ls | tr '\n' ' ')" = "o p " ]
    dt-synth -n 3 -o named
    [ "$(ls | tr '\n' ' ')" = "named named.lineage.json o p " ]
    dt-clean -q --from sep --separator 'http://me:secret@localhost' -o separated o
    grep -q 'http://\*\*\*@localhost' separated.lineage.json
    refute grep -r secret .
}

@test "equal commands have equal records, whatever the output and the number of threads" {
    dt-clean -q -j 1 -o a "$S/clean.jsonl"
    dt-clean -q -j 3 -o b "$S/clean.jsonl"
    cmp a.lineage.json b.lineage.json
}

@test "a resumed run has the records of an uninterrupted one" {
    dt-train -q -j 1 "${tiny[@]}" -t "$S/tok.json" -o run "$S/data"
    rm -r run/latest run/step-00000008
    ln -s step-00000004 run/latest
    dt-train -q -j 1 "${tiny[@]}" -t "$S/tok.json" -o run "$S/data"
    cmp run/step-0000000[48]/trainer/lineage.json
    jq -e '.lineage | length == 7' run/latest/trainer/lineage.json
    dt-train -q -j 1 "${tiny[@]}" --set training.max_steps=12 -t "$S/tok.json" -o run "$S/data"
    jq -e '.lineage | length == 8' run/latest/trainer/lineage.json
}

@test "replay rebuilds a model from its raw files, bit by bit" {
    cd "$S"
    dt-verify replay -o "$T/again" run >"$T/report"
    cat "$T/report"
    grep -q "stage 6, dt-shard: data is the recorded one" "$T/report"
    grep -q "model.safetensors: is " "$T/report"
    cmp run/latest/model.safetensors "$T/again/run/latest/model.safetensors"
    [ "$(jq -c .splits data/index.json)" = "$(jq -c .splits "$T/again/data/index.json")" ]
}

@test "replay --plan prints a makefile, and runs nothing" {
    dt-verify replay --plan "$S/run" >plan
    [ -z "$(ls -d again replay 2>/dev/null)" ]
    PROGRAMS=$(dirname "$(command -v dt-verify)") make -n -f plan | grep -q 'dt-train.*--output'
    grep -q "dt-tokenize.*|" plan
}

@test "replay finds raw inputs by hash, where --input says, and refuses others" {
    printf 'one\ntwo\nthree\n' >raw.txt
    dt-clean -q --from lines -o clean.jsonl raw.txt
    dt-clean -q --casefold -o folded.jsonl clean.jsonl
    dt-verify replay -o a folded.jsonl
    mv raw.txt moved.txt
    fails dt-verify replay -o b folded.jsonl
    [[ "$output" == *"--input raw.txt=NEW"* ]]
    dt-verify replay -o b --input raw.txt=moved.txt folded.jsonl
    echo four >>moved.txt
    fails dt-verify replay -o c --input raw.txt=moved.txt folded.jsonl
    [[ "$output" == *"SHA-256 differs"* ]]
    fails dt-verify replay -o /dev/null/x folded.jsonl
    run dt-verify replay --input raw.txt folded.jsonl
    [ "$status" -eq 2 ]
}

@test "replay of input from a pipe and of paths outside gives the same bytes" {
    mkdir there
    printf 'a,b\n' >there/raw
    dt-clean -q -o "$T/there/clean.jsonl" <there/raw
    dt-clean -q -o there/two.jsonl ./there/../there/clean.jsonl
    fails dt-verify replay -o a there/two.jsonl
    [[ "$output" == *"--input -=FILE"* ]]
    dt-verify replay -o a --input -=there/raw there/two.jsonl
}

@test "replay knows pages and classifiers, too" {
    cd "$T"
    printf '<title>A</title><p>%s' "$(seq -s ' is a number, and so is ' 60)." >page.html
    dt-extract -q -o page.jsonl page.html
    dt-verify replay -o pages page.jsonl
    for label in a b; do dt-synth -n 20 --seed ${#label} | jq -c --arg l $label '{text, label: $l}'; done >labelled.jsonl
    dt-classify train -q --dim 4 --epochs 1 -o m.bin labelled.jsonl
    dt-verify replay -o models m.bin
}

@test "replay says which stage differs" {
    printf 'one\ntwo\n' >raw.txt
    dt-clean -q --from lines -o clean.jsonl raw.txt
    dt-clean -q --casefold -o folded.jsonl clean.jsonl
    edit folded.jsonl.lineage.json "v['lineage'][1]['inputs'][0]['sha256'] = '0' * 64"
    reseal folded.jsonl.lineage.json
    fails dt-verify replay -o a folded.jsonl
    [[ "$output" == *"stage 1, dt-clean: clean.jsonl differs from the recorded one"* ]]
}

@test "replay refuses a lineage that would run or write anything else" {
    printf 'one\ntwo\n' >raw.txt
    dt-clean -q --from lines -o clean.jsonl raw.txt
    cp clean.jsonl.lineage.json good
    while IFS= read -r change; do
        cp good clean.jsonl.lineage.json
        edit clean.jsonl.lineage.json "$change"
        reseal clean.jsonl.lineage.json
        run dt-verify replay -o a clean.jsonl
        assert_one_line_error dt-verify
        [ ! -e victim ] && [ ! -e a/victim ]
        rm -rf a
    done <<'END'
v['lineage'][0]['program'] = 'touch'
v['lineage'][0]['program'] = '../../bin/touch'
v['lineage'][0]['arguments'] = ['--output', 'victim', 'raw.txt']
v['lineage'][0]['arguments'] = ['--out=victim', 'raw.txt']
v['lineage'][0]['arguments'] = ['-ovictim', 'raw.txt']
v['lineage'][0]['arguments'] = ['--rej', 'victim', 'raw.txt']
v['lineage'][0]['arguments'] = ['--from', 'lines', '--on-error', '--stats', 'x', 'quarantine=victim', 'raw.txt']
v['lineage'][0]['arguments'] = ['--from\n\ttouch victim', 'raw.txt']
v['lineage'][0]['arguments'] = [['x']]
v['lineage'][0]['inputs'] = [{'path': 'x', 'from': v['lineage'][0]['id']}]
v['lineage'].insert(0, {**v['lineage'][0], 'id': 'a'}); v['lineage'][1]['inputs'] = [{'path': 'x', 'of': 'a\nX != touch victim #', 'from': 'a'}]
v['lineage'].insert(0, {**v['lineage'][0], 'id': 'a'}); v['lineage'][1]['inputs'] = [{'path': 'x', 'of': 'longer than it', 'from': 'a'}]
v['lineage'].insert(0, {**v['lineage'][0], 'id': 'a', 'program': 'dt-train', 'arguments': ['--set', 'checkpoint.dir=victim']}); v['lineage'][1]['inputs'] = [{'path': '-', 'from': 'a'}]
v['lineage'][0]['DT_SET'] = 'x\n\ttouch victim'
v['lineage'] = []
v['lineage'] = {}
END
    name=$'x\nX != touch victim #'
    cp clean.jsonl "$name"
    cp good "$name.lineage.json"
    run dt-verify replay -o a "$name"
    assert_one_line_error dt-verify
    [[ "$output" == *"the path of its output has a line feed"* ]] && [ ! -e a/victim ]
    cp good clean.jsonl.lineage.json
    edit clean.jsonl.lineage.json "v['lineage'][0]['arguments'][-1] = 'raw.txt; touch \$(victim) victim'"
    reseal clean.jsonl.lineage.json
    fails dt-verify replay -o a clean.jsonl
    [ ! -e victim ] && [ ! -e a/victim ]
}

@test "replay runs no program that rewards completions" {
    printf 'one\ntwo\n' >raw.txt
    dt-clean -q --from lines -o clean.jsonl raw.txt
    for option in --reward --rewar; do
        edit clean.jsonl.lineage.json "v['lineage'][0].update(program='dt-train', arguments=['$option', 'touch victim', 'raw.txt'])"
        reseal clean.jsonl.lineage.json
        run dt-verify replay -o a clean.jsonl
        assert_one_line_error dt-verify
        [[ "$output" == *"stage 1, dt-train, cannot be replayed: "* ]] && [ ! -e a ]
    done
}

@test "replay writes none of the files besides the output that a command wrote" {
    printf 'one two three four\nfive six seven eight\n' >raw.txt
    printf '{"text":"one two three four"}\n' >bench.jsonl
    dt-clean -q --from lines --decontaminate bench.jsonl --sequence 3 -o clean.jsonl raw.txt \
        --contamination-report "$T/found" --stats "$T/stats" --rejects "$T/rejects"
    dt-dedup substrings -q --length 8 --spans "$T/spans" -o short.jsonl clean.jsonl
    for file in found stats rejects spans; do
        [ -s $file ] || [ $file = spans ]
        echo mine >$file
    done
    dt-verify replay -o a short.jsonl
    for file in found stats rejects spans; do
        [ "$(cat $file)" = mine ]
    done
}

@test "replay rebuilds documents with their perplexity" {
    cp -r "$S"/run "$S"/data "$S"/stories.jsonl* "$S"/clean.jsonl* "$S"/tok.json* "$S"/demo.yaml .
    head -n 3 stories.jsonl >few.jsonl
    dt-eval -q -m run/latest -t tok.json --items "$T/items" --documents scored.jsonl -o report perplexity few.jsonl
    echo mine >items
    dt-verify replay -o a scored.jsonl
    cmp scored.jsonl a/scored.jsonl
    [ "$(cat items)" = mine ]
}

@test "replay has the DT_SET of the record, and not that of the environment" {
    cp -r "$S"/data "$S"/tok.json .
    DT_SET=training.weight_decay=0.3 dt-train -q -j 1 "${tiny[@]}" -t tok.json -o set data
    dt-train -q -j 1 "${tiny[@]}" -t tok.json -o plain data
    refute cmp set/latest/model.safetensors plain/latest/model.safetensors
    cp -r "$S"/stories.jsonl* "$S"/clean.jsonl* .
    dt-verify replay -o a set
    DT_SET=training.weight_decay=0.3 dt-verify replay -o b plain
}

@test "paths that are not UTF-8 leave lineage JSON, and replay has them as they were" {
    for name in $'caf\xe9' $'\xff\'s \\x41' "\$'x'"; do
        echo 'A line of text.' >"$name"
        dt-clean -q --from lines -o clean.jsonl "$name"
        python3 - "$name" <<'END'
import json, os, subprocess, sys
record, = json.load(open("clean.jsonl.lineage.json", encoding="utf-8"))["lineage"]
path = record["inputs"][0]["path"]
assert path == record["arguments"][2], record
shell = subprocess.run(["bash", "-c", f"printf %s {path}"], capture_output=True)
assert shell.stdout == os.fsencode(sys.argv[1]), path
END
        dt-verify replay -o again clean.jsonl
        rm -r again
    done
    dt-vocab -q -s 257 -o t.json clean.jsonl
    dt-tokenize -q -t t.json --from lines $'caf\xe9' | dt-shard -o shards
    python3 -c 'import json; json.load(open("shards/index.json", encoding="utf-8"))'
}

@test "replay of a token stream compares its content where its command line has another path" {
    dt-synth -n 20 -o d.jsonl
    dt-vocab -q -s 300 -o t.json d.jsonl
    dt-tokenize -q -t "$PWD/t.json" -o x.dts d.jsonl
    dt-shard -q -o data x.dts
    run dt-verify replay -o again x.dts
    [ "$status" -eq 0 ]
    [[ "$output" == *"again/x.dts: has the content of "*"/x.dts, and another command line" ]]
    run dt-verify replay -o shards data
    [ "$status" -eq 0 ]
    [[ "$output" == *"stage 3, dt-tokenize: x.dts has a command line with another path, and is not compared"* ]]
    dt-synth -n 20 --seed 2 | dt-tokenize -q -t t.json >x.dts
    edit x.dts.lineage.json "v.update(bytes=$(stat -c %s x.dts), sha256='$(sha256sum x.dts | cut -c 1-64)')"
    reseal x.dts.lineage.json
    run dt-verify replay -o changed x.dts
    [ "$status" -eq 1 ]
    [[ "$output" == *"changed/x.dts: differs from "* ]]
}

@test "replay finds inputs that were read in their own directory" {
    cp -r "$S"/run "$S"/data "$S"/stories.jsonl* "$S"/clean.jsonl* "$S"/tok.json* .
    (cd run && dt-export -m latest -o ../model 2>/dev/null && dt-verify replay --plan ../model) >plan
    grep -q "dt-train --output 'moved/stage-[0-9]*/directory'" plan
    grep -q "dt-export .*'moved/stage-[0-9]*/directory/latest'" plan
    (cd data && dt-cat --as raw -o ../ids train-00000.dts)
    dt-verify replay -o a ids
    (cd data && dt-cat --as raw -o ../ids ./train-00000.dts)
    dt-verify replay -o b ids
}

@test "replay knows an output by ./ before its path and a slash after it" {
    cp -r "$S"/stories.jsonl* "$S"/clean.jsonl* "$S"/tok.json* .
    dt-tokenize -q -t ./tok.json clean.jsonl | dt-shard -o data
    dt-train -q -j 1 "${tiny[@]}" -t tok.json -o run .//data/
    dt-verify replay -o a run >out
    grep -q 'dt-shard: data is the recorded one' out
}

@test "replay says why a command failed" {
    cp "$S"/stories.jsonl* .
    fails bash -c 'ulimit -f 16 && dt-verify replay -o a stories.jsonl'
    [[ "$output" == *"replay.mk failed with status 2: dt-synth: "*"File too large"* ]]
}

@test "replay by programs in a directory whose name has spaces and \$" {
    mkdir 'to#o\l $HOME'
    cp -r "$DT_BUILD/bin" "$DT_BUILD/lib" 'to#o\l $HOME'
    dt-synth -n 3 -o s.jsonl
    'to#o\l $HOME/bin/dt-verify' replay -o a s.jsonl
}

@test "damaged records of an input are an error that names them" {
    cp "$S/clean.jsonl" "$S/clean.jsonl.lineage.json" .
    edit clean.jsonl.lineage.json "v['lineage'][0]['program'] = 'other'"
    run dt-clean -q -o o clean.jsonl
    assert_one_line_error dt-clean
    [[ "$output" == *"clean.jsonl.lineage.json: record 1 was changed"* ]]
    [ ! -e o ]
}

@test "replay of a run that began with the parameters and the tokenizer of another" {
    dt-synth --bytes 60k -o docs.jsonl
    dt-vocab -q -s 300 -o tok.json docs.jsonl
    dt-tokenize -q -t tok.json docs.jsonl | dt-shard -o data
    dt-train -q -j 1 "${tiny[@]}" -t tok.json -o first data
    dt-train -q -j 1 "${tiny[@]}" --init-from first/latest -o second data
    dt-verify replay -o again second >out
    grep -q '^again/second/step-00000008/model.safetensors: is ' out
    [ ! -L again/first/latest/tokenizer.json ]
}

@test "replay changes nothing in a directory that it links, where a file in it is another input" {
    mkdir m
    cp "$S/run/latest"/*.json "$S/run/latest"/*.safetensors m
    cp "$S/tok.json" .
    dt-tokenize -q -t tok.json "$S/stories.jsonl" -o m/x.dts
    rm m/x.dts.lineage.json
    few=(--set training.max_steps=2 --set training.warmup_steps=0 --set training.batch_size=2)
    dt-train -q -j 1 "${few[@]}" --init-from m -t tok.json -o one m/x.dts
    md5sum m/* >before
    dt-verify replay -o again-one one
    md5sum -c before
    dt-export -m m -o exported 2>/dev/null
    dt-verify replay -o again-exported exported
    cp m/x.dts x.dts
    dt-verify replay -o again-moved --input m/x.dts=x.dts one
    dt-tokenize -q -t tok.json "$S/stories.jsonl" | dt-shard -o m/data
    dt-train -q -j 1 "${few[@]}" --init-from m -t m/tokenizer.json -o two m/data
    find m -type f -printf '%p %T@\n' | sort >before
    dt-verify replay -o again-two two
    find m -type f -printf '%p %T@\n' | sort | cmp before -
    [ ! -L m/x.dts ]
}

@test "replay of a command that read a directory with files that dt wrote, and others" {
    mkdir m
    cp "$S/run/latest"/*.json "$S/run/latest"/*.safetensors m
    cp "$S/tok.json" .
    cp "$S/stories.jsonl" raw.jsonl
    dt-tokenize -q -t tok.json raw.jsonl -o m/x.dts
    dt-train -q -j 1 --set training.max_steps=2 --set training.warmup_steps=0 --set training.batch_size=2 \
        --init-from m -t tok.json -o run m/x.dts
    dt-verify replay -o again run >report
    grep 'dt-tokenize: m/x.dts is the recorded one' report
}

@test "replay writes no output into a raw directory, whatever outputs are called" {
    mkdir -p m moved/input-2-2/m
    cp "$S/run/latest"/*.json "$S/run/latest"/*.safetensors m
    cp "$S/tok.json" .
    cp "$S/stories.jsonl" raw.jsonl
    dt-tokenize -q -t tok.json raw.jsonl -o moved/input-2-2/m/x.dts
    dt-train -q -j 1 --set training.max_steps=2 --set training.warmup_steps=0 --set training.batch_size=2 \
        --init-from "$T/m" -t "$T/m/tokenizer.json" -o run moved/input-2-2/m/x.dts
    dt-verify replay -o again run
    [ ! -e m/x.dts ]
}

@test "replay of stages of data reads those that were rebuilt" {
    dt-synth -n 100 -o stories.jsonl
    dt-vocab -q --size 300 -o tok.json stories.jsonl
    dt-tokenize -q -t tok.json stories.jsonl | dt-shard --split val=0.1 -o one
    dt-tokenize -q -t tok.json stories.jsonl | dt-shard --split val=0.2 -o two
    dt-train -q -j 1 "${tiny[@]}" --set data.stages="$T/one:512,two" -t tok.json -o run
    mv one elsewhere
    dt-verify replay -o again run >report
    grep 'stage [0-9]*, dt-shard: .*/one is the recorded one' report
}

@test "replay reads the data of data.validation" {
    dt-synth -n 100 -o stories.jsonl
    dt-vocab -q --size 300 -o tok.json stories.jsonl
    for i in 1:data 2:web 3:news; do
        dt-tokenize -q -t tok.json stories.jsonl | dt-shard --split val=0.${i%:*} -o ${i#*:}
    done
    dt-train -q -j 1 "${tiny[@]}" --set training.eval_interval=4 -t tok.json -o run \
        --set data.validation="web=web,press=$T/news" data
    mv news elsewhere
    dt-verify replay -o again run >report
    grep 'stage [0-9]*, dt-shard: web is the recorded one' report
    grep 'stage [0-9]*, dt-shard: .*/news is the recorded one' report
}

@test "replay has the chat template beside a tokenizer, wherever that is" {
    dt-synth -n 100 -o stories.jsonl
    mkdir tok
    dt-vocab -q --size 300 -o tok/tokenizer.json stories.jsonl
    echo '{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}' >tok/chat_template.jinja
    jq -c '{messages: [{role: "assistant", content: .text}]}' stories.jsonl >chats.jsonl
    for path in tok "$T/tok"; do
        for from in dt raw; do
            rm -rf data run again
            dt-tokenize -q --chat -t "$path/tokenizer.json" chats.jsonl | dt-shard -o data
            dt-train -q -j 1 "${tiny[@]}" -t "$path/tokenizer.json" -o run data
            dt-verify replay -o again run >report
            grep 'chat_template.jinja: is ' report
            [ $from = raw ] || mv tok/tokenizer.json.lineage.json .
        done
        mv tokenizer.json.lineage.json tok
    done
}

@test "replay refuses an output with two names, as of equal commands" {
    dt-synth -n 5 -o a.jsonl
    dt-synth -n 5 -o b.jsonl
    dt-clean -q a.jsonl b.jsonl -o both.jsonl
    fails dt-verify replay -o again both.jsonl
    [[ "$output" == *"dt-synth, was read as 'a.jsonl' and as 'b.jsonl': equal commands wrote both, or "* ]]
}

@test "replay of an adapter, whose model is then elsewhere" {
    cp -a "$S/stories.jsonl" "$S/demo.yaml" "$S/stats.json" .
    dt-vocab -q --size 300 -o tok.json stories.jsonl
    dt-tokenize -q -t tok.json stories.jsonl | dt-shard -o data
    dt-train -q -j 1 "${tiny[@]}" -t tok.json -o base data
    dt-train -q -j 1 "${tiny[@]:8}" --set lora.rank=2 --init-from base/latest -t tok.json -o adapter data
    dt-verify replay -o again adapter >report
    grep 'adapter_config.json: is .*adapter_config.json, but for .base_model_name_or_path' report
    dt-train -q -j 1 "${tiny[@]:8}" --init-from adapter/latest -t tok.json -o second data
    dt-verify replay -o second-again second >report
    grep 'stage 5, dt-train: adapter is the recorded one' report
    dt-export -m adapter/latest --unmerged -o apart 2>/dev/null
    dt-export -m base/latest --adapter apart -o merged 2>/dev/null
    dt-verify replay -o merged-again merged >report
    grep 'dt-export: apart is the recorded one' report
    sed -i 's/"lora_alpha": 16/"lora_alpha": 17/' adapter/latest/adapter_config.json
    fails dt-verify replay -o again adapter
    [[ "$output" == *"adapter_config.json: differs from "* ]]
}

@test "replay of an export, whose card has a hash of times, and of what read it" {
    dt-synth -n 100 -o stories.jsonl
    dt-vocab -q --size 300 -o tok.json stories.jsonl
    dt-tokenize -q -t tok.json stories.jsonl | dt-shard -o data
    dt-train -q -j 1 "${tiny[@]}" -t tok.json -o run data
    dt-export -m run/latest -o model 2>/dev/null
    dt-verify replay -o again model >report
    grep 'again/model/model.safetensors: is ' report
    refute cmp -s model/README.md again/model/README.md
    dt-train -q -j 1 "${tiny[@]}" --init-from model -t tok.json -o second data
    dt-verify replay -o second-again second >report
    grep 'stage 6, dt-export: model is the recorded one' report
    printf x >>model/config.json
    fails dt-verify replay -o again model
    [[ "$output" == *"config.json: differs from "* ]]
}

@test "document finds the samples and steps that read a document" {
    dt-train -q -j 1 "${tiny[@]}" --set data.shuffle=false -t "$S/tok.json" -o run "$S/data"
    # Without shuffle sample k is in step k / (4 x accumulation) + 1 and has tokens 32k to 32k+32.
    local number id lines
    for number in 0 1 4; do
        dt-cat --text --doc $number -t "$S/tok.json" "$S/data/train-00000.dts" >text
        id=$(jq -r --rawfile t text 'select(.text == ($t | rtrimstr("\n")) or .text == $t) | .id' \
            "$S/clean.jsonl" | head -n 1)
        dt-verify document --documents "$S/clean.jsonl" run "$id" >out
        python3 - out $number run/latest/trainer/state.json <<'END'
import json, re, sys
lines = open(sys.argv[1]).read().splitlines()
number, first, last = map(int, re.search(r"document (\d+), tokens (\d+) to (\d+)", lines[0]).groups())
assert number == int(sys.argv[2])
state = json.load(open(sys.argv[3]))
of = int(lines[1].split()[-1])
samples = [k for k in range(of) if 32 * k <= last and first <= 32 * k + 32]
assert lines[1].split(", ")[0] == "  samples " + " ".join(map(str, samples)), lines
steps = {}
for k in samples:
    if k < state["samples"]:
        steps.setdefault(k * state["step"] // state["samples"] + 1, []).append(k)
want = [f"  step {s}: samples " + ", ".join(map(str, ks)) for s, ks in sorted(steps.items())]
assert lines[2:] == want, (lines[2:], want)
END
    done
}

@test "document finds the steps of a branch, whose steps have other samples" {
    local id
    dt-train -q -j 1 "${tiny[@]}" --set data.shuffle=false --set training.batch_size=2 --set training.max_steps=4 \
        --set training.gradient_accumulation_steps=1 -t "$S/tok.json" -o run "$S/data"
    dt-train -q -j 1 "${tiny[@]}" --set data.shuffle=false --set training.batch_size=4 --set training.max_steps=6 \
        --set training.gradient_accumulation_steps=1 --branch-from run/latest -o branch "$S/data"
    run dt-verify replay branch
    [ "$status" -eq 1 ]
    [[ "$output" == *"cannot be replayed: it is a branch of another run"* ]]
    [ "$(jq .samples branch/latest/trainer/state.json)" -eq 16 ] # 4 steps of 2, and 2 of 4
    for number in {0..9}; do
        dt-cat --text --doc $number -t "$S/tok.json" "$S/data/train-00000.dts" >text
        id=$(jq -r --rawfile t text 'select(.text == ($t | rtrimstr("\n")) or .text == $t) | .id' \
            "$S/clean.jsonl" | head -n 1)
        dt-verify document --documents "$S/clean.jsonl" branch "$id"
    done >out
    grep -qx '  steps 1 to 4 are those of the run that it branched from' out
    refute grep -q '  step [1-4]:' out
    grep '  step 5:' out | grep -o '[0-9]*' | sort -nu | paste -sd ' ' | grep -qx '5 8 9 10 11'
    grep '  step 6:' out | grep -o '[0-9]*' | sort -nu | paste -sd ' ' | grep -qx '6 12 13 14 15'
}

@test "document says that a document has no tokens" {
    cp "$S/tok.json" .
    (echo '{"id":"empty","text":""}' && cat "$S/stories.jsonl") >docs.jsonl
    dt-tokenize -q -t tok.json --frame none docs.jsonl | dt-shard -o data
    dt-train -q -j 1 "${tiny[@]}" -t tok.json -o run data
    run dt-verify document --documents docs.jsonl run empty
    [ "$status" -eq 0 ] && [ "$output" = "data/train-00000.dts: document 0, no tokens" ]
}

@test "document takes a hash, an id, moved shards, and refuses others" {
    cd "$S"
    id=$(sed -n 3p clean.jsonl | jq -r .id)
    dt-verify document --documents clean.jsonl run "$id" >"$T/out"
    hash=$(sed -n 3p clean.jsonl | jq -j .text | xxhsum -H3 2>/dev/null | sed 's/.*= *//; s/ .*//; s/^XXH3_//') || hash=
    if [[ "$hash" =~ ^[0-9a-f]{16}$ ]]; then
        dt-verify document run "$hash" | cmp - "$T/out"
    fi
    run dt-verify document run none
    assert_one_line_error dt-verify
    run dt-verify document run 0000000000000000
    assert_one_line_error dt-verify
    run dt-verify document --documents clean.jsonl run absent-id
    assert_one_line_error dt-verify
    cp -r data "$T/moved"
    dt-verify document --data "$T/moved" --documents clean.jsonl run "$id"
    dt-shard -o "$T/other" --split val=0.2 data/train-00000.dts
    run dt-verify document --data "$T/other" --documents clean.jsonl run "$id"
    assert_one_line_error dt-verify
}

@test "an export has a model card with the lineage, and keeps one that is there" {
    [ "$(sed -n '1p;4,6p' "$S/model/README.md" | tr '\n' ' ')" = "--- tags: - dt --- " ]
    [ "$(grep -c '^    dt-' "$S/model/README.md")" -eq 8 ]
    grep -q "reads \"stories.jsonl\" sha256 $(sha256sum "$S/stories.jsonl" | cut -c 1-64)" "$S/model/README.md"
    mkdir model
    echo mine >model/README.md
    dt-export -m "$S/run/latest" -o model 2>/dev/null
    [ "$(cat model/README.md)" = mine ]
    dt-verify files model
}

@test "huggingface_hub accepts the header of the model card" {
    need_python huggingface_hub
    "$PYTHON" -c 'import sys, huggingface_hub
card = huggingface_hub.ModelCard.load(sys.argv[1])
assert card.data.library_name == "transformers" and card.data.pipeline_tag == "text-generation"' "$S/model/README.md"
}

# A key, and the file of its signers; signs what is given.
sign() {
    command -v ssh-keygen >/dev/null || skip "ssh-keygen is not installed"
    [ -e key ] || ssh-keygen -q -t ed25519 -N '' -f key
    echo "me@example.org $(cat key.pub)" >signers
    ssh-keygen -q -Y sign -n dt -f key "$@" 2>/dev/null
}

@test "a signed manifest is verified: shards, a checkpoint, an export, a file" {
    cp -r "$S/data" "$S/run" "$S/model" "$S"/tok.json* .
    sign data/index.json run/step-*/trainer/manifest.json model/lineage.json tok.json.lineage.json
    dt-verify files --signature signers data run model tok.json
    dt-verify files data run model tok.json
    fails dt-verify files --signature "$S/tok.json" data
    [[ "$output" == "data/index.json: is not signed by a key of "* ]]
}

@test "a manifest without a signature, of another key, or changed after it was signed is refused" {
    cp -r "$S/data" .
    mkdir other && (cd other && sign "$OLDPWD/data/index.json" && mv "$OLDPWD/data/index.json.sig" sig)
    sign data/index.json
    mv other/sig data/index.json.sig
    fails dt-verify files --signature signers data
    [[ "${lines[0]}" == "data/index.json: is not signed by a key of 'signers': "* ]]
    rm data/index.json.sig
    fails dt-verify files --signature signers data
    [[ "${lines[0]}" == "data/index.json: has no signature: 'data/index.json.sig' does not exist"* ]]
    sign data/index.json
    sed -i 's/"list"/"LIST"/' data/index.json
    fails dt-verify files --signature signers data
    [[ "${lines[0]}" == "data/index.json: is not signed by a key of 'signers': "* ]]
    cp "$S/data/index.json" data
    dt-verify files --signature signers data
    printf x >>data/train-00000.dts
    fails dt-verify files --signature signers data
}

@test "minisign's signatures: of this key, of another, of a changed manifest" {
    command -v minisign >/dev/null || skip "minisign is not installed"
    cp -r "$S/data" .
    for name in mine other; do
        minisign -G -f -W -p "$name.pub" -s "$name.key" >/dev/null # without a password
    done
    minisign -S -s mine.key -m data/index.json >/dev/null
    dt-verify files --signature mine.pub data
    fails dt-verify files --signature other.pub data
    [[ "${lines[0]}" == "data/index.json: is not signed by a key of 'other.pub': "* ]]
    fails dt-verify files --signature "$S/tok.json" data
    [[ "${lines[0]}" == "data/index.json: is not signed by a key of "* ]]
    head -c 100 data/index.json.minisig >short && mv data/index.json.minisig whole && mv short data/index.json.minisig
    fails dt-verify files --signature mine.pub data
    mv whole data/index.json.minisig
    sed -i 's/"list"/"LIST"/' data/index.json
    fails dt-verify files --signature mine.pub data
    [[ "${lines[0]}" == "data/index.json: is not signed by a key of 'mine.pub': "* ]]
    cp "$S/data/index.json" data
    dt-verify files --signature mine.pub data
    printf x >>data/train-00000.dts
    fails dt-verify files --signature mine.pub data
    PATH=$(dirname "$(command -v dt-verify)"):/nowhere fails dt-verify files --signature mine.pub data
    [[ "${lines[0]}" == *minisign* ]]
}

@test "a signed manifest that states no SHA-256 covers nothing" {
    cp -r "$S/model" .
    jq '.files |= with_entries(.value |= del(.sha256)) | del(.seal)' model/lineage.json >l && mv l model/lineage.json
    sign model/lineage.json
    fails dt-verify files --signature signers model
    [[ "$output" == *"has no SHA-256 in the signed lineage.json"* ]]
}

@test "a path without a command before it is answered with the command" {
    mkdir run
    run dt-verify run
    [ "$status" -eq 2 ]
    [ "${lines[0]}" = "dt-verify: 'run' is a path, and comes after one of files, replay, steps, document: dt-verify files run" ]
    run dt-verify rum
    [ "${lines[0]}" = "dt-verify: 'rum' is not one of files, replay, steps, document" ]
}
