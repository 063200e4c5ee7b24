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

@test "the golden losses of rewards are those of TRL" {
    make_preferences
    make_prompts
    recorded=()
    for loss in dapo grpo dr_grpo; do
        case $loss in
        dapo) more=() ;;
        grpo) more=(--set grpo.loss=grpo --set grpo.beta=0.1 --set grpo.temperature=0.7) ;;
        dr_grpo) more=(--set grpo.loss=dr_grpo --set grpo.scale_rewards=false) ;;
        esac
        dt-train -q --set training.objective=grpo --set training.sequence_length=24 --set training.batch_size=4 \
            --set training.warmup_steps=0 --set training.learning_rate=3e-3 --set training.min_learning_rate_ratio=1 \
            --set training.weight_decay=0 --set grpo.max_new_tokens=8 --set training.max_steps=20 "${more[@]}" \
            --init-from base1/latest --reference base2/latest --reward "tee $loss.jsonl | ./reward" -o $loss q.jsonl
        recorded+=($loss=$loss.jsonl)
    done
    "$PYTHON" "$ROOT/tests/oracles/groups_oracle.py" base1/latest base2/latest m/tokenizer.json "${recorded[@]}" >live
    paste "$ROOT/tests/prefer/golden/groups.tsv" live | awk '{
        if ($1 != $7 || $2 != $8) exit 1
        for (i = 3; i <= 6; i++) {
            d = $i - $(i + 6); size = $i < 0 ? -$i : $i
            if ((d < 0 ? -d : d) > 1e-5 * (size > 1 ? size : 1)) { print; exit 1 }
        }
    }'
}
