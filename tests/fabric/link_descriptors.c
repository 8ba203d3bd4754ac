/* SPDX-License-Identifier: BSD-3-Clause */
/* A link given up at any point of its connecting takes no descriptor with it that is not its
 * own. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "fabrics/registry.h"
#include "tests/lib/test.h"

#define MOST 256

/* Which descriptors are open. */
static void inspect(bool open[MOST])
{
	for (int fd = 0; fd < MOST; fd++)
		open[fd] = fcntl(fd, F_GETFD) >= 0;
}

static void give_up(const struct fabric *f, bool speak)
{
	bool before[MOST], after[MOST];
	struct fabric_domain *domain = calloc(1, f->domain_size);
	struct fabric_link *link = calloc(1, f->link_size);
	struct fabric_blob blob = {.fd = -1};

	CHECK(domain && link, "memory");
	inspect(before);
	domain->fabric = f;
	domain->config = (struct fabric_config){
		.segments = 1024, .segment_size = 64, .threshold_permille = 500};
	CHECK(f->open(domain) == 0, "%s: open", f->name);
	link->domain = domain;
	link->bell = -1;
	if (speak)
		CHECK(f->address(link, 0, &blob) == 0, "%s: address", f->name);
	f->disconnect(link);
	f->disconnect(link);
	f->close(domain);
	inspect(after);
	for (int fd = 0; fd < MOST; fd++)
		CHECK(before[fd] == after[fd], "%s: descriptor %d was %s", f->name, fd,
		      before[fd] ? "closed" : "left open");
	free(link);
	free(domain);
}

int main(void)
{
	struct fabric_caps caps;
	int tried = 0;

	/* Zero among them: memory that is cleared must not be taken for a descriptor. */
	CHECK(fcntl(0, F_GETFD) >= 0 || open("/dev/null", O_RDONLY) == 0, "no standard input");
	for (int i = 0; fabric_at(i); i++) {
		if (fabric_at(i)->probe(NULL, &caps) < 0)
			continue;
		give_up(fabric_at(i), false);
		give_up(fabric_at(i), true);
		tried++;
	}
	CHECK(tried, "no fabric works here");
	return 0;
}
