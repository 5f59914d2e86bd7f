/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Where the time of a statement went, as one program collects it when a thread leaves the processor
 * and another puts it into the record of a reply.
 *
 * A statement is told from the next by its start: all that is collected is kept until the session
 * has another start. So every reply of a statement has the sums since its begin.
 */
#ifndef WAGGLE_PARTS_BPF_H
#define WAGGLE_PARTS_BPF_H

#include "session.bpf.h"
#include "ring.bpf.h"

/* Whether the scheduler tells what is needed (CONFIG_SCHED_INFO). */
static __always_inline bool scheduler_tells(void)
{
	struct task_struct *task = NULL;

	return bpf_core_field_exists(task->sched_info.run_delay) &&
	       bpf_core_field_exists(task->sched_info.last_arrival);
}

/* Nothing is known yet of a thread that is watched from now on. */
static __always_inline void watch_parts(struct parts *parts, const struct target *target)
{
	__builtin_memset(parts, 0, sizeof(*parts));
	parts->turn = target->turn;
}

/* The session runs this statement now. */
static __always_inline void begin_parts(struct parts *parts, u64 thd, u64 start)
{
	if (parts->start == start && parts->thd == thd)
		return;
	__builtin_memset(parts->ns, 0, sizeof(parts->ns));
	/* The first one that is met may have begun before its thread was watched. */
	if (parts->thd)
		parts->since_ns = 0;
	parts->thd = thd;
	parts->start = start;
	parts->switches = 0;
	parts->replied = 0;
	parts->now = parts->next;
	parts->next.queue_ns = 0;
	parts->next.after_reply_ns = 0;
}

/* From this length on a wait for a lock is told when it has ended. */
#define LONG_WAIT_NS (10 * 1000 * 1000)

static __always_inline bool is_lock(u64 part)
{
	return part >= PART_ROW_LOCK && part <= PART_USER_LOCK;
}

/*
 * Tells of a wait for a lock: that it begins, or how long it was. It is rare, and verified once for all its
 * callers.
 */
__noinline int tell_wait(u64 thd, u64 start, u64 part, u64 ns)
{
	struct target *target = current_target();
	/* Before the place is taken: the order of the rings rests on it. */
	u64 now = bpf_ktime_get_ns();

	if (!target)
		return 0;
	struct wait *wait = reserve_of(target, RECORD_WAIT, sizeof(*wait), now, LOST_WAIT);
	if (!wait)
		return 0;
	wait->head.thd = thd;
	wait->start = start;
	wait->part = part;
	wait->ns = ns;
	submit(&wait->head);
	return 0;
}

/* Larger than any. */
#define RUN_DELAY_UNKNOWN (~0ULL >> 1)
/* Whoever is woken counts as queued a moment before it is ready to run. */
#define WOKEN_NS (1000 * 1000)

/*
 * Since 6.12 a thread stays in the queue for a while when it goes to sleep. Where it is moved to another processor
 * then, it counts as queued until it comes back. Nobody knows when it was woken, so all of that is its wait. A program
 * sees it moved (waits/mod.bpf.c); of one that was moved before, a look sees for how long it is queued.
 */
static __always_inline void doubt_queue(struct parts *parts, const struct task_struct *task, u64 now)
{
	u64 queued = task->sched_info.last_queued;

	if (task->__state && !task->on_cpu && queued && queued + WOKEN_NS < now)
		parts->run_delay = RUN_DELAY_UNKNOWN;
}

/* How long a wait had lasted when its thread was watched. */
static __always_inline u64 waited_before(const struct parts *parts, u64 left)
{
	return left == parts->met ? parts->before_ns : 0;
}

