# SPDX-License-Identifier: MIT
load ../helper

setup() {
    cd "$T"
}

# part STAGE I/N COMMAND...: runs it with the ledger.
part() {
    dt-part run --ledger ledger --stage "$1" --part "$2" -- "${@:3}"
}

record() { # FILE FILTER
    jq -c "$2" "ledger/$1.json"
}

@test "a part that is done has its inputs, outputs, counts and times in its record" {
    dt-synth -n 50 -o docs.jsonl
    dt-part run --ledger deep/ledger --stage clean --part 3/64 --produces c.jsonl --stats s.json -- \
        dt-clean -q -o c.jsonl --stats s.json docs.jsonl
    cd deep
    [ "$(record clean-000003-of-000064 '[.stage,.part,.parts,.state,.attempt,.status]')" = \
        '["clean",3,64,"done",1,0]' ]
    sum() { sha256sum <"../$1" | cut -d ' ' -f 1; }
    [ "$(record clean-000003-of-000064 '.outputs[0]|[.path,.bytes,.sha256]')" = \
        "[\"c.jsonl\",$(stat -c %s ../c.jsonl),\"$(sum c.jsonl)\"]" ]
    [ "$(record clean-000003-of-000064 '.inputs[0]|[.path,.sha256]')" = "[\"docs.jsonl\",\"$(sum docs.jsonl)\"]" ]
    [ "$(record clean-000003-of-000064 .stats.documents)" = '{"in":50,"out":50}' ]
    record clean-000003-of-000064 '[.seconds, .cpu_seconds] | all(. >= 0)' | grep -qx true
    record clean-000003-of-000064 '.host, .started' | grep -q "$(hostname)"
}

@test "of a pipe into shards the record has the inputs of its first command, and the tokens" {
    dt-synth -n 50 -o docs.jsonl
    dt-vocab -q -s 300 -o tok.json docs.jsonl
    dt-part run --ledger ledger --stage shard --part 0/1 --produces data -- \
        bash -c 'dt-clean -q docs.jsonl | dt-tokenize -q -t tok.json | dt-shard -o data'
    [ "$(record shard-000000-of-000001 '[.inputs[].path] | sort')" = '["docs.jsonl","tok.json"]' ]
    [ "$(record shard-000000-of-000001 '.outputs[0].tokens')" = "$(dt-cat --ids data | wc -w)" ]
    dt-part run --ledger ledger --stage tokens --part 0/1 --produces t.dts -- \
        dt-tokenize -q -t tok.json -o t.dts docs.jsonl
    [ "$(record tokens-000000-of-000001 '.outputs[0].documents')" = 50 ]
}

@test "an output that was there before is not taken for one that the command wrote" {
    dt-synth -n 20 -o docs.jsonl
    dt-vocab -q -s 300 -o tok.json docs.jsonl
    dt-tokenize -q -t tok.json docs.jsonl | dt-shard -o data
    echo '{}' >s.json
    for options in "--produces docs.jsonl" "--produces data" "--stats s.json"; do
        run dt-part run --ledger ledger --stage a --part 0/1 $options -- true
        assert_one_line_error dt-part
        [[ "$output" == *": ${options#* }: was there before, and the command did not write it"* ]]
        [ "$(record a-000000-of-000001 .state)" = '"failed"' ]
    done
    for command in 'cp docs.jsonl new && touch -d 2020-01-01 new && mv new docs.jsonl' \
        'echo "{}" >>docs.jsonl' ': >docs.jsonl' ': >docs.jsonl'; do # changed: renamed, written, emptied
        dt-part run --ledger ledger --stage a --part 0/1 --produces docs.jsonl -- sh -c "$command"
    done
}

@test "a record beside an output that the command did not write is not taken for that of the output" {
    dt-synth -n 20 -o docs.jsonl
    dt-clean -q -o c.jsonl docs.jsonl
    dt-part run --ledger ledger --stage a --part 0/1 --produces c.jsonl -- sh -c 'echo other >c.jsonl'
    [ "$(record a-000000-of-000001 '.outputs[0] | [.bytes, .sha256]')" = \
        "[6,\"$(sha256sum <c.jsonl | cut -d ' ' -f 1)\"]" ]
    [ "$(record a-000000-of-000001 .inputs)" = '[]' ]
    dt-part run --ledger ledger --stage b --part 0/1 --produces d.jsonl -- \
        sh -c 'dt-clean -q -o d.jsonl docs.jsonl; echo other >>d.jsonl'
    [ "$(record b-000000-of-000001 '.outputs[0] | [.bytes, .sha256]')" = \
        "[$(stat -c %s d.jsonl),\"$(sha256sum <d.jsonl | cut -d ' ' -f 1)\"]" ]
}

