#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# slmpm_demo by both fabrics, whose TCP links are cut in the middle, some of them more than once: no accelerator counts as lost for that,
# and every digest is right.
# native-only
# timeout: 60
set -u
. "$(dirname "$0")/../lib/demo.sh"
unset SLMPM_FABRIC SLMPM_LINKS SLMPM_LINK SLMPM_FETCH SLMPM_MODE

cat >"$dir/cut.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Ends the TCP connections of process argv[1]; prints how many. 2: not allowed. */
int main(int argc, char **argv)
{
	int process = argc == 2 ? (int)syscall(SYS_pidfd_open, atoi(argv[1]), 0) : -1, n = 0, had = 0;

	for (int theirs = 3; theirs < 256; theirs++) {
		int fd = (int)syscall(SYS_pidfd_getfd, process, theirs, 0), domain = 0, listens = 0;
		socklen_t size = sizeof(domain);

		if (fd < 0)
			continue;
		had++;
		if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_INET &&
		    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && !listens)
			n += shutdown(fd, SHUT_RDWR) == 0;
		close(fd);
	}
	printf("%d\n", n);
	return had ? 0 : 2;
}
C
${CC:-gcc} -D_GNU_SOURCE "$dir/cut.c" -o "$dir/cut" || exit 1

make_long
begin --fabric both --stress link
cut=0
for round in 1 2 3; do
	for pid in $(children "$host"); do
		n=$("$dir/cut" "$pid") || { echo "this process may not reach into another's descriptors"; kill "$host"; exit 77; }
		cut=$((cut + n))
	done
	read -r -t 0.1 _ <><(:)
done
cat <&3 >"$dir/rest"
wait "$host" || fail "exit status $?"
[ "$cut" -ge 2 ] || fail "only $cut links were cut"
grep -q ': lost ' "$dir/err" && fail "a lost link counts as a lost accelerator"
sha256sum -c --quiet "$dir/rest" || fail "wrong digests"
[ "$(wc -l <"$dir/rest")" = 6 ] || fail "$(wc -l <"$dir/rest") digests in place of 6"
echo "$cut links were cut"
