# SPDX-License-Identifier: MIT
#
# Comparisons of training runs. An experiment sets these variables, besides those of rules.mk, and
# includes this file:
#
#   COMPARISONS       their names; for each NAME of them
#   AXES_NAME         its axes, as layers=1,2,4 (dt-bench(1))
#   SET_NAME          settings that name the axes, as model.num_layers={layers}
#   BASELINE_NAME     the baseline value of ratios, as layers=1; may be empty
#   CHECK_NAME        a program that reads its rows, and prints a line below the table
#   PLOT_NAME         arguments of dt-plot, as: bars -v tokens_per_second
#   SET               settings that all runs share
#   SHOW              the values of the table
#   REPEATS           rounds, each with another seed; significance (dt-bench(1)) needs 6
#   TARGET            a validation loss: the table shows when it is reached; may be empty
#   LAUNCH            before dt-train: nothing, or mpirun -n {ranks}, or srun -n {ranks}
#   SIZE              small (minutes on two cores), or full
#
#   corpus ─ rules.mk ─> data/ ─dt-bench matrix of dt-train─> NAME/rows.jsonl ─┬─ NAME.md, NAME.json
#                                                       NAME/runs/CELL/ROUND   └─ NAME.svg, NAME-loss.svg, .png
#
# A comparison that was interrupted, or has more values or repeats, continues; with new data
# or settings a new one starts, and the previous one is kept in NAME.before.
SIZE        ?= small
REPEATS     ?= $(if $(filter full,$(SIZE)),2,6)
SHOW        ?= loss val_loss tokens_per_second peak_bytes
TARGET      ?=
STORY_COUNT ?= $(if $(filter full,$(SIZE)),400000,8000)
VOCAB_SIZE  ?= $(if $(filter full,$(SIZE)),8192,1024)
CONFIG      ?= $(if $(filter full,$(SIZE)),share/configs/llama-15m.yaml,share/configs/demo.yaml)
CLEAN_FLAGS ?= --normalize nfc --dedup
$(foreach c,$(COMPARISONS),\
  $(eval SETTINGS_run-$c = $$(CONFIG) $$(SET) $$(SET_$c) $$(LAUNCH) $$(TARGET))\
  $(eval SETTINGS_rounds-$c = $$(AXES_$c) $$(REPEATS) $$(BASELINE_$c) $$(SHOW)))

comparisons:

include pipelines/rules.mk
.DEFAULT_GOAL := comparisons

# Of the plots and the table of a comparison.
title = $(if $(filter $(NAME),$1),,$(NAME): )$1

COMMIT := $(shell git rev-parse --short HEAD 2>/dev/null)

# $1: a comparison
define comparison
$(OUT)/$1/begun: $(OUT)/data/index.json $(CONFIG) $(OUT)/settings/run-$1
	@if [ -e $$(@D) ]; then rm -rf $$(@D).before; mv $$(@D) $$(@D).before; fi
	@mkdir -p $$(@D)
	@touch $$@

$(OUT)/$1/finished: $(OUT)/$1/begun $(OUT)/settings/rounds-$1
	dt-bench matrix -q -o $$(@D)/rows.jsonl --repeats $(REPEATS) --warmup 0 --note commit=$(COMMIT) \
	  $(AXES_$1:%=--axis %) $(BASELINE_$1:%=--baseline %) $(SHOW:%=--value %) \
	  --metrics $$(@D)/runs/{cell}/{round}/metrics.jsonl $(TARGET:%=--target val_loss=%) -- \
	  $(LAUNCH) dt-train -q --config $(CONFIG) $(SET:%=--set %) $(SET_$1:%=--set %) \
	    --set training.seed={seed} --set tracking.run_name={cell} --set training.save_interval=0 \
	    -t $(OUT)/tokenizer.json -o $$(@D)/runs/{cell}/{round} $(OUT)/data >$(OUT)/$1.txt
	@touch $$@

$(OUT)/$1.md: $(OUT)/$1/finished
	dt-bench report --format markdown $(OUT)/$1/rows.jsonl >$$@
	$(CHECK_$1:%=% $(OUT)/$1/rows.jsonl >>$$@)

$(OUT)/$1.json: $(OUT)/$1/finished
	dt-bench report --json $(OUT)/$1/rows.jsonl >$$@

$(OUT)/$1-loss.%: $(OUT)/$1/finished
	dt-plot loss $(OUT)/$1/runs/*/1 --title '$(title)' -o $$@

$(OUT)/$1.svg $(OUT)/$1.png: $(OUT)/$1.%: $(OUT)/$1/finished
	dt-plot $(PLOT_$1) $(OUT)/$1/rows.jsonl --title '$(title)' -o $$@
endef
$(foreach c,$(COMPARISONS),$(eval $(call comparison,$c)))

results := $(foreach c,$(COMPARISONS),$(addprefix $(OUT)/$c,.md .json .svg .png -loss.svg -loss.png))

comparisons: $(results) ## run what is not up to date, and show the tables
	@$(foreach c,$(COMPARISONS),echo; echo '$(call title,$c)'; dt-bench report $(OUT)/$c/rows.jsonl; \
	  $(CHECK_$c:%=% $(OUT)/$c/rows.jsonl;)) :
	@echo; echo 'tables, JSON and plots: $(COMPARISONS:%=$(OUT)/%.{md,json,svg,png})'

.PHONY: comparisons
