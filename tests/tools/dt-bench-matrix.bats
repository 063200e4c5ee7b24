# SPDX-License-Identifier: MIT
# dt-bench matrix, report and compare.
load ../helper

setup() {
    cd "$T"
}

@test "a failed command has failed, and has used its time, whatever the parent does with SIGCHLD" {
    cd "$T"
    run bash -c 'trap "" CHLD; exec dt-bench matrix -q -o rows -r 1 -w 0 -a x=0,3 -- \
        sh -c "i=0; while [ \$i -lt 20000 ]; do i=\$((i + 1)); done; exit \$1" sh {x}'
    [ "$status" -eq 1 ]
    [[ "$output" == *"x=3: exit status 3"* ]]
    jq -es '.[2:] | map(select(.status == 0)) | length == 1 and .[0].values.cpu_s > 0' rows
}

@test "a matrix runs all combinations, and prints medians in every format" {
    run dt-bench matrix -q -o rows -r 3 -w 0 -a a=1,2 -a b=x,y -v n -- sh -c 'echo "{\"n\":$1$3}"' sh '{a}' '{b}' '{round}'
    [ "$status" -eq 0 ]
    [[ "${lines[0]}" =~ ^\ *a\ +b\ +runs\ +n\ +spread$ ]]
    [[ "${lines[4]}" =~ ^\ *2\ +y\ +3\ +22\ +2\.3%$ ]]
    [[ "${lines[5]}" == "on "*" processors, "*" GiB;" ]]
    [ "${lines[6]}" = "medians of 3 rounds" ]
    [ "$(grep -c '"cell"' rows)" -eq 12 ]
    dt-bench report rows --format markdown | grep -qE '^\| *2 \| y *\| *3 \| *22 \| *2.3% \|$'
    dt-bench report rows --format tsv >tsv
    [ "$(sed -n 5p tsv)" = "$(printf '2\ty\tn\t3\t22\t21.5\t22.5\t21\t23\t\t\t\t')" ]
    dt-bench report rows --json >json
    [ "$(jq -c '.cells[3].values.n | [.count, .median, .low]' json)" = '[3,22,21.5]' ]
    [ "$(jq -r '.machines[0].processors' json)" -ge 1 ]
    [ "$(jq -r '.machines[0].program' json)" = "$(command -v sh)" ]
    [ "$(jq -r '.cells[0].values.wall_s.median > 0' json)" = true ]
}

@test "a design can be a YAML file, which options replace" {
    cat >design.yaml <<'END'
command: [sh, -c, 'echo "{\"loss\":$0}"', "{rate}"]
axes:
  rate: [1e-3, 2e-3]
repeats: 9
warmup: 0
values: [loss]
notes: {commit: abc}
END
    run dt-bench matrix -q -d design.yaml -r 2 -o rows
    [ "$status" -eq 0 ]
    [[ "${lines[1]}" =~ ^\ *1e-3\ +2\ +0\.001 ]]
    grep -q '"notes":{"commit":"abc"}' rows
    printf 'command: x\ncommand: y\n' >design.yaml
    run dt-bench matrix -q -d design.yaml -o other
    assert_one_line_error dt-bench
    [[ "$output" == *"design.yaml:2:1: this key was given before" ]]
    printf 'command: [x\n' >design.yaml
    run dt-bench matrix -q -d design.yaml -o other
    assert_one_line_error dt-bench
    printf 'command: x\nrepeat: 2\n' >design.yaml
    run dt-bench matrix -q -d design.yaml -o other
    assert_one_line_error dt-bench
    [[ "$output" == *"did you mean 'repeats'?" ]]
    [ ! -e other ]
}

@test "results are not written over the design or the metrics" {
    echo 'command: "true"' >design.yaml
    cp design.yaml before
    ln -s design.yaml link
    for rows in design.yaml ./design.yaml link; do
        run dt-bench matrix -q -d design.yaml -o $rows
        [ "$status" -eq 2 ]
        [ "${lines[0]}" = "dt-bench: --output: '$rows' is also an input, which would be lost: name another file" ]
        cmp design.yaml before
    done
    echo '{"step":1,"loss":2}' >metrics
    run dt-bench matrix -q --metrics metrics -o metrics true
    [ "$status" -eq 2 ]
    [ "$(cat metrics)" = '{"step":1,"loss":2}' ]
    dt-bench matrix -q -r 1 -w 0 -o rows cat rows >/dev/null
}

