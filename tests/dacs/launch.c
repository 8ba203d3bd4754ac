/* SPDX-License-Identifier: BSD-3-Clause */
/* The four ways to name a program, its directory, its environment, and what cannot be started. */
#include "tests/dacs/pair.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

static de_id_t element;

/* ---- roles ---- */

/* Its directory is its own and says so; a file made there goes with it. */
static int role_where(int argc, char **argv)
{
	char cwd[256], self[512] = "";
	const char *prefix = getenv("SLMPM_DACS_CWD_PREFIX"), *named = getenv("AE_CWD");
	struct stat st;

	OK(dacs_init(0));
	CHECK(getcwd(cwd, sizeof(cwd)), "getcwd");
	CHECK(named && !strcmp(cwd, named), "in %s, AE_CWD is %s", cwd, named ? named : "unset");
	if (getenv("SLMPM_TEST_ELSEWHERE"))
		CHECK(strstr(cwd, "/slmpm-agent-"), "%s is no folder of an agent's", cwd);
	else
		CHECK(prefix && !strncmp(cwd, prefix, strlen(prefix)), "%s is not below %s", cwd,
		      prefix);
	CHECK(stat(".", &st) == 0 && (st.st_mode & 0777) == 0700, "mode %o", st.st_mode);
	CHECK(open("made", O_CREAT | O_WRONLY, 0600) >= 0, "a file in the directory");
	CHECK(mkdir("sub", 0700) == 0, "a folder in the directory");
	CHECK(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0, "readlink");
	if (argc > 0 && !strcmp(argv[0], "shipped"))
		CHECK(!strncmp(self, cwd, strlen(cwd)), "runs as %s in %s", self, cwd);
	else
		CHECK(strncmp(self, cwd, strlen(cwd)) != 0, "runs as %s in %s", self, cwd);
	if (argc > 1)
		CHECK(access(argv[1], R_OK) == 0, "%s was not shipped", argv[1]);
	OK(dacs_exit());
	return 0;
}

/* ENVIRONMENT: NAME=VALUE expected, or NAME alone: not there. $CWD stands for the directory. */
static int role_environment(int argc, char **argv)
{
	OK(dacs_init(0));
	for (int i = 0; i < argc; i++) {
		char *equals = strchr(argv[i], '=');
		const char *value;

		if (equals)
			*equals = 0;
		value = getenv(argv[i]);
		CHECK(!equals == !value, "%s is %s", argv[i], value ? value : "missing");
		if (equals && strstr(equals + 1, "$CWD")) {
			char want[512];

			snprintf(want, sizeof(want), "%.*s%s%s",
				 (int)(strstr(equals + 1, "$CWD") - equals - 1), equals + 1,
				 getenv("AE_CWD"), strstr(equals + 1, "$CWD") + 4);
			CHECK(!strcmp(value, want), "%s is %s, not %s", argv[i], value, want);
		} else if (equals) {
			CHECK(!strcmp(value, equals + 1), "%s is %s", argv[i], value);
		}
	}
	OK(dacs_exit());
	return 0;
}

/* WORD: so many processors are its. */
static int role_processors(int argc, char **argv)
{
	cpu_set_t set;

	CHECK(argc == 1 && sched_getaffinity(0, sizeof(set), &set) == 0, "getaffinity");
	CHECK(CPU_COUNT(&set) == atoi(argv[0]), "%d processors, not %s", CPU_COUNT(&set), argv[0]);
	OK(dacs_init(0));
	OK(dacs_exit());
	return 0;
}

/* A host of its own that starts one accelerator, says its directory, and waits for its end. */
static int role_host(int argc, char **argv)
{
	struct child c;
	uint32_t word;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	c = pair_start("lingers", NULL);
	OK(dacs_mailbox_read(&word, AT(c)));
	CHECK(write(1, "x", 1) == 1, "write");
	for (;;)
		pause();
}

/* Ends when its host does. */
static int role_lingers(int argc, char **argv)
{
	uint32_t word = 1;

	(void)argc, (void)argv;
	OK(dacs_init(0));
	OK(dacs_mailbox_write(&word, UP));
	EXPECT(dacs_mailbox_read(&word, UP), DACS_ERR_DE_TERM);
	OK(dacs_exit());
	return 0;
}

