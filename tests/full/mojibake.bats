#!/usr/bin/env bats
# SPDX-License-Identifier: MIT
# Mojibake of ten encodings, against ftfy.
load ../helper

@test "sentences of 22 languages, mangled by ten encodings, are mended as often as by ftfy" {
    need_python ftfy
    "$PYTHON" "$BATS_TEST_DIRNAME/../oracles/mojibake_oracle.py" >&3
}