@test "a rerun runs what is missing: nothing, more rounds, more values" {
    again() { dt-bench matrix -q -o rows -w 0 "$@" -- sh -c 'echo $0 >>log' '{a}' >/dev/null; }
    again -r 2 -a a=1,2
    [ "$(wc -l <log)" -eq 4 ]
    again -r 2 -a a=1,2
    [ "$(wc -l <log)" -eq 4 ]
    again -r 3 -a a=0,1,2
    [ "$(sort log | uniq -c | tr -s ' \n' ' ')" = ' 3 0 3 1 3 2 ' ]
    printf '{"cell":{"a":"1"},"rou' >>rows # a truncated row of a killed program
    again -r 4 -a a=0,1,2
    [ "$(wc -l <log)" -eq 12 ]
    refute grep -v '}$' rows
    run dt-bench matrix -q -o rows -w 0 -a a=1 -- echo '{a}'
    assert_one_line_error dt-bench
    [[ "$output" == *"rows of another matrix, whose command differs: "* ]]
}

@test "every round runs every cell once, in orders that differ" {
    dt-bench matrix -q -o rows -r 6 -w 0 -a a=1,2,3,4,5 -- true '{a}' >/dev/null
    grep -o '"a":"[0-9]"},"round":[0-9]' rows | tr -dc '0-9\n' >order
    for round in 1 2 3 4 5 6; do
        [ "$(sed -n $((5 * round - 4)),$((5 * round))p order | sort | tr -d '\n')" = "1${round}2${round}3${round}4${round}5${round}" ]
        sed -n $((5 * round - 4)),$((5 * round))p order | cut -c 1 | tr -d '\n'
        echo
    done >rounds
    [ "$(sort -u rounds | wc -l)" -gt 2 ]
}

@test "a failure is reported, recorded in the rows, and retried" {
    run dt-bench matrix -q -o rows -r 2 -a a=1,2 -- sh -c 'test -e ok || test $0 = 1 || { echo bad luck >&2; exit 3; }' '{a}'
    [ "$status" -eq 1 ]
    [[ "$output" == *"dt-bench: a=2: exit status 3: bad luck"* ]]
    [[ "$output" == *"failed: a=2: bad luck"* ]]
    [[ "${lines[-1]}" == "dt-bench: 1 of 2 cells failed: "* ]]
    [ "$(jq -c 'select(.status == 3) | .error' rows)" = '"bad luck"' ]
    touch ok
    run dt-bench matrix -q -o rows -r 2 -a a=1,2 -- sh -c 'test -e ok || test $0 = 1 || { echo bad luck >&2; exit 3; }' '{a}'
    [ "$status" -eq 0 ]
    [[ "$output" != *fail* ]]
    run dt-bench matrix -q -o none -- no-such-program
    assert_one_line_error dt-bench
    [[ "$output" == *"cannot run 'no-such-program': No such file or directory" ]]
}

@test "a warm-up that fails later does not replace a row" {
    run dt-bench matrix -q -o rows -r 1 -w 1 -v n -- sh -c 'if [ -e stop ]; then exit 1; fi; echo "{\"n\":5}"'
    [ "$status" -eq 0 ]
    touch stop
    run dt-bench matrix -q -o rows -r 2 -w 1 -v n -- sh -c 'if [ -e stop ]; then exit 1; fi; echo "{\"n\":5}"'
    [ "$status" -eq 1 ]
    [ "$(dt-bench report rows --json | jq '.cells[0].values.n.count')" -eq 1 ]
    [ "$(grep -c '"round":2,.*"status":1' rows)" -eq 1 ]
}

