/* SPDX-License-Identifier: BSD-3-Clause */
/* What a call asks for beyond its arguments, in full. */
#include "slmpm/completion/how.h"

#include "slmpm/base/error.h"
#include "slmpm/base/sized.h"
#include "slmpm/mode/mode_hint.h"
#include "shm/compiler.h"

int how_take(const char *call, struct slmpm_how *full, const struct slmpm_how *how, uint32_t flags)
{
	if (!how) {
		*full = (struct slmpm_how){.size = sizeof(*full), .timeout_ms = -1};
		return 0;
	}
	if (LIKELY(how->size == sizeof(*full)))
		*full = *how;
	else if (sized_take(call, full, how, sizeof(*full)) < 0)
		return -SLMPM_EINVAL;
	if (full->flags & ~flags || !mode_hint_is_sound(full->flags))
		return error_set(SLMPM_EINVAL, "%s: flags 0x%x", call, full->flags);
	return 0;
}
