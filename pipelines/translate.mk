# SPDX-License-Identifier: MIT
#
# German to English over Multi30k (Elliott et al. 2016) with a GPT-2-shaped model:
#
#   make -f pipelines/translate.mk DATA=DIR
#
# DIR holds multi30k.{train,val,test_2016_flickr}.{de,en}.gz. A document is a German
# line and its translation below it; only the translation is learnt (dt-shard
# --loss-after the line feed). After each epoch the test set is translated by beam
# search, and scored beside copies of the source.
#
# PAIRS, TEST_PAIRS, EPOCHS, VOCAB_SIZE and SET make it smaller; LAUNCH stands before dt-train,
# as mpirun -n 2.
DATA       ?= $(error DATA=DIR must name the folder with multi30k.train.de.gz and the others)
OUT        ?= build/translate
CONFIG     ?= share/configs/text.yaml
VOCAB_SIZE ?= 6000
PAIRS      ?= 29000
TEST_PAIRS ?= 1000
EPOCHS     ?= 4
LAUNCH     ?=
BATCH      ?= 16
LENGTH     ?= 128
VAL        ?= 0.02
BEAMS      ?= 4
MOST       ?= 60
SET        ?= model.hidden_size=256 model.num_layers=4 model.num_heads=4 training.learning_rate=1e-3

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:
.DEFAULT_GOAL := summary
.NOTPARALLEL:
B           ?= build
export PATH := $(abspath $B/bin):$(PATH)

here  := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
timed  = $(here)/timed $(OUT)/seconds/$1
source = $(DATA)/multi30k.$1.gz

# The two languages of a part, as documents between lines of a character that none holds.
documents = paste -d '\n' <(zcat $(call source,$1.de) | head -n $2) <(zcat $(call source,$1.en) | head -n $2) | \
  awk '{ print } NR % 2 == 0 { print "\001" }' | \
  dt-clean -q --from sep --separator "$$(printf '\001')"

$(OUT)/train.jsonl: $(call source,train.de) $(call source,train.en)
	@mkdir -p $(@D)
	$(call documents,train,$(PAIRS)) -o $@

$(OUT)/tokenizer.json: $(OUT)/train.jsonl
	$(call timed,vocab) dt-vocab -q -s $(VOCAB_SIZE) -o $@ $<

# The id of the line feed, behind which there is something to learn.
$(OUT)/newline: $(OUT)/tokenizer.json
	@sed -nE 's/.*"Ċ": ?([0-9]+).*/\1/p' $< | head -n 1 >$@

$(OUT)/data/index.json: $(OUT)/train.jsonl $(OUT)/newline
	dt-tokenize -q -t $(OUT)/tokenizer.json $< | dt-shard -o $(OUT)/data --split val=$(VAL) \
	  --loss-after $$(cat $(OUT)/newline)

# Steps of an epoch: training tokens over those of a batch.
$(OUT)/epoch: $(OUT)/data/index.json
	@tokens=$$(dt-cat --json $(OUT)/data/train-*.dts | sed -E 's/.*"tokens":([0-9]+).*/\1/' | \
	  paste -sd + | bc); echo $$((tokens / ($(BATCH) * $(LENGTH)))) >$@

$(OUT)/run/finished: $(OUT)/epoch
	epoch=$$(cat $<); $(call timed,train) $(LAUNCH) dt-train --config $(CONFIG) \
	  --set model.max_seq_len=$(LENGTH) --set training.batch_size=$(BATCH) $(SET:%=--set %) \
	  --set training.max_steps=$$((epoch * $(EPOCHS))) --set training.warmup_steps=$$((epoch / 4 + 1)) \
	  --set training.save_interval=$$epoch --set checkpoint.keep_every=$$epoch \
	  --resume auto -t $(OUT)/tokenizer.json -o $(OUT)/run $(OUT)/data
	@touch $@

$(OUT)/test.%: $(call source,test_2016_flickr.de) $(call source,test_2016_flickr.en)
	@mkdir -p $(@D)
	zcat $(call source,test_2016_flickr.$*) | head -n $(TEST_PAIRS) >$@

# Every checkpoint of an epoch translates the test set.
$(OUT)/translations: $(OUT)/run/finished $(OUT)/test.de
	@rm -rf $@.new; mkdir -p $@.new
	sed 's/[\\"]/\\&/g; s/.*/{"prompt":"&\\n"}/' $(OUT)/test.de >$(OUT)/prompts.jsonl
	for e in $$(seq $(EPOCHS)); do \
	  step=$$(ls -d $(OUT)/run/step-* | sort | sed -n "$${e}p"); \
	  $(here)/timed $(OUT)/seconds/translate-$$e dt-generate -m "$$step" --prompts $(OUT)/prompts.jsonl \
	    -n $(MOST) --beams $(BEAMS) --stop $$'\n' -o $(OUT)/results.jsonl; \
	  sed -E 's/.*"text":"(.*)","tokens":.*/\1/; s/\\n.*//; s/\\(.)/\1/g' $(OUT)/results.jsonl \
	    >$@.new/epoch-$$e; \
	done
	@rm -rf $@; mv $@.new $@

$(OUT)/bleu.txt: $(OUT)/translations $(OUT)/test.en
	cp $(OUT)/test.de $(OUT)/translations/copy
	cd $(OUT)/translations && dt-eval -r ../test.en bleu copy epoch-* -o ../bleu.txt
	cd $(OUT)/translations && dt-eval -r ../test.en --json bleu copy epoch-* -o ../bleu.json

summary: $(OUT)/bleu.txt ## translate, and show the scores after each epoch
	@cat $<

remove: ## remove all that the experiment made
	rm -rf $(OUT)

.PHONY: summary remove
