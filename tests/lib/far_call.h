/* SPDX-License-Identifier: BSD-3-Clause */
/* What the holder of a far end is asked to do (far.h), and how a fabric's structures travel. */
#ifndef TESTS_LIB_FAR_CALL_H
#define TESTS_LIB_FAR_CALL_H

#include "fabrics/fabric.h"
#include "tests/lib/parcel.h"

/*
 * First number of a call; then the object's, which is its name on both sides, and what the function
 * of the fabric's table takes. The answer of a link's begins with far_put_state.
 */
enum far_call {
	FAR_HELD, /* how many descriptors and mappings that process has */
	FAR_OPEN, /* domain, the fabric's name, its config: result, its descriptor where there is one */
	FAR_CLOSE,
	FAR_ARM,
	FAR_LINK, /* link, domain, active; the bell: makes one */
	FAR_ADDRESS,
	FAR_CONNECT,
	FAR_DISCONNECT,
	FAR_RESERVE,
	FAR_POST,
	FAR_POLL,
	FAR_RELEASE,
};

void far_put_config(struct parcel *p, const struct fabric_config *c);
void far_get_config(struct parcel *p, struct fabric_config *c);
void far_put_blob(struct parcel *p, const struct fabric_blob *b);
void far_get_blob(struct parcel *p, struct fabric_blob *b);
/* What a link shows. TEXTS: room for what violation and lost are to point to. */
#define FAR_TEXT 128
void far_put_state(struct parcel *p, const struct fabric_link *l);
void far_get_state(struct parcel *p, struct fabric_link *l, char texts[2][FAR_TEXT]);
/* Without its data. */
void far_put_arrival(struct parcel *p, const struct fabric_arrival *a);
void far_get_arrival(struct parcel *p, struct fabric_arrival *a);

#endif
