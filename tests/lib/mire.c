/* SPDX-License-Identifier: BSD-3-Clause */
/* A file system of one file, without a library; and userfaultfd. */
#include "tests/lib/mire.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/lib/test.h"

#define FILE_NODE 2
#define FILE_NAME "file"
#define FOR_LONG  3600 /* seconds that names and attributes hold */

static struct {
	int device, silent;
	pid_t pid;
} server;

static void answer(const struct fuse_in_header *in, int error, const void *data, size_t n)
{
	struct fuse_out_header out = {
		.len = (uint32_t)(sizeof(out) + n), .error = -error, .unique = in->unique};
	struct iovec iov[2] = {{&out, sizeof(out)}, {(void *)(uintptr_t)data, n}};

	(void)!writev(server.device, iov, n ? 2 : 1);
}

static struct fuse_attr attributes(uint64_t node)
{
	bool file = node == FILE_NODE;

	return (struct fuse_attr){
		.ino = node,
		.size = file ? MIRE_SIZE : 0,
		.mode = file ? S_IFREG | 0666 : S_IFDIR | 0777,
		.nlink = 1,
		.blksize = 4096,
	};
}

static void begin(const struct fuse_in_header *in, const void *body)
{
	const struct fuse_init_in *ask = body;
	struct fuse_init_out out = {
		.major = FUSE_KERNEL_VERSION,
		.minor = ask->minor < FUSE_KERNEL_MINOR_VERSION ? ask->minor :
								  FUSE_KERNEL_MINOR_VERSION,
		.max_write = 65536,
		.max_background = 16,
	};

	answer(in, 0, &out, sizeof(out));
}

static void look_up(const struct fuse_in_header *in, const char *name)
{
	struct fuse_entry_out out = {
		.nodeid = FILE_NODE,
		.entry_valid = FOR_LONG,
		.attr_valid = FOR_LONG,
		.attr = attributes(FILE_NODE),
	};

	if (strcmp(name, FILE_NAME) != 0)
		answer(in, ENOENT, NULL, 0);
	else
		answer(in, 0, &out, sizeof(out));
}

static void serve_one(const struct fuse_in_header *in)
{
	struct fuse_attr_out attr = {.attr_valid = FOR_LONG, .attr = attributes(in->nodeid)};
	struct fuse_open_out opened = {.fh = 1};
	int silent = server.silent;

	switch (in->opcode) {
	case FUSE_INIT: begin(in, in + 1); break;
	case FUSE_LOOKUP: look_up(in, (const char *)(in + 1)); break;
	case FUSE_GETATTR: answer(in, 0, &attr, sizeof(attr)); break;
	case FUSE_OPEN: answer(in, 0, &opened, sizeof(opened)); break;
	case FUSE_READ:
		if (!(silent & MIRE_READ))
			answer(in, EIO, NULL, 0);
		break;
	case FUSE_FLUSH:
		if (!(silent & MIRE_FLUSH))
			answer(in, 0, NULL, 0);
		break;
	case FUSE_RELEASE:
		if (!(silent & MIRE_RELEASE))
			answer(in, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT: break; /* nobody waits for an answer */
	default: answer(in, ENOSYS, NULL, 0);
	}
}

static void serve(void)
{
	static _Alignas(8) char request[1 << 18];

	for (;;) {
		ssize_t n = read(server.device, request, sizeof(request));

		if (n >= (ssize_t)sizeof(struct fuse_in_header))
			serve_one((const struct fuse_in_header *)(void *)request);
		else if (n < 0 && errno != EINTR && errno != EAGAIN)
			return;
	}
}

/* A process of its own: one that ends closes its files first, and would wait for itself. */
static bool start_server(void)
{
	server.pid = fork();
	if (server.pid == 0) {
		alarm(MIRE_SECONDS);
		serve();
		_exit(0);
	}
	close(server.device);
	return server.pid > 0;
}

static int mounted_file(const char *folder)
{
	char text[128];
	snprintf(text, sizeof(text), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
		 server.device);
	if (mount("mire", folder, "fuse", MS_NOSUID | MS_NODEV, text) != 0 || !start_server())
		return -1;
	snprintf(text, sizeof(text), "%s/" FILE_NAME, folder);
	return open(text, O_RDWR | O_CLOEXEC);
}

int mire_file(int silent)
{
	char folder[] = "/tmp/slmpm-mire-XXXXXX";
	int fd;

	server.silent = silent;
	server.device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (server.device < 0 || unshare(CLONE_NEWNS) != 0 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return -1;
	CHECK(mkdtemp(folder), "a folder");
	fd = mounted_file(folder);
	(void)umount2(folder, MNT_DETACH); /* the open file keeps it */
	(void)rmdir(folder);
	return fd;
}

pid_t mire_server(void)
{
	return server.pid;
}

void *mire_of_file(size_t size)
{
	int fd = mire_file(MIRE_READ);
	void *at;

	if (fd < 0)
		return NULL;
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(at != MAP_FAILED, "a file of ours cannot be mapped");
	close(fd);
	return at;
}

void *mire_of_memory(size_t size)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register r = {.range.len = size, .mode = UFFDIO_REGISTER_MODE_MISSING};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	void *at;

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0)
		return NULL;
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	r.range.start = (uint64_t)(uintptr_t)at;
	CHECK(at != MAP_FAILED && ioctl(fd, UFFDIO_REGISTER, &r) == 0, "watched memory");
	return at; /* nobody reads the descriptor: what is asked is not answered */
}
