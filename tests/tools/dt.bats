# SPDX-License-Identifier: MIT
# dt: the other programs, help, the tour, what is installed.
load ../helper

setup() {
    cd "$T"
    unset DT_ENGINES
}

# A copy of the built tree, of links, in which tests remove things.
copy_tree() {
    mkdir -p tree/bin tree/lib/dt tree/share
    cp "$DT_BUILD"/bin/* tree/bin
    ln -s "$DT_BUILD"/lib/dt/*.so tree/lib/dt
    ln -s "$ROOT/share" tree/share/dt
    ln -s "$ROOT/man" tree/share/man
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
    run dt foo
    [ "${lines[0]}" = "dt: unknown program 'dt-foo': 'dt help' lists them" ]
    run dt no-such
    [ "$status" -eq 2 ]
    [ "${lines[0]}" = "dt: unknown program 'dt-no-such': 'dt help' lists them" ]
    for wrong in 'doctor x' 'tour a b' 'help a b' '--print'  'doctor --print'; do
        run dt $wrong
        [ "$status" -eq 2 ] || { echo "$wrong"; return 1; }
    done
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
    copy_tree
    rm tree/share/man
    tree/bin/dt help shard | cmp - <(dt-shard --help)
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
    [ "${lines[0]}" = "dt: cannot make the directory 'trip' for the tour: File exists" ]
    printf '#!/bin/sh\nexit 3\n' >tree/bin/dt-vocab
    chmod +x tree/bin/dt-vocab
    run tree/bin/dt tour other
    [ "$status" -eq 3 ]
    [ ! -e other/shards ]
}

@test "dt doctor has a line for each plug-in that the Makefile builds" {
    dt doctor >said
    grep -oE '^\$\(eval \$\(call plugin,[a-z0-9-]+' "$ROOT/Makefile" | sed 's/.*,//' >names
    [ "$(wc -l <names)" -ge 9 ]
    while read -r name; do
        grep -E "^(ok|absent) +plug-in $name " said || { echo "$name"; return 1; }
    done <names
    grep -qE '^ok +programs ' said
    grep -qE '^ok +engine cpu-[a-z0-9]+ .*, the default$' said
    refute grep -E '^(missing|broken)' said
    run bash -c 'dt doctor >/dev/full'
    [ "$status" -eq 1 ]
}

@test "dt doctor tells what is missing, broken and optional, and fails for the first two alone" {
    copy_tree
    rm tree/lib/dt/icu.so tree/lib/dt/mpi.so
    tree/bin/dt doctor >said
    grep -qE '^absent +plug-in icu +words of Chinese.*: install libicu-dev and run make$' said
    echo text >tree/lib/dt/icu.so
    run tree/bin/dt doctor
    [ "$status" -eq 1 ]
    [[ "$output" == *"broken   plug-in icu          "*"tree/lib/dt/icu.so: file too short"* ]]
    rm tree/lib/dt/icu.so tree/bin/dt-eval
    run tree/bin/dt doctor
    [ "$status" -eq 1 ]
    [[ "$output" == *"missing  eval                 there is no $T/tree/bin/dt-eval: install dt again"* ]]
    cp "$DT_BUILD/bin/dt-eval" tree/bin
    rm tree/lib/dt/cpu-*.so
    run tree/bin/dt doctor
    [ "$status" -eq 1 ]
    [[ "$output" == *"broken   engine cpu-"*"no engine 'cpu-"* ]]
}

# library NAME CODE: a plug-in whose loading runs it.
library() {
    rm -f "tree/lib/dt/$1.so" # a link
    printf '#include <signal.h>\n#include <stdio.h>\n#include <stdlib.h>\n
        __attribute__((constructor)) static void load(void) { %s }\n' "$2" |
        "${CC:-cc}" -w -shared -fPIC -x c - -o "tree/lib/dt/$1.so"
}

@test "dt doctor outlives libraries that crash, end it or print while they are loaded" {
    copy_tree
    library cuda 'raise(SIGSEGV);'
    library icu 'fputs("no memory\nat all\n", stderr); abort();'
    library mpi 'exit(0);'
    library http 'printf("9 greetings\n");'
    run tree/bin/dt doctor
    [ "$status" -eq 1 ]
    loading="its library failed while loading: '$T/tree/lib/dt"
    grep -qF "broken   engine cuda          $loading/cuda.so' was ended by signal 11" <<<"$output"
    grep -qF "broken   plug-in icu          $loading/icu.so' was ended by signal 6: no memory" <<<"$output"
    grep -qF "broken   plug-in mpi          its library ended the program while loading" <<<"$output"
    grep -qF "ok       plug-in http         URLs" <<<"$output"
    grep -qE "^ok +engine cpu-.*, the default$" <<<"$output"
}

@test "dt doctor looks at the shell's PATH and locale" {
    PATH=/usr/bin:/bin LC_ALL=C "$DT_BUILD/bin/dt" doctor >said
    grep -qF "lacks dt's programs: export PATH=\"$(realpath "$DT_BUILD")/bin:\$PATH\"" said
    grep -qE '^absent +locale ' said
    LC_ALL=C.UTF-8 dt doctor >said
    grep -qE "^ok +PATH +has dt's programs$" said
    grep -qE '^ok +locale +C.UTF-8$' said
}
