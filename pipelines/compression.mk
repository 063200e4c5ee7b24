# SPDX-License-Identifier: MIT
#
# Compares communication-efficient data parallelism with allreduce, by loss and bytes sent: gradients
# in bf16, top-k with 1%, PowerSGD of rank 4, local SGD, DiLoCo and streaming DiLoCo (4 fragments, 4
# bits) with 8 local steps, and asynchronous updates, in which each rank but the first computes whole
# steps. bytes_sent is that of rank 0.
#
#   make -f pipelines/compression.mk                needs mpirun; 5 to 9 minutes on 2 cores
#   make -f pipelines/compression.mk CORPUS=FILE    your text, of a kilobyte or more: its last
#                                                   tenth, for validation, must have 65 tokens
#   make -f pipelines/compression.mk SIZE=full COUNT=8 LAUNCH='srun -n 8'
#
# The full size is sixteen runs of 262M tokens with a Llama of 15M parameters. Steps are a
# multiple of 8, so that every run ends after a synchronisation.
NAME   := compression
OUT    ?= build/compression
SIZE   ?= small
COUNT  ?= $(if $(filter full,$(SIZE)),8,2)
STEPS  ?= $(if $(filter full,$(SIZE)),4000,1600)
LAUNCH ?= mpirun --oversubscribe -n $(COUNT)
SMALL  := model.hidden_size=64 model.num_layers=2 model.max_seq_len=64 training.batch_size=4
SET    ?= $(if $(filter small,$(SIZE)),$(SMALL)) training.max_steps=$(STEPS) \
          training.warmup_steps=$(WARMUP) training.gradient_accumulation_steps=$(COUNT) \
          training.eval_interval=$(STEPS)
SHOW   ?= loss val_loss bytes_sent tokens_per_second

COMPARISONS          := compression
AXES_compression     ?= way=sync=allreduce,compress=bf16,compress=topk,compress=powersgd,sync=local_sgd,sync=diloco,sync=streaming_diloco,sync=async
SET_compression      := distributed.{way}
BASELINE_compression := way=sync=allreduce
PLOT_compression     := points --log x --value bytes_sent --value val_loss

SPLIT_FLAGS ?= --split val=0.1 --split-by tail
VOCAB_SIZE  ?= 512
include pipelines/matrix.mk
