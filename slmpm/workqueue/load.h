/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs read from text: lines and words (load.c), and those of calculations (load_calc.c). */
#ifndef SLMPM_WORKQUEUE_LOAD_H
#define SLMPM_WORKQUEUE_LOAD_H

#include "slmpm/workqueue/text.h"

struct load {
	struct text_names names;
	slmpm_ctx ctx;
	slmpm_wq wq; /* for which the next are */
	slmpm_wq *queues;
	struct slmpm_wr *wr;
	int *lines;
	int n, room, line;
	const char *word; /* as it stands there: its value is taken apart */
	char copy[64];
	uint64_t given;         /* bits: words of text_words that this line has */
	size_t old;             /* bytes from `old` to the end of its memory */
	struct load_calc *calc; /* of its CALC: the newest; or NULL */
};

/* -SLMPM_EINVAL, the detail set: of its line and word. */
int load_refuse(const struct load *l, const char *why);
int load_beyond(const struct load *l);
int load_number(const struct load *l, const char *text, uint64_t most, uint64_t *number);
/* With a minus in front of it, or not. */
int load_signed(const struct load *l, const char *text, int64_t most, int64_t *number);
int load_choice(const struct load *l, enum text_kind kind, const char *text, uint64_t *number);
int load_handle(const struct load *l, uint32_t kind, const char *text, uint64_t *id);
/* NAME or NAME+OFFSET: *AT bytes behind the beginning of *N, up to its end. */
int load_place(const struct load *l, char *text, const struct slmpm_name **n, uint64_t *at);

/* WR is to have a calculation: of L's next words. False: no memory. */
bool load_calculation_begin(struct load *l, struct slmpm_wr *wr);
int load_calculation(const struct load *l, enum text_kind kind, char *text);
/* Those were all: what it reads and writes is within what they name. */
int load_calculation_end(struct load *l);
void load_calculations_free(struct load *l);

#endif