@test "the last line of a command that failed is text" {
    run dt-bench matrix -q -o rows -r 1 -w 0 -- sh -c 'printf "a\033[2Jb \377 %0250dé\n" 0 >&2; exit 3'
    [ "$status" -eq 1 ]
    iconv -f utf-8 -t utf-8 rows >copy
    [ "$(jq -r 'select(.error).error' rows | cut -c1-17)" = 'a\x1b[2Jb \xff 00' ]
    run dt-bench matrix -q -o rows2 -r 1 -w 0 -- sh -c 'printf "%0254dé\n" 0 >&2; exit 3'
    [ "$(jq -r 'select(.error).error' rows2)" = "$(printf '%0254d' 0)" ]
}

@test "a run with missing or damaged metrics has failed, and the others continue" {
    echo '{"loss":1}' >m1
    echo junk >m2
    run dt-bench matrix -q -o rows -r 2 -w 0 -a a=1,2,3 --metrics 'm{a}' -- true
    [ "$status" -eq 1 ]
    [[ "$output" == *"a=2: exit status 1: m2:1: "* && "$output" == *"a=3: exit status 1: cannot open 'm3'"* ]]
    [[ "${lines[-1]}" == "dt-bench: 2 of 3 cells failed: "* ]]
    [ "$(jq -s '[.[] | select(.values.loss == 1)] | length' rows)" = 2 ]
}

@test "a file without rows, and one that is not a regular file, is left as it is" {
    printf '{"precious":1}' >one
    printf 'line one\nline two' >two
    mkfifo pipe
    cp one one.before
    cp two two.before
    for file in one two pipe; do
        run timeout 900 dt-bench matrix -q -o $file -r 1 -- true
        assert_one_line_error dt-bench
    done
    cmp one one.before
    cmp two two.before
    printf '{"design":{"comm' >torn # killed while it wrote the first line
    dt-bench matrix -q -o torn -r 1 -w 0 -- true >/dev/null
    [ "$(wc -l <torn)" -eq 3 ]
    run dt-bench matrix -o - -r 1 -- true
    [ "$status" -eq 2 ]
}

@test "a command beyond a file size limit is ended by SIGXFSZ, as without dt-bench" {
    run dt-bench matrix -q -r 1 -w 0 -o rows --shell 'ulimit -f 1; exec head -c 9000 /dev/zero >large'
    [ "$status" -eq 1 ]
    grep -q '"status":153' rows
}

@test "a run that takes too long is ended, and all that it started" {
    mkfifo held
    cat held >all & # while a process has it open
    reader=$!
    exec 9>held
    run dt-bench matrix -q -o rows -r 1 -w 0 --limit 0.3 -- sh -c 'sleep 1000 & wait'
    exec 9>&-
    [ "$status" -eq 1 ]
    [[ "$output" == *"exit status 124: exceeded the limit of 0.3 s"* ]]
    SECONDS=0
    wait $reader
    [ "$SECONDS" -lt 500 ]
}

@test "SIGINT ends the current run and dt-bench, and keeps complete rows" {
    env --default-signal=INT dt-bench matrix -q -o rows -r 3 -w 0 -a a=0,1000 -- \
        sh -c 'echo $$ >"pid-$0" && exec sleep "$0"' '{a}' >out 2>&1 &
    await $! test -s pid-1000
    kill -INT $!
    status=0
    wait $! || status=$?
    [ "$status" -eq 130 ]
    refute kill -0 "$(cat pid-1000)"
    refute grep -v '}$' rows
}

@test "seeds differ from round to round and are equal for all cells" {
    dt-bench matrix -q -o rows -r 3 -w 0 --seed 7 -a a=x,y -- sh -c 'echo $0 $1 >>log' '{a}' '{seed}' >/dev/null
    [ "$(sort log | tr '\n' ';')" = 'x 7;x 8;x 9;y 7;y 8;y 9;' ]
}

@test "metrics give their last values, and when a target was met" {
    printf '{"step":%d,"time":%d,"loss":%d}\n' 1 10 9 2 20 5 3 30 4 >m-1.jsonl
    printf '{"step":%d,"time":%d,"loss":%d}\n' 1 10 9 2 20 8 3 30 7 >m-2.jsonl
    dt-bench matrix -q -o rows -r 1 -w 0 -a a=1,2 --metrics 'm-{a}.jsonl' --target loss=5 --json -- true >json
    [ "$(jq -c '[.cells[].values | .loss.median, .reached_loss_step.median, .reached_loss_time.median]' json)" = '[4,2,20,7,null,null]' ]
}

