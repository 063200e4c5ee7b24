# SPDX-License-Identifier: MIT
# pipelines/corpus.mk: the same shards from any number of tasks, however often they stop.
load ../helper

setup() {
    cd "$T"
    for i in 0 1; do dt-synth -n 40 --seed $i -o f$i.jsonl; done
    head -n 20 f0.jsonl | gzip >again.jsonl.gz # duplicates
    corpus="$T/f0.jsonl $T/f1.jsonl $T/again.jsonl.gz"
}

# corpus OUT [GOAL|VARIABLE=VALUE ...]
corpus() {
    make -C "$ROOT" -s --no-print-directory -f pipelines/corpus.mk B="${DT_BUILD:-build}" OUT="$T/$1" \
        INPUTS="$corpus" CHUNKS=3 VOCAB_SIZE=300 SHARD_FLAGS='--split val=0.2' "${@:2}"
}

# The chunks' files and the contents of the shards, whose headers have the commands with their paths.
hashes() {
    (cd "$1" && sha256sum tokenizer.json clean/*.jsonl sign/*.sig &&
        jq -c '.splits[].shards[] | [.hash, .tokens, .documents]' data/index.json)
}

@test "one machine: raw files become shards, with a table of the stages, and nothing runs twice" {
    corpus one -j 2 >log
    [ "$(awk '{ print $1, $2, $3 }' log | tail -n +2 | paste -sd ';')" = \
        "clean 3 3;sign 3 3;match 1 1;count 3 3;vocab 1 1;shard 3 3;join 1 1" ]
    dt-verify files one/data
    [ "$(dt-cat --ids one/data | wc -l)" -eq 80 ] # 20 of 100 were duplicates
    run corpus one -n
    [ "$(grep -c 'dt-part run' <<<"$output")" -eq 0 ]
    run corpus one -n SHARD_FLAGS='--split val=0.3'
    [ "$(grep -c 'stage shard' <<<"$output")" -eq 3 ]
    [ "$(grep -c 'stage clean' <<<"$output")" -eq 0 ]
}

@test "flags of the tokenizer are given to the steps that they are for" {
    corpus flags "$T/flags/tokenizer.json" VOCAB_FLAGS="--min-frequency=3 --model wordpiece --special '<a b>' --alphabet 30 --special='<c>'"
    dt-vocab -q --model wordpiece -s 300 --min-frequency 3 --special '<a b>' --alphabet 30 --special '<c>' -o same.json \
        flags/clean/{0..2}.jsonl
    cmp same.json flags/tokenizer.json
}

# stages OUT [VARIABLE=VALUE ...]: how many parts of each stage the same command makes again.
stages() {
    corpus "$1" -n "${@:2}" | sed -nE 's/.*--stage ([a-z]+) .*/\1/p' | sort | uniq -c | awk '{ print $2 $1 }' |
        paste -sd ' '
}

@test "an input that is added, removed or replaced makes all again" {
    all="clean3 count3 join1 match1 shard3 sign3 vocab1"
    mkdir in
    cp -p f0.jsonl f1.jsonl in
    corpus="$T/in/*.jsonl"
    corpus one >/dev/null
    [ "$(stages one)" = "" ]
    touch -d 2020-01-01 f0.jsonl
    cp -p f0.jsonl in/f2.jsonl
    [ "$(stages one)" = "$all" ]
    rm in/f2.jsonl
    [ "$(stages one)" = "" ]
    mv in/f0.jsonl kept
    [ "$(stages one)" = "$all" ]
    tr a-z A-Z <kept >in/f0.jsonl # of the same size, and older than what was made of the other
    touch -d 2020-01-01 in/f0.jsonl
    [ "$(stages one)" = "$all" ]
}

@test "shards are made again with other settings of duplicates" {
    corpus one >/dev/null
    [ "$(stages one DEDUP=none)" = "join1 shard3" ]
    corpus one DEDUP=none >/dev/null
    [ "$(dt-cat --ids one/data | wc -l)" -eq 100 ]
    [ "$(stages one DEDUP=none)" = "" ]
    corpus one >/dev/null
    [ "$(dt-cat --ids one/data | wc -l)" -eq 80 ]
}

@test "lists of duplicates that are missing, or of an earlier input, are made again" {
    mkdir in
    for i in 0 1 2; do cp f0.jsonl in/$i.jsonl; done # a chunk each
    corpus="$T/in/*.jsonl"
    corpus one SHARD_FLAGS= >/dev/null
    cp one/drop/2.drop expected
    [ "$(tail -n 1 expected)" = 'end 40 of 40' ]
    rm one/drop/2.drop
    [ "$(stages one SHARD_FLAGS=)" = "join1 match1 shard3" ]
    corpus one SHARD_FLAGS= >/dev/null
    cmp one/drop/2.drop expected
    [ "$(dt-cat --ids one/data | wc -l)" -eq 40 ]
    printf '%*s\n' $(($(stat -c %s f0.jsonl) - 1)) '' >in/2.jsonl # no documents
    corpus one SHARD_FLAGS= >/dev/null
    [ ! -s one/clean/2.jsonl ]
    [ "$(<one/drop/2.drop)" = 'end 0 of 0' ]
    [ "$(tail -n 1 one/drop/1.drop)" = 'end 40 of 40' ]
    [ "$(dt-cat --ids one/data | wc -l)" -eq 40 ]
}

# The SHA-256 of each file of out; of the statistics without times.
sums() {
    (
        cd out
        find . -type f ! -path './ledger/*' ! -name '?.json' ! -name lock -exec sha256sum {} +
        for f in clean/?.json; do jq -c 'del(.seconds, .megabytes_per_second)' $f | sha256sum; done
    ) | sort -k 2
}

@test "any number of tasks makes the same bytes" {
    corpus out >/dev/null
    sums >expected
    [ "$(wc -l <expected)" -gt 40 ]
    for tasks in 2 4; do # tests/full/corpus.bats does more, on schedulers
        rm -r out
        for phase in first middle second; do
            for ((i = tasks - 1; i >= 0; i--)); do corpus out $phase TASK=$i/$tasks; done
        done
        corpus out >/dev/null
        sums | diff expected -
    done
}

@test "a part that fails is named, the others are made, and the same command completes it" {
    sed -i '5s/^/x/' f1.jsonl
    run corpus out -k ON_ERROR=stop
    [ "$status" -eq 2 ]
    [[ "$output" == *"dt-part: clean 1/3: failed with status 1: dt-clean: $T/f1.jsonl:5: "* ]]
    [ "$(ls out/clean/*.jsonl)" = "$(printf 'out/clean/0.jsonl\nout/clean/2.jsonl')" ]
    run corpus out ledger ON_ERROR=stop
    [[ "$output" == *"clean 1/3: failed on "*"f1.jsonl:5"* ]]
    sed -i '5s/^x//' f1.jsonl
    corpus out ON_ERROR=stop >/dev/null
    corpus other >/dev/null
    cmp <(dt-cat --ids out/data) <(dt-cat --ids other/data)
}

@test "bad lines of every chunk are in quarantine, with file and line" {
    sed -i '5s/^/x/; 39s/^/y/' f1.jsonl
    corpus out >log
    grep -q '^clean: 2 lines or records were skipped or moved to quarantine$' log
    [ "$(grep -h '^{"file"' out/bad/* | jq -r '"\(.file):\(.line)"' | sort | paste -sd ' ')" = \
        "$T/f1.jsonl:39 $T/f1.jsonl:5" ]
}

@test "stopped at any moment and started again, the shards are the same" {
    corpus one >/dev/null
    hashes one >expected
    for delay in 0.1 0.3 0.5 0.7 0.9; do
        (trap - INT TERM; exec setsid make -C "$ROOT" -s -f pipelines/corpus.mk B="${DT_BUILD:-build}" \
            OUT="$T/out" INPUTS="$corpus" CHUNKS=3 VOCAB_SIZE=300 SHARD_FLAGS='--split val=0.2') \
            >/dev/null 2>&1 3>&- &
        pid=$!
        sleep $delay
        kill -KILL -- -$pid 2>/dev/null || true
        wait $pid 2>/dev/null || true
    done
    corpus out >/dev/null
    hashes out | cmp - expected
    sed -i 's/"state": "done"/"state": "started"/' out/ledger/{clean-000001,join}* # killed at the very end
    run corpus out
    [ "$status" -eq 0 ]
    hashes out | cmp - expected
    refute ls -d out/*/*/.incomplete out/data/.incomplete
}

@test "parts that are repeated leave the same directories and the same index" {
    corpus out >/dev/null
    sums >expected
    for parts in 'clean-000001 shard-000002 join' 'shard-000000 join'; do
        for part in $parts; do sed -i 's/"state": "done"/"state": "started"/' out/ledger/$part*; done
        corpus out >/dev/null
        sums | diff expected -
    done
}

@test "a second make in a directory is refused, and names the first; tasks share it" {
    mkdir out
    exec 7>>out/lock
    echo "make, process 12 on there" >out/lock
    flock -x 7
    for goal in summary "first TASK=0/2"; do
        run corpus out $goal WAIT=0
        [ "$status" -eq 2 ]
        [[ "$output" == *"$T/out is in use, by make, process 12 on there: wait for its end, or end it"* ]]
    done
    [ "$(ls out)" = lock ]
    run corpus out ledger
    [[ "$output" != *"is in use"* ]]
    flock -s 7 # as a task that runs
    corpus out first TASK=0/2 WAIT=0 >/dev/null
    run corpus out summary WAIT=0
    [[ "$output" == *"is in use"* ]]
    run corpus out first TASK=1/2 WAIT=0 VOCAB_SIZE=301
    [ "$status" -eq 2 ]
    [[ "$output" == *"$T/out/settings/vocab has other settings"* ]]
    exec 7>&-
    corpus out settings VOCAB_SIZE=301 >/dev/null
    corpus out first TASK=1/2 VOCAB_SIZE=301 >/dev/null
    [ "$(ls out/clean/*.jsonl | wc -l)" -eq 3 ]
}

@test "other CHUNKS make all again, and the table says that the ledger has parts of the other plan" {
    corpus out >/dev/null
    corpus out CHUNKS=2 >log
    grep -q '^clean/3: another plan, of 3 parts, has records too; remove clean-\*-of-000003.json if' log
    [ "$(awk '$1 == "clean" { print $2, $3 }' log)" = "2 2" ]
    [ "$(jq '[.splits[].documents] | add' out/data/index.json)" -eq 80 ]
}

@test "slurm submits arrays that depend on each other, and they make the corpus" {
    mkdir fake
    cat >fake/sbatch <<'END'
#!/bin/bash
# Runs the job at once, an array one task after the other; prints a number.
echo "$*" >>"$FAKE/calls"
for ((i = 1; i <= $#; i++)); do
    case ${!i} in
    --array=*) tasks=$(seq "$(sed 's/--array=//; s/-.*//' <<<"${!i}")" "${!i##*-}") ;;
    --wrap) j=$((i + 1)) && wrap=${!j} ;;
    esac
done
for SLURM_ARRAY_TASK_ID in ${tasks:-0}; do
    export SLURM_ARRAY_TASK_ID
    bash -c "$wrap" >>"$FAKE/log" 2>&1 || exit 1
done
echo $((100 + $(wc -l <"$FAKE/calls")))
END
    chmod +x fake/sbatch
    FAKE=$T/fake corpus out slurm SBATCH="$T/fake/sbatch" TASKS=2 CLEAN_FLAGS="--mask email --min-chars 2" >log || {
        cat fake/log
        return 1
    }
    grep -q 'submitted jobs 101, 102, 103 and 104' log
    [ "$(grep -oE -- '--(dependency|array)=[^ ]+' fake/calls | paste -sd ' ')" = \
        "--array=0-1 --dependency=afterok:101 --dependency=afterok:102 --array=0-1 --dependency=afterok:103" ]
    corpus one CLEAN_FLAGS="--mask email --min-chars 2" >/dev/null
    cmp <(hashes one) <(hashes out)
}

@test "kubernetes writes indexed Jobs, whose commands make the corpus" {
    need_python yaml
    corpus out kubernetes TASKS=2 IMAGE="reg/dt:1" CLAIM=disk MOUNT="$T" CLEAN_FLAGS="--mask 'email'" >log
    grep -q "script run starts the Jobs" log
    for job in 1-first 2-middle 3-second 4-summary; do
        "$PYTHON" - out/kubernetes/$job.yaml >command <<'END'
import sys, yaml
job = yaml.safe_load(open(sys.argv[1]))
spec = job["spec"]
assert (job["apiVersion"], job["kind"], spec["completionMode"]) == ("batch/v1", "Job", "Indexed")
print(spec["completions"])
print(spec["template"]["spec"]["containers"][0]["command"][2])
END
        for ((i = 0; i < $(head -n 1 command); i++)); do
            JOB_COMPLETION_INDEX=$i bash -c "$(tail -n +2 command)" >/dev/null
        done
    done
    corpus one CLEAN_FLAGS="--mask email" >/dev/null
    cmp <(hashes one) <(hashes out)
}

@test "the script of kubernetes starts a Job after the one before, and ends when one fails" {
    corpus out kubernetes TASKS=2 IMAGE=dt CLAIM=disk NAME=web >/dev/null
    mkdir fake
    cat >fake/kubectl <<'END'
#!/bin/bash
# Of each Job the state is first empty; then its conditions, of which that of the last is $LAST.
echo "$1 ${*:2:2}" >>calls
[ "$1" = get ] || exit 0
[ "$(grep -c "get $2 $3" calls)" -gt 1 ] || exit 0
case $3 in *second) echo "$SECOND" ;; *) echo SuccessCriteriaMet Complete ;; esac
END
    printf '#!/bin/bash\n' >fake/sleep
    chmod +x fake/*
    PATH=$T/fake:$PATH SECOND=Complete out/kubernetes/run
    [ "$(sed 's/-f //' out/kubernetes/calls | uniq | paste -sd ' ')" = "apply 1-first.yaml get job web-first \
apply 2-middle.yaml get job web-middle apply 3-second.yaml get job web-second apply 4-summary.yaml get job web-summary" ]
    rm out/kubernetes/calls
    PATH=$T/fake:$PATH SECOND="FailureTarget Failed" run timeout 300 out/kubernetes/run
    [ "$status" -eq 1 ]
    [ "$output" = "web-second failed: kubectl logs job/web-second; to try again: kubectl delete job web-second" ]
    refute grep summary out/kubernetes/calls
}

@test "tasks of Ray and Dask need a package, settings and a number of tasks" {
    tasks=$ROOT/share/tasks/corpus-tasks.py
    run python3 -S -I "$tasks" dask --tasks 2 OUT=out
    [ "$status" -eq 1 ]
    [ "$output" = "No module named 'dask': pip install dask[distributed]" ]
    run python3 -S -I "$tasks" ray --tasks 2 OUT=out
    [ "$output" = "No module named 'ray': pip install ray" ]
    for wrong in "ray --tasks 0 OUT=out" "ray OUT=out" "slurm --tasks 2" "ray --tasks 2 summary"; do
        run python3 -S -I "$tasks" $wrong
        [ "$status" -eq 2 ] || { echo "$wrong: $output"; return 1; }
    done
}

@test "no documents at all, and settings that are wrong, are errors that say why" {
    run corpus out DEDUP=far
    [ "$status" -eq 2 ]
    [[ "$output" == *"DEDUP='far': near or none"* ]]
    for task in 1 x/2 2/2 -1/2 1/0 1/2/3 01/2; do
        run corpus out first TASK=$task
        [ "$status" -eq 2 ]
        [[ "$output" == *"TASK='$task': I/N, task I of N, counted from 0"* ]]
    done
    run corpus out CHUNKS=0 JOBS=x
    [ "$status" -eq 2 ]
    [[ "$output" == *"CHUNKS='0': a number from 1 to 999999 JOBS='x': a number from 1 to 999999"* ]]
    run make -C "$ROOT" -s -f pipelines/corpus.mk OUT="$T/out"
    [ "$status" -eq 2 ]
    [[ "$output" == *"set INPUTS to the files to read"* ]]
    mkdir "a b" && cp f0.jsonl "a b"
    for corpus in "$T/none.jsonl" "$T/a?b/f0.jsonl"; do
        run corpus out
        [ "$status" -eq 2 ]
        [[ "$output" == *"INPUTS: $T/"*" does not exist; make takes no blanks in a name"* ]]
    done
    run corpus "a b"
    [[ "$output" == *"OUT='$T/a b': make takes no blanks in a name"* ]]
    run corpus f1.jsonl/out
    [ "$status" -eq 2 ]
    [[ "$output" == *"mkdir: "*"f1.jsonl"*"Not a directory"* && "$output" != *"dt-part"* ]]
    : >f0.jsonl
    corpus=$T/f0.jsonl
    run corpus out
    [ "$status" -eq 2 ]
    [ ! -e out/data/index.json ]
}

@test "files are WARC files by the ending of their names; with others they are refused" {
    mkdir of.warc.d
    mv f0.jsonl of.warc.d
    : >b.warc.gz
    corpus="$T/of.warc.d/f0.jsonl $T/f1.jsonl"
    corpus out -n >log
    refute grep dt-extract log
    for inputs in "$T/f1.jsonl $T/b.warc.gz" "$T/f1.jsonl $T/*.gz"; do
        corpus=$inputs
        run corpus out -n
        [ "$status" -eq 2 ]
        [[ "$output" == *"INPUTS has WARC files, as $T/b.warc.gz, and others, as $T/"*"set EXTRACT to a command"* ]]
        [ "$(wc -l <<<"$output")" -eq 1 ]
    done
    corpus out -n EXTRACT='read both' >log
    grep -q 'read both --part 0/3' log
    corpus="$T/b.warc.*"
    corpus out -n >log
    grep -q 'dt-extract -q --stats [^ ]*/clean/0.pages.json --part 0/3' log
}

