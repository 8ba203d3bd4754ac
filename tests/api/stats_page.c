/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics from outside: entries that are used again, and pages whose owner lies. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <slmpm_monitor.h>

#include "tests/lib/actor.h"

#define ENTRY 64
#define MAGIC UINT64_C(0x3154534d504d4c53) /* "SLMPMST1", little-endian */

/* ---- many peers, one after the other ---- */

/* Entries of this process that have sent N messages. */
static int entries_with(uint64_t n, uint32_t *used)
{
	const struct slmpm_stats_page *page;
	const struct slmpm_stats *s;
	int found = 0;

	OK(slmpm_stats_attach(getpid(), 0, &page));
	for (uint32_t i = 0; (s = slmpm_stats_of(page, i)); i++)
		found += s->sent_messages == n;
	*used = page->peers;
	slmpm_stats_detach(page);
	return found;
}

static void entries_are_used_again(void)
{
	slmpm_peer keep[2], a, b;
	uint32_t used;
	slmpm_ctx ctx;

	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &keep[0], &keep[1]);
	for (int i = 0; i < 1000; i++)
		OK(slmpm_send(keep[0], 1, NULL, 0, PATIENCE));
	for (int i = 0; i < SLMPM_STATS_PEERS_MAX; i++) {
		actor_pair(ctx, &a, &b);
		for (int n = 0; n < i + 1; n++)
			OK(slmpm_send(a, 1, NULL, 0, PATIENCE));
		EXPECT(entries_with((uint64_t)i + 1, &used), 1);
		EXPECT(entries_with(1000, &used), 1);
		CHECK(used <= SLMPM_STATS_PEERS_MAX, "%u entries", used);
		OK(slmpm_close(a, PATIENCE));
		OK(slmpm_close(b, PATIENCE));
	}
	EXPECT(used, SLMPM_STATS_PEERS_MAX);
	OK(slmpm_shut(ctx, PATIENCE));
}

/* ---- memory ---- */

/* Bytes of all pages that this process shows; of those in MEMORY those that have any. */
static size_t shown(size_t *memory)
{
	size_t all = 0;

	*memory = 0;
	for (int fd = 3; fd < 64; fd++) {
		char path[32], name[64] = "";
		struct stat st;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (readlink(path, name, sizeof(name) - 1) < 0 || fstat(fd, &st) != 0)
			continue;
		if (!strstr(name, "slmpm-stats") && !strstr(name, "slmpm-monitor") &&
		    !strstr(name, "slmpm-totals"))
			continue;
		all += (size_t)st.st_size;
		*memory += (size_t)st.st_blocks * 512;
	}
	return all;
}

static void what_is_never_shown_takes_no_memory(void)
{
	size_t all, few, many;
	slmpm_peer a, b;
	slmpm_ctx ctx;

	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &a, &b);
	all = shown(&few);
	CHECK(all > 0 && few < all, "%zu bytes of %zu for two peers", few, all);
	for (int i = 0; i < 20; i++)
		actor_pair(ctx, &a, &b);
	(void)shown(&many);
	CHECK(many > few, "%zu bytes for two peers, %zu for many", few, many);
	OK(slmpm_shut(ctx, PATIENCE));
}

static void read_all(void)
{
	const struct slmpm_stats_page *page;
	struct slmpm_stats_queue q;
	struct slmpm_monitors *m;
	struct slmpm_monitor one;

	OK(slmpm_stats_attach(getpid(), 0, &page));
	for (uint32_t i = 0; slmpm_stats_queue(page, i, &q, sizeof(q)) >= 0; i++)
		;
	slmpm_stats_detach(page);
	OK(slmpm_monitors_open(getpid(), &m));
	for (int i = 0; slmpm_monitors_read(m, i, &one, sizeof(one)) >= 0; i++)
		;
	slmpm_monitors_close(m);
}

static void readers_take_none(void)
{
	size_t before, after;
	slmpm_peer a, b;
	slmpm_ctx ctx;

	OK(slmpm_open(&ctx, NULL));
	actor_pair(ctx, &a, &b);
	(void)shown(&before);
	read_all();
	(void)shown(&after);
	CHECK(after == before, "%zu bytes, once read %zu", before, after);
	OK(slmpm_shut(ctx, PATIENCE));
}

/* ---- pages made by hand ---- */

static struct slmpm_stats_page *make_page(int *fd, int seals)
{
	size_t size = sizeof(struct slmpm_stats_page) + SLMPM_STATS_PEERS_MAX * ENTRY;
	struct slmpm_stats_page *page;

	*fd = memfd_create("slmpm-stats", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CHECK(*fd >= 0 && ftruncate(*fd, (off_t)size) == 0, "no memory");
	page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	CHECK(page != MAP_FAILED && fcntl(*fd, F_ADD_SEALS, seals) == 0, "no page");
	page->magic = MAGIC;
	page->version = 2;
	page->peer_size = ENTRY;
	page->peers = 3;
	return page;
}

static void owner_changes_its_mind(void)
{
	int fd, mapped;
	struct slmpm_stats_page *own = make_page(&fd, F_SEAL_SHRINK | F_SEAL_GROW);
	const struct slmpm_stats_page *page;
	const struct slmpm_stats *second;

	mapped = actor_mappings();
	OK(slmpm_stats_attach(getpid(), 0, &page));
	second = slmpm_stats_of(page, 1);
	CHECK(second && second->size == 0, "no second entry");
	own->peer_size = 1 << 30;
	own->peers = UINT32_MAX;
	CHECK(page->peer_size == ENTRY && page->peers == 3, "the header changed under us");
	CHECK(slmpm_stats_of(page, 1) == second, "the entry moved");
	for (uint32_t i = 0; i < SLMPM_STATS_PEERS_MAX; i++)
		CHECK(slmpm_stats_of(page, i)->size == 0, "entry %u", i);
	CHECK(!slmpm_stats_of(page, SLMPM_STATS_PEERS_MAX), "an entry beyond the page");
	own->peers = 0;
	CHECK(slmpm_stats_of(page, 2) && !slmpm_stats_of(page, 3), "what was there is there");
	slmpm_stats_detach(page);
	EXPECT(actor_mappings(), mapped);
	close(fd);
}

static void refuse_page(uint32_t peer_size, int seals)
{
	int fd;
	struct slmpm_stats_page *own = make_page(&fd, seals);
	const struct slmpm_stats_page *page;

	own->peer_size = peer_size;
	REFUSED(slmpm_stats_attach(getpid(), 0, &page), SLMPM_EVERSION, "another version");
	close(fd);
}

int main(void)
{
	owner_changes_its_mind();
	refuse_page(ENTRY, F_SEAL_GROW); /* it could be cut under the reader */
	refuse_page(0, F_SEAL_SHRINK);
	refuse_page(ENTRY + 4, F_SEAL_SHRINK);
	refuse_page(ENTRY + 8, F_SEAL_SHRINK);
	refuse_page(UINT32_MAX - 7, F_SEAL_SHRINK);
	readers_take_none();
	what_is_never_shown_takes_no_memory();
	entries_are_used_again();
	return 0;
}
