/* SPDX-License-Identifier: BSD-3-Clause */
/* Hellos: what each side says of itself, and the terms that come of both. */
#ifndef SLMPM_HELLO_H
#define SLMPM_HELLO_H

#include "slmpm/connect/control.h"

#define HELLO_PACKET_LEAST                                                                         \
	256 /* the head of an active message, a key, an announcement go into one */

/* As control_send. */
int hello_send(struct control *c);
/* Does it speak our language? 0, or refused. */
int hello_inspect(struct endpoint *ep, const struct wire_hello *hello);
/* What a peer, now known as one, wants: the smaller of each pair. 0, or refused. */
int hello_agree(struct control *c, const struct wire_hello *hello);

#endif
