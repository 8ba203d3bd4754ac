/* SPDX-License-Identifier: BSD-3-Clause */
/* What others see of a group (slmpm_groups_read), and since when a member has been waited for. */
#ifndef SLMPM_GROUP_PAGE_H
#define SLMPM_GROUP_PAGE_H

#include "slmpm/group/group.h"

/* As of parts: those of CTX that have formed, as they are now. */
void groups_publish(struct context *ctx);
/* G has formed: from now on they see it. */
void group_page_begin(struct group *g);
/* The group goes; the process is a child of its own. */
void group_page_free(struct group *g);
void group_page_forked(const struct group *g);

#define GROUP_WAITED 32
#define GROUP_STEPS  160

/* For texts, behind who is late: " for 0.300 s", for so long those that G waits for have not gone
 * on, at least TIMEOUT_MS where they have not begun what is waited for. */
void group_page_waited(struct group *g, int timeout_ms, char text[GROUP_WAITED]);
/* And, of few members on one machine, each one's last operation. */
void group_page_steps(const struct group *g, char text[GROUP_STEPS]);

#endif
