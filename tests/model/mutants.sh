#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# native-only
# has-time
# timeout: 600
#
# Faults in the code of work queues, a line each, that the model checker's scenes must find: the file is changed, compiled,
# and put in front of the library. So are those in the lock of a context, which is compiled into its scenario.
# mutants.sh [NAME...]: these alone.
set -u
fail() { echo "$*" >&2; exit 1; }
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT
obj=${SLMPM_BUILD:=$PWD/build}/obj
linker= # the quickest that is here
! command -v ld.lld >/dev/null || linker='-fuse-ld=lld -Wl,--threads=1'
[ -e "$obj/tests/model/queues.o" ] || fail "tests/model/queues is not built"
wanted=" $* "

# try_lock NAME SCENARIO FILE SED: what the scenario says of the lock as SED changes it in FILE
try_lock() {
	local name=$1 scenario=$2 file=$3 at=$dir/$1 others
	mkdir -p "$at/slmpm/base"
	cp slmpm/base/lock.[ch] "$at/slmpm/base"
	sed -i "$4" "$at/$file"
	! cmp -s "$file" "$at/$file" || { echo "$name: $file has no such line any more"; return 1; }
	mapfile -t others < <(find "$obj/model" -name '*.o' ! -name lock.o ! -path '*/tests/model/board*')
	${CC:-gcc} -std=gnu11 -O1 -w -D_GNU_SOURCE= -DSLMPM_MODEL -fno-stack-protector -pthread -I"$at" -I. -Iinclude \
		tests/model/lock.c "${others[@]}" $linker -o "$at/check" || { echo "$name: cannot be built"; return 1; }
	"$at/check" "$scenario" >"$at.out" 2>&1
	if [ $? = 1 ] && ! grep -q 'the checker:' "$at.out"; then
		printf '%-28s %-34s %s\n' "$name" "$scenario" "$(sed -n '1s/.*executions: //p' "$at.out")"
	else
		cat "$at.out"
		echo "$name: NOT NOTICED"
		return 1
	fi
}

# try_board NAME SCENE FILE SED: what the scene of boards says of the file, which is compiled into them
try_board() {
	local name=$1 scene=$2 file=$3 at=$dir/$1
	mkdir -p "$at/slmpm/board"
	sed "$4" "$file" >"$at/$file"
	! cmp -s "$file" "$at/$file" || { echo "$name: $file has no such line any more"; return 1; }
	${CC:-gcc} -std=gnu11 -O1 -w -D_GNU_SOURCE= -DSLMPM_MODEL -fno-stack-protector -pthread -I"$at" -I. -Iinclude \
		-I"$SLMPM_BUILD/gen" tests/model/board/members.c "$obj"/model/tests/model/boards.o \
		"$obj"/model/tests/model/board/step.o "$obj"/model/tests/model/{explore,report,coroutine}.o "$obj/inner.a" -luring -lm $linker -Wl,-S \
		-o "$at/boards" || { echo "$name: cannot be built"; return 1; }
	"$at/boards" -b "$scene" >"$at.out" 2>&1
	if grep -q '1 with a fault$' "$at.out" && ! grep -q 'the checker:' "$at.out"; then
		printf '%-28s %-34s %s\n' "$name" "$scene" "$(sed -n '2s/.*[0-9]  //p' "$at.out")"
	else
		cat "$at.out"
		echo "$name: NOT NOTICED"
		return 1
	fi
}

