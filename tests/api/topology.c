/* SPDX-License-Identifier: BSD-3-Clause */
/* A topology that cannot be read, or is not there: who says so, and when. */
#include <string.h>

#include "tests/lib/actor.h"
#include "tests/lib/child.h"

/* What cannot be read is refused before anything is opened, by its line. */
static int unreadable_topology(void *unused)
{
	char path[] = "/tmp/slmpm_topology.XXXXXX", where[64];
	int fd = mkstemp(path);
	slmpm_ctx ctx;

	(void)unused;
	CHECK(fd >= 0 && dprintf(fd, "host here\n\tpci 03:00.0,03:0x.0\n") > 0, "a file");
	CHECK(setenv("SLMPM_TOPOLOGY", path, 1) == 0, "setenv");
	for (int i = 0; i < 2; i++)
		REFUSED(slmpm_open(&ctx, NULL), SLMPM_EINVAL, "pci: \"03:0x.0\" is no address");
	snprintf(where, sizeof(where), "%s:2: ", path);
	REFUSED(slmpm_open(&ctx, NULL), SLMPM_EINVAL, where);
	OK(unlink(path));
	return 0;
}

static int missing_topology(void *unused)
{
	struct slmpm_element_info info = {.size = sizeof(info)};
	slmpm_ctx ctx;

	(void)unused;
	CHECK(setenv("SLMPM_TOPOLOGY", "/nowhere/topology", 1) == 0, "setenv");
	OK(slmpm_open(&ctx, NULL));
	REFUSED(slmpm_element_query(1, &info), SLMPM_ENOENT, "/nowhere/topology");
	OK(slmpm_shut(ctx, PATIENCE));
	return 0;
}

static int folder(void *unused)
{
	struct slmpm_element_info info = {.size = sizeof(info)};

	(void)unused;
	CHECK(setenv("SLMPM_TOPOLOGY", "/", 1) == 0, "setenv");
	REFUSED(slmpm_element_query(1, &info), SLMPM_ESYSTEM, "SLMPM_TOPOLOGY=/: Is a directory");
	return 0;
}

int main(void)
{
	CHECK(child_run(unreadable_topology, NULL, 10) == 0, "unreadable: see above");
	CHECK(child_run(missing_topology, NULL, 10) == 0, "missing: see above");
	CHECK(child_run(folder, NULL, 10) == 0, "folder: see above");
	return 0;
}
