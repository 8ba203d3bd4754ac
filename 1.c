#include <slmpm.h>

int count(slmpm_peer host, int (*work)(void))
{
	static uint64_t counters[8];
	slmpm_ctx none = {0};
	slmpm_mirror m;
	int rc = slmpm_mirror_create(none, counters, sizeof(counters), NULL, &m);

	if (rc == 0)
		rc = slmpm_mirror_attach(m, host, 1, SLMPM_MIRROR_LEAD, 5000);
	while (rc >= 0 && work()) {
		slmpm_mirror_store64(m, &counters[0], counters[0] + 1);
		rc = slmpm_progress(none);
	}
	return rc;
}
