# SPDX-License-Identifier: MIT
# The order of the house: who includes whom, headers, warnings, format, pages.
load ../helper

# The Makefile's own target, as in a shell of its own.
house() {
    run make -s -C "$ROOT" "$1"
    echo "$output"
    [ "$status" -eq 0 ]
}

# A copy of what the checks look at, to be spoilt.
copy_house() {
    mkdir -p "$T/house"
    cp -r "$ROOT/Makefile" "$ROOT/lib" "$ROOT/tools" "$ROOT/tests" "$ROOT/share" "$T/house"
}

@test "modules include each other only as lib/layers says" {
    house check-deps
}

@test "an include against the order is found" {
    copy_house
    echo '#include "shard/shard.h"' >"$T/house/lib/base/wrong.c"
    run "$T/house/tests/check-deps"
    [ "$status" -ne 0 ]
    [[ "$output" == *"lib/base/wrong.c:1: base/ may not include shard/"* ]]
}

@test "each header compiles alone" {
    house check-headers
}

@test "a header that leans on others is found" {
    copy_house
    echo 'size_t dt_wrong(void);' >"$T/house/lib/base/wrong.h"
    run make -s -C "$T/house" check-headers
    [ "$status" -ne 0 ]
    [[ "$output" == *wrong.h* ]]
}

@test "no source gives a compiler warning" {
    house check-warnings
}

@test "the sources are as clang-format 14 leaves them" {
    [[ "$(clang-format --version 2>/dev/null)" == *"version 14."* ]] || skip "no clang-format 14"
    house check-format
}

@test "each program has a man page and a test of its own, and each page a program" {
    for source in $(find "$ROOT/tools" -name "dt-*.c"); do
        tool="$(basename "$source" .c)"
        [ -e "$ROOT/man/man1/$tool.1" ] || { echo "$tool has no man page"; return 1; }
        ls "$ROOT"/tests/tools/"$tool"*.bats || return 1
    done
    for page in "$ROOT"/man/man1/dt-*.1; do
        [ -e "$page" ] || continue
        [ -e "$ROOT/tools/$(basename "$page" .1).c" ] || { echo "$page has no program"; return 1; }
    done
}

@test "no drawing or data lies beside the README" {
    run find "$ROOT" -maxdepth 1 -name "*.svg" -o -maxdepth 1 -name "*.png" -o -maxdepth 1 -name "*.jsonl"
    echo "$output"
    [ -z "$output" ]
}

@test "what must not succeed is refuted, where it counts" {
    run grep -rnE --include='*.bats' '^ *! ' "$ROOT/tests"
    echo "$output"
    [ "$status" -eq 1 ]
}

@test "nothing in lib or tools uses another Unicode library than lib/unicode" {
    run grep -rlnE 'utf8proc|unicode/u[a-z]+\.h>|wctype\.h|wchar\.h' "$ROOT/lib" "$ROOT/tools" "$ROOT/Makefile"
    echo "$output"
    [ "$status" -eq 1 ]
}

@test "the tables of Unicode are what their script makes" {
    data=${UNICODE_DATA:-/usr/share/unicode}
    version=$(sed -n 's/^const char dt_unicode_version.* "\(.*\)";/\1/p' "$ROOT/lib/unicode/tables.c")
    head -n 1 "$data/CompositionExclusions.txt" 2>/dev/null | grep -qF -- "-$version.txt" ||
        skip "$data has no Unicode $version: install unicode-data, or set UNICODE_DATA"
    python3 "$ROOT/lib/unicode/make-tables.py" "$data" | cmp - "$ROOT/lib/unicode/tables.c"
}

@test "every source names its license" {
    run grep -rL --include='*.[ch]' --include='*.sh' --include='*.bats' --include='*.mk' \
        'SPDX-License-Identifier: MIT' "$ROOT/lib" "$ROOT/tools" "$ROOT/tests" "$ROOT/share"
    echo "$output"
    [ -z "$output" ]
}