/* ---- cases ---- */

/* Runs PROG and expects that role's good end. */
static void run(const void *prog, DACS_PROC_CREATION_FLAG_T flags, const char **words,
		const char **env)
{
	dacs_process_id_t pid;
	int32_t status = -1;

	OK(dacs_de_start(element, (void *)(uintptr_t)prog, words, env, flags, &pid));
	EXPECT(dacs_de_wait(element, pid, &status), DACS_STS_PROC_FINISHED);
}

static void reserve(void)
{
	uint32_t n = 1;

	OK(dacs_init(0));
	OK(dacs_reserve_children(DACS_DE_CBE, &n, &element));
	CHECK(n == 1, "%u", n);
}

/* Entries of the folder where working directories are made. */
static int directories(void)
{
	DIR *list = opendir(getenv("SLMPM_DACS_CWD_PREFIX"));
	struct dirent *entry;
	int n = 0;

	CHECK(list, "opendir");
	while ((entry = readdir(list)))
		n += entry->d_name[0] != '.';
	closedir(list);
	return n;
}

static void *read_file(const char *path, size_t *size)
{
	FILE *file = fopen(path, "re");
	struct stat st;
	void *data;

	CHECK(file && fstat(fileno(file), &st) == 0, "%s", path);
	*size = (size_t)st.st_size;
	data = malloc(*size);
	CHECK(fread(data, 1, *size, file) == *size, "%s", path);
	fclose(file);
	return data;
}

/* On another host that does not have this program. */
static bool is_apart(void)
{
	const char *text = getenv("SLMPM_TEST_ELSEWHERE");

	return text && !strcmp(text, "apart");
}

static int a_program_comes_four_ways(int argc, char **argv)
{
	const char *plain[] = {"where", NULL}, *shipped[] = {"where", "shipped", NULL};
	const char *with_library[] = {"where", "shipped", "extra", NULL};
	char list[128], extra[96];
	dacs_program_handle_t handle;
	void *image;
	size_t size;
	FILE *file;

	(void)argc, (void)argv;
	reserve();
	if (!is_apart())
		run(pair_self, DACS_PROC_REMOTE_FILE, plain, NULL);
	run(pair_self, DACS_PROC_LOCAL_FILE, shipped, NULL);
	snprintf(extra, sizeof(extra), "%s/extra", pair_dir);
	snprintf(list, sizeof(list), "%s/list", pair_dir);
	file = fopen(extra, "we");
	CHECK(file && fputs("library", file) >= 0 && fclose(file) == 0, "%s", extra);
	file = fopen(list, "we");
	CHECK(file && fprintf(file, "%s\n%s\n", pair_self, extra) > 0 && fclose(file) == 0, "%s",
	      list);
	run(list, DACS_PROC_LOCAL_FILE_LIST, with_library, NULL);
	image = read_file(pair_self, &size);
	DACS_PROGRAM_HANDLE(handle, image, size);
	run(&handle, DACS_PROC_EMBEDDED, shipped, NULL);
	free(image);
	CHECK(directories() == 0, "%d directories are left", directories());
	OK(dacs_exit());
	return 0;
}

static int a_relative_path_is_the_hosts(int argc, char **argv)
{
	const char *plain[] = {"where", NULL}, *shipped[] = {"where", "shipped", NULL};
	char folder[512], *name, here[512], relative[600];

	(void)argc, (void)argv;
	reserve();
	snprintf(folder, sizeof(folder), "%s", pair_self);
	name = strrchr(folder, '/');
	*name++ = 0;
	CHECK(getcwd(here, sizeof(here)) && chdir(folder) == 0, "chdir %s", folder);
	snprintf(relative, sizeof(relative), "./%s", name);
	run(relative, DACS_PROC_REMOTE_FILE, plain, NULL);
	run(relative, DACS_PROC_LOCAL_FILE, shipped, NULL);
	run(name, DACS_PROC_REMOTE_FILE, plain, NULL);
	CHECK(chdir(here) == 0, "chdir %s", here);
	OK(dacs_exit());
	return 0;
}

