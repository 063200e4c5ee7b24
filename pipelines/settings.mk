# SPDX-License-Identifier: MIT
#
# For each SETTINGS_STAGE that is defined before, a file $(OUT)/settings/STAGE that changes with it,
# for the rules of the stage to depend on. For other makefiles to include.

# (Of an empty name all would be in the root directory.)
$(if $(filter 1,$(words $(OUT))),,$(error OUT='$(OUT)': a directory is needed; make takes no blanks in a name))

# Written only if they differ, so that make -n is correct too. ($(file <...) of
# make 4.3 may damage texts of more than 200 bytes.)
same    = $(if $(subst x$1,,x$2)$(subst x$2,,x$1),,yes)
changed = $(if $(call same,$(shell cat '$1' 2>/dev/null),$2),,FORCE)

# A recipe ends at a line end, and $(shell cat) makes a space of it.
define newline


endef
setting  = $(subst $(newline), ,$(SETTINGS_$1))

settings := $(patsubst SETTINGS_%,$(OUT)/settings/%,$(filter SETTINGS_%,$(.VARIABLES)))
.SECONDEXPANSION:
$(settings): $(OUT)/settings/%: $$(call changed,$(OUT)/settings/$$*,$$(call setting,$$*))
	@mkdir -p $(@D) && printf '%s\n' '$(subst ','\'',$(call setting,$*))' >$@

FORCE:
.PHONY: FORCE
