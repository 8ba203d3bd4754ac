/* SPDX-License-Identifier: BSD-3-Clause */
/* A monitor's page that nobody of ours wrote: nonsense is bounded, what could be cut is refused. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/actor.h"

#define PAGE 65536

struct head { /* as doc/wire.md has it */
	uint64_t magic;
	uint32_t version, pid, entries, entry_size, place_size, known, aggregate_place,
		aggregate_known;
	uint64_t zero[3];
};

static unsigned char *make_page(int *fd, int seals)
{
	unsigned char *page;

	*fd = memfd_create("slmpm-monitor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CHECK(*fd >= 0 && ftruncate(*fd, PAGE) == 0, "no memory");
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	CHECK(page != MAP_FAILED && fcntl(*fd, F_ADD_SEALS, seals) == 0, "no page");
	return page;
}

/* Of an owner that changes its mind once the page has been opened, too. */
static void read_nonsense(unsigned char *page)
{
	struct slmpm_monitors *monitors;
	struct slmpm_monitor m;
	struct slmpm_aggregate aggregate;

	OK(slmpm_monitors_open(getpid(), &monitors));
	for (int i = 0; i < 2; i++) {
		EXPECT(slmpm_monitors_read(monitors, i, &m, sizeof(m)), 1);
		EXPECT(m.size, sizeof(m));
		CHECK(strlen(m.name) < sizeof(m.name) && strlen(m.link) < sizeof(m.link), "text");
		CHECK(m.path_count <= SLMPM_MONITOR_PATHS, "%u links", m.path_count);
		CHECK(strlen(m.paths[3].link) < sizeof(m.paths[3].link), "text");
	}
	EXPECT(slmpm_monitors_aggregate(monitors, &aggregate, sizeof(aggregate)), 1);
	EXPECT(aggregate.size, sizeof(aggregate));
	CHECK(strlen(aggregate.fabrics[3].name) < sizeof(aggregate.fabrics[3].name), "text");
	/* Too late, but for which entries have no memory. */
	memset(page, 0xff, sizeof(struct head));
	EXPECT(slmpm_monitors_read(monitors, 1, &m, sizeof(m)), 0);
	REFUSED(slmpm_monitors_read(monitors, 2, &m, sizeof(m)), SLMPM_ENOENT, "link 2");
	REFUSED(slmpm_monitors_read(monitors, -1, &m, sizeof(m)), SLMPM_ENOENT, "link -1");
	REFUSED(slmpm_monitors_read(monitors, INT32_MAX, &m, sizeof(m)), SLMPM_ENOENT, "link");
	slmpm_monitors_close(monitors);
}

/* Whatever a head says. */
static void read_all(void)
{
	struct slmpm_monitors *monitors;
	struct slmpm_monitor m;
	struct slmpm_aggregate aggregate;
	int rc = slmpm_monitors_open(getpid(), &monitors);

	CHECK(rc == 0 || rc == -SLMPM_ENOENT || rc == -SLMPM_EVERSION, "%d", rc);
	if (rc < 0)
		return;
	for (int k = 0; k < 100000; k++)
		if (slmpm_monitors_read(monitors, k, &m, sizeof(m)) == -SLMPM_ENOENT)
			break;
	(void)slmpm_monitors_aggregate(monitors, &aggregate, sizeof(aggregate));
	slmpm_monitors_close(monitors);
}

static struct head good_head(void)
{
	return (struct head){
		.magic = UINT64_C(0x314e4d4d504d4c53),
		.version = 3,
		.pid = (uint32_t)getpid(),
		.entries = 2,
		.entry_size = 20064,
		.place_size = 10000,
		.known = 9000,
	};
}

static void nonsense_is_bounded(void)
{
	struct head good = good_head();
	int fd;
	unsigned char *page = make_page(&fd, F_SEAL_SHRINK | F_SEAL_GROW);

	good.aggregate_place = good.aggregate_known = 2000;
	memset(page, 0xff, PAGE);
	memcpy(page, &good, sizeof(good));
	read_nonsense(page);
	srand(1);
	for (int i = 0; i < 2000; i++) {
		struct head bad = good;
		uint32_t *field = &bad.version + rand() % 8;

		*field = rand() % 2 ? (uint32_t)rand() << rand() % 32 :
				      *field + (uint32_t)(rand() % 64) - 32;
		memcpy(page, &bad, sizeof(bad));
		read_all();
	}
	munmap(page, PAGE);
	close(fd);
}

#define MANY 40 /* more than of one process are looked at */

/* Each with two links, all of them sound. */
static void many_pages(void)
{
	struct head h = good_head();
	struct slmpm_monitors *monitors;
	struct slmpm_monitor m;
	unsigned char *pages[MANY];
	int fds[MANY], n = 0;

	for (int i = 0; i < MANY; i++) {
		pages[i] = make_page(&fds[i], F_SEAL_SHRINK);
		memcpy(pages[i], &h, sizeof(h));
	}
	OK(slmpm_monitors_open(getpid(), &monitors));
	while (n < 1000 && slmpm_monitors_read(monitors, n, &m, sizeof(m)) >= 0)
		n++;
	EXPECT(n, 2 * 32);
	slmpm_monitors_close(monitors);
	for (int i = 0; i < MANY; i++) {
		munmap(pages[i], PAGE);
		close(fds[i]);
	}
}

/* It says that there are some, behind its end. */
static void means_beyond(void)
{
	struct head h = good_head();
	struct slmpm_monitors *monitors;
	struct slmpm_aggregate aggregate;
	int fd;
	unsigned char *page = make_page(&fd, F_SEAL_SHRINK);

	h.aggregate_place = 1 << 20;
	h.aggregate_known = 1 << 20;
	memcpy(page, &h, sizeof(h));
	memset(page + sizeof(h), 1, PAGE - sizeof(h));
	OK(slmpm_monitors_open(getpid(), &monitors));
	EXPECT(slmpm_monitors_aggregate(monitors, &aggregate, sizeof(aggregate)), 0);
	slmpm_monitors_close(monitors);
	munmap(page, PAGE);
	close(fd);
}

static void refused_pages(void)
{
	struct slmpm_monitors *monitors;
	struct head h = good_head();
	int fd;
	unsigned char *page = make_page(&fd, F_SEAL_GROW); /* it could be cut under the reader */

	memcpy(page, &h, sizeof(h));
	REFUSED(slmpm_monitors_open(getpid(), &monitors), SLMPM_ENOENT, "no links");
	close(fd);
	munmap(page, PAGE);
	page = make_page(&fd, F_SEAL_SHRINK);
	h.version = 1;
	memcpy(page, &h, sizeof(h));
	REFUSED(slmpm_monitors_open(getpid(), &monitors), SLMPM_EVERSION, "another version");
	close(fd);
	munmap(page, PAGE);
	REFUSED(slmpm_monitors_open(0, &monitors), SLMPM_EINVAL, "process 0");
	REFUSED(slmpm_monitors_open(getpid(), NULL), SLMPM_EINVAL, "result");
	if (getuid()) /* root may look at all */
		REFUSED(slmpm_monitors_open(1, &monitors), SLMPM_EACCES, "another user's");
}

int main(void)
{
	refused_pages();
	nonsense_is_bounded();
	many_pages();
	means_beyond();
	return 0;
}
