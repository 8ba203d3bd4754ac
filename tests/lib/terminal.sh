# SPDX-License-Identifier: BSD-3-Clause
# For scripts of which a part wants a terminal: `script` makes one where the machine has pseudo-terminals.

if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then has_terminal=yes; else has_terminal=; fi

# The last command of such a script: the rest held, that part could not be tried.
end_of_terminal() {
	[ -n "$has_terminal" ] || { echo "no pseudo-terminal here: the screen was not tried"; exit 77; }
	exit 0
}
