/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What is asked of the threads of a server from outside. None of these programs reads their memory: one that
 * waits for it could wait for ever, and no program of the host could be unloaded meanwhile.
 */
#ifndef WAGGLE_WAITS_THREADS_BPF_H
#define WAGGLE_WAITS_THREADS_BPF_H

#include "../waits/stage.bpf.h"

struct bpf_iter_meta {
	struct seq_file *seq;
} __attribute__((preserve_access_index));

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} __attribute__((preserve_access_index));

/* A thread of a server, and what is known of it. */
struct known_thread {
	struct task_struct *task;
	struct target *target;
	/* NULL until its time is accounted. */
	struct session *session;
};

/* Whether the thread of an iterator is of a server in which this program accounts the time. */
static __always_inline bool find_thread(struct known_thread *found, struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (!task)
		return false;
	struct target *target = target_of(task->tgid);
	if (!target || target->parts_program != cfg.program || !scheduler_tells())
		return false;
	struct session *session = bpf_task_storage_get(&sessions, task, NULL, 0);

	found->task = task;
	found->target = target;
	found->session = session && session->parts.turn == target->turn ? session : NULL;
	return true;
}

/* What a thread does at a look. */
static __always_inline void look_at(struct look_row *row, const struct task_struct *task,
				    const struct parts *parts, u64 now)
{
	u64 left = parts->left, arrival = task->sched_info.last_arrival;
	u64 since = task->sched_info.last_queued;

	/* Read here: the verifier wants one kind of pointer for each load, and the compiler would make one of three. */
	asm volatile("" : "+r"(left), "+r"(arrival), "+r"(since));
	row->part = PART_RUN_QUEUE;
	if (task->__state) {
		row->part = parts->part;
		since = left - waited_before(parts, left);
	} else if (task->on_cpu) {
		row->part = PART_CPU;
		since = arrival;
	}
	/* Its processor is ahead of ours, or it has changed over meanwhile. */
	row->ns = since && now > since ? now - since : 0;
}

/* Runs for each thread of a server. Writes what the thread waits for, if it serves a session. */
SEC("iter/task")
int on_look(struct bpf_iter__task *ctx)
{
	struct known_thread found;
	struct look_row row = {};

	if (!find_thread(&found, ctx) || !found.session)
		return 0;
	struct task_struct *task = found.task;
	struct session *session = found.session;
	struct task_struct *reader = bpf_get_current_task_btf();
	u64 now = reader->se.cfs_rq->rq->clock;

	row.thd = session->parts.thd;
	row.start = session->parts.start;
	look_at(&row, task, &session->parts, now);
	doubt_queue(&session->parts, task, now);
	bpf_seq_write(ctx->meta->seq, &row, sizeof(row));
	return 0;
}

/* How often a thread has left a processor. It is counted before it is told that the thread leaves. */
static __always_inline u64 switches_of(const struct task_struct *task)
{
	u64 switches = task->nvcsw + task->nivcsw;

	/* What is read after this is newer. */
	asm volatile("" : "+r"(switches) : : "memory");
	return switches;
}

/* Runs for each thread of a server when it is watched, and at some looks. Writes those that nobody has noted yet. */
SEC("iter/task")
int on_thread(struct bpf_iter__task *ctx)
{
	struct known_thread found;
	struct thread_row row = {};

	if (!find_thread(&found, ctx) || found.session)
		return 0;
	struct task_struct *task = found.task;
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	row.switches = switches_of(task);
	row.is_off = !task->on_cpu;
	row.pointer = task->thread.fsbase;
	row.ip = regs->ip;
	row.sp = regs->sp;
	row.bp = regs->bp;
	row.first = regs->di;
	row.tid = task->pid;
	row.tgid = task->tgid;
	if (row.is_off && task->__state) {
		u32 part = part_of_call(task, regs->orig_ax);
		row.wants = part == BY_POLLED ? WANTS_POLLED : part == BY_STACK ? WANTS_STACK : 0;
	}
	bpf_seq_write(ctx->meta->seq, &row, sizeof(row));
	return 0;
}

/* By thread: what user space has read of those that `on_thread` wrote. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, NOTES_MAX);
	__type(key, u32);
	__type(value, struct note);
} notes SEC(".maps");

/* Why a thread is off the processor, by what was read of it. */
static __always_inline u32 part_of_note(struct task_struct *task, const struct note *note)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	s64 call = regs->orig_ax;
	u32 part = part_of_call(task, call);

	if (!task->__state)
		return PART_RUN_QUEUE;
	if (is_stopped(task))
		return PART_STOPPED;
	if (part == BY_POLLED)
		return part_of_polled(note->polled);
	if (part != BY_STACK)
		return part;
	if (says_all(&note->says))
		return note->says.part;
	return part_of_both(&note->says, part_of_text(note->state), call);
}

/*
 * When a thread that sleeps left its processor: it came there, and ran for a while. Time that others took from it
 * meanwhile (interrupts, the host) is missing, so a wait may be told as longer by that.
 */
static __always_inline u64 slept_since(const struct task_struct *task)
{
	const struct sched_entity *se = &task->se;

	return task->sched_info.last_arrival + se->sum_exec_runtime - se->prev_sum_exec_runtime;
}

/*
 * Runs for each thread of a server when user space has read what it does. From now on its time is known. One
 * that is off the processor is noted as if it left it now. One that has moved on since is left for another time.
 */
SEC("iter/task")
int on_note(struct bpf_iter__task *ctx)
{
	struct known_thread found;

	if (!find_thread(&found, ctx) || found.session)
		return 0;
	struct task_struct *task = found.task;
	struct target *target = found.target;
	u32 tid = task->pid;
	const struct note *note = bpf_map_lookup_elem(&notes, &tid);
	if (!note)
		return 0;
	u64 switches = switches_of(task);
	bool is_off = !task->on_cpu;
	bool holds = is_off && note->is_off && note->switches == switches;
	/* It works: whatever it waits for will be seen. */
	bool works = !is_off && !task->__state;
	if (!holds && !works)
		return 0;
	struct session *session = bpf_task_storage_get(&sessions, task, NULL,
						       BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!session) {
		count_lost(target, LOST_MAP_FULL, 1);
		return 0;
	}
	struct parts *parts = &session->parts;
	struct task_struct *reader = bpf_get_current_task_btf();
	u64 now = reader->se.cfs_rq->rq->clock;

	/* The other program has noted it meanwhile. */
	if (parts->turn == target->turn)
		return 0;
	__builtin_memset(parts, 0, sizeof(*parts));
	parts->since_ns = bpf_ktime_get_ns();
	read_usage(parts->next.usage, task);
	if (holds) {
		begin_parts(parts, note->thd, note->start);
		leave(parts, task, note->command, true, part_of_note(task, note));
		doubt_queue(parts, task, now);
		u64 since = slept_since(task);
		parts->before_ns = parts->part != PART_RUN_QUEUE && since < now ? now - since : 0;
		parts->met = parts->left = now;
	}
	/* The other program looks at nothing of it before. */
	__sync_lock_test_and_set(&parts->turn, target->turn);
	/* It left the processor meanwhile, and nobody saw it. */
	if (switches_of(task) != switches)
		parts->turn = 0;
	return 0;
}

#endif
