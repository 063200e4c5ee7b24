# SPDX-License-Identifier: MIT
#
# make demo                children's stories of known entropy, from dt-synth
# make demo CORPUS=FILE    the same on your text
CLEAN_FLAGS ?= --normalize nfc --dedup

ifneq ($(origin CORPUS),undefined)
# (More text wants more: SET='training.max_steps=10000 model.hidden_size=256'.)
CONFIG        := share/configs/text.yaml
VOCAB_SIZE    := 1024
NAME          := $(basename $(notdir $(CORPUS)))
OUT           := build/demo-$(NAME)
SPLIT_FLAGS   := --split val=0.05 --split-by tail
PROMPT        := The
else
NAME          := demo
STORY_COUNT   ?= 36000
STORY_SEED    ?= 1
HELD_OUT      ?= 300
CONFIG        := share/configs/demo.yaml
OUT           := build/demo
SPLIT_FLAGS   := --split val=0.01
EVAL_DATA      = $(OUT)/held-out.jsonl
EVAL_FLAGS    :=
endif

demo: summary

include pipelines/rules.mk
