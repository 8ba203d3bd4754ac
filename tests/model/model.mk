# SPDX-License-Identifier: BSD-3-Clause
#
# The model checker: the ring's source once more, with its accesses handed to tests/model/hooks.h.
# It has stacks of its own making, so neither sanitizers nor emulators run it.

MODEL_OBJ := $(patsubst %.c,$(OBJ)/%.o,$(wildcard tests/model/*.c)) $(OBJ)/tests/model/ring.o
$(MODEL_OBJ): CPPFLAGS += -DSLMPM_MODEL
$(MODEL_OBJ): OPT := -O2 -g
$(MODEL_OBJ): SAN_FLAGS :=

ifeq ($(SAN)$(CROSS),)
MODEL_TESTS := tests/model/check.c
MODEL_BIN   := $(OUT)/tests/model/check
endif

$(OBJ)/tests/model/ring.o: shm/ring.c $(OUT)/gen/flags
	$(call say,CC,$< (model))
	@mkdir -p $(@D)
	$(Q)$(COMPILE) -c $< -o $@

$(OUT)/tests/model/check: $(MODEL_OBJ)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(LINK) $(MODEL_OBJ) -o $@
