/* SPDX-License-Identifier: BSD-3-Clause */
/* The control connection of an endpoint: a SOCK_SEQPACKET socket for the handshake, the fabric's
 * descriptors and the doorbell, or a TCP connection for the handshake. Its end is the peer's. */
#ifndef SLMPM_BOOTSTRAP_H
#define SLMPM_BOOTSTRAP_H

#include "slmpm/endpoint.h"
#include "slmpm/net/net.h"
#include "slmpm/net/secret.h"
#include "slmpm/watch.h"

/* Starts the handshake over FD, which becomes the endpoint's. PIDFD: the peer's, or -1. */
int bootstrap_start(struct endpoint *ep, int fd, int pidfd);
/* The same over TCP. PIDFD: of the relay here, or -1. ACTIVE: this side connected, the other
 * not. */
int bootstrap_start_stream(struct endpoint *ep, int fd, int pidfd, bool active,
			   const struct secret *secret);
/* Over an end of a pair of sockets, which does not say who has the other: the process PIDFD, of
 * number PID (0: not known). ACTIVE: this side made it, and the other may be long in taking it. */
int bootstrap_start_pair(struct endpoint *ep, int fd, int pidfd, int pid, bool active);
/* To a packet socket: the other end is on this machine. The handshake begins again. */
int bootstrap_move(struct endpoint *ep, int fd);
/* So it has for the other side. */
void bootstrap_moved(struct endpoint *ep);
/* Its link has: all that came before has been handed out. */
void bootstrap_link_lost(struct endpoint *ep);
/* Has it ended, as a process of this machine? What it sent is here then, or comes as there is
 * room. */
bool bootstrap_all_is_here(const struct control *c);
/* Its socket has ended: the process may still tell why. */
void bootstrap_hang_up(struct endpoint *ep);
/* The peer says why it ends. */
void bootstrap_bye(struct endpoint *ep, const struct wire_bye *bye);
/* Its socket can be read, or takes more. */
watch_ready bootstrap_socket_ready;
watch_ready bootstrap_process_ended;
/* Ends handshakes, and the grace of those that hung up, whose deadline has passed: the next
 * deadline, UINT64_MAX for none, 0 when one has just passed. */
uint64_t bootstrap_deadlines(struct context *ctx, uint64_t now_ns);
/* Takes the loan areas and regions that were offered so far. */
void bootstrap_read_ahead(struct endpoint *ep);
/* Passes a PACKET of LENGTH, with a descriptor unless FD is negative; -ENOTSUP over TCP. */
int bootstrap_offer(struct endpoint *ep, void *packet, size_t length, uint32_t type, int fd);
/* The same with COUNT descriptors; -EPIPE: it has ended. */
int bootstrap_pass(struct endpoint *ep, void *packet, size_t length, uint32_t type, const int *fds,
		   size_t count);
/* parts.room is called, once there is room to send; or not any more. */
void bootstrap_await_room(struct endpoint *ep, bool on);
/* Does the peer take descriptors; and, which is UP, packets of groups? */
bool bootstrap_passes(const struct endpoint *ep);
bool bootstrap_forms_groups(const struct endpoint *ep);
/* The latter also of those that meet in memory within a machine. */
bool bootstrap_forms_local(const struct endpoint *ep);
/* Several members in a packet, too. */
bool bootstrap_takes_members(const struct endpoint *ep);
/* The address of this end of a stream, or the OTHER's; false: it is none. */
bool bootstrap_host(const struct endpoint *ep, bool other, char host[NET_NAME]);
/* Is it on this machine, as far as its connection says? */
bool bootstrap_is_here(const struct endpoint *ep);
/* KEY, of RANK, in the NUMBERth join of this side (OWN) or the other's, as it travels; and again as
 * it was. Over a stream a process that does not know its secret learns nothing from it. */
void bootstrap_mask(const struct endpoint *ep, bool own, uint32_t number, uint32_t rank,
		    unsigned char key[SECRET_SIZE]);
/* The number of its process, by its own word. */
int32_t bootstrap_said_pid(const struct endpoint *ep);
/* The descriptor of its process, its number by the kernel's word; -1. */
int bootstrap_process(const struct endpoint *ep);
/* Tells the peer why, best effort, and closes the socket. */
void bootstrap_stop(struct endpoint *ep, const char *reason);
void bootstrap_free(struct endpoint *ep);
/* It has ended: one or the other. A process's descriptor stays for slmpm_join and slmpm_kill. */
void bootstrap_reclaim(struct endpoint *ep);
/* In the child after fork: closes its copies of the descriptors, nothing else. */
void bootstrap_forked(struct endpoint *ep);

#endif