@test "pages of WARC files become shards, and parts in which no file begins are empty" {
    need_plugin html libxml2
    for i in 1 2 3 4 5 6 7 8 9; do
        text="Page $i says that a long sentence of text is here for the extraction of its main content, and goes on."
        body=$(printf 'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html><body><p>%s</p></body></html>' "$text")
        printf 'WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:%d>\r\n' $i
        printf 'WARC-Target-URI: http://example.com/%d\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n' $i
        printf 'Content-Type: application/http; msgtype=response\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n' \
            ${#body} "$body"
    done | gzip >a.warc.gz
    corpus="$T/a.warc.gz"
    corpus out DEDUP=none SHARD_FLAGS= >/dev/null
    [ "$(jq .splits.train.documents out/data/index.json)" -eq 9 ]
    [ ! -s out/clean/2.jsonl ]
    [ "$(jq .splits.train.documents out/shards/2/index.json)" -eq 0 ]
    printf 'WARC/1.0\r\nContent-Length: x\r\n\r\n' | gzip >>a.warc.gz
    corpus out DEDUP=none SHARD_FLAGS= >log
    grep -q '^clean: 1 lines or records were skipped or moved to quarantine$' log
    [ "$(jq -s '[.[].stats[1].lines_skipped] | add' out/ledger/clean-*.json)" -eq 1 ]
}
