/* SPDX-License-Identifier: BSD-3-Clause */
/* What searches have found, as a table, and the way to it: for check, boards and queues. */
#ifndef TESTS_MODEL_REPORT_H
#define TESTS_MODEL_REPORT_H

#include "tests/model/explore.h"

double report_now(void); /* seconds */
/* WHAT has been searched, above the rows. */
void report_head(const char *what);
void report_row(const char *name, const struct outcome *o, double seconds);
/* The shortest way to the fault that SEARCH has found. */
void report_fault(struct search search, struct outcome outcome);
/* Explores it, prints a row, and the fault if not BRIEF. True: there is none. */
bool report_search(const char *name, const struct search *search, bool brief);
/* Of those of the command line, NULL behind the last; where there are none all are. */
bool report_is_wanted(const char *name, char **wanted);

#endif
