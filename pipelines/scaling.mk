# SPDX-License-Identifier: MIT
#
# Scaling over 1, 2 and 4 ranks with each ZeRO stage: tokens per second, memory of the largest
# rank, efficiency, and the loss after equal steps, which distributed.invariant makes
# bit-identical for any number of ranks.
#
#   make -f pipelines/scaling.mk                    needs mpirun; minutes on 2 cores
#   make -f pipelines/scaling.mk SIZE=full RANKS=1,2,4,8 LAUNCH='srun -n {ranks}'
NAME   := scaling
OUT    ?= build/scaling
SIZE   ?= small
comma  := ,
RANKS  ?= 1,2,4$(if $(filter full,$(SIZE)),$(comma)8$(comma)16)
ZERO   ?= 0,1,2,3
REPEATS ?= 2
STEPS  ?= $(if $(filter full,$(SIZE)),1000,60)
WARMUP ?= 10
LAUNCH ?= mpirun --oversubscribe -n {ranks}
SET    ?= training.max_steps=$(STEPS) training.warmup_steps=$(WARMUP) training.batch_size=2 \
          training.gradient_accumulation_steps=16 training.eval_interval=$(STEPS) distributed.invariant=true
SHOW   ?= loss val_loss tokens_per_second mfu peak_bytes

COMPARISONS      := scaling
AXES_scaling     ?= zero=$(ZERO) ranks=$(RANKS)
SET_scaling      := distributed.zero_stage={zero}
BASELINE_scaling := ranks=1
CHECK_scaling    := pipelines/equal-losses
PLOT_scaling     := scaling --axis ranks

include pipelines/matrix.mk