static int what_cannot_be_started_is_said(int argc, char **argv)
{
	dacs_process_id_t pid = 1;
	dacs_program_handle_t handle;
	char text[128], list[128];
	uint32_t n;
	FILE *file;

	(void)argc, (void)argv;
	reserve();
	snprintf(text, sizeof(text), "%s/text", pair_dir);
	file = fopen(text, "we");
	CHECK(file && fputs("no program\n", file) >= 0 && fclose(file) == 0, "%s", text);
	snprintf(list, sizeof(list), "%s/empty", pair_dir);
	file = fopen(list, "we");
	CHECK(file && fclose(file) == 0, "%s", list);
#define FAILS(prog, flags, want)                                                                   \
	EXPECT(dacs_de_start(element, (void *)(uintptr_t)(prog), NULL, NULL, flags, &pid), want)
	FAILS("/nonexistent/program", DACS_PROC_REMOTE_FILE, DACS_ERR_NOT_FOUND);
	FAILS("no-such-program-anywhere", DACS_PROC_REMOTE_FILE, DACS_ERR_NOT_FOUND);
	FAILS("/nonexistent/program", DACS_PROC_LOCAL_FILE, DACS_ERR_NOT_FOUND);
	FAILS("/nonexistent/list", DACS_PROC_LOCAL_FILE_LIST, DACS_ERR_NOT_FOUND);
	FAILS("/tmp", DACS_PROC_REMOTE_FILE, DACS_ERR_INVALID_PROG);
	FAILS(text, DACS_PROC_REMOTE_FILE, DACS_ERR_INVALID_PROG);
	FAILS(text, DACS_PROC_LOCAL_FILE, DACS_ERR_INVALID_PROG);
	FAILS(list, DACS_PROC_LOCAL_FILE_LIST, DACS_ERR_INVALID_PROG);
	CHECK(chmod(text, 0700) == 0, "chmod");
	FAILS(text, DACS_PROC_REMOTE_FILE, DACS_ERR_INVALID_PROG);
	FAILS(text, DACS_PROC_LOCAL_FILE, DACS_ERR_INVALID_PROG);
	DACS_PROGRAM_HANDLE(handle, "no program", 10);
	FAILS(&handle, DACS_PROC_EMBEDDED, DACS_ERR_INVALID_PROG);
	DACS_PROGRAM_HANDLE(handle, NULL, 10);
	FAILS(&handle, DACS_PROC_EMBEDDED, DACS_ERR_INVALID_PROG);
	CHECK(pid == 1, "a refused start wrote the process id");
	OK(dacs_num_processes_running(element, &n));
	CHECK(n == 0, "%u running", n);
	CHECK(directories() == 0, "%d directories are left", directories());
	OK(dacs_exit());
	return 0;
}

/* A program of another machine: this one with another machine number in its header. */
static int a_foreign_program_is_told(int argc, char **argv)
{
	dacs_process_id_t pid;
	dacs_program_handle_t handle;
	unsigned char *image;
	size_t size;

	(void)argc, (void)argv;
	reserve();
	image = read_file(pair_self, &size);
	image[18] ^= 0x55;
	DACS_PROGRAM_HANDLE(handle, image, size);
	EXPECT(dacs_de_start(element, &handle, NULL, NULL, DACS_PROC_EMBEDDED, &pid),
	       DACS_ERR_ARCH_MISMATCH);
	free(image);
	OK(dacs_exit());
	return 0;
}