@test "every --help and --version succeeds, and fails where stdout is full" {
    for source in $(find "$ROOT/tools" -name "dt-*.c"); do
        tool="$(basename "$source" .c)"
        "$tool" --version | grep "^$tool (dt) [0-9]"
        "$tool" --help | grep "^usage: $tool"
        run bash -c "$tool --help >/dev/full"
        [ "$status" -eq 1 ]
        run "$tool" --no-such-option
        [ "$status" -eq 2 ]
    done
}

@test "only programs of tests can inject faults" {
    build=${DT_BUILD:-$ROOT/build}
    refute grep -la DT_DEBUG_ "$build"/bin/* "$build"/lib/dt/*.so
    grep -qa DT_DEBUG_POISON "$build/tests/bin/dt-train"
}

@test "public names say where they are declared" {
    "$ROOT/tests/check-names"
}

@test "a name that says nothing of its home, a stray enumerator, and a name of two headers are found" {
    mkdir -p "$T/lib/base" "$T/lib/json"
    printf '#ifndef A\n#define A\nint dt_first(void);\nenum dt_kind { DT_OTHER };\n#endif\n' >"$T/lib/base/one.h"
    printf '#ifndef B\n#define B\nint dt_json_two(void);\nenum dt_kind { DT_KIND_A };\n#endif\n' >"$T/lib/json/two.h"
    run "$ROOT/tests/check-names" "$T"
    echo "$output"
    [ "$status" -eq 1 ]
    [[ "$output" == *"one.h: dt_first begins with neither"* ]]
    [[ "$output" == *"one.h: DT_OTHER does not begin"* ]]
    [[ "$output" == *"two.h: dt_kind is also in lib/base/one.h"* ]]
    [[ "$output" == *"all headers in one file do not compile"* ]]
}

@test "public symbols begin with dt_, and no two modules define the same" {
    symbols="$(nm -g --defined-only "${DT_BUILD:-$ROOT/build}/lib/libdt.a" | awk 'NF == 3 { print $3 }')"
    [ -n "$symbols" ]
    run grep -v '^dt_' <<<"$symbols"
    echo "$output"
    [ "$status" -eq 1 ]
    run uniq -d < <(sort <<<"$symbols")
    echo "$output"
    [ -z "$output" ]
}

@test "json-c is included by json/json.h alone, and outside of json-object.c takes no memory" {
    [ "$(cd "$ROOT" && grep -rl '#include <json-c/' lib tools tests --include='*.[ch]')" = lib/json/json.h ]
    used="$(nm -A "${DT_BUILD:-$ROOT/build}"/lib/libdt.a "${DT_BUILD:-$ROOT/build}"/obj/tools/*.o |
        grep -vE ':json-(number|object)\.o:' | grep -oE 'U json_[a-z0-9_]+' | sort -u)"
    [ -n "$used" ]
    looks='object_(is_type|get|put|equal|object_(length|get|get_ex|del)|array_(length|get_idx))'
    looks="$looks|object_get_(type|object|array|boolean|double|int|int64|uint64|string_len|userdata)"
    run grep -vE "^U json_($looks)\$" <<<"$used"
    echo "$output"
    [ "$status" -eq 1 ]
}

@test "every source that the guides name exists" {
    named=$(grep -ohE '[a-z0-9-]+(/[a-z0-9-]+)*/[a-z0-9-]+\.[ch]\b' \
        "$ROOT/man/man7/dt-architecture.7" "$ROOT/man/man7/dt-hacking.7" "$ROOT/README.md" | sort -u)
    [ "$(wc -l <<<"$named")" -gt 30 ]
    for file in $named; do
        [ -e "$ROOT/$file" ] || [ -e "$ROOT/lib/$file" ] || [[ $file == *dt-x.c ]] ||
            { echo "there is no $file"; return 1; }
    done
}

@test "reals of JSON are written by base/json-number alone, which writes null for NaN" {
    run grep -rnE --include='*.[ch]' 'json_object_new_double\(|\\":%[-+ 0-9.*l]*[aefgAEFG]' \
        "$ROOT/lib" "$ROOT/tools"
    echo "$output"
    [ "${#lines[@]}" -eq 1 ]
    [[ "$output" == *lib/json/json-number.c:* ]]
}
