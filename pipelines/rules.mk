# SPDX-License-Identifier: MIT
#
# The stages from text to a trained model, for experiments to include. An
# experiment sets the variables below, has STORY_COUNT or a rule for $(OUT)/corpus
# (JSON Lines or whatever CLEAN_FLAGS tells dt-clean to read) unless CORPUS=FILE is
# given, and includes this file:
#
#   corpus ─clean─> documents.jsonl ─vocab─> tokenizer.json
#                        └─tokenize, shard─> data/ ─train─> run/ ─┬─ eval.json
#                                                                 ├─ story-1.txt ...
#                                                                 └─ loss.svg, loss.png
#
# Outputs of stages are atomic; the wall time in seconds is in $(OUT)/seconds/STAGE. A stage
# runs again if its inputs or settings changed; interrupted training resumes from its
# checkpoint.

NAME        ?= $(error set NAME, the name of the experiment)
$(if $(filter-out small full,$(SIZE)),$(error SIZE='$(SIZE)': small or full))
OUT         ?= build/$(NAME)
CONFIG      ?= share/configs/demo.yaml
# number of stories of dt-synth to train on, and to score; none: the experiment has a corpus
STORY_COUNT ?=
STORY_SEED  ?= 0
HELD_OUT    ?=
HELD_SEED   ?= $(shell echo $$(($(STORY_SEED) + 1)))
CLEAN_FLAGS ?=
VOCAB_SIZE  ?= 1536
VOCAB_FLAGS ?=
SPLIT_FLAGS ?= --split val=0.02
# a tokenizer.json to use instead of training one
TOKENIZER   ?=
# before dt-train: mpirun -n 8, srun, ...
LAUNCH      ?=
# key=value settings of dt-train that replace those of CONFIG
SET         ?=
# warm-up steps, for experiments whose SET uses them
WARMUP      ?= 20
# what dt-eval scores: documents, or shards with their flags
EVAL_DATA   ?= $(OUT)/data
EVAL_FLAGS  ?= --split val
PROMPT      ?=
LENGTH      ?= 250
TEMPERATURE ?= 0.8
STORIES     ?= 1 2 3
export PROMPT

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.SUFFIXES:
.DEFAULT_GOAL := summary
# One stage at a time, since each uses all processors and is timed.
.NOTPARALLEL:
B           ?= build
export PATH := $(abspath $B/bin):$(PATH)
# mpirun in a container
export OMPI_ALLOW_RUN_AS_ROOT := 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM := 1

here   := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
timed   = $(here)/timed $(OUT)/seconds/$1

corpus_problem = $(shell $(here)/corpus-problem '$(subst ','\'',$(CORPUS))')

# --- settings: for each SETTINGS_STAGE a file that changes with it      --------------------------
SETTINGS_synth = $(strip $(STORY_COUNT) $(STORY_SEED))
SETTINGS_held  = $(strip $(HELD_OUT) $(HELD_SEED) $(HELD))
SETTINGS_clean = $(CLEAN_FLAGS)
SETTINGS_input = $(CORPUS)
SETTINGS_vocab = $(strip $(TOKENIZER) $(VOCAB_FLAGS) $(VOCAB_SIZE))
SETTINGS_shard = $(SPLIT_FLAGS)
SETTINGS_train = $(CONFIG) $(SET)
SETTINGS_eval  = $(EVAL_DATA) $(EVAL_FLAGS)
SETTINGS_story = $(PROMPT) $(LENGTH) $(TEMPERATURE)

include $(here)/settings.mk

# --- stages -------------------------------------------------------------------------------------
ifneq ($(origin CORPUS),undefined)
# (The link has the time of its file, which may be older than the settings.)
$(OUT)/corpus: $(if $(corpus_problem),$(error CORPUS='$(CORPUS)': $(corpus_problem)),$(CORPUS)) \
    $(if $(call same,$(shell readlink '$(OUT)/corpus'),$(abspath $(CORPUS))),,FORCE)
	mkdir -p $(@D)
	ln -sfn '$(abspath $(CORPUS))' $@
