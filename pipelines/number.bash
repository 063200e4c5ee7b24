# SPDX-License-Identifier: MIT
# number NAME [FILE]: the last number of a member NAME in the JSON of FILE or stdin.
number() {
    sed -nE "s/.*\"$1\": ?(-?[0-9][-+.0-9e]*).*/\1/p" "${2:-/dev/stdin}" | tail -n 1
}