static int the_environment_is_the_clients(int argc, char **argv)
{
	const char *all[] = {"environment", "HERE=yes", "PATH", NULL};
	const char *own_words[] = {"environment", "MINE=1", "P=/x:$CWD/y", "HERE", NULL};
	const char *own[] = {"MINE=1", "P=/x:$AE_CWD/y", NULL};
	const char *none[] = {NULL};
	const char *no_words[] = {"environment", "HERE", "MINE", NULL};
	const char *listed_words[] = {"environment", "MINE=2", "HERE=yes", "L=$CWD", "NOT", NULL};
	char path[600];

	(void)argc, (void)argv;
	reserve();
	setenv("HERE", "yes", 1);
	snprintf(path, sizeof(path), "PATH=%s", getenv("PATH"));
	all[2] = path;
	run(pair_self, DACS_PROC_REMOTE_FILE, all, NULL);
	run(pair_self, DACS_PROC_REMOTE_FILE, own_words, own);
	/* An empty one, too: the accelerator finds its host all the same. */
	run(pair_self, DACS_PROC_REMOTE_FILE, no_words, none);
	setenv("DACS_START_ENV_LIST", "MINE=2;HERE;L=$AE_CWD;NOT", 1);
	run(pair_self, DACS_PROC_REMOTE_FILE, listed_words, own);
	unsetenv("DACS_START_ENV_LIST");
	unsetenv("HERE");
	OK(dacs_exit());
	return 0;
}

/* DACS_START_PARENT runs the accelerator under another program. */
static int a_parent_program_can_be_put_between(int argc, char **argv)
{
	const char *words[] = {"environment", "WRAPPED=1", NULL};
	dacs_process_id_t pid;

	(void)argc, (void)argv;
	reserve();
	setenv("DACS_START_PARENT", "/usr/bin/env WRAPPED=1 %e %a", 1);
	run(pair_self, DACS_PROC_REMOTE_FILE, words, NULL);
	run(pair_self, DACS_PROC_LOCAL_FILE, words, NULL);
	setenv("DACS_START_PARENT", "/nonexistent/debugger %e %a", 1);
	EXPECT(dacs_de_start(element, pair_self, NULL, NULL, DACS_PROC_REMOTE_FILE, &pid),
	       DACS_ERR_NOT_FOUND);
	unsetenv("DACS_START_PARENT");
	OK(dacs_exit());
	return 0;
}

static int directories_can_be_kept(int argc, char **argv)
{
	const char *words[] = {"where", NULL};
	char command[256];

	(void)argc, (void)argv;
	setenv("SLMPM_DACS_KEEP_CWD", "y", 1);
	reserve();
	run(pair_self, DACS_PROC_REMOTE_FILE, words, NULL);
	OK(dacs_exit());
	CHECK(directories() == 1, "%d directories", directories());
	unsetenv("SLMPM_DACS_KEEP_CWD");
	reserve();
	run(pair_self, DACS_PROC_REMOTE_FILE, words, NULL); /* sweeps, but not what is kept */
	OK(dacs_exit());
	CHECK(directories() == 1, "%d directories", directories());
	snprintf(command, sizeof(command), "rm -r %s/dacs-*", getenv("SLMPM_DACS_CWD_PREFIX"));
	CHECK(system(command) == 0, "%s", command);
	return 0;
}

/* A crashed host's directories stay while its accelerators live, and are swept by the next. */
static int a_crashs_directories_are_swept(int argc, char **argv)
{
	const char *words[] = {"where", NULL};
	char byte;
	int fds[2], status;
	pid_t host;

	(void)argc, (void)argv;
	CHECK(pipe(fds) == 0, "pipe");
	host = fork();
	CHECK(host >= 0, "fork");
	if (!host) {
		dup2(fds[1], 1);
		close(fds[0]);
		execl(pair_self, pair_self, "host", (char *)NULL);
		_exit(98);
	}
	close(fds[1]);
	CHECK(read(fds[0], &byte, 1) == 1, "the other host failed");
	CHECK(directories() == 1, "%d directories", directories());
	reserve();
	run(pair_self, DACS_PROC_REMOTE_FILE, words, NULL);
	OK(dacs_exit());
	CHECK(directories() == 1, "a living host's directory was swept");
	CHECK(kill(host, SIGKILL) == 0 && waitpid(host, &status, 0) == host, "kill");
	/* Its accelerator has the other end of the pipe, too: it closes when that has ended. */
	CHECK(read(fds[0], &byte, 1) == 0, "read");
	close(fds[0]);
	CHECK(directories() == 1, "%d directories", directories());
	reserve();
	run(pair_self, DACS_PROC_REMOTE_FILE, words, NULL);
	OK(dacs_exit());
	CHECK(directories() == 0, "a crashed host's directory was left");
	return 0;
}

