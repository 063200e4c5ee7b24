# SPDX-License-Identifier: MIT
# Processors that dt does not run on, and calls that other systems do not have.
load ../helper

# refused FLAG MESSAGE: with the flag the compiler says why no source compiles.
refused() {
    run ${CC:-cc} -fsyntax-only -I"$ROOT/lib" $1 -x c "$ROOT/lib/base/error.h"
    [ "$status" -ne 0 ]
    [[ "$output" == *"error: \"dt needs a $2"* ]] || [[ "$output" == *"error: #error \"dt needs a $2"* ]] || { echo "$output"; return 1; }
}

@test "32-bit and big-endian processors are refused at compile time, in one line that says why" {
    refused "-U__LP64__" "64-bit system"
    refused "-U__BYTE_ORDER__ -D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__" "little-endian processor"
}

@test "compilers of such processors say so" {
    command -v clang >/dev/null || skip "no clang"
    CC="clang --target=s390x-linux-gnu" refused -ffreestanding "little-endian processor"
    CC="clang --target=armv7-linux-gnueabihf" refused -ffreestanding "64-bit system"
    CC="clang --target=i386-linux-gnu" refused -ffreestanding "64-bit system"
    for target in aarch64 x86_64 riscv64; do
        clang --target=$target-linux-gnu -ffreestanding -fsyntax-only -I"$ROOT/lib" -x c "$ROOT/lib/base/error.h"
    done
}

# What neither POSIX nor FreeBSD has; the cuda engine, whose systems are Linux, has its own.
LINUX='memfd_create|getrandom|renameat2|sched_[gs]etaffinity|SYS_[a-z]|[^_a-z]syscall\(|madvise\(|getauxval|prctl\(|epoll|eventfd|signalfd|inotify|<linux/|sys/vfs\.h|[^a-z]statfs|copy_file_range|sync_file_range|[^x]_fallocate|splice\(|syncfs\(|O_TMPFILE|O_PATH|gettid|mremap|process_vm|sysmacros|cond_clockwait|exp10|program_invocation|CPU_SET|SO_PEERCRED|MAP_POPULATE|MAP_HUGETLB|timerfd|F_SETPIPE_SZ|pthread_[gs]etname_np|TCP_USER_TIMEOUT|RUSAGE_THREAD|_SUPER_MAGIC|TMPFS_MAGIC'

@test "calls that only Linux has are in base/system.c alone" {
    cd "$ROOT"
    run grep -rnE "$LINUX" lib tools --include='*.[ch]' --exclude-dir=cuda
    grep -q '^lib/base/system\.c:' <<<"$output"
    # engines have no other file of lib/base: amx.c asks for the tiles of AMX, state.c for the program's name
    refute grep -vE '^lib/base/system\.[ch]:|^lib/device/cpu/gemm/amx\.c:[0-9]+:.*SYS_arch_prctl, |^lib/device/cpu/state\.c:[0-9]+:.*program_invocation_short_name, ' <<<"$output"
}

@test "instruction sets of x86-64 are named where other processors compile, too" {
    cd "$ROOT"
    run grep -rn 'target_clones' lib tools --include='*.[ch]' --exclude-dir=cuda
    [ "$(wc -l <<<"$output")" -eq 1 ]
    [[ "$output" == lib/base/platform.h:* ]]
    for file in $(grep -rlE 'target\("|<.?(imm|xmm|emm|pmm|tmm|smm|nmm|wmm)intrin\.h>' lib tools --include='*.[ch]' --exclude-dir=device); do
        grep -qE '^#if.*(__x86_64__|__SSE[0-9_]*__|__AVX[0-9A-Z_]*__)' "$file" || { echo "$file" && return 1; }
    done
}
