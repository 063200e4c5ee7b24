# SPDX-License-Identifier: MIT
# A run that resumes with another parallel layout (pp x dp x tp).
load ../helper
load ../ranks

# A vocabulary that 2 and 4 do not divide, and tied embeddings.
small=(--set model.hidden_size=32 --set model.num_layers=4 --set model.num_heads=4
    --set model.intermediate_size=56 --set model.max_seq_len=32 --set model.dropout=0.1
    --set training.batch_size=1 --set training.gradient_accumulation_steps=4
    --set training.max_steps=20 --set training.warmup_steps=2 --set training.eval_interval=10
    --set training.eval_batches=3 --set training.save_interval=10 --set training.log_interval=1
    --set training.schedule=constant --set distributed.invariant=true)

# The layouts compute the same bits: dt-arithmetic(7).
@test "stopped at 2 x 2 x 2, resumed at 4 x 1 x 2, 1 x 1 x 1 and 1 x 2 x 4" {
    layout 2 2 2 -o straight
    layout 2 2 2 --set training.max_steps=10 -o stopped
    results straight >expected
    for next in "4 1 2" "1 1 1" "2 1 1" "1 2 4"; do
        run=run-${next// /-}
        cp -r stopped "$run"
        layout $next --set distributed.zero_stage=3 -o "$run"
        results "$run" >"$run.results"
        cmp expected "$run.results"
    done
}
