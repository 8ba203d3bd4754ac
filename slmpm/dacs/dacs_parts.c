/* SPDX-License-Identifier: BSD-3-Clause */
/* The one place that knows all families of calls. */
#include "slmpm/dacs/dacs_dma.h"

/* What was under way with it is noticed to have ended first. */
static void process_gone(struct dacsi_process *process)
{
	(void)dacsi_dma_poll_all();
	dacsi_object_forget(process);
}

const struct dacsi_parts dacsi_parts = {
	.kinds = {[DACSI_REMOTE] = &dacsi_region_kind,
		  [DACSI_MEM] = &dacsi_region_kind,
		  [DACSI_MUTEX] = &dacsi_mutex_kind,
		  [DACSI_GROUP] = &dacsi_group_kind},

	.attend = dacsi_dma_poll_all,
	.settle = dacsi_object_settle,
	.settle_mail = dacsi_mailbox_settle,
	.match = dacsi_message_match,

	.fail = dacsi_message_fail,
	.gone = process_gone,
};
