# SPDX-License-Identifier: MIT
#
# Trains a model on OpenWebText (Gokaslan and Cohen 2019), on its first part or all:
#
#   make -f pipelines/openwebtext.mk                              the first part, some GB
#   make -f pipelines/openwebtext.mk PARTS="$(seq -w 0 79)"       all 80
#   make -f pipelines/openwebtext.mk CORPUS=FILE                  a local file
#
# After the download it takes some minutes on 2 cores.
# OPENWEBTEXT_URL is the URL of a part, with {} for its number of five digits: JSON Lines, plain or
# compressed, or Parquet, which needs duckdb on PATH. SIZE=full trains GPT-2 with 124M parameters,
# as pipelines/gpt2-124m.mk does; SIZE=small a model for two cores.
NAME := openwebtext
OUT  ?= build/openwebtext
SIZE ?= small

OPENWEBTEXT_SITE ?= https://huggingface.co/datasets/Skylion007/openwebtext
OPENWEBTEXT_URL  ?= $(OPENWEBTEXT_SITE)/resolve/main/plain_text/train-{}-of-00080.parquet
PARTS            ?= 0
CLEAN_FLAGS      ?= --normalize nfc --dedup
SPLIT_FLAGS      ?= --split val=0.002
PROMPT           ?= The report says that
ifeq ($(SIZE),full)
CONFIG     ?= share/configs/gpt2-124m.yaml
VOCAB_SIZE ?= 50257
WARMUP     ?= 700
SET        ?= training.max_steps=19073 training.warmup_steps=$(WARMUP) training.learning_rate=6e-4 \
              training.batch_size=32 training.gradient_accumulation_steps=16 \
              training.sequence_length=1024 training.precision=bf16
else
CONFIG     ?= share/configs/text.yaml
VOCAB_SIZE ?= 4096
SET        ?= training.max_steps=2000
endif

SETTINGS_download = $(OPENWEBTEXT_URL) $(PARTS)

openwebtext: summary

include pipelines/rules.mk

ifeq ($(origin CORPUS),undefined)
number = $(shell echo 0000$1 | sed 's/.*\(.....\)$$/\1/')
url    = $(subst {},$(call number,$1),$(OPENWEBTEXT_URL))
part   = $(OUT)/parts/$(notdir $(call url,$1))

define fetched
$(call part,$1): $(OUT)/settings/download
	@mkdir -p $$(@D)
	pipelines/download '$(call url,$1)' $$@
endef
$(foreach p,$(PARTS),$(eval $(call fetched,$p)))

$(OUT)/corpus: $(foreach p,$(PARTS),$(call part,$p))
	@dt-clean -q $^ >$@.new
	@mv $@.new $@
endif
