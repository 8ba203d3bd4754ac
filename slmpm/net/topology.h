/* SPDX-License-Identifier: BSD-3-Clause */
/* Where elements lie: SLMPM_TOPOLOGY, read once a process (doc/man/slmpm_topology.5.scd). */
#ifndef SLMPM_TOPOLOGY_H
#define SLMPM_TOPOLOGY_H

#include <stdint.h>

enum place_key {
	PLACE_REMOTE, /* the command that runs another there, %h: the host; NULL: this machine */
	PLACE_AGENT,  /* slmpm_run there */
	PLACE_CHDIR,  /* working directory there */
	PLACE_LISTEN, /* address of this machine that is reached from there */
	PLACE_FABRIC, /* for the link */
	PLACE_SHIP,   /* auto, always, never */
	PLACE_PCI,    /* PCI addresses of its elements, in their order, with commas */
	PLACE_CPUS,   /* processors of its elements, as in SLMPM_CPUS; of this machine alone */
	PLACE_KEYS
};

struct place { /* a host of the topology */
	char *host;
	uint32_t first, count; /* its elements */
	int line;              /* where it begins */
	char *set[PLACE_KEYS]; /* or NULL */
	char **env;            /* NAME=VALUE, NULL at the end */
};

struct topology {
	struct place *places;
	uint32_t count, elements;
};

/* 1 and *TOPOLOGY, 0: there is none, or negative with the detail set. */
int topology_get(const struct topology **topology);
/* -SLMPM_EINVAL, the detail set: a line of it cannot be understood. One whose file is not here is
 * missed by who asks for elements. */
int topology_check(void);
/* Where ELEMENT lies: 1 and *PLACE when that is elsewhere, else as above. *ELEMENT 0 becomes the
 * next one in turn. */
int topology_find(uint32_t *element, const struct place **place);

#endif
