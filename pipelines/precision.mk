# SPDX-License-Identifier: MIT
#
# Compares fp32, bf16 and fp16: speed, memory, and loss after equal steps.
#
#   make -f pipelines/precision.mk                  stories; 4 to 6 minutes on 2 cores
#   make -f pipelines/precision.mk CORPUS=FILE      your text
#   make -f pipelines/precision.mk SIZE=full LAUNCH='srun -n 8'
#
# The full size is six runs of 655M tokens with a Llama of 15M parameters.
NAME  := precision
OUT   ?= build/precision
SIZE  ?= small
STEPS ?= $(if $(filter full,$(SIZE)),20000,200)
SET   ?= training.max_steps=$(STEPS) training.warmup_steps=$(WARMUP) training.eval_interval=$(STEPS)

COMPARISONS        := precision
AXES_precision     ?= precision=fp32,bf16,fp16
SET_precision      := training.precision={precision}
BASELINE_precision := precision=fp32
PLOT_precision     := bars --value tokens_per_second

include pipelines/matrix.mk