static int there_has_to_be_a_place(int argc, char **argv)
{
	char prefix[4096], *keep = strdup(getenv("SLMPM_DACS_CWD_PREFIX"));
	dacs_process_id_t pid;

	(void)argc, (void)argv;
	setenv("SLMPM_DACS_CWD_PREFIX", "/nonexistent", 1);
	reserve();
	EXPECT(dacs_de_start(element, pair_self, NULL, NULL, DACS_PROC_REMOTE_FILE, &pid),
	       DACS_ERR_INVALID_CWD);
	OK(dacs_exit());
	memset(prefix, 'x', sizeof(prefix) - 1);
	prefix[0] = '/';
	prefix[sizeof(prefix) - 1] = 0;
	setenv("SLMPM_DACS_CWD_PREFIX", prefix, 1);
	EXPECT(dacs_init(0), DACS_ERR_TOO_LONG);
	setenv("SLMPM_DACS_CWD_PREFIX", keep, 1);
	free(keep);
	return 0;
}

/* As mpirun binds a host: its accelerators would take turns with it. */
static int a_host_on_one_processor_keeps_it(int argc, char **argv)
{
	char count[16];
	const char *words[] = {"processors", count, NULL};
	cpu_set_t all, one;

	(void)argc, (void)argv;
	memset(&all, 0xff, sizeof(all));
	CHECK(sched_setaffinity(0, sizeof(all), &all) == 0, "setaffinity");
	CHECK(sched_getaffinity(0, sizeof(all), &all) == 0, "getaffinity");
	CPU_ZERO(&one);
	for (size_t i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
		if (CPU_ISSET(i, &all))
			CPU_SET(i, &one);
	CHECK(sched_setaffinity(0, sizeof(one), &one) == 0, "setaffinity");
	snprintf(count, sizeof(count), "%d", CPU_COUNT(&all));
	reserve();
	run(pair_self, DACS_PROC_REMOTE_FILE, words, NULL);
	CHECK(sched_getaffinity(0, sizeof(all), &all) == 0, "getaffinity");
	CHECK(CPU_EQUAL(&all, &one), "the host has %d", CPU_COUNT(&all));
	OK(dacs_exit());
	return 0;
}

static const struct pair_entry roles[] = {
	{"where", role_where},     {"environment", role_environment}, {"host", role_host},
	{"lingers", role_lingers}, {"processors", role_processors},   {NULL, NULL},
};

static const struct pair_entry cases[] = {
	{"a program comes four ways", a_program_comes_four_ways},
	{"a relative path is the host's", a_relative_path_is_the_hosts},
	{"what cannot be started is said", what_cannot_be_started_is_said},
	{"a foreign program is told", a_foreign_program_is_told},
	{"the environment is the client's", the_environment_is_the_clients},
	{"a parent program can be put between", a_parent_program_can_be_put_between},
	{"directories can be kept", directories_can_be_kept},
	{"a crash's directories are swept", a_crashs_directories_are_swept},
	{"there has to be a place", there_has_to_be_a_place},
	{"a host on one processor keeps it", a_host_on_one_processor_keeps_it},
	{NULL, NULL},
};

/* What holds as well when the element lies on another host (tests/apps/run.sh). */
static const struct pair_entry elsewhere[] = {
	{"a program comes four ways", a_program_comes_four_ways},
	{"what cannot be started is said", what_cannot_be_started_is_said},
	{"a foreign program is told", a_foreign_program_is_told},
	{"the environment is the client's", the_environment_is_the_clients},
	{"a parent program can be put between", a_parent_program_can_be_put_between},
	{NULL, NULL},
};

/* And where it shares no file. */
static const struct pair_entry apart[] = {
	{"a program comes four ways", a_program_comes_four_ways},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	return pair_main(argc, argv,
			 is_apart()                     ? apart :
			 getenv("SLMPM_TEST_ELSEWHERE") ? elsewhere :
							  cases,
			 roles);
}
