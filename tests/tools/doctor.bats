# SPDX-License-Identifier: MIT
# dt doctor: what is installed.
load ../helper

setup() {
    cd "$T"
    unset DT_ENGINES
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
    grep -qE '^absent +plug-in icu +words of Chinese.*: install libicu-dev and build dt again: dt-install\(7\)$' said
    touch tree/flags # as in a tree that make has built
    tree/bin/dt doctor >said
    grep -qE '^absent +plug-in icu +words of Chinese.*: make deps-data && make$' said
    grep -qE '^absent +plug-in mpi +.*: make deps-mpi && make$' said
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
    printf '#!/bin/sh\n[ "$1" = --version ] && echo Python 3.11.2\n' >python3
    chmod +x python3
    PATH=$PWD:$PATH dt doctor >said
    grep -qE '^ok +python3 +Python 3.11.2$' said
    grep -qE "^absent +Python's dt +.*: install the wheel of make wheel, or set PYTHONPATH to the folder python of dt's source tree: " said
    LC_ALL=en_US.utf-8 dt doctor >said || true # as setlocale takes it, too
    grep -qE '^ok +locale +en_US.utf-8$' said
}