else ifneq ($(STORY_COUNT),)
$(OUT)/corpus: $(OUT)/settings/synth
	$(call timed,synth) dt-synth -n $(STORY_COUNT) --seed $(STORY_SEED) -o $@

# Stories of another seed: documents that the model has not seen, of known probability.
$(OUT)/held-out.jsonl: $(OUT)/settings/held $(OUT)/settings/clean
	dt-synth -n $(HELD_OUT) --seed $(HELD_SEED) | dt-clean -q $(CLEAN_FLAGS) -o $@
endif

$(OUT)/documents.jsonl: $(OUT)/corpus $(OUT)/settings/input $(OUT)/settings/clean
	$(call timed,clean) dt-clean $(CLEAN_FLAGS) --stats $(OUT)/clean.json -o $@ $<

ifneq ($(TOKENIZER),)
$(OUT)/tokenizer.json: $(TOKENIZER) $(OUT)/settings/vocab
	@mkdir -p $(@D)
	cp '$<' $@
else
$(OUT)/tokenizer.json: $(OUT)/documents.jsonl $(OUT)/settings/vocab
	$(call timed,vocab) dt-vocab $(VOCAB_FLAGS) -s $(VOCAB_SIZE) -o $@ $<
endif

$(OUT)/data/index.json: $(OUT)/tokenizer.json $(OUT)/documents.jsonl $(OUT)/settings/shard
	dt-tokenize -t $(OUT)/tokenizer.json $(OUT)/documents.jsonl | \
	  $(call timed,shard) dt-shard -o $(OUT)/data $(SPLIT_FLAGS)

# With new data or settings a new run starts, and the previous one is kept in run.before;
# otherwise --resume auto resumes.
$(OUT)/run/begun: $(OUT)/data/index.json $(CONFIG) $(OUT)/settings/train
	@if [ -e $(OUT)/run ]; then rm -rf $(OUT)/run.before; mv $(OUT)/run $(OUT)/run.before; fi
	@mkdir -p $(OUT)/run
	@touch $@

$(OUT)/run/finished: $(OUT)/run/begun
	$(call timed,train) $(LAUNCH) dt-train --config $(CONFIG) $(SET:%=--set %) --resume auto \
	  -t $(OUT)/tokenizer.json -o $(OUT)/run $(OUT)/data
	@touch $@

$(OUT)/eval.json: $(OUT)/run/finished $(OUT)/settings/eval $(filter %.jsonl,$(EVAL_DATA))
	$(call timed,eval) dt-eval -m $(OUT)/run/latest --json -o $@ $(EVAL_FLAGS) perplexity $(EVAL_DATA)

# --floor LOSS, if the documents have probabilities.
$(OUT)/floor: $(OUT)/eval.json
	@sed -nE 's/.*"floor": ?([0-9][-+.0-9e]*).*/--floor \1/p' $< >$@

$(OUT)/story-%.txt: $(OUT)/run/finished $(OUT)/settings/story
	$(call timed,story-$*) dt-generate -m $(OUT)/run/latest -p "$$PROMPT" -n $(LENGTH) \
	  --temperature $(TEMPERATURE) --seed $* -o $@

$(OUT)/loss.%: $(OUT)/run/finished $(OUT)/floor
	$(call timed,plot-$*) dt-plot loss $(OUT)/run --title '$(NAME)' --log y $$(cat $(OUT)/floor) -o $@

outputs := $(OUT)/eval.json $(STORIES:%=$(OUT)/story-%.txt) $(OUT)/loss.svg $(OUT)/loss.png

summary: $(outputs) ## run what is not up to date, and show what came of it
	@$(here)/summary $(OUT) $(STORIES)

remove: ## remove all that the experiment made
	rm -rf $(OUT)

.PHONY: summary remove
