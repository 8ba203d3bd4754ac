/* SPDX-License-Identifier: BSD-3-Clause */
/* Those who wait for a total, when it has moved. */
#include "slmpm/base/await.h"

void awaits_end(struct list *awaits)
{
	LIST_EACH_ENTRY(struct await, a, awaits, node)
		if (await_is_over(a)) {
			list_remove(&a->node);
			a->over(a);
		}
}
