# SPDX-License-Identifier: MIT
# dt: the other programs, help, the tour.
load ../helper

setup() {
    cd "$T"
    unset DT_ENGINES
}

@test "a program runs with its arguments, streams and status" {
    dt synth -n 3 --seed 1 -o a.jsonl
    dt-synth -n 3 --seed 1 -o b.jsonl
    cmp a.jsonl b.jsonl
    [ "$(dt tokenize --version)" = "$(dt-tokenize --version)" ]
    run dt clean --no-such-option
    [ "$status" -eq 2 ]
    [ "${lines[0]}" = "dt-clean: unknown option '--no-such-option'" ]
    status=0
    dt cat missing.dts 2>said || status=$?
    [ "$status" -eq 1 ]
    grep -q '^dt-cat: ' said
}

@test "a program beside dt is before one of PATH, and one of PATH alone runs" {
    mkdir bin
    printf '#!/bin/sh\necho "other $*"\n' | tee bin/dt-synth >bin/dt-mine
    chmod +x bin/*
    PATH="$T/bin:$PATH"
    [ "$(dt mine a 'b c')" = "other a b c" ]
    [[ "$(command dt synth --version)" == "dt-synth (dt) "* ]]
}

@test "what does not exist is an error that names the nearest" {
    run dt trian
    [ "$status" -eq 2 ]
    [ "${lines[0]}" = "dt: unknown program 'dt-trian': did you mean 'dt train'?" ]
    run dt doctr
    [ "${lines[0]}" = "dt: unknown program 'dt-doctr': did you mean 'dt doctor'?" ]
    run dt foo
    [ "$output" = "dt: unknown program 'dt-foo': 'dt help' lists them" ]
    while read -r wrong right; do
        run dt $wrong
        [ "$status" -eq 2 ]
        [ "$output" = "dt: unknown program 'dt-$wrong': did you mean 'dt $right'?" ]
    done <<<'evaluate eval
gen generate
version --version
tutorial help tutorial'
    for page in tutorail:tutorial confg:config instal:install paralelism:parallelism trian:train; do
        run dt help "${page%:*}"
        [ "$status" -eq 2 ]
        [ "$output" = "dt: unknown program or page '${page%:*}': did you mean 'dt help ${page#*:}'?" ]
    done
    run dt no-such
    [ "$status" -eq 2 ]
    [ "${lines[0]}" = "dt: unknown program 'dt-no-such': 'dt help' lists them" ]
    for wrong in 'doctor x' 'tour a b' 'help a b' '--print'  'doctor --print'; do
        run dt $wrong
        [ "$status" -eq 2 ] || { echo "$wrong"; return 1; }
    done
}

@test "--help of dt, in any place, says what help, tour and doctor do" {
    dt --help | tail -n 6 | cut -d ' ' -f 1 >said
    grep -qx help said && grep -qx tour said && grep -qx doctor said
    dt doctor --help | cmp - <(dt --help)
    dt tour --help | cmp - <(dt --help)
}

@test "dt help lists every page of sections 5 and 7" {
    dt help | sed '1,/^All pages/d' | tr -s ' ' '\n' | sed '/^$/d' >said
    for page in "$ROOT"/man/man[57]/dt-*; do
        name=${page##*/dt-}
        name=${name%.*}
        [ -e "$ROOT/man/man1/dt-$name.1" ] || grep -qx "$name" said || { echo "$name"; return 1; }
    done
    { dt --help && dt-train --help; } | awk 'length > 79 { exit 1 }'
}

@test "dt help lists every program with its summary" {
    dt help >said
    dt | cmp - said
    for source in "$ROOT"/tools/dt-*.c; do
        program=$(basename "$source" .c)
        summary=$("$program" --help | sed -n "s/^$program: //p")
        grep -qxE " +${program#dt-} +$summary" said || { echo "$program"; return 1; }
    done
    run bash -c 'dt help >/dev/full'
    [ "$status" -eq 1 ]
}

@test "dt help PROGRAM shows its page, or without man or pages its --help" {
    command -v man >/dev/null && command -v mandoc >/dev/null || skip "no man"
    for page in train dt-train tutorial config; do
        dt help "$page" 2>&1 </dev/null | grep -i "^DT-${page#dt-}(" || { echo "$page"; return 1; }
    done
    for page in dt tour doctor; do
        dt help $page 2>&1 </dev/null | grep '^DT(1)' || { echo "$page"; return 1; }
    done
    copy_tree
    rm tree/share/man
    tree/bin/dt help shard | cmp - <(dt-shard --help)
}

@test "dt help names man where it is not installed and a page has no program with --help" {
    mkdir "$T/none"
    PATH=$T/none "$DT_BUILD/bin/dt" help train | cmp - <(dt-train --help)
    PATH=$T/none "$DT_BUILD/bin/dt" help tour | cmp - <(dt --help)
    PATH=$T/none run "$DT_BUILD/bin/dt" help tutorial
    [ "$status" -eq 1 ]
    [ "$output" = "dt: cannot show the manual page '$DT_BUILD/share/man/man7/dt-tutorial.7': man(1) is not installed (Debian: apt-get install man-db)" ]
}

@test "the tour runs in a new directory, says its commands, and stops at the first that fails" {
    command -v gnuplot >/dev/null || skip "no gnuplot"
    copy_tree
    printf '#!/bin/sh\nexec %s/bin/dt-train "$@" --set model.hidden_size=16 --set model.max_seq_len=32 --set training.max_steps=20 --set training.warmup_steps=0\n' \
        "$DT_BUILD" >tree/bin/dt-train
    timeout 100 tree/bin/dt tour trip >said 2>&1 || { cat said; return 1; }
    [ -e trip/run/latest/model.safetensors ]
    dt tour --print | diff - "$ROOT/share/tour"
    dt tour --print | while IFS= read -r line; do grep -qF -- "$line" said; done
    grep -q '^Once upon a time' said
    run dt tour trip
    [ "$status" -eq 1 ]
    [ "${lines[0]}" = "dt: cannot make the directory 'trip' for the tour: File exists: remove it, or name another: dt tour DIRECTORY" ]
    printf '#!/bin/sh\nexit 3\n' >tree/bin/dt-vocab
    chmod +x tree/bin/dt-vocab
    run tree/bin/dt tour other
    [ "$status" -eq 3 ]
    [ ! -e other/shards ]
}
