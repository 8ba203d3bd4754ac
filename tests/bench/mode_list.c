/* SPDX-License-Identifier: BSD-3-Clause */
/* Which modes are compared, and by which loads. */
#include "tests/bench/modes.h"

#define TWO_LINKS "SLMPM_LINKS=shm,tcp SLMPM_LINKS_AFTER=0 "
#define BY_ENGINE "SLMPM_ENGINE=thread "

const struct mode MODE[] = {
	{"auto", "SLMPM_MODE=auto", PROTOCOLS, 0, false},
	{"itself", "SLMPM_MODE=auto", PROTOCOLS, 0, true},
	{"smt", "SLMPM_MODE=smt", PROTOCOLS, 0, false},
	{"dma", "SLMPM_MODE=dma", PROTOCOLS, 0, false},
	{"never", "SLMPM_FETCH=never SLMPM_SHARE=never", PROTOCOLS, 0, false},
	{"always", "SLMPM_FETCH=always SLMPM_SHARE=always", PROTOCOLS, 0, false},
	{"am", "SLMPM_RMA=am", PROTOCOLS, MESSAGES | BESIDE, false},
	{"tag", "SLMPM_RMA=tag", PROTOCOLS, MESSAGES | BESIDE, false},
	{"tcp", "SLMPM_FABRIC=tcp", PROTOCOLS, BESIDE, false},
	{"auto", TWO_LINKS, LINKS, 0, false},
	{"itself", TWO_LINKS, LINKS, 0, true},
	{"link 0, shm", TWO_LINKS "SLMPM_LINK=0", LINKS, 0, false},
	{"link 1, tcp", TWO_LINKS "SLMPM_LINK=1", LINKS, 0, false},
	{"one link, shm", "SLMPM_LINKS=1 SLMPM_FABRIC=shm", LINKS, 0, false},
	{"auto", BY_ENGINE, ENGINE, 0, false},
	{"itself", BY_ENGINE, ENGINE, 0, true},
	{"smt", BY_ENGINE "SLMPM_MODE=smt", ENGINE, 0, false},
	{"dma", BY_ENGINE "SLMPM_MODE=dma", ENGINE, 0, false},
};
const int MODES = sizeof MODE / sizeof *MODE;

#define LONG 160 /* ms: many turns of the scheduler's */

const struct load LOAD[] = {
	{"8 B one way", "send_lat", "", 8, PROTOCOLS, 8, 1, MESSAGES},
	{"8 B stream", "send_rate", "", 8, PROTOCOLS, 8, 0, MESSAGES},
	{"8 B puts", "put_rate", "", 8, PROTOCOLS, 8, 0, PUTS},
	{"small beside 64 KiB puts", "mixed", "", 65536, PROTOCOLS, 12, 0, PUTS},
	{"small beside 1 MiB puts", "mixed", "", 1 << 20, PROTOCOLS, 12, 0, PUTS},
	{"slow reader, 64 KiB", "slow_reader", " burst 32", 65536, PROTOCOLS, 12, 0, MESSAGES},
	{"slow reader, 256 KiB", "slow_reader", " burst 8 work 50", 262144, PROTOCOLS, 12, 0,
	 MESSAGES},
	{"saturated, 64 KiB", "duplex", " burst 32", 65536, PROTOCOLS, 12, 0, MESSAGES},
	{"saturated, 256 KiB", "duplex", " burst 8", 262144, PROTOCOLS, 12, 0, MESSAGES},
	{"untouched messages", "send_bw", "", 262144, PROTOCOLS, 12, 0, MESSAGES},
	{"touched messages", "send_bw", " touch", 262144, PROTOCOLS, 12, 0, MESSAGES},
	{"untouched puts", "put_bw", "", 262144, PROTOCOLS, 12, 0, PUTS},
	{"touched puts", "put_bw", " touch", 262144, PROTOCOLS, 12, 0, PUTS},
	{"one busy, messages", "send_bw", " busy 1", 262144, PROTOCOLS, LONG, 0, MESSAGES | BESIDE},
	{"both busy, messages", "send_bw", " busy 2", 262144, PROTOCOLS, LONG, 0,
	 MESSAGES | BESIDE},
	{"one busy, puts", "put_bw", " busy 1", 262144, PROTOCOLS, LONG, 0, PUTS | BESIDE},
	{"both busy, puts", "put_bw", " busy 2", 262144, PROTOCOLS, LONG, 0, PUTS | BESIDE},
	{"8 B one way", "send_lat", "", 8, LINKS, 8, 1, MESSAGES},
	{"8 B stream", "send_rate", "", 8, LINKS, 12, 0, MESSAGES},
	{"saturated, 64 KiB", "duplex", " burst 32", 65536, LINKS, 12, 0, MESSAGES},
	{"slow reader, 64 KiB", "slow_reader", " burst 32", 65536, LINKS, 12, 0, MESSAGES},
	{"untouched messages", "send_bw", "", 262144, LINKS, 12, 0, MESSAGES},
	{"untouched messages", "send_bw", "", 262144, ENGINE, 12, 0, MESSAGES},
	{"small beside 256 KiB puts", "mixed", "", 262144, ENGINE, 12, 0, PUTS},
	{"256 KiB puts", "put_bw", " burst 32", 262144, ENGINE, 12, 0, PUTS},
};
const int LOADS = sizeof LOAD / sizeof *LOAD;

int modes_choice(int mode)
{
	while (mode && MODE[mode - 1].group == MODE[mode].group)
		mode--;
	return mode;
}

int modes_compare(const struct load *load, const struct mode *mode)
{
	return load->group == mode->group && !(load->kind & mode->not_for);
}
