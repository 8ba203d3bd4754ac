/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles by address. A part of <slmpm.h>.
 *
 * An accelerator has several addresses, each of which stands for a way to it:
 * "pci:0000:03:00.0" for shared memory on this machine's bus, "mac:02:00:00:00:00:01" and
 * "ip:192.0.2.1" for the network that its end of a link is on, and "id:HOST/ELEMENT", unique among
 * all, for none in particular. The handle that is looked up by one gives a hint (SLMPM_ON_LINK) to
 * messages, active messages and loans that are asked for with it, of what a work queue made with it
 * sends, and of operations on regions opened with it. To all other calls each handle is the peer:
 * there is one order of messages, whatever they were sent with.
 */
#ifndef SLMPM_API_ADDRESS_H
#define SLMPM_API_ADDRESS_H

#include <slmpm.h>

#ifdef __cplusplus
extern "C" {
#endif

struct slmpm_address {
	uint32_t size;
	uint32_t link;   /* its link, from 0; SLMPM_LINK_ANY: of an id */
	char fabric[16]; /* of that link, or "" */
	char text[96];
};

/* A handle of the peer of CTX that has ADDRESS. "/3" behind a mac: or ip: that several elements
 * have means element 3. One that several links of the peer have: by any of them, if it has no
 * others, else by the first. SLMPM_ENOENT: no connected peer has it; SLMPM_EINVAL: several have;
 * SLMPM_EADDRESS: it is none. Nothing is to be given back; neither of these two blocks. */
SLMPM_API int slmpm_peer_find(slmpm_peer *peer, slmpm_ctx ctx, const char *address);
/* Address I of PEER, from 0, as far as they are known here; SLMPM_ENOENT behind the last. */
SLMPM_API int slmpm_peer_address(slmpm_peer peer, int i, struct slmpm_address *address);

#ifdef __cplusplus
}
#endif

#endif
