# SPDX-License-Identifier: MIT
# The cuda engine as it was linked, for all GPUs: what NVIDIA's tools find in it (make oracles-cuda).
load ../helper

setup_file() {
    ENGINE=${DT_BUILD:-$ROOT/build}/lib/dt/cuda.so
    PATH=$PATH:$ROOT/build/oracles/cuda/tools/bin
    export ENGINE PATH
    [ ! -e "$ENGINE" ] || ! command -v cuobjdump >/dev/null ||
        python3 "$ROOT/tests/cuda/kernels.py" "$ENGINE" >"$BATS_FILE_TMPDIR/kernels"
}

setup() {
    [ -e "$ENGINE" ] || skip "the cuda engine is not built"
    command -v cuobjdump >/dev/null || skip "cuobjdump is not installed: make oracles-cuda"
}

@test "machine code of six GPUs from each file of kernels, PTX of the first, and the size that the page states" {
    local files megabytes
    files=$(find "$ROOT/lib/device/cuda" -name '*.cu' ! -name '*-wgmma.cu' | wc -l)
    megabytes=$((($(stat -c %s "$ENGINE") + 500000) / 1000000))
    run bash -c 'cuobjdump --list-elf "$ENGINE" | grep -o "sm_[0-9a]*" | sort -V | uniq -c'
    echo "$output; $megabytes MB"
    for gpu in 80 86 89 100 120; do
        grep -qx " *$files sm_$gpu" <<<"$output"
    done
    grep -qx " *$((files + 2)) sm_90a" <<<"$output"
    [ "${#lines[@]}" -eq 6 ]
    [ "$(cuobjdump --list-ptx "$ENGINE" | grep -c 'sm_80\.ptx')" -eq "$files" ]
    grep -q "engine has some $megabytes MB" "$ROOT/man/man7/dt-cuda.7"
}

@test "every kernel has launch bounds that its registers allow, except those on single elements" {
    # A block has 65536 registers, a warp in portions of 256.
    awk '{ threads = $3 ? $3 : 256; warps = int((threads + 31) / 32)
           if (warps * int(($2 * 32 + 255) / 256) * 256 > 65536) { print; bad = 1 } }
         END { exit bad }' "$BATS_FILE_TMPDIR/kernels"
}

@test "kernels of wgmma begin with the registers that setmaxnreg divides" {
    [ "$(awk '$1 == 90 && $3 == 384 && $2 == 168' "$BATS_FILE_TMPDIR/kernels" | wc -l)" -eq 12 ]
    [ "$(awk '$3 == 384' "$BATS_FILE_TMPDIR/kernels" | wc -l)" -eq 12 ]
}

# Kernels of one element type that use their stack: the most bytes on any GPU. Those of mixed types (Li3E)
# and of canonical arithmetic keep arrays there.
@test "no kernel spills but those listed, nor more" {
    awk '$5 > 0 && $6 !~ /Li3E|dt_cuda_each|whole_rows|rows_of_sums/ {
             if ($5 > most[$6]) most[$6] = $5 }
         END { for (kernel in most) print most[kernel], kernel }' "$BATS_FILE_TMPDIR/kernels" |
        c++filt | sed -E 's/void |\((dt_cuda_attention|\(anonymous namespace\)::[a-z]+)\)//g; s/\(dt_dtype\)//g' |
        sort -k 2 >"$T/spilled"
    cat "$T/spilled"
    [ -s "$T/spilled" ] # the list is read as it was written
    awk '{ bytes = $1; $1 = "" }
         NR == FNR { most[$0] = bytes; next }
         bytes > most[$0] { print "more than listed: " bytes $0; bad = 1 }
         END { exit bad }' "$ROOT/tests/cuda/spills" "$T/spilled"
}

# instructions SM WORD...: a line for each kernel that has the first, with how many lines have each.
instructions() {
    local gpu=$1 IFS='|'
    shift
    cuobjdump -sass -arch "sm_$gpu" "$ENGINE" | grep -F -e 'Function :' "${@/#/-e}" | awk -v patterns="$*" '
        BEGIN { n = split(patterns, pattern, "[|]") }
        /Function :/ { name = $3; next }
        { for (i = 1; i <= n; i++)
              if (index($0, pattern[i])) { count[name, i]++; seen[name] = 1 } }
        END {
            for (name in seen) {
                line = name
                for (i = 1; i <= n; i++) line = line " " count[name, i] + 0
                if (count[name, 1]) print line
            }
        }'
}

@test "H100: products of warpgroups whose groups are not serialized, TMA, setmaxnreg" {
    instructions 90a HGMMA ', gsb0 ;' UTMALDG USETMAXREG >"$T/counts"
    cat "$T/counts"
    [ "$(wc -l <"$T/counts")" -eq 12 ]
    # Where products wait for each other each is the end of a group (gsb0).
    awk '$2 < 12 || $3 * 3 > $2 || $4 < 6 || $5 != 2 { bad = 1 } END { exit bad }' "$T/counts"
}

@test "A100 and RTX: products of mma.sync from ldmatrix and cp.async in every tensor-core kernel" {
    local gpu
    for gpu in 80 86; do
        instructions $gpu HMMA LDSM LDGSTS HGMMA >"$T/counts"
        cat "$T/counts"
        [ "$(wc -l <"$T/counts")" -eq 32 ]
        awk '$2 < 96 || $3 < 40 || $4 < 24 || $5 > 0 { bad = 1 } END { exit bad }' "$T/counts"
    done
}