/* The thread is on the processor again: accounts the time since it left. */
static __always_inline void close_parts(struct parts *parts, const struct task_struct *task)
{
	/* The program at a reply may be interrupted by the other: nothing is counted twice. */
	u64 left = __sync_lock_test_and_set(&parts->left, 0);
	u32 part = parts->part;

	if (!left || !scheduler_tells())
		return;
	u64 off = task->sched_info.last_arrival - left;
	u64 queued = task->sched_info.run_delay - parts->run_delay;

	if ((s64)off <= 0)
		return;
	if ((s64)queued < 0)
		queued = 0;
	if (queued > off)
		queued = off;
	if (parts->replied_ns)
		parts->off_after_reply += off;
	if (parts->is_between) {
		parts->next.queue_ns += queued;
		return;
	}
	parts->ns[PART_RUN_QUEUE] += queued;
	if (part < PARTS)
		parts->ns[part] += off - queued;
	if (!is_lock(part))
		return;
	u64 waited = off - queued + waited_before(parts, left);
	if (waited >= LONG_WAIT_NS)
		tell_wait(parts->thd, parts->start, part, waited);
}

/* What a thread has used so far. */
static __always_inline void read_usage(u64 *usage, const struct task_struct *task)
{
	if (bpf_core_field_exists(task->ioac.read_bytes)) {
		usage[0] = task->ioac.read_bytes;
		usage[1] = task->ioac.write_bytes;
	}
	usage[2] = task->min_flt;
	usage[3] = task->maj_flt;
}

/* Whether the parts of this session are known. */
static __always_inline bool has_parts(const struct target *target, const struct parts *parts)
{
	return cfg.has_parts && target->parts_program && parts->turn == target->turn;
}

/* A reply of the session of the running thread: accounts all that was before it. */
static __always_inline void close_parts_at_reply(const struct target *target, struct parts *parts)
{
	if (has_parts(target, parts))
		close_parts(parts, bpf_get_current_task_btf());
}

/* 1 where a number is not 0. The compiler must not see this: as a branch it has too many paths. */
static __always_inline u64 is_set(u64 value)
{
	u64 negative = -value;

	asm volatile("" : "+r"(negative));
	return (value | negative) >> 63;
}

/* Most words that a reply may have for its parts: those that are not 0, their list, one to spare. */
static __always_inline u64 part_words(const struct parts *parts)
{
	u64 words = PART_WORDS - PARTS + 2;

#pragma unroll
	for (u32 i = 1; i < PARTS; i++)
		words += is_set(parts->ns[i]);
	return words;
}

/* Which words follow, and how many there are. */
struct part_list {
	u64 mask;
	u64 count;
};

static __always_inline void put_part(u64 *to, struct part_list *list, u32 word, u64 value)
{
	u64 set = is_set(value);

	/* What is 0 is written over by the next. */
	to[1 + list->count] = value;
	list->count += set;
	list->mask |= set << word;
}

/* Writes the parts of a statement with this start to where there is room for `part_words`. */
static __always_inline void write_parts(u64 *to, struct parts *parts, u64 thd, u64 start)
{
	const struct task_struct *task = bpf_get_current_task_btf();
	struct part_list list = {};
	u64 usage[USAGES] = {};

	begin_parts(parts, thd, start);
	read_usage(usage, task);
#pragma unroll
	for (u32 i = 1; i < PARTS; i++)
		put_part(to, &list, i, parts->ns[i]);
	put_part(to, &list, EXTRA_SINCE, parts->since_ns);
	put_part(to, &list, EXTRA_QUEUE_BEFORE, parts->now.queue_ns);
	put_part(to, &list, EXTRA_AFTER_REPLY, parts->now.after_reply_ns);
#pragma unroll
	for (u32 i = 0; i < USAGES; i++)
		put_part(to, &list, EXTRA_READ_BYTES + i, usage[i] - parts->now.usage[i]);
	put_part(to, &list, EXTRA_SWITCHES, parts->switches);
	to[0] = list.mask;
}

/* The reply was sent; whether more of the statement follow. */
static __always_inline void end_parts(const struct target *target, struct parts *parts, u64 now,
				      bool goes_on)
{
	const struct task_struct *task = bpf_get_current_task_btf();

	if (!cfg.has_parts || !target->parts_program)
		return;
	if (parts->turn != target->turn)
		watch_parts(parts, target);
	if (goes_on)
		return;
	read_usage(parts->next.usage, task);
	parts->replied = 1;
	parts->replied_ns = now;
	parts->off_after_reply = 0;
}

#endif