@test "a value that some runs lack is said to be of the others" {
    dt-bench matrix -q -o "$T/rows" -r 3 -w 0 -a n=1,2 -v x -v y -- \
        awk 'BEGIN { print "{\"x\":1" ({n} == 2 && {seed} == 2 ? "" : ",\"y\":2") "}" }' >"$T/table"
    [ "$(grep -c 'others lack it' "$T/table")" -eq 1 ]
    grep -qx 'n=2: y is of 2 of 3 runs: the others lack it' "$T/table"
    dt-bench report --format markdown "$T/rows" | grep -qx 'n=2: y is of 2 of 3 runs: the others lack it'
    dt-bench matrix -q -o "$T/other" -r 3 -w 0 -a n=1,2 -v x -v y -- \
        awk 'BEGIN { print "{\"x\":1,\"y\":" 2 * {n} "}" }' >/dev/null
    dt-bench compare "$T/rows" "$T/other" >"$T/table"
    [ "$(grep -c 'others lack it' "$T/table")" -eq 1 ]
    grep -qx 'n=2: y is of 2 of 3 and 3 of 3 runs: the others lack it' "$T/table"
}

@test "ratios are of pairs of one round, so that drift does not reach them" {
    echo 0 >count
    dt-bench matrix -q -o rows -r 8 -w 0 -a a=10,11 -b a=10 -v n -- \
        sh -c 'echo "{\"n\":$(($0 * (100 + 50 * $1)))}"' '{a}' '{round}' >out
    grep -qE '^ *11 +8 +3575 +[0-9.]+% +1\.100$' out
    dt-bench matrix -q -o same -r 8 -w 0 -a a=1,2 -b a=1 -v n -- \
        sh -c 'echo "{\"n\":$((100 + ($0 * $1 * 7919) % 10))}"' '{a}' '{round}' >out
    grep -qE '[0-9]~$' out
    grep -A 9 '^rounds that would decide' out | grep -qE '^a=[^:]+: n [0-9.]+k?$'
}

@test "too few rounds for significance are reported, with the number needed" {
    dt-bench matrix -q -o few -r 5 -w 0 -a a=10,20 -b a=10 -v n -- \
        sh -c 'echo "{\"n\":$(($0 * 1000 + $1))}"' '{a}' '{round}' >out
    grep -qE '^ *20 .* [0-9.]+\?$' out
    grep -q 'medians of 5 rounds; ratios of pairs, ?: too few rounds to tell from chance (6 needed)$' out
    grep -qx 'a=20: n 6' out
    dt-bench matrix -q -o few -r 6 -w 0 -a a=10,20 -b a=10 -v n -- \
        sh -c 'echo "{\"n\":$(($0 * 1000 + $1))}"' '{a}' '{round}' >out
    grep -qE '^ *20 .* [0-9.]+$' out
    grep -q 'medians of 6 rounds; ratios of pairs, ~: within chance$' out
}

