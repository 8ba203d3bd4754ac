/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * iperf3's stream over loopback, in blocks of a length that the command line gives: iperf3 has no
 * messages. A sample is one run of a server and a client; iperf3 itself takes the time.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <jansson.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/peers/order.h"

#define LEAST UINT64_C(1000000000) /* bytes; in fewer its start would count */

static struct {
	const char *block;
	char server[12], client[12]; /* processors */
} how;

/* iperf3 cannot be asked which port it was given: one that was free a moment ago. */
static int free_port(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof a;
	int s = socket(AF_INET, SOCK_STREAM, 0), port = -1;

	if (bind(s, (struct sockaddr *)&a, sizeof a) == 0 &&
	    getsockname(s, (struct sockaddr *)&a, &len) == 0)
		port = ntohs(a.sin_port);
	close(s);
	return port;
}

/* Its standard output, or NULL. */
static FILE *start(char *const argv[], pid_t *pid)
{
	int out[2];

	if (pipe(out))
		return NULL;
	*pid = fork();
	if (*pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out[1], STDOUT_FILENO);
		close(out[0]);
		close(out[1]);
		execvp(argv[0], argv);
		_exit(127);
	}
	close(out[1]);
	return fdopen(out[0], "r");
}

static void end(FILE *f, pid_t pid)
{
	if (f)
		fclose(f);
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
}

static FILE *start_server(char *port, pid_t *pid)
{
	char *argv[] = {"taskset", "-c",        how.server, "iperf3", "-s",           "-1",
			"-B",      "127.0.0.1", "-p",       port,     "--forceflush", NULL};
	FILE *f = start(argv, pid);
	char line[256];

	while (f && fgets(line, sizeof line, f))
		if (strstr(line, "listening"))
			return f;
	end(f, *pid);
	return NULL;
}

/* Bytes a second that arrived, or 0. */
static double client_says(FILE *f)
{
	json_t *all = f ? json_loadf(f, 0, NULL) : NULL;
	double bits = json_number_value(json_object_get(
		json_object_get(json_object_get(all, "end"), "sum_received"), "bits_per_second"));

	json_decref(all);
	return bits / 8;
}

static double sample(uint64_t bytes)
{
	char port[12], text[24];
	char *argv[] = {"taskset", "-c", how.client, "iperf3", "-c", "127.0.0.1",
			"-p",      port, "-n",       text,     "-l", (char *)(uintptr_t)how.block,
			"--json",  NULL};
	pid_t server, client;
	FILE *listens, *says;
	double rate;

	snprintf(port, sizeof port, "%d", free_port());
	snprintf(text, sizeof text, "%" PRIu64, bytes < LEAST ? LEAST : bytes);
	listens = start_server(port, &server);
	if (!listens)
		return 0;
	says = start(argv, &client);
	rate = client_says(says);
	end(says, client);
	end(listens, server);
	return rate;
}

static const char *obey(const char *line)
{
	struct order o;
	const char *why = order_parse(line, &o);
	double rate;

	if (why)
		return why;
	if (o.test != TEST_BW || o.touch || o.loan || o.put)
		return "a stream, no more";
	rate = sample(o.size * o.count);
	if (rate <= 0)
		return "iperf3 fails";
	printf("{\"test\":\"%s\",\"size\":%zu,\"bytes_per_s\":%.6g}\n", o.name, o.size, rate);
	return NULL;
}

int main(int argc, char **argv)
{
	char *line = NULL;
	size_t room = 0;

	if (argc != 3 || sscanf(argv[2], "%11[0-9],%11[0-9]", how.client, how.server) != 2) {
		fprintf(stderr, "usage: %s BLOCK CPU,CPU\n", argv[0]);
		return 2;
	}
	how.block = argv[1];
	while (getline(&line, &room, stdin) > 0) {
		const char *why = obey(line);

		if (why)
			printf("{\"error\":\"%s\"}\n", why);
		fflush(stdout);
	}
	free(line);
	return 0;
}
