/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures as people read them. */
#include "apps/slmpm_stat/stat.h"

#include <ctype.h>

const char *word_state(uint32_t state)
{
	static const char *const states[] = {
		[SLMPM_PEER_CONNECTING] = "connecting", [SLMPM_PEER_UP] = "up",
		[SLMPM_PEER_CLOSED] = "closed",         [SLMPM_PEER_DEAD] = "dead",
		[SLMPM_PEER_POISONED] = "poisoned",
	};

	return state && state < sizeof(states) / sizeof(states[0]) ? states[state] : "?";
}

const char *word_path(uint32_t state)
{
	return state == SLMPM_LINK_UP ? "up" : state == SLMPM_LINK_LOST ? "lost" : "-";
}

const char *word_header(uint32_t header)
{
	return header & SLMPM_HEADER_ADDRESS ? "address" : header ? "ids" : "none";
}

void word_tame(char *text)
{
	for (; *text; text++)
		if (!isgraph((unsigned char)*text) && *text != ' ')
			*text = '?';
}

const char *word_amount(char text[16], double amount)
{
	static const char units[] = " kMGTPEZY";
	size_t unit = 0;

	while (amount >= 999.5 && unit + 2 < sizeof(units)) {
		amount /= 1000;
		unit++;
	}
	if (unit)
		snprintf(text, 16, "%.3g%c", amount, units[unit]);
	else
		snprintf(text, 16, "%.0f", amount);
	return text;
}

const char *word_time(char text[16], double ns)
{
	if (ns <= 0)
		snprintf(text, 16, "-");
	else if (ns < 999.5)
		snprintf(text, 16, "%.0f ns", ns);
	else if (ns < 999.5e3)
		snprintf(text, 16, "%.3g us", ns / 1e3);
	else if (ns < 999.5e6)
		snprintf(text, 16, "%.3g ms", ns / 1e6);
	else
		snprintf(text, 16, "%.3g s", ns / 1e9);
	return text;
}

unsigned word_permille(uint64_t part, uint64_t all)
{
	if (!all)
		return 0;
	return part >= all ? 1000 : (unsigned)((double)part * 1000 / (double)all);
}

const char *word_class(int size_class)
{
	static const char *const names[SLMPM_SIZE_CLASSES] = {"64",  "256",  "1k", "4k", "16k",
							      "64k", "256k", "1m", "4m", "more"};

	return names[size_class];
}