# try NAME SCENE FILE SED: what the scene says of the file as SED changes it
try() {
	local name=$1 scene=$2 file=$3 at=$dir/$1
	[[ $file != slmpm/base/lock.* ]] || { try_lock "$@"; return; }
	[[ $file != slmpm/board/* ]] || { try_board "$@"; return; }
	sed "$4" "$file" >"$at.c"
	! cmp -s "$file" "$at.c" || { echo "$name: $file has no such line any more"; return 1; }
	${CC:-gcc} -std=gnu11 -O0 -w -D_GNU_SOURCE= -pthread -fPIC -fvisibility=hidden -I. -Iinclude -I"$SLMPM_BUILD/gen" \
		-c "$at.c" -o "$at.o" || { echo "$name: cannot be compiled"; return 1; }
	${CC:-gcc} -pthread "$at.o" "$obj"/tests/model/queues.o "$obj"/tests/model/queue/*.o "$obj"/model/tests/model/{explore,report}.o \
		"$obj/inner.a" -luring -lm $linker -Wl,-S \
		-Wl,-z,muldefs,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free -o "$at" ||
		{ echo "$name: cannot be linked"; return 1; }
	"$at" -b "$scene" >"$at.out" 2>&1
	rm -f "$at"
	if grep -q '1 with a fault$' "$at.out" && ! grep -q 'the checker:' "$at.out"; then
		printf '%-28s %-34s %s\n' "$name" "$scene" "$(sed -n '2s/.*[0-9]  //p' "$at.out")"
	else
		cat "$at.out"
		echo "$name: NOT NOTICED"
		return 1
	fi
}

# mutant NAME SCENE FILE SED: the same, beside others
mutant() {
	[ "$wanted" = "  " ] || [[ $wanted == *" $1 "* ]] || return 0
	count=$((count + 1))
	while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
	{ try "$@" >"$dir/$1.said" || touch "$dir/$1.missed"; cat "$dir/$1.said"; } &
}

count=0
binding=slmpm/link/binding.c channel=slmpm/workqueue/channel.c receive=slmpm/workqueue/receive.c
wait=slmpm/workqueue/wait.c workqueue=slmpm/workqueue/workqueue.c
claim=slmpm/link/claim.c reservation=slmpm/workqueue/reservation.c
mutant binding-wake-none 'three in flight' $binding 's/^\tif (!binding_allows(b))$/\tif (b)/'
mutant binding-take-uncounted 'three in flight' $binding 's/^\t\tb->sent++;$/\t\t;/'
mutant binding-return-uncounted 'taken back' $binding 's/^\tb->sent--;$/\t;/'
mutant binding-return-nowake 'taken back' $binding '/b->sent--;/{n;s/.*/\t;/}'
mutant count-waiting-zero 'bound amidst' $binding 's/^\tb->sent = count_waiting(ep, stream);/\tb->sent = 0;/'
mutant mark-list-begun 'bound amidst' $binding 's/n += !r->numbered;/n++;/'
mutant mark-list-unmarked 'cancelled amidst' $binding 's/r->bound_stream = .*/;/'
mutant count-waiting-bundle 'bound amidst a burst' $binding 's/mark_list(&ep->link.queue, stream) +/& ep->bundle.count +/'
mutant count-waiting-announced 'bound amidst a long one' $binding 's/ + mark_list(&ep->link.announced, stream);/;/'
mutant binding-new-no-answer 'three in flight' $binding 's/^\tlink_control_whole(ep, WIRE_BOUND.*/\t;/'
mutant binding-free-nowake 'three in flight, the owner dies' $binding '/^static void binding_free/,/^}/s/a->over(a);/;/'
mutant count-early-unexpected 'bound amidst' $receive 's/n += m->stream == wq->receive.stream;/;/'
mutant count-early-partial 'bound and gone amidst' $receive 's/n += w->request \&\& w->request->message \&\& .*/;/'
mutant count-early-empty 'bound amidst' $receive 's/wq->done + wq->failed - wq->receive.empty +/wq->done + wq->failed +/'
mutant receive-ended-empty 'bound amidst' $receive 's/^\twq->receive.empty++;/\t;/'
mutant receive-tell-empty 'bound amidst' $receive 's/receive_allowed(wq) - wq->receive.early/receive_allowed(wq) + wq->receive.empty - wq->receive.early/'
mutant receive-known-nocount 'bound amidst' $receive 's/wq->receive.early = count_early(wq, ep);/;/'
mutant enable-notell 'three in flight' $receive '/^void receive_enabled/,/^}/s/receive_tell(wq);/;/'
mutant enable-notready 'two queues wait for each other' $workqueue '/^void workqueue_enable/,/^}/s/channels_ready(wq);/;/'
mutant enable-noawait 'two queues wait for each other' $workqueue '/^void workqueue_enable/,/^}/s/await_inspect(&wq->awaits);/;/'
mutant deliver-nostrand 'two queues, failures' $channel 's/^\t\twait_strand(wq);/\t\t;/'
mutant deliver-noawait 'two queues, failures' $channel '/^static INLINE void deliver(/,/^}/s/^\tawait_inspect(&wq->awaits);/\t;/'
mutant stop-first 'two queues, failures' $channel 's/ || number > ch->failed)/)/'
mutant stop-last 'two queues, failures' $channel 's/(w->wr.op == SLMPM_OP_RECV || number > ch->failed)/w->wr.op == SLMPM_OP_RECV/'
mutant stranded-blames-last 'two queues, failures' $wait 's/\*len = first->failed;/*len = t->posted;/'
mutant flush-early 'taken back' $channel 's/if (ch->at \&\& ch->status \&\& list_empty(&ch->begun))/if (ch->at \&\& ch->status)/'
mutant flush-never 'two queues, cancels' $channel 's/n += flush(ch);/n += 0;/'
mutant may-begin-enabled 'two queues wait for each other' $channel 's/if (!is_enabled(ch->wq, w) || /if (/'
mutant step-waitenabled 'two queues wait for each other' $channel 's/w->state == WORK_BEGUN || is_enabled(ch->wq, w) ? wait_step/true ? wait_step/'
mutant finish-notready 'two queues wait for each other' $channel '/^static INLINE void complete(/,/^}/s/channel_ready(ch);/;/'
mutant ready-unsaid 'two queues, cancels' $channel 's/ctx->news = ctx->ready_since = true;/ctx->news = true;/'
mutant begin-noawait 'two queues wait for each other' $channel '/^static INLINE int begin_now(/,/^}/s/await_inspect(&wq->awaits);/;/'
mutant end-flushed 'two queues, failures' $channel 's/^\t\tch->wq->flushed++;/\t\t;/'
mutant passed-untold 'two queues wait for each other' $channel '/^static INLINE int advance(/,/^}/s/^\t\ttell_passed(ch);/\t\t;/'
mutant passed-by-another 'two queues wait for each other' $channel 's/w->wr.op != SLMPM_OP_SEND \&\& ch->passed/false/'
mutant stranded-ge 'two queues, failures' $wait 's/t->stopped \&\& a->value > most/t->stopped \&\& a->value >= most/'
mutant stranded-posted 'two queues, failures' $wait 's/? t->posted - t->failed :/? t->posted :/'
mutant entry-nolist 'three in flight' $binding '/^void binding_wait/,/^}/s/^\tlist_append(&b->awaits.*/\t;/'
mutant wait-noclaim 'claimed' $binding '/^void binding_wait/,/^}/s/claim_later(b);/;/'
mutant told-noclaim 'claimed' $binding '/^void binding_told/,/^}/s/claim_later(b);/;/'
mutant return-noserve 'claimed, not used' $binding 's/(void)claim_serve(b);/;/'
mutant bound-nocount 'claimed amidst' $binding 's/shared ? b->sent : 0, stream/0, stream/'
mutant claim-again-never 'claimed' $claim '/^void claim_answered/,/^}/s/^\tclaim_now(b);/\t;/'
mutant claim-twice 'claimed' $claim 's/b->shared.asks || !wanting/!wanting/'
mutant enter-noclaim 'claimed' $claim '/^void claim_enter/,/^}/s/claim_now(b);/;/'
mutant end-lost 'claimed, the owner dies' $claim 's/finish_all(&late, -ep->life->error);/;/'
mutant gone-stays 'claimed and gone amidst' $claim '/^void claim_end/,/^}/s/link_enqueue(ep, r);/;/'
mutant back-uncounted 'claimed, time goes by' $claim 's/^\tb->sent = b->allowed;/\t;/'
mutant back-never 'claimed, time goes by' $claim 's/^\tclaim_say(b, b->shared.given_back.*/\t;/'
mutant give-nobody 'claimed' $reservation '/^void reservation_give/,/^}/s/tell_granted(r);/;/'
mutant give-all 'claimed' $reservation 's/receive_allowed(wq) - wq->receive.reserved/receive_allowed(wq)/'
mutant at-once-unanswered 'claimed' $reservation 's/^\tlink_control_whole(r->ep, WIRE_BIND.*/\t;/'
mutant back-unheard 'claimed, time goes by' $reservation 's/^\tr->given_back = total;/\t;/'
mutant early-uncounted 'claimed amidst' $reservation 's/^\t\tr->early = .*/\t\t;/'
mutant waiting-uncounted 'claimed amidst' $reservation 's/r->granted = r->told = r->wanted = waiting;/;/'
mutant relative-taken 'two queues wait for each other' $wait 's/s->taken = total_plus(s->taken, w->value);/;/'
mutant strand-none 'two queues, failures' $wait '/^void wait_strand/,/^}/s/a->over(a);/;/'
mutant reach-noawait 'two queues wait for each other' $wait '/^void wait_reach/,/^}/s/await_inspect.*/;/'
mutant step-nolist 'two queues wait for each other' $wait '/^int wait_on/,/^}/s/list_append(w->awaits, &a->node);/;/'
mutant cancel-begun 'two queues, cancels' $workqueue 's/w->wr.op != SLMPM_OP_WAIT \&\& w->wr.op != SLMPM_OP_CALC))/w->wr.op != SLMPM_OP_CALC))/'
mutant cancel-noadvance 'two queues, cancels' $workqueue '/^static int cancel_those/,/^}/s/(void)channel_advance(&wq->channels\[i\]);/;/'
mutant calc-notready 'two queues, cancels' slmpm/workqueue/calculate.c 's/^\t\tchannel_ready(ch);/\t\t;/'
mutant wait-late 'two queues wait for each other' $channel 's/return await_is_over(a) ?/return *a->total - a->start > a->value ?/'
mutant enable-absolute 'two queues wait for each other' $channel 's/more ? total_plus(t->enabled, value) : value/value/'
mutant completion-noawait 'two queues wait for each other' slmpm/completion/queue.c '/^void queue_put/,/^}/s/await_inspect(&q->awaits);/;/'
mutant rearm-base 'a queue runs again' $wait 's/^\t\ts->base = total_plus(s->base, s->taken);/\t\t;/'
mutant arm-notready 'a queue runs again' $workqueue '/^static int arm/,/^}/s/channels_ready(wq);/;/'
mutant deadline-notready 'time goes by' $wait '/^uint64_t channel_deadlines/,/^}/s/channel_ready(ch);/;/'
mutant deadline-unlisted 'two queues, time goes by' $wait '/^static inline void set_deadline/,/^}/s/list_append.*/;/'
agree=slmpm/board/agree.c board=slmpm/board/board.c
mutant agree-verdict-unread 'two die' $agree 's/rc = take_verdict(a);/rc = 0;/'
mutant agree-verdict-of-living 'two die' $agree 's/|| !read_verdict(a->b, r, &said))/|| includes(a->gone, r) || !read_verdict(a->b, r, \&said))/'
mutant agree-any-view 'two die' $agree 's/all &= rc && are_alike(.*/all \&= rc;/'
mutant agree-not-shown-again 'one dies' $agree '/^void agree_mark/,/^}/s/a->shown = false;/;/'
mutant agree-left-unseen 'one leaves, one dies' $agree 's/^\t\tmark_left(a);/\t\t;/'
mutant agree-version-even 'two members' $agree 's/board_store(&v->version, version + 1);/;/'
mutant agree-version-unchecked 'two members' $agree 's/version % 2 == 0 && version == board_load(&v->version) &&/true \&\&/'
mutant agree-show-unfenced 'two members' $agree 's/atomic_thread_fence(memory_order_release);/;/'
mutant agree-show-unordered 'two members, twice' $agree '/^static void show(/,/^}/s/atomic_thread_fence(memory_order_seq_cst);/;/'
mutant agree-show-unreleased 'two members' $agree 's/(&v->version, version + 2, memory_order_release)/(\&v->version, version + 2, memory_order_relaxed)/'
mutant agree-verdict-unreleased 'two members' $agree 's/(&v->generation, b->generation + UINT64_C(1), memory_order_release)/(\&v->generation, b->generation + 1, memory_order_relaxed)/'
mutant agree-verdict-nowake 'one dies' $agree '/^int agree_step/,/^}/s/boards_wake_all(a->b);/;/'
mutant agree-base-own 'one dies' $agree 's/if (said.posted > verdict->posted)/if (false)/'
mutant agree-rank-stays 'one dies' $agree 's/if (b->rank == from)/if (false)/'
mutant board-wake-unfenced 'two members, twice' $board '/^void boards_wake_all/,/^}/s/atomic_thread_fence(memory_order_seq_cst);/;/'
mutant board-announce-unfenced 'two members' $board '/^bool boards_announce/,/^}/s/atomic_thread_fence(memory_order_seq_cst);/;/'
mutant board-end-nowake 'one leaves, one dies' $board '/^void boards_end/,/^}/s/ring_all(b);/;/'
reach=slmpm/board/reach.c
mutant reach-claim-unfenced 'one writes' $reach '/^void reach_claim/,/^}/s/atomic_thread_fence(memory_order_seq_cst);/;/'
mutant reach-withdraw-unfenced 'one writes' $reach '/^void reach_withdraw/,/^}/s/atomic_thread_fence(memory_order_seq_cst);/;/'
mutant reach-release-relaxed 'one writes' $reach '/^void reach_release/,/^}/s/memory_order_release/memory_order_relaxed/'
mutant reach-withdrawn-later 'one writes' $reach 's/board_load(&b->of\[r\]->withdrawn) >= number/board_load(\&b->of[r]->withdrawn) > number/'
mutant reach-writer-unawaited 'one writes' $reach 's/!= BOARD_NONE && clock_now/== b->size \&\& clock_now/'
mutant reach-writer-first 'two write' $reach '/^uint32_t reach_writer/,/^}/s/r < b->size/r < 2/'
mutant reach-dead-awaited 'one writes' $reach 's/^\t\t    !writer_is_gone(b, r))/\t\t    true)/'
remote=slmpm/workqueue/remote_count.c grant=slmpm/region/memory_grant.c pipe=slmpm/workqueue/pipe.c
mutant counted-early 'counted there' $remote '/^bool remote_counts_are_out/,/^}/s/return w->state == .*/return true;/'
mutant counted-notready 'counted there' $remote '/^void remote_count_arrived/,/^}/s/channel_ready(ch);/;/'
mutant counted-nostatus 'counted there, refused' $remote '/^static void count_finish/,/^}/s/w->done.status = status;/;/'
mutant counted-twice 'counted there' $remote 's/w->state != WORK_COUNTS && done->status >= 0/done->status >= 0/'
mutant counted-by-any 'counted there, refused' $grant '/^struct grant \*region_check/,/^}/s/ || g->ending//'
mutant counted-not-revoked 'counted there, refused' $grant '/^void grant_take_back/,/^}/s/^\tg->ending = true;/\t;/'
mutant pipe-notready 'piped' $pipe '/^static void place_ended/,/^}/s/channel_ready(p->ch);/;/'
mutant pipe-unasked 'piped, the next hop is slow' $pipe 's/if (!b || binding_allows(b))/if (true)/'
mutant pipe-nolist 'piped, the next hop is slow' $pipe 's/^\tbinding_wait(b, &p->await);/\t;/'
mutant pipe-same-place 'piped' $pipe 's/^\tp->out = behind(p, i);/\t;/'
mutant pipe-more 'piped' $pipe 's/ || p->receives == p->work->wr.value)/)/'
mutant pipe-overwrites 'piped' $pipe '/^static bool receive_next/,/^}/s/at->state != PLACE_EMPTY || //'
mutant pipe-sends-stay 'piped' $pipe 's/p->cancelled || at->state == PLACE_RECEIVES/at->state == PLACE_RECEIVES/'
mutant pipe-uncounted 'piped' $pipe 's/^\t\t\tp->forwarded++;/\t\t\t;/'
mutant pipe-length 'piped' $pipe 's/piece.len = at->received.len;/;/'
mutant pipe-spread-stays 'piped' $pipe '/^static void place_ended/,/^}/s/^\t\tspread_end(.*/\t\t;/'
spread=slmpm/workqueue/spread.c
mutant spread-down 'spread over two links' $spread 's/if (!(up >> link \& 1) || /if (/'
mutant spread-same 'spread over two links' $spread 's/load\[link\] < load\[best\]/load[link] > load[best]/'
mutant spread-any 'spread over two links' $spread 's/if (up >> link \& 1 && /if (/'
mutant spread-stays 'spread over two links' $spread '/^void spread_end/,/^}/s/^\tpart->by = 0;/\t;/'
mutant spread-bytes 'spread over two links' $spread '/^void spread_end/,/^}/s/if (status >= 0)/if (true)/'
mutant spread-load 'spread over two links' $spread 's/load\[link\] -= part->bytes + PACKET/load[link] -= PACKET/'
lock='a favoured owner and a guest'
mutant lock-enter-first "$lock" slmpm/base/lock.h 's/if (LIKELY(n || !atomic_load_explicit(&l->shared, memory_order_acquire)))/if (true)/'
mutant lock-enter-stays "$lock" slmpm/base/lock.h '/^static inline bool lock_enter/,/^}/s/atomic_store_explicit(&l->inside, 0, memory_order_release);/;/'
mutant lock-enter-nowake "$lock" slmpm/base/lock.h '/^static inline bool lock_enter/,/^}/s/lock_wake(l);/;/'
mutant lock-leave-nowake "$lock" slmpm/base/lock.h '/^static inline void lock_leave/,/^}/s/lock_wake(l);/;/'
mutant lock-leave-relaxed "$lock" slmpm/base/lock.h '/^static inline void lock_leave/,/^}/s/memory_order_release/memory_order_relaxed/'
mutant lock-claim-unfenced "$lock" slmpm/base/lock.c 's/^\tfence_owner(l);/\t;/'
mutant lock-claim-relaxed "$lock" slmpm/base/lock.c 's/&l->inside, memory_order_acquire/\&l->inside, memory_order_relaxed/'
mutant lock-claim-late "$lock" slmpm/base/lock.c '/^static void lock_claim/,/^}/{/memory_order_relaxed);$/d;s/^\tfence_owner(l);/&\n\tatomic_store_explicit(\&l->shared, true, memory_order_relaxed);/}'
wait
missed=$(find "$dir" -name '*.missed' | wc -l)
echo "$count mutants, $missed not noticed"
[ "$missed" = 0 ]
