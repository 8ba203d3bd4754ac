#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# slmpm_demo: sha256sum agrees with every digest, whatever the files are called or contain.
set -u
. "$(dirname "$0")/../lib/demo.sh"

# Sizes around what one message carries, and names that need escaping.
mkdir "$dir/tree" "$dir/tree/below" && cd "$dir/tree" || exit 1
for size in 0 1 63 32767 32768 32769 65536 1000003; do
	head -c $size /dev/urandom >"below/size-$size"
done
echo backslash >'back\slash'
echo line >$'new\nline'
echo return >$'carriage\rreturn'
echo both >$'both\\ and \n'
echo space >'  with spaces  '
echo dash >'-n'
printf 'latin \351' >$'\351t\351'
for i in $(seq 200); do echo "$i" >"below/small-$i"; done
ln -s ../back below/dangling
ln -s below/size-1 link
mkfifo fifo

"$demo" . >"$dir/sums" 2>"$dir/err" || fail "a plain run ended with $?"
[ "$(wc -l <"$dir/sums")" = "$(find . -type f -printf x | wc -c)" ] || fail "not one line a file"
sha256sum --quiet --strict -c "$dir/sums" || fail "sha256sum disagrees"
# Word for word, too; sort, since sha256sum is given another order.
find . -type f -print0 | xargs -0 sha256sum -- | sort | diff - <(sort "$dir/sums") || fail "lines differ"
grep -Eq 'files *215$' "$dir/err" || fail "the table does not say 215 files"
sent=$(way . loan)
[ "$(ways | wc -l)" = 2 ] && [ "$sent" -ge 4 ] && [ "$sent" -le 20 ] || fail "$sent loans of 512 KiB"

grep -q "$(printf '[\033\r]')" "$dir/err" && fail "control characters for nobody's terminal"
adds_up "a plain run"

# As messages in packets from the host's own memory: the accelerators read none of it.
SLMPM_FETCH=never "$demo" -p auto . 2>"$dir/err" | cmp - "$dir/sums" || fail "as messages"
grep -q 'remote reads *0$' "$dir/err" || fail "remote reads are not 0"