@test "a failed part is recorded with its reason, and done after another attempt" {
    run part work 1/2 sh -c 'echo detail; echo "line 7: bad" >&2; test -e ready'
    [ "$status" -eq 1 ]
    [[ "$output" == *"dt-part: work 1/2: failed with status 1: line 7: bad"* ]]
    [ "$(record work-000001-of-000002 '[.state,.attempt,.error]')" = '["failed",1,"line 7: bad"]' ]
    part work 0/2 true
    run dt-part list ledger
    [ "$status" -eq 1 ]
    [[ "$output" == *"work 1/2: failed on $(hostname), attempt 1, status 1: line 7: bad"* ]]
    [[ "$output" == *"dt-part: 1 part is not done"* ]]
    touch ready
    part work 1/2 sh -c 'test -e ready'
    [ "$(record work-000001-of-000002 '[.state,.attempt,.error]')" = '["done",2,null]' ]
    run dt-part list ledger
    [ "$status" -eq 0 ]
}

@test "a part whose output is missing, or whose program does not exist, has failed" {
    run dt-part run --ledger ledger --stage a --part 0/1 --produces none -- true
    assert_one_line_error dt-part
    [ "$(record a-000000-of-000001 '[.state, .outputs]')" = '["failed",[{"path":"none"}]]' ]
    run part b 0/1 ./no-such-program
    assert_one_line_error dt-part
    [ "$(record b-000000-of-000001 .state)" = '"failed"' ]
    run dt-part run --ledger ledger --stage c --part 0/1 --stats none -- true
    assert_one_line_error dt-part
    [ "$(record c-000000-of-000001 .state)" = '"failed"' ]
}

@test "a signal ends the command and is a failure; after SIGKILL the part has started" {
    dt-part run --ledger ledger --stage work --part 0/2 -- sh -c 'echo $$ >child; exec sleep 1000' 3>&- &
    pid=$!
    await $pid test -s child
    child=$(<child)
    kill -TERM $pid
    wait $pid || true
    [ "$(record work-000000-of-000002 '[.state,.error]')" = '["failed","stopped by signal 15"]' ]
    refute kill -0 "$child"
    rm child
    dt-part run --ledger ledger --stage work --part 1/2 -- \
        bash -c 'trap "" TERM; sleep 1000 & echo $! >other; echo $$ >child; wait' 3>&- &
    pid=$!
    await $pid test -s child
    kill -KILL $pid
    wait $pid || true
    gone() { refute kill -0 "$(<child)" 2>/dev/null && refute kill -0 "$(<other)" 2>/dev/null; }
    for ((i = 0; i < 1200; i++)); do gone >/dev/null && break; sleep 0.05; done
    gone # the command, and what it started, end with dt-part
    run dt-part list ledger
    [[ "$output" == *"work 1/2: started on $(hostname), attempt 1, at "*": is running or was killed"* ]]
}

@test "a part is run once at a time, and the second run names the first" {
    dt-part run --ledger ledger --stage work --part 0/2 -- sh -c 'echo >ready; exec sleep 1000' 3>&- &
    pid=$!
    await $pid test -e ready
    run part work 0/2 true
    assert_one_line_error dt-part
    [[ "$output" == "dt-part: work 0/2: is being run by process $pid on $(hostname) since "*"; wait for its end, or end it" ]]
    [ "$(record work-000000-of-000002 '[.state,.attempt]')" = '["started",1]' ]
    part work 1/2 true
    kill -KILL $pid
    wait $pid || true
    for ((i = 0; i < 1200; i++)); do part work 0/2 true 2>/dev/null && break; sleep 0.05; done
    [ "$(record work-000000-of-000002 '[.state,.attempt]')" = '["done",2]' ]
    [ "$(ls ledger)" = "$(printf 'work-000000-of-000002.json\nwork-000001-of-000002.json')" ] # no lock is left
}

@test "of a plan with another number of parts, list names the records, and sums what was asked for" {
    for spec in 0/1 0/2 1/2; do part work $spec true; done
    part other 0/1 true
    dt-part list ledger work/2 other >out
    [ "$(awk '$2 ~ /^[0-9]+$/ { print $1, $2, $3 }' out | paste -sd ';')" = "work 2 2;other 1 1" ]
    grep -qx 'work/1: another plan, of 1 part, has records too; remove work-\*-of-000001.json if it is of the past' out
    [ "$(dt-part list --json ledger | jq -c '[.[] | [.stage, .parts, .other_plans]]')" = \
        '[["other",1,null],["work",1,[2]],["work",2,[1]]]' ]
    run dt-part list ledger work/3
    [ "$status" -eq 1 ]
    [[ "$output" == *"work: no part has a record"*"work/2: another plan, of 2 parts, has records too"* ]]
    for plan in work/ work/0 work/x work/2x /2; do
        run dt-part list ledger $plan
        [ "$status" -eq 2 ]
    done
}

