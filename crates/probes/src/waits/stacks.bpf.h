/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Where a session's thread waits: a record with its stack when it leaves the processor. The next record of
 * the thread says how long that was.
 */
#ifndef WAGGLE_WAITS_STACKS_BPF_H
#define WAGGLE_WAITS_STACKS_BPF_H

#include "../waits/frames.bpf.h"

/* This program, and the two functions of the kernel that call it. */
#define OWN_FRAMES 3

/*
 * Writes the functions of the running thread, the innermost first, and returns how many there are: one more than
 * are written where that are not all.
 */
static __always_inline u32 write_frames(const struct target *target, struct task_struct *task, u64 *to)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	u64 ip = regs->ip, sp = regs->sp, bp = regs->bp;
	u64 frame[2] = {};
	u32 count = 0;

	for (; count < LIBRARY_FRAMES; count++) {
		u64 at = ip - target->library;
		if (at >= target->library_bytes)
			break;
		to[count] = ip;
		if (!leave_library(at, &ip, &sp, &bp))
			return count + 1;
	}
	for (; count < WAIT_FRAMES; count++) {
		to[count] = ip;
		if (bp < sp || !read_memory(frame, sizeof(frame), bp) || !frame[1])
			return count + 1;
		sp = bp;
		bp = frame[0];
		ip = frame[1];
	}
	return WAIT_FRAMES + 1;
}

static __always_inline void write_turn(struct turn *turn, const struct task_struct *task)
{
	turn->arrived = task->sched_info.last_arrival;
	turn->left = task->se.cfs_rq->rq->clock;
	turn->run_delay = task->sched_info.run_delay;
	turn->switches = task->nvcsw + task->nivcsw;
	turn->tid = task->pid;
}

/* The thread waits for its next request. */
static __always_inline void tell_rests(struct target *target, struct task_struct *task, u64 now)
{
	struct rests *rests =
		reserve_of(target, RECORD_RESTS, sizeof(*rests), now, LOST_SAMPLE);

	if (!rests)
		return;
	write_turn(&rests->turn, task);
	submit(&rests->head);
}

/* Why and where the running thread leaves the processor. */
static __always_inline void tell_stack(void *ctx, struct target *target, struct parts *parts,
				      struct task_struct *task, u64 thd, u64 start, u32 command)
{
	u64 now = bpf_ktime_get_ns();
	u32 id = 0;

	if (parts->is_between) {
		if (parts->told)
			tell_rests(target, task, now);
		parts->told = 0;
		return;
	}
	struct wait_stack *stack =
		reserve_of(target, RECORD_LEFT, sizeof(*stack), now, LOST_SAMPLE);

	if (!stack)
		return;
	parts->told = 1;
	stack->head.thd = thd;
	write_turn(&stack->turn, task);
	if (cfg.has_id)
		read_memory(&id, sizeof(id), thd + cfg.id);
	stack->id = id;
	stack->start = start;
	stack->command = command;
	stack->part = parts->part;
	bpf_get_current_comm(stack->thread_name, sizeof(stack->thread_name));
	stack->user_frames = write_frames(target, task, stack->user);
	stack->kernel_bytes = bpf_get_stack(ctx, stack->kernel, sizeof(stack->kernel), OWN_FRAMES);
	stack->took_ns = bpf_ktime_get_ns() - now;
	submit(&stack->head);
}

#endif
