#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What the pages for developers name is there: each file, and a name in the file in which it is said to be: "`a`, `b` in
# `file.c`", "`a` (file.c)". Of those about the inside each identifier, too; architecture.md names all rooms and all files of
# slmpm itself.
# native-only
set -u
cd "$(dirname "$0")/../.." || exit 1

find Makefile README.md .ci apps doc fabrics include shm slmpm tests -type f | awk '
BEGIN { split("stdio.h string.h report.md on_done k_max", some, " "); for (i in some) other[some[i]] }	# in the text, and no claim

function fault(what) { print FILENAME ":" FNR ": " what; bad++ }

# Each file is known by its path and by each end of it.
function note_file(path, end) {
	for (end = path; ; sub(/^[^\/]*\//, "", end)) {
		paths[end] = paths[end] " " path
		if (!index(end, "/"))
			return
	}
}
function note_words(text, path, n, w, i) {
	n = split(text, w, /[^A-Za-z0-9_]+/)
	for (i = 1; i <= n; i++) {
		word[w[i]]
		word[path, w[i]]
	}
}
function holds(end, name, n, path, i) {
	n = split(paths[end], path, " ")
	for (i = 1; i <= n; i++)
		if ((path[i], name) in word)
			return 1
	return 0
}
function is_there(file, end) {
	sub(/^(\.\.\/)+/, "", file)
	if (!index(file, "*"))
		return file in paths
	gsub(/\./, "[.]", file)
	gsub(/\*/, "[a-z_]*", file)
	for (end in paths)
		if (end ~ "^" file "$")
			return 1
	return 0
}

# The next of PATTERN in `rest`, which is left with what stands behind it.
function next_of(pattern, at) {
	if (!match(rest, pattern))
		return ""
	at = RSTART
	rest = substr(rest, RSTART + RLENGTH)
	return substr(line, length(line) - length(rest) - RLENGTH + 1, RLENGTH)
}

FILENAME !~ /[.]md$/ {	# the list
	note_file($0)
	note_words($0, $0)
	if (/[.]md$/ && !/decisions|wire[.]md/)
		ARGV[ARGC++] = $0
	else if (!/[.]md$/) {
		while ((getline text < $0) > 0)
			note_words(text, $0)
		close($0)
	}
	next
}

{
	line = rest = $0
	while ((file = next_of("[A-Za-z0-9_.*/-]+[.](c|h|sh|md|scd)")) != "") {
		if (rest ~ /^[a-z]/ || file ~ /NAME|NNNN/ || file in other)
			continue
		files++
		if (!is_there(file))
			fault("no file " file)
	}
	rest = $0
	while (FILENAME ~ /architecture|adding_a_fabric|changing|inside/ && (name = next_of("[A-Za-z0-9]+_[A-Za-z0-9_]*[A-Za-z0-9]")) != "") {
		if (rest ~ /^[_*]/ || name ~ /NAME/ || name in other)
			continue
		names++
		if (!(name in word) && !(("FABRIC_" name) in word))
			fault("nothing is called " name)
	}
	rest = $0
	while ((claim = next_of("(`[a-z_0-9]+`(, | and )?)+ (in `|[(])[a-z_0-9/]+[.][ch]")) != "") {
		file = claim
		sub(/.* (in `|[(])/, "", file)
		n = split(claim, part, "`")
		for (i = 2; i <= n; i += 2) {
			if (part[i] == file)
				continue
			claims++
			if (!holds(file, part[i]))
				fault("no " part[i] " in " file)
		}
	}
	if (FILENAME == "doc/architecture.md")
		page = page $0
}

END {
	for (path in paths) {
		n = split(path, part, "/")
		if (part[1] == "slmpm" && part[2] !~ /[.]h$/ && !index(page, "`" part[2] "`") && !told[part[2]]++) {
			print "doc/architecture.md: nothing about slmpm/" part[2]
			bad++
		}
	}
	if (files < 200 || names < 300 || claims < 80) {
		print files " files, " names " names, " claims " claims: the pages were not read"
		bad++
	}
	exit bad > 0
}' - >&2
