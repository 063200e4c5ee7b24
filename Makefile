# dt: raw text to a trained, measured language model.
# SPDX-License-Identifier: MIT
#
#   make          build the programs and engines into build/
#   make help     list the targets

CC       ?= cc
CFLAGS   ?= -O2 -g
PREFIX   ?= /usr/local
DESTDIR  ?=
PYTHON   ?= python3
-include config.mk

# A folder with gpt2.vocab.json and real corpora; tests that need it are skipped without.
TESTDATA ?=

B := build
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes \
            -Wmissing-prototypes -Wvla -Wundef
# No contraction: results must agree between machines that have FMA and compilers that use it.
DT_CFLAGS := -std=c11 -D_GNU_SOURCE -Ilib -fPIC -fno-math-errno -ffp-contract=off $(WARNINGS)
LIBS      := -lzstd -lz -lutf8proc -ljson-c -lyaml -lxxhash -lm -ldl -lpthread

MODULES  := base io text token shard device comm model train eval
LIB_SRC  := $(foreach m,$(MODULES),$(wildcard lib/$m/*.c))
LIB_OBJ  := $(LIB_SRC:%.c=$B/obj/%.o)
LIBDT    := $B/lib/libdt.a
TOOLS    := $(patsubst tools/%.c,%,$(wildcard tools/dt-*.c))
PROGRAMS := $(TOOLS:%=$B/bin/%)

# --- engines: one plug-in an instruction set ----------------------------------------------------
ARCH    := $(shell uname -m)
CPU_SRC := $(wildcard lib/device/cpu/*.c)
ifeq ($(ARCH),x86_64)
CPU_ISAS := generic avx2 avx512
else
CPU_ISAS := generic
endif
ISA_generic :=
ISA_avx2    := -march=x86-64-v3
ISA_avx512  := -march=x86-64-v4 -mprefer-vector-width=512
ENGINE_CFLAGS := $(filter-out -ffp-contract=off,$(DT_CFLAGS)) -ffp-contract=fast -fopenmp \
                 -fvisibility=hidden -O3
ENGINES := $(if $(CPU_SRC),$(CPU_ISAS:%=$B/lib/dt/cpu-%.so))

# --- tests --------------------------------------------------------------------------------------
UNIT_SRC := $(wildcard tests/*/test-*.c)
UNITS    := $(UNIT_SRC:tests/%.c=$B/tests/%)
BATS     := $(wildcard tests/*/*.bats)

all: $(PROGRAMS) $(ENGINES) share ## build programs and engines into build/

share:
	@mkdir -p $B/share && ln -sfn ../../share $B/share/dt

$B/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(DT_CFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(LIBDT): $(LIB_OBJ)
	@mkdir -p $(@D)
	@rm -f $@
	$(AR) rcs $@ $^

$B/bin/%: $B/obj/tools/%.o $(LIBDT)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(LDFLAGS) $< $(LIBDT) -Wl,--as-needed $(LIBS) -o $@

define engine_rules
$B/obj/cpu-$1/%.o: lib/device/cpu/%.c
	@mkdir -p $$(@D)
	$$(CC) $$(ENGINE_CFLAGS) $$(filter-out -O%,$$(CFLAGS)) $$(ISA_$1) -DDT_ISA='"$1"' -MMD -MP -c $$< -o $$@
$B/lib/dt/cpu-$1.so: $(CPU_SRC:lib/device/cpu/%.c=$B/obj/cpu-$1/%.o)
	@mkdir -p $$(@D)
	$$(CC) $$(CFLAGS) $$(LDFLAGS) -shared -fopenmp $$^ -Wl,-z,defs -ldnnl -lm -o $$@
endef
$(foreach i,$(CPU_ISAS),$(eval $(call engine_rules,$i)))

$B/tests/%: tests/%.c $(LIBDT)
	@mkdir -p $(@D)
	$(CC) $(DT_CFLAGS) -Itests $(CFLAGS) $(LDFLAGS) -MMD -MP $< $(LIBDT) -Wl,--as-needed $(LIBS) -lcmocka -o $@

check: all $(UNITS) check-deps ## run every test; ends with "N passed, M failed, K skipped"
	TESTDATA='$(TESTDATA)' PYTHON='$(PYTHON)' tests/run $(UNITS) $(BATS)

check-deps: ## modules include each other only as lib/layers says
	@tests/check-deps

check-headers: ## each public header compiles alone
	@for h in $(wildcard lib/*/*.h); do \
	  $(CC) $(DT_CFLAGS) -fsyntax-only -x c $$h 2>&1 | grep -v 'pragma once' || true; done | \
	  if grep .; then exit 1; else echo "headers: each compiles alone"; fi

format: ## reformat the C sources
	clang-format -i $(shell git ls-files '*.c' '*.h')

clean: ## remove build/
	rm -rf $B

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 16

.PHONY: all share check check-deps check-headers format clean help
-include $(shell find $B -name '*.d' 2>/dev/null)
