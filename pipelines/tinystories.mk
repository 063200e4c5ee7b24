# SPDX-License-Identifier: MIT
#
# Trains a model on the TinyStories corpus (Eldan and Li 2023, arXiv:2305.07759):
#
#   make tinystories                    downloads 2.2 GB; resumable
#   make tinystories CORPUS=FILE        a local file of stories separated by
#                                       <|endoftext|>
#
# After the download it takes some minutes on 2 cores; a larger model, as
# SET='model.hidden_size=256 training.max_steps=20000', an hour or more.
# TINYSTORIES_URL selects a mirror or a smaller file (the validation file has 22 MB),
# TINYSTORIES_SHA256 is the checksum of the file.
NAME   := tinystories
CONFIG := share/configs/demo.yaml

TINYSTORIES_SITE   ?= https://huggingface.co/datasets/roneneldan/TinyStories
TINYSTORIES_URL    ?= $(TINYSTORIES_SITE)/resolve/main/TinyStoriesV2-GPT4-train.txt
TINYSTORIES_SHA256 ?=

OUT         := build/tinystories
CLEAN_FLAGS := --from split --separator '<|endoftext|>' --normalize nfc --dedup
VOCAB_SIZE  ?= 4096
SPLIT_FLAGS := --split val=0.005
SET         ?= training.max_steps=3000
PROMPT      := Once upon a time

SETTINGS_download = $(TINYSTORIES_URL) $(TINYSTORIES_SHA256)

tinystories: summary

include pipelines/rules.mk

ifeq ($(origin CORPUS),undefined)
$(OUT)/corpus: $(OUT)/settings/download
	pipelines/download '$(TINYSTORIES_URL)' $@.txt $(TINYSTORIES_SHA256)
	grep -q -m 1 -F '<|endoftext|>' $@.txt || \
	  { echo 'tinystories: $(TINYSTORIES_URL) holds no <|endoftext|>' >&2; rm $@.txt; exit 1; }
	mv $@.txt $@
endif
