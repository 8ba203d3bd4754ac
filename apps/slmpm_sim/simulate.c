/* SPDX-License-Identifier: BSD-3-Clause */
/* One simulation, from the first event to the last. */
#include "apps/slmpm_sim/sim.h"

#include <stdio.h>
#include <stdlib.h>

static void run_events(struct sim *sim)
{
	struct event event;

	while (events_take(&sim->events, &event)) {
		sim->now = event.time;
		if (event.what % 2 == EVENT_NODE)
			nodes_event(sim, event.what / 2);
		else
			wires_event(sim, event.what / 2);
	}
}

static int run(struct sim *sim)
{
	if (wires_open(sim) || nodes_open(sim))
		return 1;
	nodes_start(sim);
	run_events(sim);
	if (sim->done == sim->set.nodes)
		return 0;
	fprintf(stderr, "slmpm_sim: %u of %u %s wait for what never comes\n",
		sim->set.nodes - sim->done, sim->set.nodes, nodes_word(sim->set.nodes));
	return 1;
}

int simulate(struct setting *set, struct result *result)
{
	struct sim *sim = calloc(1, sizeof(*sim));
	int rc;

	if (!sim) {
		fprintf(stderr, "slmpm_sim: out of memory\n");
		return 1;
	}
	sim->set = *set;
	rc = run(sim);
	if (rc == 0)
		wires_judge(sim);
	sim->result.events = sim->events.taken;
	*set = sim->set;
	*result = sim->result;
	nodes_close(sim);
	wires_close(sim);
	free(sim->events.heap);
	free(sim);
	return rc;
}
