/* SPDX-License-Identifier: BSD-3-Clause */
/* Active messages: they run a handler at the receiver. A part of <slmpm.h>. */
#ifndef SLMPM_API_AM_H
#define SLMPM_API_AM_H

#include <slmpm.h>

#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a struct and a call share a name */
extern "C" {
#endif

#define SLMPM_AM_ID_MAX   0xfeff /* highest handler number; those above are the library's */
#define SLMPM_AM_HEAD_MAX 256    /* bytes */

struct slmpm_am { /* the library's, valid during the handler's call; it may grow at its end */
	slmpm_peer peer;
	const void *head, *data;
	size_t head_len, data_len;
	uint16_t id;
	uint16_t reserved[3];
};

/* Runs inside whatever call of the receiver makes progress. It may send, post, put and reply
 * without blocking; a call of the same context that would block is SLMPM_ESTATE. */
typedef void slmpm_am_fn(const struct slmpm_am *am, void *arg);

/* Handler number ID of CTX from now on; FN NULL: none. An active message without handler is counted
 * and dropped; its sender learns that if it has asked by SLMPM_REMOTE. */
SLMPM_API int slmpm_am_handler(slmpm_ctx ctx, uint16_t id, slmpm_am_fn *fn, void *arg);
/* Runs handler ID at PEER with HEAD (copied, up to SLMPM_AM_HEAD_MAX bytes) and DATA (0 bytes to
 * SLMPM_MESSAGE_MAX), in the order of what is sent to that peer. Done when DATA is the caller's
 * again; with SLMPM_REMOTE when the handler has run and what it replied has come, or with
 * SLMPM_ENOENT: PEER has no such handler; SLMPM_ELIMIT: it is over SLMPM_AM_MAX there. HOW's flags:
 * SLMPM_MORE, SLMPM_REMOTE, SLMPM_ON_LINK, SLMPM_STRICT. Source: GASNet's short, medium and long
 * requests; UCX. */
SLMPM_API int slmpm_am(slmpm_peer peer, uint16_t id, const void *head, size_t head_len,
		       const void *data, size_t len, const struct slmpm_how *how, slmpm_req *req);
/* From inside a handler: an active message back to its sender. Never blocks; HEAD and DATA are
 * copied. SLMPM_ENOMEM. */
SLMPM_API int slmpm_am_reply(const struct slmpm_am *am, uint16_t id, const void *head,
			     size_t head_len, const void *data, size_t len);

#ifdef __cplusplus
}
#pragma GCC diagnostic pop
#endif

#endif