@test "several files of statistics are kept and summed one by one, and lines that were skipped are told" {
    for i in 0 1; do
        dt-part run --ledger ledger --stage clean --part $i/2 --stats a --stats b -- sh -c \
            "echo '{\"lines_skipped\":2}' >a; echo '{\"lines_skipped\":3,\"documents\":{\"out\":7}}' >b"
    done
    dt-part list ledger >out
    grep -qx 'clean: 10 lines or records were skipped or moved to quarantine' out
    [ "$(awk '$1 == "clean" { print $8; exit }' out)" = 14 ]
    [ "$(dt-part list --json ledger | jq -c '.[0].stats')" = \
        '[{"lines_skipped":4},{"lines_skipped":6,"documents":{"out":14}}]' ]
}

@test "statistics of different numbers of files are not summed, nor those of a part taken for the sum" {
    for i in 0 1 2; do
        echo '{"documents":{"in":5,"out":5}}' >s
        options=(--stats s)
        [ $i -ne 1 ] || options+=(--stats t)
        dt-part run --ledger ledger --stage a --part $i/3 "${options[@]}" -- sh -c 'cp s u; cp s t; mv u s'
    done
    dt-part list --json ledger | jq -e '.[0] | .done == 3 and .stats == null'
}

@test "list names missing parts and stages, and sums over what is done" {
    for i in 0 2 3 7; do
        echo "{\"documents\":{\"in\":$i},\"rules\":[{\"rule\":\"x\",\"dropped\":1}],\"rate\":1.$i}" >s$i.json
        dt-part run --ledger ledger --stage clean --part $i/9 --stats s$i.json -- touch s$i.json
    done
    run dt-part list ledger clean dedup
    [ "$status" -eq 1 ]
    [[ "$output" == *"clean: missing 1 4-6 8 of 0-8"* ]]
    [[ "$output" == *"dedup: no part has a record"* ]]
    [[ "$output" == *"dt-part: 6 parts are not done"* ]]
    dt-part list --json ledger >stages.json 2>/dev/null || true
    [ "$(jq -c '.[0] | [.done, .missing, .stats]' stages.json)" = \
        '[4,[1,4,5,6,8],{"documents":{"in":12},"rules":[{"rule":"x","dropped":4}]}]' ]
    run dt-part list "$T"
    assert_one_line_error dt-part
    [[ "$output" == *"is not a ledger: it has no record of a part" ]]
}

@test "the name of a stage may be like the numbers of its parts" {
    part best-of-n 0/2 true
    part 3-of-4 1/2 true
    part 000003-of-000004 0/1 true
    refute dt-part list ledger >table
    [ "$(awk 'NR < 5 { print $1, $2, $3 }' table)" = "$(printf 'stage parts done\n000003-of-000004 1 1\n3-of-4 2 1\nbest-of-n 2 1')" ]
    run dt-part list ledger best-of-n/2
    [[ "$output" == *"best-of-n: missing 1 of 0-1"* ]]
}

@test "wrong parts, stages and files are refused" {
    for spec in 1 1/ /2 2/2 -1/2 1/0 1/2x 1/1000000 x/2 " 1/2"; do
        run dt-part run --ledger ledger --stage a --part "$spec" -- true
        [ "$status" -eq 2 ] || { echo "$spec"; return 1; }
    done
    for stage in '' a/b ../a 'a b' -a; do
        run dt-part run --ledger ledger --stage="$stage" --part 0/1 -- true
        [ "$status" -eq 2 ]
    done
    [ ! -e ledger ]
    part a 0/1 true
    sed -i 's/"done"/"gone"/' ledger/a-000000-of-000001.json
    run dt-part list ledger
    assert_one_line_error dt-part
    echo '{' >ledger/a-000000-of-000001.json
    run dt-part list ledger
    assert_one_line_error dt-part
}

@test "a record whose outputs are not a list is refused" {
    mkdir odd
    echo '{"state":"done","outputs":{"a":1}}' >odd/a-000000-of-000001.json
    run dt-part list odd
    assert_one_line_error dt-part
}
