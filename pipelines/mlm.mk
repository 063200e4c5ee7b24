# SPDX-License-Identifier: MIT
#
# Masked pretraining of a DistilBERT-shaped model (Sanh et al. 2019), with a
# WordPiece vocabulary, on short sequences:
#
#   make mlm                stories from dt-synth; 4 to 11 minutes on 2 cores
#   make mlm CORPUS=FILE HELD=FILE2    your text, and other text to score
#
# The results are a table, a plot and JSON of masked accuracy and loss on held-out
# documents after each quarter of the run, compared with a unigram baseline, and the
# pseudo-perplexity of the last checkpoint. STEPS, SET and other variables below change
# the size; CONFIG=share/configs/distilbert-base.yaml is the recipe for a cluster.
NAME        := mlm
OUT         ?= build/mlm
CONFIG      ?= share/configs/distilbert-tiny.yaml
CLEAN_FLAGS ?= --normalize nfc --dedup
VOCAB_SIZE  ?= 1024
VOCAB_FLAGS ?= --model wordpiece
SPLIT_FLAGS ?= --split val=0.02
STORY_COUNT ?= 12000
HELD_OUT    ?= 300
HELD_SEED   ?= 2
ALONE       ?= 20
STEPS       ?= 5000
quarter     := $(shell echo $$((($(STEPS) + 3) / 4)))
override SET += training.max_steps=$(STEPS) training.save_interval=$(quarter) \
               checkpoint.keep_every=$(quarter)
SETTINGS_alone = $(ALONE)

mlm:

include pipelines/rules.mk
.DEFAULT_GOAL := mlm

# The documents to score, with CORPUS.
ifneq ($(origin CORPUS),undefined)
HELD ?= $(error HELD=FILE must name text to score, which CORPUS does not hold)
$(OUT)/held-out.jsonl: $(HELD) $(OUT)/settings/held $(OUT)/settings/clean
	@mkdir -p $(@D)
	dt-clean -q $(CLEAN_FLAGS) -o $@ $<
endif

scored := $(OUT)/run/finished $(OUT)/held-out.jsonl

# A line of JSON for each checkpoint.
$(OUT)/masked.json: $(scored)
	$(call timed,eval) dt-eval -q $$(ls -d $(OUT)/run/step-* | sort | sed 's/^/-m /') --json \
	  -o $@ masked $(OUT)/held-out.jsonl

$(OUT)/alone.json: $(scored) $(OUT)/settings/alone
	head -n $(ALONE) $(OUT)/held-out.jsonl >$(OUT)/few.jsonl
	$(call timed,alone) dt-eval -q -m $(OUT)/run/latest --alone --json -o $@ masked $(OUT)/few.jsonl

$(OUT)/ids: $(OUT)/held-out.jsonl $(OUT)/tokenizer.json
	dt-tokenize -q -t $(OUT)/tokenizer.json --ids $< >$@

$(OUT)/table.txt $(OUT)/mlm.json &: $(OUT)/masked.json $(OUT)/alone.json $(OUT)/ids
	$(here)/mlm-table $(OUT) >$(OUT)/table.new
	mv $(OUT)/table.new $(OUT)/table.txt

$(OUT)/plot.%: $(OUT)/table.txt
	gnuplot -e "format='$*'; directory='$(OUT)'; output='$@'" share/plots/mlm.gnuplot

mlm: $(OUT)/table.txt $(OUT)/plot.svg $(OUT)/plot.png ## train and score, and show the table
	@cat $(OUT)/table.txt
	@echo
	@echo 'plots: $(OUT)/plot.svg, $(OUT)/plot.png; numbers: $(OUT)/mlm.json'

.PHONY: mlm
