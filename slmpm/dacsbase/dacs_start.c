/* SPDX-License-Identifier: BSD-3-Clause */
/* dacs_de_start: a directory, the program in it, an environment, then the process. */
#include "slmpm/dacsbase/dacs_start.h"

#include <stdlib.h>
#include <string.h>

static DACS_ERR_T spawn(struct dacsi_process *p, const char *path, char const **argv, char **env,
			bool there)
{
	struct slmpm_spawn_options options = {
		.size = sizeof(options),
		.flags = SLMPM_SPAWN_CLEAN_ENV | SLMPM_SPAWN_CARRY_CWD |
			 (there ? SLMPM_SPAWN_THERE : 0),
		.ctx = dacsi.ctx,
		.envp = env,
		.cwd = p->cwd,
		.wrapper = secure_getenv("DACS_START_PARENT"),
		.element = p->de,
	};
	struct slmpm_peer_info info = {.size = sizeof(info)};
	int rc = slmpm_spawn(&p->peer, path, (char *const *)(uintptr_t)argv, &options);

	if (rc == -SLMPM_ENOEXEC && dacsi_program_foreign(path))
		return DACS_ERR_ARCH_MISMATCH;
	if (rc == -SLMPM_EACCES)
		return DACS_ERR_INVALID_PROG;
	if (rc == -SLMPM_EINVAL) /* the element has been checked: SLMPM_CPUS names no processor */
		return DACS_ERR_INVALID_ENV;
	if (rc < 0)
		return dacsi_code(rc);
	(void)slmpm_peer_query(p->peer, &info);
	p->os_pid = info.pid;
	return DACS_SUCCESS;
}

/* What is to be run is put in place, then run. */
static DACS_ERR_T stage_and_spawn(struct dacsi_process *p, void *prog, char const **argv,
				  char const **envv, DACS_PROC_CREATION_FLAG_T flags)
{
	struct slmpm_element_info info = {.size = sizeof(info)};
	/* /proc/self/exe is this process's wherever the element lies. */
	bool there = flags == DACS_PROC_REMOTE_FILE && slmpm_element_query(p->de, &info) == 0 &&
		     info.elsewhere && strncmp(prog, "/proc/self/", 11) != 0;
	extern char **environ;
	struct dacsi_env_source source = {
		.base = envv ? (char *const *)(uintptr_t)envv : environ,
		.host = environ,
		.list = secure_getenv("DACS_START_ENV_LIST"),
		.cwd = p->cwd,
		.libraries = flags == DACS_PROC_LOCAL_FILE_LIST,
		.lenient = !envv,
	};
	char *path = there ? strdup(prog) : NULL, **env = NULL;
	DACS_ERR_T rc = there ? (path ? DACS_SUCCESS : DACS_ERR_NO_RESOURCE) :
				dacsi_program_stage(prog, flags, p->cwd, &path);

	if (rc == DACS_SUCCESS)
		env = dacsi_env_build(&source, &rc);
	if (rc == DACS_SUCCESS)
		rc = spawn(p, path, argv, env, there);
	free(env);
	free(path);
	return rc;
}

static DACS_ERR_T start_program(de_id_t de, void *prog, char const **argv, char const **envv,
				DACS_PROC_CREATION_FLAG_T flags, dacs_process_id_t *pid)
{
	struct dacsi_process *p = dacsi_process_new(de);
	DACS_ERR_T rc;

	if (!p)
		return DACS_ERR_NO_RESOURCE;
	if (!dacsi.swept)
		(void)dacsi_cwd_sweep(dacsi.set.cwd_prefix);
	dacsi.swept = true;
	rc = dacsi_cwd_make(dacsi.set.cwd_prefix, dacsi.set.keep_cwd, &p->cwd, &p->cwd_lock);
	if (rc == DACS_SUCCESS)
		rc = stage_and_spawn(p, prog, argv, envv, flags);
	if (rc != DACS_SUCCESS) {
		if (p->cwd)
			dacsi_cwd_remove(p->cwd, p->cwd_lock, false);
		free(p);
		return rc;
	}
	p->pid = (uint64_t)++dacsi.sequence << 32 | (uint32_t)p->os_pid;
	p->next = dacsi.children;
	dacsi.children = p;
	*pid = p->pid;
	return DACS_SUCCESS;
}

DACS_ERR_T dacs_de_start(de_id_t de, void *prog, char const **argv, char const **envv,
			 DACS_PROC_CREATION_FLAG_T creation_flags, dacs_process_id_t *pid)
{
	DACS_ERR_T rc;

	if (!dacsi_enter())
		return DACS_ERR_NOT_INITIALIZED;
	rc = dacsi_element_check(de);
	if (rc != DACS_SUCCESS)
		return dacsi_leave(rc);
	if (!prog || !pid)
		return dacsi_leave(DACS_ERR_INVALID_ADDR);
	if ((unsigned)creation_flags > DACS_PROC_EMBEDDED)
		return dacsi_leave(DACS_ERR_INVALID_ATTR);
	if (!dacsi_env_fits((char const *const *)argv))
		return dacsi_leave(DACS_ERR_INVALID_ARGV);
	if (!dacsi_env_fits((char const *const *)envv))
		return dacsi_leave(DACS_ERR_INVALID_ENV);
	if (dacsi_process_on(de))
		return dacsi_leave(DACS_ERR_PROC_LIMIT);
	return dacsi_leave(start_program(de, prog, argv, envv, creation_flags, pid));
}
