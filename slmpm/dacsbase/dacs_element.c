/* SPDX-License-Identifier: BSD-3-Clause */
/* Elements: what this process has reserved. SLMPM keeps the reservations apart node-wide. */
#include "slmpm/dacsbase/dacs_internal.h"

#include <stdlib.h>
#include <string.h>

static bool type_exists(DACS_DE_TYPE_T type)
{
	return (int)type > DACS_DE_INVALID && (int)type < DACS_DE_MAX_TYPE;
}

static bool is_reserved(de_id_t de)
{
	for (uint32_t i = 0; i < dacsi.element_count; i++)
		if (dacsi.elements[i] == de)
			return true;
	return false;
}

DACS_ERR_T dacsi_element_check(de_id_t de)
{
	if (de == DACS_DE_SELF || de == DACS_DE_PARENT)
		return DACS_ERR_INVALID_TARGET;
	return is_reserved(de) ? DACS_SUCCESS : DACS_ERR_INVALID_DE;
}

void dacsi_element_release_all(void)
{
	if (dacsi.element_count)
		(void)slmpm_element_release(dacsi.ctx, (int)dacsi.element_count, dacsi.elements);
	free(dacsi.elements);
	dacsi.elements = NULL;
	dacsi.element_count = 0;
}

DACS_ERR_T dacs_get_num_avail_children(DACS_DE_TYPE_T type, uint32_t *num_children)
{
	DACS_ERR_T rc = dacsi_enter_with(num_children);
	int n = 0;

	if (rc != DACS_SUCCESS)
		return rc;
	if (!type_exists(type))
		return dacsi_leave(DACS_ERR_INVALID_ATTR);
	if (type == DACS_DE_CBE) /* a node of this kind has no others */
		n = slmpm_element_count(dacsi.ctx, SLMPM_ELEMENT_ACCELERATOR);
	if (n < 0)
		return dacsi_leave(dacsi_code(n));
	*num_children = (uint32_t)n;
	return dacsi_leave(DACS_SUCCESS);
}

DACS_ERR_T dacs_reserve_children(DACS_DE_TYPE_T type, uint32_t *num_children, de_id_t *de_list)
{
	DACS_ERR_T rc = dacsi_enter_with(num_children && de_list);
	de_id_t *wider;
	uint32_t want;
	int n = 0;

	if (rc != DACS_SUCCESS)
		return rc;
	if (!type_exists(type))
		return dacsi_leave(DACS_ERR_INVALID_ATTR);
	if (!*num_children)
		return dacsi_leave(DACS_ERR_INVALID_SIZE);
	want = *num_children < 65536 ? *num_children : 65536;
	if (type == DACS_DE_CBE) {
		wider = realloc(dacsi.elements, (dacsi.element_count + want) * sizeof(*wider));
		if (!wider)
			return dacsi_leave(DACS_ERR_NO_RESOURCE);
		dacsi.elements = wider;
		n = slmpm_element_reserve(dacsi.ctx, SLMPM_ELEMENT_ACCELERATOR, (int)want,
					  dacsi.elements + dacsi.element_count);
	}
	if (n < 0)
		return dacsi_leave(dacsi_code(n));
	if (n > 0)
		memcpy(de_list, dacsi.elements + dacsi.element_count, (size_t)n * sizeof(*de_list));
	dacsi.element_count += (uint32_t)n;
	*num_children = (uint32_t)n;
	return dacsi_leave(DACS_SUCCESS);
}

/* Whether each of the list may be released: held, named once, and nothing runs there. */
static DACS_ERR_T releasable(uint32_t n, const de_id_t *list)
{
	for (uint32_t i = 0; i < n; i++) {
		if (!is_reserved(list[i]))
			return DACS_ERR_INVALID_DE;
		for (uint32_t k = 0; k < i; k++)
			if (list[k] == list[i])
				return DACS_ERR_INVALID_DE;
		if (dacsi_process_runs(list[i]))
			return DACS_ERR_RESOURCE_BUSY;
	}
	return DACS_SUCCESS;
}

static void drop_element(de_id_t de)
{
	struct dacsi_process *process = dacsi_process_on(de);
	uint32_t i = 0;

	if (process)
		dacsi_process_reap(process);
	while (dacsi.elements[i] != de)
		i++;
	dacsi.elements[i] = dacsi.elements[--dacsi.element_count];
}

DACS_ERR_T dacs_release_de_list(uint32_t num_des, de_id_t *de_list)
{
	DACS_ERR_T rc;
	int released;

	if (!dacsi_enter())
		return DACS_ERR_NOT_INITIALIZED;
	if (!num_des)
		return dacsi_leave(DACS_ERR_INVALID_SIZE);
	if (!de_list)
		return dacsi_leave(DACS_ERR_INVALID_ADDR);
	rc = releasable(num_des, de_list);
	if (rc != DACS_SUCCESS)
		return dacsi_leave(rc);
	for (uint32_t i = 0; i < num_des; i++)
		drop_element(de_list[i]);
	released = slmpm_element_release(dacsi.ctx, (int)num_des, de_list);
	return dacsi_leave(dacsi_code(released < 0 ? released : 0));
}