# A program that reports $1 seconds, plus or minus 2% depending on its argument.
make_measured() {
    echo "#include <stdio.h>
        #include <stdlib.h>
        int main(int n, char **word) {
            return printf(\"{\\\"n\\\":%g}\\n\", $1 * (0.98 + atoi(word[n - 1]) * 7919 % 41 / 1e3)) < 0;
        }" >measured.c
    "${CC:-cc}" -o measured measured.c
}

# tests/full/noise.bats measures.
@test "two matrices of one build do not differ, and 5% more work does" {
    make_measured 50
    dt-bench matrix -q -o a -r 15 -w 0 --seed 100 -v n -- ./measured '{seed}' >/dev/null
    dt-bench matrix -q -o b -r 15 -w 0 --seed 200 -v n -- ./measured '{seed}' >/dev/null
    make_measured 52.5
    dt-bench matrix -q -o c -r 15 -w 0 --seed 300 -v n -- ./measured '{seed}' >/dev/null
    refute cmp -s <(jq .values.n a) <(jq .values.n b)
    dt-bench compare a b >same
    grep -q '^0 of 1 values changed beyond noise$' same || { cat same; return 1; }
    grep -q '^both ran the same program file$' same
    dt-bench compare a c >slow
    grep -qE '^n .*\+[2-9]\.[0-9]%$' slow || { cat slow; return 1; }
    [ "$(dt-bench compare a c --json | jq .changed)" -eq 1 ]
    refute grep -q 'same program' slow
}

@test "twenty times the work is found in processor time" {
    for turns in 3e5 6e6; do
        dt-bench matrix -q -o $turns -r 5 -v cpu_s -- awk "BEGIN { for (i = 0; i < $turns; i++); }" >/dev/null
    done
    dt-bench compare 3e5 6e6 --json >json
    [ "$(jq '.changed == 1 and .comparisons[0].ratio > 4' json)" = true ]
}

@test "too few runs give no verdict" {
    for rows in a b; do
        dt-bench matrix -q -o $rows -r 2 -w 0 -v n -- echo "{\"n\":$([ $rows = a ] && echo 1 || echo 2)}" >/dev/null
    done
    # Commands differ, yet cells (there is one) are the same.
    dt-bench compare a b | grep -q 'too few runs to tell'
}

@test "a design made invalid by options is a usage error, an invalid file an error; nothing runs" {
    for wrong in "-a a -- true {a}" "" "-r 0 -- true" "-r x -- true" "-w -1 -- true" "-r 1e9 -- true" \
        "--limit soon -- true" "--seed -1 -- true" "-a a=1,1 -- true {a}" "-a a=1 -- true" "-- true {b}" \
        "-a a=1 -b a=2 -- true {a}" "-b a=2 -- true" "-a seed=1 -- true {seed}" "--note x -- true" \
        "--metrics m --target loss -- true" "--metrics m --target loss=low -- true" \
        "--target loss=2 -- true" "--metrics m{b} -- true" "--json --format tsv -- true"; do
        run dt-bench matrix -q -o rows $wrong
        [ "$status" -eq 2 ] || { echo "$wrong: $status: $output"; return 1; }
        [ "${#lines[@]}" -eq 2 ]
    done
    printf 'command: touch ran {a}\naxes:\n  a: [1, 2]\n' >whole.yaml
    printf 'command: touch ran {b}\naxes:\n  a: [1, 2]\n' >broken.yaml
    run dt-bench matrix -q -o rows -d whole.yaml -b a=3
    [ "$status" -eq 2 ]
    run dt-bench matrix -q -o rows -d broken.yaml -r 2
    assert_one_line_error dt-bench
    [[ "$output" == "dt-bench: broken.yaml: {b} is not an axis"* ]]
    [ ! -e rows ] && [ ! -e ran ]
}

@test "a value that no run has is an error after the first round, which lists the values" {
    again() { run dt-bench matrix -q -o rows -r 3 "$@" -a a=1,2 -- sh -c 'echo $0 >>log; echo "{\"n$0\":1}"' '{a}'; }
    again -v n2 -v nope
    assert_one_line_error dt-bench
    [[ "$output" == "dt-bench: rows: no run has a value 'nope'; the values are "*n1*wall_s* ]]
    [ "$(wc -l <log)" -eq 2 ] # of the 8: the warm-up
    again -w 0 -v nope
    [[ "$output" == *"'rows' has rows of another matrix, whose warmup differs: "* ]]
    again -v n2
    [ "$status" -eq 0 ]
    again -v nope # an error before any run
    assert_one_line_error dt-bench
    [ "$(wc -l <log)" -eq 10 ]
}

@test "wrong usage and damaged rows are one line" {
    for wrong in "matrix true" "compare a" "report" "report a b" \
        "report --json --format tsv a"; do
        run dt-bench $wrong
        [ "$status" -eq 2 ]
    done
    echo '{"design":{"command":"true"}}' >rows
    echo 'nonsense' >>rows
    run dt-bench report rows
    assert_one_line_error dt-bench
    [[ "$output" == *"rows:2: "* ]]
    echo '{"cell":{},"round":1,"status":0}' >rows
    run dt-bench report rows
    assert_one_line_error dt-bench
    for values in '"wall_s"' '[null]' '[["wall_s"]]'; do
        echo '{"design":{"command":"true","values":'"$values"'}}' >rows
        run dt-bench report rows
        assert_one_line_error dt-bench
        [ "$output" = "dt-bench: rows:1: values must be a list of names" ]
    done
    # rows without the requested values
    printf '%s\n' '{"design":{"command":"true {a}","axes":{"a":["1"]}}}' '{"machine":{"memory_bytes":null}}' \
        '{"cell":{"a":null},"round":1,"status":0,"values":{"n":1}}' \
        '{"cell":{"a":"1"},"round":1,"status":1,"error":null}' \
        '{"cell":{"a":"1"},"round":1,"status":0,"values":{"n":2}}' >rows
    [ "$(dt-bench report --json rows | jq -c '[.cells[].values.n.median]')" = '[2]' ]
    dt-bench report rows | grep -q '^on ?, ? processors'
    run dt-bench matrix -o /dev/full -- true
    assert_one_line_error dt-bench
    run bash -c 'echo "{\"design\":{\"command\":\"true\"}}" >rows; dt-bench report rows >/dev/full'
    assert_one_line_error dt-bench
    run dt-bench report nothing
    assert_one_line_error dt-bench
}

@test "rows with values that are not finite numbers are refused with their line; null is not a value" {
    dt-bench matrix -q -w 0 -r 3 -o rows -- echo '{"n":2}' >/dev/null
    for value in 1e400 -1e301 '"5"' true '[1]'; do
        sed "4s/\"n\":2\.0/\"n\":$value/" rows >bad
        refute cmp -s rows bad
        for command in "report bad" "compare rows bad" "compare bad rows"; do
            run dt-bench $command
            assert_one_line_error dt-bench
            [[ "$output" == "dt-bench: bad:4: the value 'n' must be a number from -1e300 to 1e300, not "* ]]
        done
        run dt-plot bars -v n bad
        assert_one_line_error dt-plot
    done
    for value in 1e400 0 -1 '"5"'; do
        sed -E "4s/\"reference_s\":[-+.0-9e]+/\"reference_s\":$value/" rows >bad
        refute cmp -s rows bad
        run dt-bench compare rows bad
        assert_one_line_error dt-bench
        [[ "$output" == "dt-bench: bad:4: reference_s must be a number from 1e-9 to 1e9, not "* ]]
    done
    sed '4s/"n":2\.0/"n":null/' rows >null
    [ "$(dt-bench report null --json | jq -c '.cells[0].values.n | [.count, .least == 2]')" = '[2,true]' ]
}

@test "a number above 1e300 is not a value, and leaves the rows readable" {
    printf '{"step":1,"loss":2}\n{"step":2,"loss":1e302}\n' >metrics
    run dt-bench matrix -q -o rows -r 1 -w 0 --metrics metrics -- echo '{"x":-1e305,"y":2}'
    [ "$status" -eq 0 ]
    [ "$(jq -c 'select(.values).values | [.x, .y, .loss, .step]' rows)" = '[null,2,null,2]' ]
}

@test "a metric whose last value is null is not a value" {
    printf '{"step":%d,"loss":%s}\n' 1 2.5 2 1.5 3 null >metrics.jsonl
    run dt-bench matrix -q -w 0 -r 1 -o rows -v loss --metrics metrics.jsonl -- true
    [ "$status" -eq 1 ]
    [[ "$output" == *"no run has a value 'loss'"* ]]
    [ "$(grep '"cell"' rows | jq -c '.values | [.step == 3, has("loss")]')" = '[true,false]' ]
}

@test "passwords in URLs of commands and axes are not stored, and the matrix continues" {
    cd "$T"
    for round in 1 2; do
        dt-bench matrix -q -o rows -r $round -w 0 -a from=http://me:secret@a/x,http://b -- \
            sh -c 'echo "{\"bytes\":${#1}}"' - 'https://you:secret@c?from={from}' >table
    done
    [ "$(grep -c '"cell":{"from":"http://\*\*\*@a/x"}' rows)" -eq 2 ]
    [ "$(grep -c '"bytes":46' rows)" -eq 2 ] # the command had it
    grep -qF '"https://***@c?from={from}"' rows
    refute grep -qF secret rows
    dt-bench report --json rows >report
    refute grep -qF secret table report
    jq -e . rows >/dev/null
}
