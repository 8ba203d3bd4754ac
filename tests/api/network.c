/* SPDX-License-Identifier: BSD-3-Clause */
/* Networks: what their calls refuse. tests/unit/network.c has what they compute. */
#include <slmpm_network.h>

#include <string.h>

#include "tests/lib/actor.h"

static void refused(void)
{
	struct slmpm_network net = {.size = sizeof(net)}, kept;
	const uint32_t odd[3] = {5, 0, 0}, huge[3] = {65536, 65536, 1}, out[3] = {0, 3, 0};
	const uint32_t deep[3] = {31, 0, 0}, wide[3] = {1, 2, 0};
	uint32_t at[3];

	REFUSED(slmpm_network_make(NULL, 1, 8, NULL, 0), SLMPM_EINVAL, "no structure");
	REFUSED(slmpm_network_make(&net, 3, 8, NULL, 0), SLMPM_EINVAL, "kind 3");
	REFUSED(slmpm_network_make(&net, 1, 0, NULL, 0), SLMPM_EINVAL, "nodes from 1");
	REFUSED(slmpm_network_make(&net, 1, 0, huge, 0), SLMPM_EINVAL, "nodes from 1");
	REFUSED(slmpm_network_make(&net, 1, UINT32_MAX, NULL, 0), SLMPM_EINVAL, "nodes from 1");
	REFUSED(slmpm_network_make(&net, 1, 8, NULL, 8), SLMPM_EINVAL, "wrap 0x8");
	REFUSED(slmpm_network_make(&net, 1, 8, odd, 0), SLMPM_EINVAL, "do not make 8");
	REFUSED(slmpm_network_make(&net, 2, 8, odd, 0), SLMPM_EINVAL, "no extents");
	REFUSED(slmpm_network_make(&net, 2, 8, NULL, 1), SLMPM_EINVAL, "no extents");
	REFUSED(slmpm_network_make(&net, 2, 0, NULL, 0), SLMPM_EINVAL, "nodes from 1");
	REFUSED(slmpm_network_hops(&net, 0, 0), SLMPM_EINVAL, "no network");
	OK(slmpm_network_make(&net, 1, 27, NULL, 7));
	REFUSED(slmpm_network_coords(&net, 27, at), SLMPM_EINVAL, "node 27 of 27");
	REFUSED(slmpm_network_coords(&net, 0, NULL), SLMPM_EINVAL, "no place");
	REFUSED(slmpm_network_rank(&net, NULL), SLMPM_EINVAL, "no coordinates");
	REFUSED(slmpm_network_rank(&net, out), SLMPM_EINVAL, "0, 3, 0");
	REFUSED(slmpm_network_neighbour(&net, 0, 6), SLMPM_EINVAL, "link 6 of 6");
	REFUSED(slmpm_network_neighbour(NULL, 0, 0), SLMPM_EINVAL, "no structure");
	REFUSED(slmpm_network_next_hop(&net, 1, 99), SLMPM_EINVAL, "node 99");
	REFUSED(slmpm_network_hops(&net, 99, 1), SLMPM_EINVAL, "node 99");
	REFUSED(slmpm_network_channel(&net, 0, 7, 1), SLMPM_EINVAL, "link 7");
	for (uint32_t *word = &net.kind; word < net.extent + 3; word++) {
		kept = net;
		*word = *word == 7 ? 15 : 7;
		REFUSED(slmpm_network_hops(&net, 0, 0), SLMPM_EINVAL, "no network");
		net = kept;
	}
	OK(slmpm_network_make(&net, 1, 6, NULL, 7)); /* 3 x 2 x 1 */
	net.wrap = 7;
	REFUSED(slmpm_network_hops(&net, 0, 0), SLMPM_EINVAL, "no network");
	OK(slmpm_network_make(&net, 1, 3, NULL, 0));
	REFUSED(slmpm_network_neighbour(&net, 2, 0), SLMPM_ENOENT, "nowhere");
	REFUSED(slmpm_network_channel(&net, 2, 0, 0), SLMPM_ENOENT, "nowhere");
	REFUSED(slmpm_network_next_hop(&net, 2, 2), SLMPM_ENOENT, "itself");
	OK(slmpm_network_make(&net, 2, 2, NULL, 0));
	REFUSED(slmpm_network_neighbour(&net, 0, 2), SLMPM_ENOENT, "nowhere");
	REFUSED(slmpm_network_neighbour(&net, 0, 3), SLMPM_EINVAL, "link 3 of 3");
	REFUSED(slmpm_network_rank(&net, deep), SLMPM_EINVAL, "31, 0, 0");
	REFUSED(slmpm_network_rank(&net, wide), SLMPM_EINVAL, "1, 2, 0");
}

int main(void)
{
	refused();
	return 0;
}
