# SPDX-License-Identifier: MIT
# Preferences compared with TRL: install trl in the Python that $PYTHON names.
load ../helper

setup() {
    cd "$T"
    need_python torch transformers trl
}

@test "the golden losses of preferences are those of TRL" {
    make_preferences
    dt-cat --ids p.dts >ids
    dt-cat --ids --loss p.dts >learned
    "$PYTHON" "$ROOT/tests/oracles/preferences_oracle.py" base1/latest base2/latest ids learned >live
    paste "$ROOT/tests/prefer/golden/preferences.tsv" live | awk '{
        if ($1 != $7 || $2 != $8) exit 1
        for (i = 3; i <= 6; i++) {
            d = $i - $(i + 6); size = $i < 0 ? -$i : $i
            if ((d < 0 ? -d : d) > 1e-5 * (size > 1 ? size : 1)) { print; exit 1 }
        }
    }'
}
