# SPDX-License-Identifier: MIT
# Unit tests take the branches of readers of input from outside that tests/unreached does not name.
load ../helper

@test "no reader has more branches that no unit test takes than tests/unreached says" {
    command -v gcov >/dev/null || skip "gcov is not installed"
    make -s -C "$ROOT" CUDA=0 check-readers
}
