# SPDX-License-Identifier: MIT
# number NAME [FILE]: the last number that a member of this name has in the JSON of FILE, or of
# stdin.
number() {
    sed -nE "s/.*\"$1\": ?(-?[0-9][-+.0-9e]*).*/\1/p" "${2:-/dev/stdin}" | tail -n 1
}