# Loans over TCP alone; and where none are so long, messages.
truncate -s 20M ../large
for link in 'tcp 256m' 'shm 64k'; do
	SLMPM_LOAN_MAX=${link#* } "$demo" -p loan --fabric "${link% *}" -n 1 . ../large 2>"$dir/err" | sha256sum --quiet -c || fail "loans over $link"
	adds_up "loans over $link"
	[ "$link" = "shm 64k" ] && sent=0 || sent=40
	[ "$(way . loan)" -ge "$sent" ] && [ "$(way . loan)" -le $((sent + sent / 4)) ] || fail "$(way . loan) loans over $link"
done
# What does not say how long it is.
"$demo" /proc/version 2>"$dir/err" | sha256sum --quiet -c || fail "a file without a length"

# A large file goes in larger messages, by what the library chooses.
"$demo" -p auto -n 1 ../large 2>"$dir/err" | sha256sum --quiet -c || fail "a large file"
adds_up "a large file"
SLMPM_ATTACH=n "$demo" -p auto -n 1 ../large 2>"$dir/err" | sha256sum --quiet -c || fail "a large file, without attach"
[ "$(way . rget)" = 0 ] || fail "fetched although that is not allowed"
[ "$(row messages)" -lt 100 ] || fail "a large file goes in $(row messages) messages"

# Or by what is asked for: 20 MiB in places of half of one.
"$demo" -n 2 -p put ../large . 2>"$dir/err" | sha256sum --quiet -c || fail "a large file, by put"
[ "$(row puts)" = 40 ] && [ "$(way . 'put|request')" = 40 ] || fail "not all of the large file was put"
adds_up "by put"
"$demo" -n 1 -p smt ../large 2>"$dir/err" | sha256sum --quiet -c || fail "a large file, in packets"
[ "$(way . rget)" = 0 ] || fail "fetched although packets were asked for"
"$demo" -n 1 -p rget ../large 2>"$dir/err" | sha256sum --quiet -c || fail "a large file, fetched"
[ "$(way . rget)" != 0 ] || slmpm_info --check | grep -q '^replaced *cross-memory attach' || fail "not fetched although that was asked for"
rm ../large

# Order of output is order of names, not of arrival.
"$demo" -n 5 -w 9 . 2>"$dir/err" | cmp - "$dir/sums" || fail "another count changes the output"
"$demo" -n 1 -w 1 . 2>"$dir/err" | cmp - "$dir/sums" || fail "one file at a time changes the output"
(ulimit -n 48 && "$demo" -w 64 . 2>"$dir/err") | cmp - "$dir/sums" || fail "few descriptors change the output"
mkdir ../many && mkdir $(seq -f ../many/%g 0 39)
for i in $(seq 800); do printf '%20000d' $i >../many/$((i % 40))/$i; done
(ulimit -n 36 && "$demo" -n 4 -w 16 ../many 2>"$dir/err") >"$dir/some" || fail "few descriptors, many folders"
[ "$(wc -l <"$dir/some")" = 800 ] || fail "few descriptors hide folders"
rm -r ../many
[ -z "$("$demo" -q . 2>"$dir/err")" ] || fail "-q prints digests"
[ "$("$demo" -- link 2>"$dir/err")" = "$(sha256sum link)" ] || fail "a link given by name"
[ -z "$("$demo" below/size-0 2>"$dir/err" | grep -v e3b0c44298fc1c149afbf4c8996fb924)" ] || fail "an empty file"

# What cannot be read is told, counted, and does not stop the rest.
"$demo" below/size-1 nowhere fifo below/size-63 >"$dir/some" 2>"$dir/err" && fail "exit status 0 with a missing file"
[ "$(wc -l <"$dir/some")" = 2 ] || fail "the others were not hashed"
grep -q 'nowhere: No such file' "$dir/err" || fail "no word of the missing file"
grep -q 'fifo: no file and no folder' "$dir/err" || fail "no word of the fifo"
if [ "$(id -u)" != 0 ]; then
	chmod 0 below/size-63
	"$demo" . >"$dir/some" 2>"$dir/err" && fail "exit status 0 with an unreadable file"
	grep -q 'size-63: Permission denied' "$dir/err" || fail "no word of the unreadable file"
	[ "$(wc -l <"$dir/some")" = "$(($(wc -l <"$dir/sums") - 1))" ] || fail "the others were not hashed"
	chmod 644 below/size-63
fi
# /proc/self/mem opens for everyone and cannot be read at its beginning: an error in mid-stream.
"$demo" below/size-1 /proc/self/mem below/size-63 >"$dir/some" 2>"$dir/err" && fail "exit status 0 with a read error"
grep -q '/proc/self/mem: Input/output error' "$dir/err" || fail "no word of the read error"
sha256sum --quiet -c "$dir/some" && [ "$(wc -l <"$dir/some")" = 2 ] || fail "wrong after a read error"

for bad in "-n 0" "-n 65" "-n two" "-w 0" "-p" "-p fast" "--accelerator=65" "--nonsense" "--fabric" "--fabric ib" "--mode" "--mode fast" \
	"--mode ring" "--mode ring=" "--mode ring=102" "--mode queue=1m" "--mode bulk=k" "--mode rings=5" "--mode auto,," "--stress" \
	"--stress all" "--stress ring --fabric both" "--stress link --fabric shm" "--stress queue --fabric tcp" \
	"--stress queue -p smt" "--stress ring -p put" "--stress link -p rget" "-p rget --fabric tcp"; do
	"$demo" $bad . >/dev/null 2>"$dir/err"
	[ $? = 2 ] || fail "$bad: exit status is not 2"
	grep -q . "$dir/err" || fail "$bad: not a word"
done
"$demo" --version | grep -q '^slmpm_demo [0-9]' || fail "--version"
"$demo" --help | grep -q 'sha256sum' || fail "--help"
exit 0
