# SPDX-License-Identifier: MIT
#
# Compares data (tp=1), tensor (tp) and pipeline (pp) parallelism on the same ranks, at equal work,
# and pipeline schedules, of which model_parallel runs one micro-batch at a time.
#
#   make -f pipelines/parallelism.mk                needs mpirun; 4 to 8 minutes on 2 cores
#   make -f pipelines/parallelism.mk SIZE=full COUNT=8 LAUNCH='srun -n 8'
#
# The full size is twelve runs of 4M tokens per DP rank with a Llama of 15M parameters.
NAME   := parallelism
OUT    ?= build/parallelism
SIZE   ?= small
COUNT  ?= $(if $(filter full,$(SIZE)),8,2)
STEPS  ?= $(if $(filter full,$(SIZE)),1000,40)
WARMUP ?= 10
LAUNCH ?= mpirun --oversubscribe -n $(COUNT)
SET    ?= training.max_steps=$(STEPS) training.warmup_steps=$(WARMUP) training.batch_size=2 \
          training.gradient_accumulation_steps=8 training.eval_interval=$(STEPS)
SHOW   ?= loss val_loss tokens_per_second peak_bytes

COMPARISONS       := layout schedule
AXES_layout       ?= cut=tp=1,tp=$(COUNT),pp=$(COUNT)
SET_layout        := distributed.{cut}
BASELINE_layout   := cut=tp=1
PLOT_layout       := bars --value tokens_per_second
AXES_schedule     ?= schedule=model_parallel,afab,1f1b
SET_schedule      := distributed.pp=$(COUNT) distributed.schedule={schedule}
BASELINE_schedule := schedule=model_parallel
PLOT_schedule     := bars --value tokens_per_second

include pipelines/matrix.mk
