# SPDX-License-Identifier: MIT
#
# Learning rate, batch and sequence length, one at a time: the loss after equal tokens, and
# when the validation loss first reached TARGET.
#
#   make -f pipelines/sweep.mk                      stories; 4 to 11 minutes on 2 cores
#   make -f pipelines/sweep.mk SIZE=full TARGET=1.6
#
# The full size is twenty runs of 200M tokens with a Llama of 15M parameters.
NAME    := sweep
OUT     ?= build/sweep
SIZE    ?= small
TOKENS  ?= $(if $(filter full,$(SIZE)),200M,150k)
TARGET  ?= $(if $(filter full,$(SIZE)),1.8,4)
SET     ?= training.max_tokens=$(TOKENS) training.max_steps=100000000 training.warmup_steps=$(WARMUP) \
           training.eval_interval=20 training.eval_batches=4 training.log_interval=10
SHOW    ?= val_loss reached_val_loss_step reached_val_loss_time tokens_per_second peak_bytes

COMPARISONS     := rate batch length
AXES_rate       ?= rate=5e-4,1e-3,2e-3,4e-3
SET_rate        := training.learning_rate={rate} training.batch_size=8 training.sequence_length=128
BASELINE_rate   := rate=1e-3
PLOT_rate       := bars --value val_loss
AXES_batch      ?= batch=4,8,16
SET_batch       := training.learning_rate=2e-3 training.batch_size={batch} training.sequence_length=128
BASELINE_batch  := batch=8
PLOT_batch      := bars --value val_loss
AXES_length     ?= length=64,128,256
SET_length      := training.learning_rate=2e-3 training.batch_size=8 training.sequence_length={length}
BASELINE_length := length=128
PLOT_length     := bars --value val_loss

include pipelines/matrix.mk
